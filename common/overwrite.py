"""Deletes that leave nothing readable in the file of an SQLite database."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connection, transaction

_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5(%'"


@contextmanager
def overwritten() -> Iterator[None]:
    """
    Run a transaction whose deleted and replaced values are overwritten in the file, not only released.

    Afterwards rewrite the search indexes, where deleted words stay until their parts are merged, and empty
    the write-ahead log. A reader can hold the log back; it is then emptied by a later checkpoint. PostgreSQL
    removes old values when it vacuums.
    """
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    _run("PRAGMA secure_delete = ON")
    try:
        with transaction.atomic():
            yield
            transaction.on_commit(_finish)
    finally:
        _run("PRAGMA secure_delete = OFF")


def _run(statement: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [str(row[0]) for row in cursor.fetchall()]


def _finish() -> None:
    try:
        for name in _run(_INDEXES):
            _run(f"INSERT INTO {name}({name}) VALUES ('optimize')")  # noqa: S608  our own names
        _run("PRAGMA wal_checkpoint(TRUNCATE)")
    except Error:  # another process writes; what was deleted is deleted
        return
