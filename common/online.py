"""Operations of migrations that create and drop indexes while the version before serves.

PostgreSQL does it without a lock that holds up writes, outside a transaction: the migration needs
`atomic = False`. Operations that were interrupted can be run again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


@contextmanager
def _online(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[dict[str, bool]]:
    """The arguments of such a statement; it waits for older transactions as long as they last."""
    if schema_editor.connection.vendor != "postgresql":
        yield {}
        return
    schema_editor.execute("SET lock_timeout = 0")
    try:
        yield {"concurrently": True}
    finally:
        schema_editor.execute("RESET lock_timeout")


class AddIndexOnline(migrations.AddIndex):
    """`AddIndex` without a lock that holds up writes."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        with _online(schema_editor) as how:
            self._remove(schema_editor, model, how)  # what was interrupted may have left half an index
            schema_editor.add_index(model, self.index, **how)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        with _online(schema_editor) as how:
            self._remove(schema_editor, model, how)

    def _remove(self, schema_editor: Any, model: type[models.Model], how: dict[str, bool]) -> None:
        """Drop the index if it is there."""
        connection = schema_editor.connection
        with connection.cursor() as cursor:
            there = connection.introspection.get_constraints(cursor, model._meta.db_table)
        if self.index.name in there:
            schema_editor.remove_index(model, self.index, **how)


class DropForeignKeyIndex(migrations.AlterField):
    """`AlterField` of a foreign key to `db_index=False`, which drops its index and touches nothing else.

    Raises `ValueError` where the field changes in any other way.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        before, after = (self._without_index(state, app_label) for state in (from_state, to_state))
        if before != after:
            raise ValueError(f"{self.describe()}: more than its index changes, from {before} to {after}")
        with _online(schema_editor) as how:
            self._drop(schema_editor, model, how)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        with _online(schema_editor) as how:
            self._drop(schema_editor, model, how)
            field = model._meta.get_field(self.name)
            schema_editor.execute(schema_editor._create_index_sql(model, fields=[field], **how))

    def _without_index(self, state: ProjectState, app_label: str) -> dict[str, Any]:
        """All other arguments of the field."""
        field = state.models[app_label, self.model_name_lower].get_field(self.name)
        return {**field.deconstruct()[3], "db_index": None}

    def _drop(self, schema_editor: Any, model: type[models.Model], how: dict[str, bool]) -> None:
        """Drop the index of this column alone, as `AlterField` finds it."""
        field = cast("models.ForeignKey[Any, Any]", model._meta.get_field(self.name))
        kept = {index.name for index in model._meta.indexes}
        names = schema_editor._constraint_names(
            model, [field.column], index=True, unique=False, type_=models.Index.suffix, exclude=kept
        )
        for name in names:
            schema_editor.execute(schema_editor._delete_index_sql(model, name, **how))
