"""Writes many rows with one statement, where the ORM would take longer than the request.

PostgreSQL gets the rows as one JSON value: it would parse and plan a statement for each row, and every value
in its text.
"""

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from django.db import connection, models

Row = Sequence[Any]
Fields = tuple[str, ...]


def rows_insert(
    model: type[models.Model],
    fields: Fields,
    rows: Sequence[Row],
    *,
    new_only: bool = False,
    returning: Fields = (),
) -> list[tuple[Any, ...]]:
    """Insert rows (values in the order of `fields`); return the `returning` fields of each inserted row.

    With `new_only` existing rows stay; otherwise they raise IntegrityError. The fields must include every
    column without a database default.
    """
    ending = " ON CONFLICT DO NOTHING" if new_only else ""
    if returning:
        ending += f" RETURNING {_listed(model, returning)}"
    into = f'INSERT INTO "{model._meta.db_table}" ({_listed(model, fields)})'
    at_once = connection.ops.bulk_batch_size([model._meta.get_field(name) for name in fields], rows)
    inserted: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        for start in range(0, len(rows), at_once or 1):
            source, values = _source(model, fields, rows[start : start + at_once])
            cursor.execute(f"{into} {source}{ending}", values)
            inserted += cursor.fetchall() if returning else []
    return inserted


def rows_increase(model: type[models.Model], key: Fields, counts: Fields, rows: Sequence[Row]) -> None:
    """Add to the counts of the rows with these keys (values in the order of `key`, then `counts`).

    A key without a row gets one. The model has a unique constraint on `key`; no key is given twice.
    """
    fields = (*key, *counts)
    table = f'"{model._meta.db_table}"'
    changes = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in _columns(model, counts))
    ending = f" ON CONFLICT ({_listed(model, key)}) DO UPDATE SET {changes}"
    into = f"INSERT INTO {table} ({_listed(model, fields)})"
    at_once = connection.ops.bulk_batch_size([model._meta.get_field(name) for name in fields], rows)
    with connection.cursor() as cursor:
        for start in range(0, len(rows), at_once or 1):
            source, values = _source(model, fields, rows[start : start + at_once])
            cursor.execute(f"{into} {source}{ending}", values)


def rows_update(
    model: type[models.Model], fields: Fields, rows: Sequence[Row], *, unless: Fields = ()
) -> int:
    """Update rows by id (values in the order of `fields`, then the id); return how many were updated.

    A row whose `state` is one of `unless` stays unchanged.
    """
    if not rows:
        return 0
    table = f'"{model._meta.db_table}"'
    guard = f" AND {table}.state NOT IN ({', '.join(['%s'] * len(unless))})" if unless else ""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            changes = ", ".join(f"{column} = new.{column}" for column in _columns(model, fields))
            known = _recordset(model, (*fields, "id"))
            statement = f"UPDATE {table} SET {changes} FROM {known} WHERE {table}.id = new.id{guard}"  # noqa: S608
            cursor.execute(statement, [_json(model, (*fields, "id"), rows), *unless])
        else:
            changes = ", ".join(f"{column} = %s" for column in _columns(model, fields))
            statement = f"UPDATE {table} SET {changes} WHERE id = %s{guard}"  # noqa: S608 - our names
            cursor.executemany(statement, [_values([(*row, *unless)]) for row in rows])
        return int(cursor.rowcount)


def rows_add(model: type[models.Model], fields: Fields, row: Row) -> None:
    """Add to the numbers of a row by id (values in the order of `fields`, then the id)."""
    changes = ", ".join(f"{column} = {column} + %s" for column in _columns(model, fields))
    with connection.cursor() as cursor:
        cursor.execute(f'UPDATE "{model._meta.db_table}" SET {changes} WHERE id = %s', row)  # noqa: S608


def _source(model: type[models.Model], fields: Fields, rows: Sequence[Row]) -> tuple[str, list[Any]]:
    """Return the rows as the source of an INSERT, and its parameters."""
    if connection.vendor == "postgresql":
        selected = f"SELECT {_listed(model, fields)} FROM {_recordset(model, fields)}"  # noqa: S608 - our names
        return selected, [_json(model, fields, rows)]
    marks = f"({', '.join(['%s'] * len(fields))})"
    return f"VALUES {', '.join([marks] * len(rows))}", _values(rows)


@cache
def _recordset(model: type[models.Model], fields: Fields) -> str:
    """Return the table `new`, made from a JSON parameter, with the types of the fields."""
    known = {field.name: field for field in model._meta.concrete_fields}
    types = [known[name].cast_db_type(connection) for name in fields]
    columns = zip(_columns(model, fields), types, strict=True)
    return f"json_to_recordset(%s) AS new ({', '.join(f'{column} {kind}' for column, kind in columns)})"


def _json(model: type[models.Model], fields: Fields, rows: Sequence[Row]) -> str:
    names = [column.strip('"') for column in _columns(model, fields)]
    return json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=str)


def _values(rows: Sequence[Row]) -> list[Any]:
    """Return the values of all rows as SQLite takes them."""
    adapters = _adapters()
    return [
        adapters[type(value)](value) if type(value) in adapters else value for row in rows for value in row
    ]


def _listed(model: type[models.Model], fields: Fields) -> str:
    return ", ".join(_columns(model, fields))


@cache
def _columns(model: type[models.Model], fields: Fields) -> tuple[str, ...]:
    names = {field.name: field.column for field in model._meta.concrete_fields}
    return tuple(f'"{names[name]}"' for name in fields)


def _adapters() -> dict[type, Callable[[Any], Any]]:
    operations = connection.ops

    def as_json(value: Any) -> Any:
        return operations.adapt_json_value(value, None)

    def amount(value: Decimal) -> Any:
        return operations.adapt_decimalfield_value(value, 20, 12)

    return {
        datetime: operations.adapt_datetimefield_value,
        date: operations.adapt_datefield_value,
        Decimal: amount,
        list: as_json,
        dict: as_json,
    }
