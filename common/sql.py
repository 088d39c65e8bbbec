"""SQL of our own: rows from a query or from a file, and one moment of the database to read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection, models, transaction
from django.db.models import QuerySet

from common.jsonl import in_batches

ROWS_AT_ONCE = 500


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


def insert_rows(model: type[models.Model], fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of Python values as they are: no default, no `auto_now`, no signal."""
    columns, quote = [_field(model, name) for name in fields], connection.ops.quote_name
    names = ", ".join(quote(str(column.column)) for column in columns)
    table = quote(model._meta.db_table)
    prepare: list[tuple[Any, Callable[..., Any]]] = [
        (_as_it_is(column), column.get_db_prep_save) for column in columns
    ]
    # NB: in batches, because `rows` may read the database, which cannot answer while it takes a batch.
    for batch in in_batches(rows, ROWS_AT_ONCE):
        values = [
            [
                value if type(value) is own else prepared(value, connection)
                for (own, prepared), value in zip(prepare, row, strict=True)
            ]
            for row in batch
        ]
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                _copy(cursor, f"COPY {table} ({names}) FROM STDIN", values)
            else:
                marks = ", ".join(["%s"] * len(columns))
                # NB: table and columns are our own, values are parameters.
                statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608
                cursor.executemany(statement, values)


def _copy(cursor: Any, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    """Send rows to PostgreSQL: as many INSERTs take the database and this process several times as long."""
    with connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


@contextmanager
def one_moment() -> Iterator[None]:
    """Let all queries in here see the database of one moment, while others write. They cannot write."""
    if connection.in_atomic_block:  # the transaction around it decides
        yield
    elif connection.vendor == "sqlite":
        # NB: `atomic` would begin IMMEDIATE, which holds up every writer.
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield


def _field(model: type[models.Model], name: str) -> "models.Field[Any, Any]":
    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)  # noqa: S101  a reverse relation has no column
    return field


def _as_it_is(field: "models.Field[Any, Any]") -> type | None:
    """Return the type whose values both databases take as they are: a conversion of each cell takes long."""
    if isinstance(field, models.ForeignKey):
        return _as_it_is(field.target_field)
    if isinstance(field, models.CharField | models.TextField):
        return str
    return int if isinstance(field, models.IntegerField) else None


def _prepared(model: type[models.Model], name: str, value: Any) -> Any:
    """Return the value as the database stores it in this field."""
    return _field(model, name).get_db_prep_value(value, connection)
