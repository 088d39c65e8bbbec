"""The audit log: append-only, filtered by who, kind, object and day, as a page, a file and over the API."""

import ast
import csv
import json
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from labeling.models.people import AuditEvent, User, Workspace
from labeling.people.core import KINDS, kind_of
from labeling.people.queries.audit import AuditFilter, audit_events
from labeling.people.services.audit import audit, audit_all
from tests.factories.pages import page_text

LOG = "/workspace/log/"
WRITERS = ("audit", "audit_all", "audit_import", "audit_command")


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


def event(verb: str = "settings changed", *, by: User | None = None, **detail: Any) -> AuditEvent:
    return audit(actor=by, verb=verb, obj=Workspace.current(), **detail)


# ---------- append-only ----------


@pytest.mark.django_db
def test_rows_are_neither_changed_nor_deleted_by_the_orm() -> None:
    row = event()
    with pytest.raises(TypeError, match="append-only"):
        row.save()
    with pytest.raises(TypeError, match="append-only"):
        row.delete()
    with pytest.raises(TypeError, match="append-only"):
        AuditEvent.objects.update(verb="nothing happened")
    with pytest.raises(TypeError, match="append-only"):
        AuditEvent.objects.filter(pk=row.pk).delete()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement", ["UPDATE labeling_auditevent SET verb = 'nothing'", "DELETE FROM labeling_auditevent"]
)
def test_the_database_refuses_it_whoever_asks(statement: str) -> None:
    event()
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert AuditEvent.objects.get().verb == "settings changed"


# ---------- kinds ----------


@cache
def verbs() -> frozenset[str]:
    """Every verb that is written down in a call of a writer."""
    found = set()
    for app in ("labeling", "evaluation", "alignment"):
        for path in (settings.BASE_DIR / app).rglob("*.py"):
            if "verb=" in (text := path.read_text("utf-8")) and "migrations" not in path.parts:
                found |= set(_verbs_of(ast.parse(text)))
    return frozenset(found)


def _verbs_of(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in WRITERS:
            verb = next((word.value for word in node.keywords if word.arg == "verb"), None)
            for part in ast.walk(verb or ast.Pass()):
                if isinstance(part, ast.Constant) and " " in str(part.value).strip():
                    yield str(part.value)


def test_every_verb_has_a_kind() -> None:
    assert len(verbs()) > 60
    assert {verb for verb in verbs() if not kind_of(verb)} == set()


@pytest.mark.django_db
def test_the_database_and_the_page_agree_on_the_kind_of_each_verb() -> None:
    workspace, known = Workspace.current(), sorted({*verbs(), "rubric imported", "alert snoozed"})
    for verb in known:
        audit_all(actor=None, verb=verb, rows=[(workspace, {})])
    for kind in KINDS:
        rows = AuditEvent.objects.filter(AuditFilter(kind=kind.key).condition())
        assert set(rows.values_list("verb", flat=True)) == {one for one in known if kind_of(one) == kind.key}


# ---------- filters ----------


@pytest.mark.django_db
def test_filters_narrow_by_person_kind_object_and_day(lead_user: User, author_user: User) -> None:
    with timezone.override("UTC"):
        job = audit(actor=lead_user, verb="job opened", obj=lead_user)
        mine, command = event(by=author_user), event("chats imported")
        today = timezone.localdate()

        def found(**only: Any) -> set[int]:
            return set(audit_events(user=lead_user, only=AuditFilter(**only)).values_list("pk", flat=True))

        assert found(person="otto") == {mine.pk}
        assert found(person="-") == {command.pk}
        assert found(kind="imports") == {command.pk}
        assert found(object=f"labeling.user:{lead_user.pk}") == {job.pk}
        assert found(object="labeling.user:x") == set()
        assert found(first=today, last=today) == {job.pk, mine.pk, command.pk}
        assert found(last=today - timedelta(days=1)) == found(first=today + timedelta(days=1)) == set()
        assert found(person="otto", kind="imports") == set()


@pytest.mark.django_db
def test_the_page_keeps_its_filters_from_page_to_page(lead: Client, lead_user: User) -> None:
    for _ in range(60):
        event(by=lead_user)
        event("job opened")
    page = lead.get(LOG, {"person": "ines", "kind": "settings"})
    assert {row.event.verb for row in page.context["page"].rows} == {"settings changed"}
    text = page.content.decode()
    assert "person=ines&amp;kind=settings&amp;before=" in text
    assert 'audit-log.csv?person=ines&amp;kind=settings"' in text
    assert "No entries match" in page_text(lead.get(LOG, {"kind": "exports"}))
    assert "Enter a valid date" in page_text(lead.get(LOG, {"first": "yesterday"}))


@pytest.mark.django_db
def test_the_object_of_an_entry_leads_to_its_other_entries(lead: Client) -> None:
    event()
    audit(actor=None, verb="job opened", obj=User.objects.get(username="ines"))
    link = "?object=labeling.workspace%3A1"
    assert link in lead.get(LOG).content.decode()
    page = lead.get(LOG + link)
    assert [row.event.verb for row in page.context["page"].rows] == ["settings changed"]
    assert "<b>workspace 1</b>" in page_text(page)


# ---------- files and API ----------


@pytest.mark.django_db
def test_the_download_has_what_the_page_lists_and_is_logged_itself(lead: Client, lead_user: User) -> None:
    event("job opened", formula="=1+1")
    event(by=lead_user)

    def download(form: str) -> str:
        answer = lead.get(f"{LOG}audit-log.{form}", {"kind": "labels"})
        return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]

    (row,) = csv.DictReader(StringIO(download("csv")))
    assert (row["verb"], row["kind"], row["actor"]) == ("job opened", "labels", "")
    assert json.loads(row["detail"]) == {"formula": "=1+1"}
    assert json.loads(download("jsonl"))["detail"] == {"formula": "=1+1"}
    logged = AuditEvent.objects.filter(verb="log exported")
    assert [row.detail for row in logged] == [{"format": form, "kind": "labels"} for form in ("csv", "jsonl")]
    assert lead.get(f"{LOG}audit-log.exe").status_code == 404


@pytest.mark.django_db
def test_the_api_filters_alike_and_refuses_what_it_cannot_read(lead: Client, lead_user: User) -> None:
    event("job opened")
    url = "/api/workspace/log/"
    lead.patch("/api/workspace/", {"comment_required": True}, content_type="application/json")
    (row,) = lead.get(url, {"person": "ines", "kind": "settings"}).json()["results"]
    assert (row["verb"], row["kind"]) == ("settings changed", "settings")
    assert len(row["request_id"]) == 32
    (row,) = lead.get(url, {"person": "-"}).json()["results"]
    assert (row["verb"], row["request_id"]) == ("job opened", "")
    for wrong in ({"kind": "nonsense"}, {"first": "x"}, {"object": "a"}, {"who": "ines"}):
        assert lead.get(url, wrong).status_code == 400


@pytest.mark.django_db
def test_an_entry_names_the_request_that_the_answer_names(lead: Client) -> None:
    answer = lead.post("/workspace/", {"comment_required": "on"})
    assert AuditEvent.objects.get().request_id == answer.headers["X-Request-ID"]
    other = lead.post("/workspace/", {})
    assert other.headers["X-Request-ID"] != answer.headers["X-Request-ID"]
