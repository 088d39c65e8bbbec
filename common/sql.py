"""Rows inserted from a query inside the database, where sending each row would cost most of the time."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, models
from django.db.models import QuerySet


def insert_select(
    model: type[models.Model],
    fields: Sequence[str],
    rows: QuerySet[Any, Any],
    *,
    constants: Mapping[str, Any] | None = None,
    ignore_conflicts: bool = False,
) -> None:
    """Insert the rows of a query: INSERT … SELECT.

    `rows` is a `values_list` whose columns fill `fields`, in this order. `constants` gives further fields the
    same value in every row. With `ignore_conflicts` a row that would break a unique constraint is skipped;
    otherwise the database raises IntegrityError.
    """
    same = {name: _prepared(model, name, value) for name, value in (constants or {}).items()}
    select, parameters = rows.order_by().query.sql_with_params()
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(_field(model, name).column)) for name in (*fields, *same))
    selected = ", ".join(["source.*", *["%s"] * len(same)])
    # NB: table and columns are our own, the query is compiled by Django, values are parameters.
    # "WHERE true" because SQLite would read ON CONFLICT as the condition of a join.
    statement = (
        f"INSERT INTO {quote(model._meta.db_table)} ({columns})"  # noqa: S608
        f" SELECT {selected} FROM ({select}) source WHERE true"
        f"{' ON CONFLICT DO NOTHING' if ignore_conflicts else ''}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*same.values(), *parameters])


def _field(model: type[models.Model], name: str) -> "models.Field[Any, Any]":
    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)  # noqa: S101  a reverse relation has no column
    return field


def _prepared(model: type[models.Model], name: str, value: Any) -> Any:
    """Return the value as the database stores it in this field."""
    return _field(model, name).get_db_prep_value(value, connection)
