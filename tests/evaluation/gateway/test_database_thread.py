"""The database thread: what is queued at a moment is done together, by kind, and a bad item harms nobody."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.conf import settings as project
from django.db import DatabaseError, connection, connections, transaction

from evaluation.gateway.writer import DatabaseThread
from evaluation.models.runs import TextBlock
from tests.factories.runs import environment

pytestmark = pytest.mark.django_db(transaction=True)
T = TypeVar("T")
WRITERS, TRANSACTIONS = 8, 1200


def beside(work: Callable[[DatabaseThread], Awaitable[T]]) -> T:
    """Run a coroutine beside a database thread."""

    async def run(database: DatabaseThread) -> T:
        return await work(database)

    with DatabaseThread() as database:
        return asyncio.run(run(database))


async def queued_together(database: DatabaseThread, *jobs: tuple[Any, Any]) -> list[Any]:
    """Queue jobs while the thread is busy, so that it finds them all at once; results or errors."""
    busy = threading.Event()
    blocked = asyncio.ensure_future(database.do(lambda: busy.wait(10)))
    await asyncio.sleep(0.1)
    waiting = [database.add(kind, item) for kind, item in jobs]
    busy.set()
    await blocked
    return await asyncio.gather(*waiting, return_exceptions=True)


class Shelf:
    """Two bulk functions over text blocks that remember how they were called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []

    def put(self, names: Sequence[str]) -> list[str]:
        self.calls.append(("put", list(names)))
        TextBlock.objects.bulk_create(TextBlock(hash=name, text=name) for name in names)
        return [f"{name} is there" for name in names]

    def find(self, names: Sequence[str]) -> list[bool]:
        self.calls.append(("find", list(names)))
        return [TextBlock.objects.filter(hash=name).exists() for name in names]


def test_jobs_of_a_kind_that_are_queued_together_are_done_by_one_call_in_their_order() -> None:
    shelf = Shelf()
    jobs = [(shelf.put, "a"), (shelf.find, "b"), (shelf.put, "b"), (shelf.find, "c"), (shelf.put, "d")]
    results = beside(lambda database: queued_together(database, *jobs))
    assert shelf.calls == [("put", ["a", "b", "d"]), ("find", ["b", "c"])]
    assert results == ["a is there", True, "b is there", False, "d is there"]


def test_one_bad_item_harms_nobody_it_was_queued_with() -> None:
    shelf = Shelf()
    TextBlock.objects.create(hash="taken", text="by somebody else")
    jobs = [(shelf.put, "a"), (shelf.put, "taken"), (shelf.find, "taken"), (shelf.put, "b")]
    first, bad, found, last = beside(lambda database: queued_together(database, *jobs))
    assert (first, found, last) == ("a is there", True, "b is there")
    assert isinstance(bad, DatabaseError)
    assert set(TextBlock.objects.values_list("hash", flat=True)) == {"a", "b", "taken"}


def test_a_result_is_given_once_it_is_committed() -> None:
    def seen_from_here(name: str) -> bool:
        try:
            return TextBlock.objects.filter(hash=name).exists()
        finally:
            connection.close()

    async def work(database: DatabaseThread) -> bool:
        await database.add(Shelf().put, "a")
        return await asyncio.to_thread(seen_from_here, "a")

    assert beside(work)


def test_a_waiter_that_went_away_stops_nobody() -> None:
    async def work(database: DatabaseThread) -> str:
        busy = threading.Event()
        database.add(lambda items: [busy.wait(10) for _ in items], None)
        gone, stays = database.add(Shelf().put, "a"), database.add(Shelf().put, "b")
        gone.cancel()
        busy.set()
        return await stays

    assert beside(work) == "b is there"
    assert TextBlock.objects.count() == 2


def test_a_sqlite_database_is_shared_by_writers_that_wait_for_each_other(tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite only")
    options = project.DATABASES["default"]["OPTIONS"]
    assert (options["transaction_mode"], options["timeout"]) == ("IMMEDIATE", 20)
    # A database of its own: the tests' does not wait for the disk.
    with closing(sqlite3.connect(tmp_path / "own.sqlite3")) as own:
        own.executescript(options["init_command"])
        found = [own.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert found == ["wal", 2]


WRITER = """
import sys, django
django.setup()
from django.db import transaction
from evaluation.models.runs import TextBlock
for n in range(int(sys.argv[2])):
    with transaction.atomic():
        count = TextBlock.objects.count()
        TextBlock.objects.create(hash=f"{sys.argv[1]}-{n}", text=str(count))
"""


@pytest.mark.flow
@pytest.mark.heavy
def test_eight_writers_of_1200_transactions_never_find_the_database_locked() -> None:
    connections.close_all()
    each, env = TRANSACTIONS // WRITERS, environment("http://127.0.0.1:1/v1")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, f"writer-{n}", str(each)],
            cwd=project.BASE_DIR,
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(WRITERS)
    ]
    errors = [process.communicate(timeout=150)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * WRITERS, errors
    assert not any("locked" in error for error in errors)
    with transaction.atomic():
        assert TextBlock.objects.count() == TRANSACTIONS
