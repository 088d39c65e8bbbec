"""The audit log: append-only, filtered by who, kind, object and day, as a page, a file and over the API."""

import csv
import json
import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from labeling.models.people import AuditEvent, User, Workspace
from labeling.people.core import KINDS, kind_of
from labeling.people.queries.audit import AuditFilter, audit_events
from labeling.people.services.audit import audit, audit_all
from labeling.people.services.tokens import token_create
from tests.factories.audit_verbs import product_verbs
from tests.factories.pages import page_text

LOG = "/workspace/log/"


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


def test_every_verb_has_a_kind() -> None:
    assert len(product_verbs()) > 100
    assert {verb for verb in product_verbs() if not kind_of(verb)} == set()


@pytest.mark.django_db
def test_the_database_and_the_page_agree_on_the_kind_of_each_verb() -> None:
    workspace, known = Workspace.current(), sorted(product_verbs())
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
def test_an_entry_names_the_token_that_a_program_used_and_no_secret(lead: Client, lead_user: User) -> None:
    secret = token_create(user=lead_user, name="nightly & co", scopes=["manage_labeling"], days=1).secret
    token = {"Authorization": f"Token {secret}"}
    url, form = "/api/workspace/", "application/json"
    Client().patch(url, {"comment_required": True}, content_type=form, headers=token)
    lead.patch(url, {"comment_required": False}, content_type=form)
    by_program, by_hand = AuditEvent.objects.filter(verb="settings changed").order_by("pk")
    assert (by_program.token_name, by_hand.token_name) == ("nightly & co", "")
    page = lead.get(LOG)
    assert "token nightly &amp; co" in " ".join(re.sub("<[^>]+>", " ", page.content.decode()).split())
    link = "?token_name=nightly%20%26%20co"
    assert link in page.content.decode()
    assert [row.event for row in lead.get(LOG + link).context["page"].rows] == [by_program]
    (row,) = lead.get("/api/workspace/log/", {"token_name": "nightly & co"}).json()["results"]
    assert (row["token_name"], row["actor"]) == ("nightly & co", "ines")
    csv_file = b"".join(lead.get(f"{LOG}audit-log.csv{link}").streaming_content).decode()  # type: ignore[attr-defined]
    assert [line["token_name"] for line in csv.DictReader(StringIO(csv_file))] == ["nightly & co"]
    assert secret not in page.content.decode() + csv_file + str(list(AuditEvent.objects.values()))


@pytest.mark.django_db
def test_an_entry_names_the_request_that_the_answer_names(lead: Client) -> None:
    answer = lead.post("/workspace/", {"comment_required": "on"})
    assert AuditEvent.objects.get().request_id == answer.headers["X-Request-ID"]
    other = lead.post("/workspace/", {})
    assert other.headers["X-Request-ID"] != answer.headers["X-Request-ID"]
