"""After the first release a new version migrates while the old one still serves: what migrations may do."""

from collections.abc import Iterator

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models.functions import Now

from common.online import AddIndexOnline, DropForeignKeyIndex

# The newest migrations of the first release: nobody ran a version before it.
FIRST_RELEASE = {"alignment": 29, "common": 5, "evaluation": 21, "labeling": 23}
# Operations that the old version does not survive, or that hold up its writes.
NEVER: dict[type[Operation], str] = {
    migrations.RenameField: "the old version uses the old name: add a field, copy, remove the old one later",
    migrations.RenameModel: "the old version uses the old table",
    migrations.AlterModelTable: "the old version uses the old table",
    migrations.AddIndex: "holds up writes on PostgreSQL: AddIndexOnline of common.online",
    AddIndexConcurrently: "SQLite has no such index: AddIndexOnline of common.online",
    migrations.AddConstraint: "holds up writes and refuses the old version's rows: NOT VALID first",
}
# Of two steps the second one: a version later, when no process uses the column or table any more.
LATER: dict[type[Operation], str] = {
    migrations.RemoveField: "the old version reads the column: stop using it, remove it a version later",
    migrations.DeleteModel: "the old version reads the table: stop using it, remove it a version later",
}
ONLINE = AddIndexOnline, DropForeignKeyIndex
# Migrations that carry out a second step, or are harmless for a reason: name -> reason.
EXPECTED = {
    "evaluation.0022_prompts_of_agents": "one more choice; the column stays as it is",
}


def problem(operation: Operation) -> str:
    """Why an operation cannot run beside the old version; "" for one that can."""
    for kind, reason in (NEVER | LATER).items():
        if type(operation) is kind:
            return reason
    if isinstance(operation, migrations.AddField):
        field = operation.field
        fills = field.null or field.many_to_many or field.db_default is not models.NOT_PROVIDED
        return "" if fills else "the old version inserts rows without it: null=True or db_default"
    if isinstance(operation, DropForeignKeyIndex):
        kept = operation.field.deconstruct()[3].get("db_index", True)
        return "say db_index=False" if kept else ""
    if isinstance(operation, migrations.AlterField) and not operation.field.null:
        return "may refuse the old version's rows: say in EXPECTED why it does not"
    return ""


def problems() -> Iterator[str]:
    """Every such operation of a migration since the first release."""
    for (app, name), migration in sorted(MigrationLoader(None).disk_migrations.items()):
        if app in FIRST_RELEASE and int(name.split("_")[0]) > FIRST_RELEASE[app]:
            created = {
                one.name.lower() for one in migration.operations if isinstance(one, migrations.CreateModel)
            }
            for operation in migration.operations:
                # A new table has no rows, and no old version that writes them.
                if getattr(operation, "model_name", "").lower() in created or f"{app}.{name}" in EXPECTED:
                    continue
                if why := problem(operation):
                    yield f"{app}.{name}: {operation.describe()}: {why}"
            online = [isinstance(operation, ONLINE) for operation in migration.operations]
            if any(online) and (migration.atomic or not all(online)):
                yield f"{app}.{name}: give the operations of common.online a migration with atomic = False"


def test_new_migrations_run_beside_the_version_before() -> None:
    found = list(problems())
    assert not found, "\n".join(found)


TEXT = models.TextField


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (migrations.RemoveField("chat", "topic"), "a version later"),
        (migrations.DeleteModel("Chat"), "a version later"),
        (migrations.RenameField("chat", "topic", "theme"), "old name"),
        (migrations.RenameModel("Chat", "Talk"), "old table"),
        (migrations.AddField("chat", "note", TEXT(default="")), "db_default"),
        (migrations.AlterField("chat", "note", TEXT()), "EXPECTED"),
        (
            migrations.AddIndex("chat", models.Index(fields=["topic"], name="by_topic")),
            "AddIndexOnline",
        ),
        (
            AddIndexConcurrently("chat", models.Index(fields=["topic"], name="by_topic")),
            "AddIndexOnline",
        ),
        (DropForeignKeyIndex("label", "chat", models.ForeignKey("chat", models.PROTECT)), "db_index=False"),
        (
            migrations.AddConstraint("chat", models.UniqueConstraint(fields=["topic"], name="one_topic")),
            "NOT VALID",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Operation) else "",
)
def test_an_operation_that_the_old_version_does_not_survive_is_named(
    operation: Operation, words: str
) -> None:
    assert words in problem(operation)


@pytest.mark.parametrize(
    "operation",
    [
        migrations.CreateModel("Talk", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AddField("chat", "note", TEXT(null=True)),
        migrations.AddField("chat", "seen_at", models.DateTimeField(db_default=Now())),
        migrations.AlterField("chat", "note", TEXT(null=True)),
        AddIndexOnline("chat", models.Index(fields=["topic"], name="by_topic")),
        DropForeignKeyIndex("label", "chat", models.ForeignKey("chat", models.PROTECT, db_index=False)),
        migrations.RunPython(migrations.RunPython.noop),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_what_adds_and_loosens_is_safe(operation: Operation) -> None:
    assert problem(operation) == ""
