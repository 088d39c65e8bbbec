"""Indexes are created and dropped while others write, and once more where it was interrupted."""

from collections.abc import Iterator

import pytest
from django.db import connection, migrations, models
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.test.utils import CaptureQueriesContext

from common.online import AddIndexOnline, DropForeignKeyIndex

APP = "labeling"
KEY = models.ForeignKey(f"{APP}.shelf", models.CASCADE)
BARE = models.ForeignKey(f"{APP}.shelf", models.CASCADE, db_index=False)
TITLE = models.Index(fields=["title"], name="book_title")
DROP = DropForeignKeyIndex("book", "shelf", BARE)
ADD = AddIndexOnline("book", TITLE)


def after(state: ProjectState, operation: Operation) -> ProjectState:
    """The state once the operation has run."""
    later = state.clone()
    operation.state_forwards(APP, later)
    return later


def forwards(state: ProjectState, operation: Operation) -> list[str]:
    """Run it; the statements that change the tables."""
    with CaptureQueriesContext(connection) as done, connection.schema_editor(atomic=False) as editor:
        operation.database_forwards(APP, editor, state, after(state, operation))
    return changes(done)


def backwards(state: ProjectState, operation: Operation) -> list[str]:
    """Take it back; the statements that change the tables."""
    with CaptureQueriesContext(connection) as done, connection.schema_editor(atomic=False) as editor:
        operation.database_backwards(APP, editor, after(state, operation), state)
    return changes(done)


def changes(done: CaptureQueriesContext) -> list[str]:
    statements = [query["sql"] for query in done.captured_queries]
    return [one for one in statements if one.split()[0] in {"CREATE", "DROP", "ALTER"}]


def indexes() -> set[str]:
    """What the columns of all indexes of the table `book` are."""
    with connection.cursor() as cursor:
        there = connection.introspection.get_constraints(cursor, f"{APP}_book")
    return {", ".join(one["columns"]) for one in there.values() if one["index"]}


def lock_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        (wait,) = cursor.fetchone()
    return str(wait)


@pytest.fixture
def books(transactional_db: None) -> Iterator[ProjectState]:
    """Two tables, the second one with a foreign key to the first one."""
    state = ProjectState()
    key = models.BigAutoField(primary_key=True)
    shelf = migrations.CreateModel("Shelf", [("id", key)])
    book = migrations.CreateModel(
        "Book", [("id", key.clone()), ("title", models.TextField()), ("shelf", KEY)]
    )
    for operation in (shelf, book):
        with connection.schema_editor() as editor:
            operation.database_forwards(APP, editor, state, state := after(state, operation))
    yield state
    with connection.schema_editor() as editor:
        for name in ("book", "shelf"):
            editor.delete_model(state.apps.get_model(APP, name))


def test_a_foreign_key_loses_its_index_and_nothing_else_is_touched(books: ProjectState) -> None:
    assert indexes() == {"shelf_id"}
    (statement,) = forwards(books, DROP)
    assert statement.startswith("DROP INDEX")
    assert indexes() == set()
    assert forwards(books, DROP) == []
    (statement,) = backwards(books, DROP)
    assert statement.startswith("CREATE INDEX")
    assert indexes() == {"shelf_id"}


def test_a_new_index_is_built_anew_where_it_was_interrupted(books: ProjectState) -> None:
    (statement,) = forwards(books, ADD)
    assert statement.startswith("CREATE INDEX")
    assert indexes() == {"shelf_id", "title"}
    assert [one.split()[0] for one in forwards(books, ADD)] == ["DROP", "CREATE"]
    (statement,) = backwards(books, ADD)
    assert statement.startswith("DROP INDEX")
    assert backwards(books, ADD) == []
    assert indexes() == {"shelf_id"}


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time")
def test_on_postgresql_writes_go_on_and_no_wait_is_cut_short(books: ProjectState) -> None:
    wait = lock_timeout()
    for operation in (DROP, ADD):
        for statements in (forwards(books, operation), backwards(books, operation)):
            assert statements
            assert all(" CONCURRENTLY " in statement for statement in statements)
    assert lock_timeout() == wait
