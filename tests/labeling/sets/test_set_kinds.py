"""The kind of a chat set: by import, page and API; never while a job depends on it."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from labeling.jobs.services import job_close
from labeling.models.chats import ChatSet
from labeling.models.people import AuditEvent, User
from tests.factories.labelling_job import Desk, gold_set_of, make_desk
from tests.factories.pages import page_text
from tests.factories.rows import make_chat, make_rubric, make_set
from tests.files import chat, refused, run, write_jsonl

pytestmark = pytest.mark.django_db

CURATED, SAMPLE, GOLD, CALIBRATION = ChatSet.Kind.values


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


@pytest.fixture
def chat_set() -> ChatSet:
    return make_set(make_rubric("polite"), make_chat("c1"), make_chat("c2"), name="free")


def kind(chat_set: ChatSet) -> str:
    chat_set.refresh_from_db()
    return chat_set.kind


def change(client: Client, chat_set: ChatSet, **body: Any) -> Any:
    return client.patch(f"/api/sets/{chat_set.pk}/", body, content_type="application/json")


# ---------- import ----------


@pytest.mark.parametrize("wanted", [CURATED, GOLD, CALIBRATION])
def test_an_import_makes_a_set_of_the_kind(tmp_path: Path, wanted: str) -> None:
    make_rubric("polite")
    path = write_jsonl(tmp_path / "chats.jsonl", chat())
    run("import_chats", path, "--set", "new", "--kind", wanted)
    run("import_chats", path, "--set", "new", "--kind", wanted)
    run("import_chats", path, "--set", "new")
    assert ChatSet.objects.get().kind == wanted


def test_an_import_changes_no_kind(tmp_path: Path, chat_set: ChatSet) -> None:
    path = write_jsonl(tmp_path / "chats.jsonl", chat("new"))
    message = refused("import_chats", path, "--set", "free", "--kind", GOLD)
    assert "--kind: the set 'free' is of the kind curated; a lead changes it on the set’s page" in message
    assert (kind(chat_set), chat_set.members.count()) == (CURATED, 2)
    assert "--kind needs --set" in refused("import_chats", path, "--kind", GOLD)
    assert "invalid choice: 'sample'" in refused("import_chats", path, "--set", "other", "--kind", SAMPLE)


# ---------- page ----------


def test_a_lead_changes_the_kind_on_the_sets_page_after_a_confirmation(
    lead: Client, lead_user: User, chat_set: ChatSet
) -> None:
    url = f"/sets/{chat_set.pk}/kind/"
    assert f'href="{url}"' in page_text(lead.get(f"/sets/{chat_set.pk}/"))
    page = page_text(lead.post(url, {"kind": CALIBRATION}))
    assert "Read what changes, then tick the box below." in page
    assert "Labels that they give on these chats later are not blind." in page
    assert kind(chat_set) == CURATED
    assert lead.post(url, {"kind": CALIBRATION, "confirmed": "on"}).status_code == 302
    assert kind(chat_set) == CALIBRATION
    event = AuditEvent.objects.get(verb="kind changed")
    assert (event.actor, event.detail["kind"]) == (lead_user, {"old": CURATED, "new": CALIBRATION})
    lead.post(url, {"kind": CURATED})
    assert kind(chat_set) == CURATED


def test_a_set_with_a_job_neither_becomes_nor_stops_being_a_calibration_set(lead: Client) -> None:
    desk = make_desk()
    page = page_text(lead.post(f"/sets/{desk.chat_set.pk}/kind/", {"kind": CALIBRATION, "confirmed": "on"}))
    assert "It has labelling jobs (October)" in page
    assert kind(desk.chat_set) == CURATED
    desk.chat_set.kind = CALIBRATION
    desk.chat_set.save()
    assert change(lead, desk.chat_set, kind=CURATED).json()["code"] == "refused"
    assert kind(desk.chat_set) == CALIBRATION


def test_a_gold_set_stays_gold_while_an_unfinished_job_mixes_in_its_chats(lead: Client) -> None:
    desk: Desk = make_desk()
    gold = gold_set_of(desk, chats=2)
    ChatSet.objects.filter(pk=gold.pk).update(kind=GOLD)
    job = desk.opened(gold_set=gold, gold_rate=0.5)
    answer = change(lead, gold, kind=CURATED)
    assert answer.status_code == 409
    assert f"Unfinished jobs mix in its chats ({job.name})" in answer.content.decode()
    job_close(job=job, by=None)
    assert change(lead, gold, kind=CURATED).status_code == 200
    assert kind(gold) == CURATED


def test_a_sample_keeps_its_kind_and_no_set_becomes_one(lead: Client, chat_set: ChatSet) -> None:
    assert change(lead, chat_set, kind=SAMPLE).status_code == 400
    page = page_text(lead.post(f"/sets/{chat_set.pk}/kind/", {"kind": SAMPLE, "confirmed": "on"}))
    assert "A sample is drawn on the page of a label plan" in page
    ChatSet.objects.filter(pk=chat_set.pk).update(kind=SAMPLE)
    page = page_text(lead.get(f"/sets/{chat_set.pk}/kind/"))
    assert "It is a random sample" in page
    assert "Change kind" not in page
    assert change(lead, chat_set, kind=CURATED).status_code == 409
    assert kind(chat_set) == SAMPLE


# ---------- API ----------


def test_the_api_changes_the_kind_once_confirmed(lead: Client, chat_set: ChatSet) -> None:
    answer = change(lead, chat_set, kind=GOLD)
    assert (answer.status_code, answer.json()["code"]) == (409, "unconfirmed")
    assert "known answers that leads compare raters with" in answer.content.decode()
    assert change(lead, chat_set, kind=GOLD, confirmed=True).json()["kind"] == "Gold"
    assert lead.get(f"/api/sets/{chat_set.pk}/").json() == lead.get("/api/sets/").json()["sets"][0]
    assert kind(chat_set) == GOLD


def test_the_page_takes_the_same_number_of_queries_with_many_jobs(lead: Client) -> None:
    desk = make_desk()
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            assert lead.get(f"/sets/{desk.chat_set.pk}/kind/").status_code == 200
        counts.append(len(queries))
        for _ in range(5):
            desk.opened()
    assert counts[0] == counts[1]
