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
    """Run it; the statements other than those that read."""
    with CaptureQueriesContext(connection) as done, connection.schema_editor(atomic=False) as editor:
        operation.database_forwards(APP, editor, state, after(state, operation))
    return writes(done)


def backwards(state: ProjectState, operation: Operation) -> list[str]:
    """Take it back; the statements other than those that read."""
    with CaptureQueriesContext(connection) as done, connection.schema_editor(atomic=False) as editor:
        operation.database_backwards(APP, editor, after(state, operation), state)
    return writes(done)


def writes(done: CaptureQueriesContext) -> list[str]:
    statements = [query["sql"].strip() for query in done.captured_queries]
    return [one for one in statements if one.split()[0] not in {"SELECT", "PRAGMA"}]


def changes(statements: list[str]) -> list[str]:
    """What they do to tables and indexes."""
    return [" ".join(one.split()[:2]) for one in statements if one.split()[0] not in {"SET", "RESET"}]


def indexes() -> set[str]:
    """What the columns of all indexes of the table `book` are."""
    with connection.cursor() as cursor:
        there = connection.introspection.get_constraints(cursor, f"{APP}_book")
    return {", ".join(one["columns"]) for one in there.values() if one["index"]}


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
    assert changes(forwards(books, DROP)) == ["DROP INDEX"]
    assert indexes() == set()
    assert changes(forwards(books, DROP)) == []
    assert changes(backwards(books, DROP)) == ["CREATE INDEX"]
    assert indexes() == {"shelf_id"}


def test_a_foreign_key_that_changes_in_another_way_is_refused(books: ProjectState) -> None:
    loose = models.ForeignKey(f"{APP}.shelf", models.CASCADE, null=True, db_index=False)
    with pytest.raises(ValueError, match="more than its index"):
        forwards(books, DropForeignKeyIndex("book", "shelf", loose))
    assert indexes() == {"shelf_id"}


def test_a_new_index_is_built_anew_where_it_was_interrupted(books: ProjectState) -> None:
    assert changes(forwards(books, ADD)) == ["CREATE INDEX"]
    assert indexes() == {"shelf_id", "title"}
    assert changes(forwards(books, ADD)) == ["DROP INDEX", "CREATE INDEX"]
    assert changes(backwards(books, ADD)) == ["DROP INDEX"]
    assert changes(backwards(books, ADD)) == []
    assert indexes() == {"shelf_id"}


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time")
@pytest.mark.parametrize("operation", [DROP, ADD], ids=lambda operation: type(operation).__name__)
def test_on_postgresql_writes_go_on_and_no_wait_is_cut_short(
    books: ProjectState, operation: Operation
) -> None:
    for statements in (forwards(books, operation), backwards(books, operation)):
        first, *between, last = statements
        assert (first, last) == ("SET lock_timeout = 0", "RESET lock_timeout")
        assert between
        assert all(" CONCURRENTLY " in statement for statement in between)
