"""Test databases: migrated once, copied for every process, put back quickly after a test that commits."""

import fcntl
import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import django
from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, transaction

from lace_site.settings import VAR_DIR

T = TypeVar("T")


class RowsOnce(Protocol):
    """The fixture `rows_once`: makes rows once a module; returns a function that hands them to a test."""

    def __call__(self, name: str, make: Callable[[], T], /) -> Callable[[], T]: ...


# ---------- migrated once ----------


def database_create(process: str, *, migrate: bool = False) -> None:
    """Connect this process to a copy of the template, with the rows that every migrated database starts with.

    The template is kept until a migration or Django changes, or until `migrate` asks for a new one. It
    holds no rows: those follow the code.
    """
    with (VAR_DIR / "test_template.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        template = _template_name()
        if migrate or not _exists(template):
            _make_template(template)
        _connect_to(template)
        connection.creation.clone_test_db(suffix=process, verbosity=0)
    _connect_to(connection.creation.get_test_db_clone_settings(process)["NAME"])
    emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)


def database_delete() -> None:
    """Delete the copy that this process is connected to."""
    name = connection.settings_dict["NAME"]
    connection.close()
    if connection.vendor == "sqlite":
        _unlink(name)
    else:
        with connection.creation._nodb_cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(f'DROP DATABASE "{name}"')


def _template_name() -> str:
    """A name that changes with every migration and with Django."""
    digest = hashlib.sha256(django.__version__.encode())
    for path in sorted(settings.BASE_DIR.glob("*/migrations/*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    name = f"test_template_{digest.hexdigest()[:12]}"
    return str(VAR_DIR / f"{name}.sqlite3") if connection.vendor == "sqlite" else name


def _exists(template: str) -> bool:
    if connection.vendor == "sqlite":
        return Path(template).exists()
    with connection.creation._nodb_cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [template])
        return cursor.fetchone() is not None


def _make_template(template: str) -> None:
    """Migrate under another name first: a template that was interrupted half way is never used."""
    draft = template.replace("test_template", "test_draft")
    connection.settings_dict["TEST"]["NAME"] = draft
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    _Rows({}).restore()
    connection.close()
    if connection.vendor == "sqlite":
        _delete_leftovers()
        Path(draft).rename(template)
    else:
        with connection.creation._nodb_cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(f'DROP DATABASE IF EXISTS "{template}"')
            cursor.execute(f'ALTER DATABASE "{draft}" RENAME TO "{template}"')


def _connect_to(name: str) -> None:
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


def _delete_leftovers() -> None:
    """Delete older templates, and copies whose process has ended: a copy's name ends with its id."""
    for path in VAR_DIR.glob("test_template_*.sqlite3"):
        _, _, _, *copy = path.stem.split("_")
        if not copy or not Path("/proc", copy[-1]).exists():
            _unlink(str(path))


def _unlink(name: str) -> None:
    for end in ("", "-wal", "-shm"):
        Path(name + end).unlink(missing_ok=True)


# ---------- put back ----------


class _Pages:
    """Everything in a SQLite database, counters included."""

    def __init__(self) -> None:
        self.copy = sqlite3.connect(":memory:", check_same_thread=False)
        connection.ensure_connection()
        connection.connection.backup(self.copy)

    def restore(self) -> None:
        connection.ensure_connection()
        self.copy.backup(connection.connection)


class _Rows:
    """The rows of a PostgreSQL database, by table; counters go on."""

    def __init__(self, rows: dict[str, str]) -> None:
        """Each table's rows are in the table of the copy that it is mapped to."""
        self.rows = rows

    @classmethod
    def taken(cls, schema: str) -> "_Rows":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
            rows = {table: f'{schema}."{table}"' for table in cls.filled()}
            for table, copy in rows.items():
                cursor.execute(f'CREATE TABLE {copy} AS SELECT {cls.columns()[table]} FROM "{table}"')
        return cls(rows)

    @staticmethod
    def columns() -> dict[str, str]:
        """The columns of each table that are fields: no others can be written."""
        return {
            model._meta.db_table: ", ".join(
                f'"{field.column}"' for field in model._meta.local_concrete_fields
            )
            for model in apps.get_models(include_auto_created=True)
        }

    @classmethod
    def filled(cls) -> list[str]:
        """The tables with a row or more."""
        tests = (
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in sorted(cls.columns())
        )
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(tests))
            return [table for (table,) in cursor.fetchall()]

    def restore(self) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":  # no check of each row, where the server lets us
                cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
                if cursor.fetchone()[0]:
                    cursor.execute("SET LOCAL session_replication_role = replica")
            for table in self.filled():
                cursor.execute(f'DELETE FROM "{table}"')
            for table, copy in self.rows.items():
                columns = self.columns()[table]
                cursor.execute(f'INSERT INTO "{table}" ({columns}) SELECT {columns} FROM {copy}')


class Database:
    """The database of this process and the states that it goes back to."""

    def __init__(self) -> None:
        self._states: list[_Pages | _Rows] = []
        self.save()

    def save(self) -> None:
        """From now on `restore` leads to what is in the database now."""
        at = len(self._states)
        self._states.append(_Pages() if connection.vendor == "sqlite" else _Rows.taken(f"state_{at}"))

    def restore(self) -> None:
        """Undo whatever was committed since the state was saved."""
        self._states[-1].restore()
        ContentType.objects.clear_cache()

    @contextmanager
    def saved(self) -> Iterator[None]:
        """Within the block tests start from what is in the database now, afterwards from what was before."""
        self.save()
        try:
            yield
        finally:
            self._states.pop()
            self.restore()
