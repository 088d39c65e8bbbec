"""What is wrong with a database has its name; a file that is gone stays gone."""

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError
from django.db.utils import ConnectionHandler
from pytest_django import DjangoDbBlocker

from common.database import DatabaseTrouble, database_trouble
from lace_site.settings import SQLITE, database_wait

ROOT: Path = settings.BASE_DIR


@pytest.fixture(autouse=True)
def other_databases(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """These tests open files of their own and never the tests' database."""
    with django_db_blocker.unblock():
        yield


@contextmanager
def connected(path: Path, **options: Any) -> Iterator[Any]:
    """Our connection to a SQLite file, as the settings open it."""
    given = {"transaction_mode": "IMMEDIATE", "timeout": 0.05} | options
    handler = ConnectionHandler(
        {"default": {"ENGINE": SQLITE, "NAME": str(path), "OPTIONS": given, "CONN_HEALTH_CHECKS": True}}
    )
    try:
        yield handler["default"]
    finally:
        handler.close_all()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.sqlite3"
    with closing(sqlite3.connect(path)) as own, own:
        own.execute("PRAGMA journal_mode=WAL")
        own.execute("CREATE TABLE answers (value TEXT)")
        own.executemany("INSERT INTO answers VALUES (?)", [("x" * 3000,)] * 20)
    return path


def trouble(work: Callable[[], object]) -> DatabaseTrouble | None:
    with pytest.raises(DatabaseError) as caught:
        work()
    return database_trouble(caught.value)


def asked(path: Path, *queries: str) -> str:
    """The code of the trouble with the last of the queries; "" for a mistake of ours."""

    def work() -> None:
        with connected(path) as connection, connection.cursor() as cursor:
            for query in queries:
                cursor.execute(query)

    found = trouble(work)
    return found.code if found else ""


WRITE = "INSERT INTO answers VALUES ('y')"
READ = "SELECT count(*), max(value) FROM answers"


def test_a_lock_that_is_not_given_in_time_is_named(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert asked(file, WRITE) == "database_busy"


def test_a_file_that_is_not_there_is_named_and_not_created(tmp_path: Path) -> None:
    assert asked(tmp_path / "absent.sqlite3", READ) == "database_missing"
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_tables_and_a_mistake_of_ours_are_told_apart(file: Path) -> None:
    assert asked(file, "SELECT * FROM labels") == "database_not_migrated"
    assert asked(file, "SELECT FROM") == ""


def test_a_full_disk_and_a_read_only_database_are_named(file: Path) -> None:
    insert = "INSERT INTO answers SELECT value FROM answers"
    assert asked(file, "PRAGMA max_page_count=1", insert, insert, insert) == "database_full"
    assert asked(file, "PRAGMA query_only=ON", WRITE) == "database_read_only"


def test_a_damaged_file_is_named_and_nothing_is_called_safe(file: Path) -> None:
    file.write_bytes(b"not a database " * 400)
    assert asked(file, READ) == "database_damaged"


def test_a_damaged_page_is_named(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    file.write_bytes(content)
    assert asked(file, READ) == "database_damaged"


def test_a_server_that_does_not_answer_is_named() -> None:
    config: dict[str, Any] = {"ENGINE": "django.db.backends.postgresql", "NAME": "x", "HOST": "127.0.0.1"}
    database_wait(config, 5)
    assert config["OPTIONS"] == {"connect_timeout": 5, "options": "-c lock_timeout=5s"}
    handler = ConnectionHandler({"default": config | {"PORT": "1"}})
    found = trouble(handler["default"].ensure_connection)
    assert found is not None
    assert found.code == "database_unreachable"


@pytest.mark.parametrize("put_back", [False, True], ids=["gone", "another"])
def test_nothing_is_written_to_a_file_that_was_deleted(file: Path, put_back: bool) -> None:
    """An open connection would go on writing to it, and nobody would ever find that again."""
    with connected(file) as connection:
        connection.cursor().execute(WRITE)
        copy = file.read_bytes()
        file.unlink()
        if put_back:
            file.write_bytes(copy)
        connection.close_if_unusable_or_obsolete()  # as Django does before each request
        if put_back:
            connection.cursor().execute(READ)
        else:
            found = trouble(lambda: connection.cursor().execute(WRITE))
            assert found is not None
            assert found.code == "database_missing"
    assert file.exists() is put_back


# ---------- the command line ----------


def manage(*arguments: str, database: Path) -> CompletedProcess[str]:
    environment = os.environ | {"DATABASE_URL": f"sqlite:///{database}"}
    command = [sys.executable, "manage.py", *arguments]
    return run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.heavy
def test_commands_say_it_in_one_line_and_migrate_alone_creates_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite3"
    for command in (["list_runs"], ["migrate", "--check"]):
        done = manage(*command, database=path)
        assert (done.returncode, done.stderr.count("\n")) == (4, 1)
        assert done.stderr.startswith("error: The database is missing, or it cannot be opened.")
    assert list(tmp_path.iterdir()) == []
    manage("migrate", "contenttypes", database=path)  # two tables are enough
    assert path.stat().st_size > 0
    path.write_bytes(b"not a database " * 400)
    for command in (["list_runs"], ["migrate", "contenttypes"]):
        done = manage(*command, database=path)
        assert (done.returncode, done.stderr) == (
            4,
            "error: The database is damaged. Stop the workbench and restore a backup.\n",
        )
