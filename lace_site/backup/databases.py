"""Copies a whole database while others write to it, and puts a copy into an empty place."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from django.db import connection, transaction
from django.db.migrations.autodetector import MigrationAutodetector
from psycopg.conninfo import make_conninfo

from common.problems import InputProblem, OutsideFailure
from lace_site.backup.archive import Content

# Sign-ins are no part of a backup: whoever holds one holds no session of anybody.
SESSIONS = "django_session"
_MIGRATIONS = "SELECT app, name FROM django_migrations ORDER BY id"


class Copier(Protocol):
    """Dumps and loads databases of one kind."""

    kind: str
    member: str

    def dump(self, target: Path) -> Content:
        """Write the state of one moment to a new file, without sessions, and return what is in it."""

    def occupied(self) -> str:
        """Return what is in the way of a restore; "" for an empty place."""

    def load(self, source: Path, content: Content) -> None:
        """Check the copy and put all of it in place, or nothing. Raises InputProblem for a damaged copy."""


def current_copier() -> Copier:
    """Return the copier for the database in the settings."""
    return SqliteCopier() if connection.vendor == "sqlite" else PostgresCopier()


def newest_migrations(applied: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the newest migration of each app; `applied` are apps and names, the last applied last.

    An update notes a squashed migration after all others, but it may end before them.

    >>> newest_migrations([("one", "0007_last"), ("one", "0001_squashed_0005_five")])
    {'one': '0007_last'}
    """
    number = MigrationAutodetector.parse_number
    return dict(sorted(applied, key=lambda one: number(one[1]) or 0))


class SqliteCopier:
    """By SQLite's backup API; a plain copy of the files would mix states of several moments."""

    kind = "sqlite"
    member = "database.sqlite3"

    def dump(self, target: Path) -> Content:
        connection.ensure_connection()
        with _sqlite(target) as copy:
            # NB: all pages in one step, under one read: writers go on, and the copy is of one moment.
            connection.connection.backup(copy, pages=-1)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
            copy.execute("PRAGMA secure_delete=ON")
            with copy:
                copy.execute(f"DELETE FROM {SESSIONS}")  # noqa: S608  a constant
            return _sound(copy)

    def occupied(self) -> str:
        path = self._path()
        # A log that a deleted database left behind would be applied to the restored one.
        names = [f"{path}{end}" for end in ("", "-wal", "-shm", "-journal")]
        found = [name for name in names if Path(name).exists()]
        return f"{' and '.join(found)} already there: move away what is no longer needed" if found else ""

    def load(self, source: Path, content: Content) -> None:
        with _sqlite(source) as copy:
            found = _sound(copy)
        if found != content:
            raise InputProblem("the rows in the backup are not those in its manifest: use another backup")
        if obstacle := self.occupied():  # somebody may have run migrate meanwhile
            raise InputProblem(obstacle)
        source.rename(self._path())

    def _path(self) -> Path:
        return Path(connection.settings_dict["NAME"])


@contextmanager
def _sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy, which nobody but its owner may read."""
    path.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(path)) as copy:
            yield copy
    except sqlite3.OperationalError as error:
        raise OutsideFailure(f"the copy of the database failed: {error}") from error
    except sqlite3.DatabaseError as error:
        raise InputProblem(f"the copy of the database is damaged: {error}") from error


def _sound(copy: sqlite3.Connection) -> Content:
    """Return what is in a copy; raises sqlite3.DatabaseError where its pages or references are broken."""
    for check in ("quick_check", "foreign_key_check"):
        wrong = [row for row in copy.execute(f"PRAGMA {check}") if row != ("ok",)]
        if wrong:
            raise sqlite3.DatabaseError(f"{check}: {wrong[0]}")
    tables = copy.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    rows = {name: copy.execute(_count(name)).fetchone()[0] for (name,) in sorted(tables)}
    return Content(rows, newest_migrations(copy.execute(_MIGRATIONS).fetchall()))


class PostgresCopier:
    """By pg_dump and pg_restore, which must be as new as the server."""

    kind = "postgresql"
    member = "database.pgdump"

    def dump(self, target: Path) -> Content:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            snapshot = cursor.fetchone()[0]
            content = self._content(cursor)
            self._run(
                *("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"),
                *(f"--exclude-table-data={SESSIONS}", f"--file={target}"),
            )
        return content

    def occupied(self) -> str:
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
        name = connection.settings_dict["NAME"]
        return f"the database {name} has {len(tables)} tables already: create an empty one" if tables else ""

    def load(self, source: Path, content: Content) -> None:
        self._run(
            *("pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"),
            str(source),
        )
        with connection.cursor() as cursor:
            if self._content(cursor) != content:
                raise OutsideFailure("the restored rows differ from the manifest: restore into another place")

    def _content(self, cursor: Any) -> Content:
        rows = {}
        for name in sorted(connection.introspection.table_names(cursor)):
            cursor.execute(_count(name))
            rows[name] = 0 if name == SESSIONS else cursor.fetchone()[0]
        cursor.execute(_MIGRATIONS)
        return Content(rows, newest_migrations(cursor.fetchall()))

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs on this database; the password is not on its command line."""
        connection.ensure_connection()
        path = shutil.which(program)
        if path is None:
            raise OutsideFailure(f"{program} is not installed: install PostgreSQL's client programs")
        password = {"PGPASSWORD": word} if (word := str(connection.settings_dict["PASSWORD"])) else {}
        # NB: only what the settings say: the driver's own defaults may be unknown to an older program.
        said = connection.get_connection_params().keys() - {"password"}
        known = connection.connection.info.get_parameters().items()
        place = make_conninfo(**{name: value for name, value in known if name in said})
        command = [path, f"--dbname={place}", *arguments]
        done = subprocess.run(  # noqa: S603  no shell, and the settings' own database
            command, capture_output=True, text=True, check=False, env=os.environ | password
        )
        if done.returncode:
            raise OutsideFailure(f"{program} failed: {' '.join(done.stderr.split())[:500]}")


def _count(table: str) -> str:
    return f'SELECT count(*) FROM "{table}"'  # noqa: S608  a name out of the database
