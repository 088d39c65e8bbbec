"""A whole workspace leaves as one archive, and another one takes it in with equal reports."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from alignment.archive.queries import LEFT_OUT, TABLES
from alignment.archive.services import archive_take
from common.problems import InputProblem
from evaluation.models.runs import Run, Unit
from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label
from labeling.models.people import ApiToken, AuditEvent, Rater, Role, User, Workspace
from tests.factories.archives import emptied, manifest_in, rows_of
from tests.factories.rows import make_chat, make_user
from tests.files import run
from tests.world import make_world

# What the clock of the reader changes.
OF_NOW = ("created_at", "id", "report")


def archived(folder: Path, name: str = "workspace.zip") -> Path:
    path = folder / name
    run("export_archive", "-o", path)
    return path


def reports() -> dict[int, Any]:
    """The report of every finished run and set, as its JSON."""
    runs = Run.objects.filter(state="done", chat_set__isnull=False).order_by("pk")
    found = {row.pk: run("alignment_report", "--run", row.pk).document for row in runs}
    return {pk: {name: body[name] for name in body if name not in OF_NOW} for pk, body in found.items()}


def test_every_table_is_in_the_archive_or_left_out_for_a_reason() -> None:
    tables, models = [table.name for table in TABLES], apps.get_models(include_auto_created=True)
    known = {model._meta.label for model in models if model._meta.managed}
    assert len(tables) == len(set(tables))
    assert not set(tables) & set(LEFT_OUT)
    assert known - set(tables) - set(LEFT_OUT) == set(), "name the table in alignment/archive/queries.py"
    assert set(tables) | set(LEFT_OUT) <= known
    assert all(LEFT_OUT.values())


@pytest.mark.django_db
def test_another_workspace_takes_it_in_with_equal_reports_and_rows(tmp_path: Path) -> None:
    make_world()
    before, archive = reports(), archived(tmp_path)
    assert before, "the world has finished runs"
    emptied()
    make_user("new_lead", Role.LEAD)
    answer = run("import_archive", archive).document
    assert answer["rows"] == sum(table["rows"] for table in manifest_in(archive)["tables"].values())
    assert json.dumps(reports()) == json.dumps(before)
    again = archived(tmp_path, "again.zip")
    users = {"labeling.User", "labeling.User_groups", "labeling.Rater", "auth.Group"}
    by_user = {field.attname for table in TABLES for field in table.fields.values() if is_user(field)}
    for table in manifest_in(archive)["tables"].keys() - users - {"alignment.Report"}:
        assert plain(rows_of(again, table), by_user) == plain(rows_of(archive, table), by_user), table


def is_user(field: Any) -> bool:
    return field.related_model is User or (
        field.is_relation and field.related_model._meta.label == "auth.Group"
    )


def plain(rows: list[dict[str, Any]], without: set[str]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in without} for row in rows]


@pytest.mark.django_db
def test_accounts_come_inactive_without_password_or_token_and_keep_their_roles(tmp_path: Path) -> None:
    world = make_world()
    world.users["lead"].set_password("correct horse battery")
    world.users["lead"].is_superuser = True
    world.users["lead"].save()
    people = {user.username: [str(group) for group in user.groups.all()] for user in User.objects.all()}
    archive = archived(tmp_path)
    emptied()
    run("import_archive", archive)
    accounts = list(User.objects.all())
    assert {user.username: [str(group) for group in user.groups.all()] for user in accounts} == people
    assert not any(user.is_active or user.is_staff or user.is_superuser for user in accounts)
    assert not any(user.has_usable_password() for user in accounts)
    assert not ApiToken.objects.exists()
    assert Rater.objects.get(user__username="mara").name == "mara"
    event = AuditEvent.objects.get(verb="archive imported")
    assert event.detail["file"] == "workspace.zip"
    content = archive.read_bytes()
    assert b"correct horse" not in content


@pytest.mark.django_db
def test_an_account_of_the_same_name_joins_the_one_of_here(tmp_path: Path) -> None:
    make_world()
    labels = Label.objects.filter(rater__user__username="mara").count()
    archive = archived(tmp_path)
    emptied()
    mine = make_user("mara", Role.LEAD)
    assert run("import_archive", archive).document["joined"] == 1
    mine.refresh_from_db()
    assert mine.is_active
    assert [str(group) for group in mine.groups.all()] == ["lead"]
    assert Label.objects.filter(rater__user=mine).count() == labels > 0


@pytest.mark.django_db
def test_work_in_progress_comes_paused_and_without_leases(tmp_path: Path) -> None:
    make_world()
    assert Assignment.objects.filter(state="leased").exists()
    Run.objects.filter(pk=Run.objects.latest("pk").pk).update(state="running")
    archive = archived(tmp_path)
    emptied()
    run("import_archive", archive)
    assert not Run.objects.filter(state="running").exists()
    assert not Unit.objects.filter(state="leased").exists()
    assert not Assignment.objects.filter(state="leased").exists()


@pytest.mark.django_db
def test_new_rows_get_new_ids_after_it(tmp_path: Path) -> None:
    make_world()
    archive = archived(tmp_path)
    last = Chat.objects.latest("pk").pk
    emptied()
    run("import_archive", archive)
    assert make_chat("one-more").pk > last
    assert make_user("somebody").pk > 0
    assert Workspace.objects.get().reveal_after_submit


@pytest.mark.django_db
def test_a_workspace_with_a_chat_is_refused_in_one_line(tmp_path: Path) -> None:
    make_world()
    archive = archived(tmp_path)
    with pytest.raises(InputProblem, match=r"^This workspace is not empty: it has 9 chats\. Take the arch"):
        archive_take(source=archive, name=archive.name, by=None)
