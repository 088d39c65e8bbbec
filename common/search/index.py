"""An index of words beside a table, kept by the database: FTS5 with triggers on SQLite, GIN on PostgreSQL."""

from collections.abc import Sequence

from django.db import connection
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import BigIntegerField
from django.db.models.expressions import RawSQL

# NB: migrations run these statements: change them in a new migration only. `{table}` and `{key}` are ours.
_SQLITE = (
    "CREATE VIRTUAL TABLE {table}_fts USING fts5("
    "words, content='{table}', content_rowid='{key}', detail=none, tokenize=\"ascii tokenchars '_'\")",
    # What a transaction adds is gathered in memory, up to 16 MB instead of 1: imports merge fewer pieces.
    "INSERT INTO {table}_fts({table}_fts, rank) VALUES ('hashsize', 16777216)",
    "CREATE TRIGGER {table}_added AFTER INSERT ON {table} BEGIN "
    "INSERT INTO {table}_fts(rowid, words) VALUES (new.{key}, new.words); END",
    "CREATE TRIGGER {table}_deleted AFTER DELETE ON {table} BEGIN "
    "INSERT INTO {table}_fts({table}_fts, rowid, words) VALUES ('delete', old.{key}, old.words); END",
    "CREATE TRIGGER {table}_changed AFTER UPDATE ON {table} BEGIN "
    "INSERT INTO {table}_fts({table}_fts, rowid, words) VALUES ('delete', old.{key}, old.words); "
    "INSERT INTO {table}_fts(rowid, words) VALUES (new.{key}, new.words); END",
)
_SQLITE_DROP = (
    "DROP TRIGGER {table}_added",
    "DROP TRIGGER {table}_deleted",
    "DROP TRIGGER {table}_changed",
    "DROP TABLE {table}_fts",
)
# Stored, because the planner may prefer to read all rows where a word is frequent.
_POSTGRES = (
    "ALTER TABLE {table} ADD COLUMN vector tsvector "
    "GENERATED ALWAYS AS (array_to_tsvector(string_to_array(words, ' '))) STORED",
    "CREATE INDEX {table}_gin ON {table} USING gin (vector)",
)
_POSTGRES_DROP = ("DROP INDEX {table}_gin", "ALTER TABLE {table} DROP COLUMN vector")


def create_index(editor: BaseDatabaseSchemaEditor, *, table: str, key: str) -> None:
    """Index the column `words` of a table whose primary key is `key`; for migrations."""
    _run(editor, _SQLITE if editor.connection.vendor == "sqlite" else _POSTGRES, table, key)


def drop_index(editor: BaseDatabaseSchemaEditor, *, table: str, key: str) -> None:
    """Remove what `create_index` made."""
    _run(editor, _SQLITE_DROP if editor.connection.vendor == "sqlite" else _POSTGRES_DROP, table, key)


def _run(editor: BaseDatabaseSchemaEditor, statements: Sequence[str], table: str, key: str) -> None:
    for statement in statements:
        # NB: not editor.execute, which would split a trigger at its semicolons.
        with editor.connection.cursor() as cursor:
            cursor.execute(statement.format(table=table, key=key))


def rows_with(asked: Sequence[Sequence[str]], *, table: str, key: str) -> RawSQL:
    """Build the subquery of the keys whose words include, for each of `asked`, one with such a beginning.

    `asked` comes from `words.beginnings`, so every text in it is [a-z0-9_]+.
    """
    if connection.vendor == "sqlite":
        statement = f"SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH %s"  # noqa: S608  our own names
        match = " AND ".join("(" + " OR ".join(f'"{one}"*' for one in some) + ")" for some in asked)
    else:
        # NB: OFFSET 0 keeps the planner from walking all rows in the outer query's order instead.
        statement = f"SELECT {key} FROM {table} WHERE vector @@ %s::tsquery OFFSET 0"  # noqa: S608
        match = " & ".join("(" + " | ".join(f"'{one}':*" for one in some) + ")" for some in asked)
    return RawSQL(statement, [match], output_field=BigIntegerField())  # noqa: S611  a parameter
