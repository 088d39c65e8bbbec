"""Writes many rows with one prepared statement, where the ORM would take longer than the request."""

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

from django.db import connection, models

Row = Sequence[Any]
Fields = tuple[str, ...]


def rows_insert(
    model: type[models.Model], fields: Fields, rows: Sequence[Row], *, new_only: bool = False
) -> int:
    """Insert rows (values in the order of `fields`); return how many were inserted.

    With `new_only` existing rows stay; otherwise they raise IntegrityError. The fields must include every
    column without a database default.
    """
    return _execute(_insertion(model, fields, new_only), rows)


def rows_update(
    model: type[models.Model], fields: Fields, rows: Sequence[Row], *, unless: Fields = ()
) -> int:
    """Update rows by id (values in the order of `fields`, then the id); return how many were updated.

    A row whose `state` is one of `unless` stays unchanged.
    """
    return _execute(_change(model, fields, len(unless)), [(*row, *unless) for row in rows])


def rows_add(model: type[models.Model], fields: Fields, rows: Sequence[Row]) -> int:
    """Add to the numbers of rows by id (values in the order of `fields`, then the id)."""
    return _execute(_change(model, fields, 0, adding=True), rows)


def _execute(statement: str, rows: Sequence[Row]) -> int:
    if not rows:
        return 0
    adapters = _adapters()
    adapted = [
        [adapters[type(value)](value) if type(value) in adapters else value for value in row] for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(statement, adapted)
        return int(cursor.rowcount)


@cache
def _insertion(model: type[models.Model], fields: Fields, new_only: bool) -> str:
    columns, marks = ", ".join(_columns(model, fields)), ", ".join(["%s"] * len(fields))
    conflict = " ON CONFLICT DO NOTHING" if new_only else ""
    return f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ({marks}){conflict}'  # noqa: S608 - our names


@cache
def _change(model: type[models.Model], fields: Fields, guarded: int, *, adding: bool = False) -> str:
    columns = ", ".join(
        f"{column} = {column} + %s" if adding else f"{column} = %s" for column in _columns(model, fields)
    )
    guard = f" AND state NOT IN ({', '.join(['%s'] * guarded)})" if guarded else ""
    return f'UPDATE "{model._meta.db_table}" SET {columns} WHERE id = %s{guard}'  # noqa: S608 - our names


def _columns(model: type[models.Model], fields: Fields) -> list[str]:
    attnames = {field.name: field.column for field in model._meta.concrete_fields}
    return [f'"{attnames[name]}"' for name in fields]


def _adapters() -> dict[type, Callable[[Any], Any]]:
    """Return how the database driver takes values of these types."""
    operations = connection.ops

    def json(value: Any) -> Any:
        return operations.adapt_json_value(value, None)

    def amount(value: Decimal) -> Any:
        return operations.adapt_decimalfield_value(value, 20, 12)

    return {datetime: operations.adapt_datetimefield_value, Decimal: amount, list: json, dict: json}
