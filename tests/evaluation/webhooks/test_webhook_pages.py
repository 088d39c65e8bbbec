"""Leads manage webhooks on pages and over the API; a secret is shown once."""

import json
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from evaluation.models.outbox import Delivery, OutboxEvent, WebhookEndpoint
from evaluation.outbox.services import outbox_publish_all
from evaluation.webhooks.services import MOST_WEBHOOKS
from evaluation.webhooks.worker import target_of
from labeling.models.people import AuditEvent, Role
from labeling.people.services.tokens import token_create
from tests.factories.labelling_job import make_desk, user_of
from tests.factories.rows import make_user
from tests.factories.webhooks import make_webhook

pytestmark = pytest.mark.django_db
FORM = {"name": "Experiments", "address": "https://ab.test/hook/?key=1", "kinds": ["verdicts.stored"]}
SHOWN = re.compile(r"whsec_[A-Za-z0-9+/=]+")


@pytest.fixture
def lead() -> Client:
    client = Client()
    client.force_login(make_user("lead", Role.LEAD))
    return client


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    path, kind = f"/api/webhooks/{path}", "application/json"
    return client.generic(method, path, data=json.dumps(body or {}), content_type=kind)


def text_of(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_a_lead_adds_a_webhook_and_sees_its_secret_once(lead: Client) -> None:
    answer = lead.post("/webhooks/new/", FORM)
    row = WebhookEndpoint.objects.get()
    (secret,) = set(SHOWN.findall(answer.content.decode()))
    assert target_of(row).keys == (secret,) and secret not in row.secret
    assert (row.address, row.kinds, row.active) == (FORM["address"], FORM["kinds"], True)
    for page in ("/webhooks/", f"/webhooks/{row.pk}/", f"/webhooks/{row.pk}/edit/", "/api/webhooks/"):
        assert "whsec_" not in lead.get(page).content.decode()
    event = AuditEvent.objects.get(verb="webhook added")
    assert secret not in str(event.detail) and event.detail["address"] == FORM["address"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"address": "ftp://ab.test"}, "Must start with http"),
        ({"address": "https://user:pw@ab.test/"}, "Must not hold a user name"),
        ({"address": "https://ab.test/#x"}, "Must end with its path"),
        ({"address": "https://ab.test/?a b"}, "Must not hold"),
        ({"address": "http://169.254.169.254/"}, "credentials"),
        ({"address": "http://10.0.0.4/"}, "private network"),
        ({"address": "http://2130706433/"}, "is a number"),
        ({"kinds": []}, "Choose at least one"),
        ({"name": "Taken"}, "Another webhook has this name"),
    ],
)
def test_what_is_not_allowed_is_refused_at_its_field(
    lead: Client, change: dict[str, Any], words: str, settings: Settings
) -> None:
    settings.LACE_LOOPBACK_ONLY = False
    make_webhook(name="Taken")
    answer = lead.post("/webhooks/new/", FORM | change)
    assert words in text_of(answer) and "Not saved." in text_of(answer)
    refused = send(lead, "POST", "", FORM | change)
    assert refused.status_code == 400 and set(refused.json()) == set(change)
    assert WebhookEndpoint.objects.count() == 1


def test_there_is_a_most_of_webhooks(lead: Client) -> None:
    for number in range(MOST_WEBHOOKS):
        make_webhook(name=f"webhook {number}")
    assert f"{MOST_WEBHOOKS} webhooks already" in text_of(lead.post("/webhooks/new/", FORM))


def test_the_log_shows_hostile_answers_harmlessly_and_filters(lead: Client) -> None:
    row = make_webhook(name="<b>bold</b>")
    outbox_publish_all(kind="verdicts.stored", payloads=[{"chat_id": "<i>1</i>"}, {"chat_id": "2"}])
    bad = "<script>alert(1)</script>"
    one = Delivery.objects.order_by("pk")[0]
    Delivery.objects.filter(pk=one.pk).update(
        state="failed", status=500, latency_ms=1234, response=bad, attempts=12, sent_at=timezone.now()
    )
    page = lead.get(f"/webhooks/{row.pk}/").content.decode()
    assert bad not in page and "<b>bold</b>" not in page
    assert "1,234 ms" in text_of(lead.get(f"/webhooks/{row.pk}/"))
    shown = lead.get(f"/webhooks/{row.pk}/?state=failed").content.decode()
    assert f"/deliveries/{one.pk}/" in shown and "Given up" in shown
    detail = lead.get(f"/webhooks/{row.pk}/deliveries/{one.pk}/").content.decode()
    assert bad not in detail and "alert(1)" in detail
    assert "<i>1</i>" not in detail and "&lt;i&gt;1" in detail and str(one.event_id) in detail
    other = make_webhook(name="other")
    assert lead.get(f"/webhooks/{other.pk}/deliveries/{one.pk}/").status_code == 404


def test_a_lead_who_labels_chats_does_not_read_its_verdicts_here(lead: Client) -> None:
    desk = make_desk(chats=1)
    user_of(desk.rater).groups.add(Group.objects.get(name=Role.LEAD))
    row = make_webhook()
    told = {"chat_id": desk.chats[0].external_id, "verdicts": [{"criterion": "canary"}]}
    outbox_publish_all(kind="verdicts.stored", payloads=[told])
    page = f"/webhooks/{row.pk}/deliveries/{Delivery.objects.get().pk}/"
    assert "canary" in lead.get(page).content.decode()
    both = Client()
    both.force_login(user_of(desk.rater))
    assert "canary" not in both.get(page).content.decode()


def test_a_token_gets_no_webhook_without_the_scopes_for_what_it_sends() -> None:
    user, answers = make_user("lead", Role.LEAD), []
    for scopes in (["manage_labeling"], ["manage_labeling", "see_judge", "see_holdout"]):
        token = token_create(user=user, name=str(scopes), scopes=scopes, days=7)
        headers = {"Authorization": f"Token {token.secret}"}
        answers.append(Client().post("/api/webhooks/", FORM, "application/json", headers=headers).status_code)
    assert answers == [404, 201]


def test_a_switched_off_webhook_says_why_and_can_be_switched_on_and_removed(lead: Client) -> None:
    row = make_webhook(active=False, stopped_at=timezone.now(), stopped_because="it is gone")
    assert "it is gone" in text_of(lead.get(f"/webhooks/{row.pk}/"))
    assert "switched off" in text_of(lead.post(f"/webhooks/{row.pk}/test/", follow=True))
    lead.post(f"/webhooks/{row.pk}/on/")
    row.refresh_from_db()
    assert (row.active, row.stopped_because, row.stopped_at) == (True, "", None)
    assert "Not done: switch the webhook off" in text_of(
        lead.post(f"/webhooks/{row.pk}/remove/", follow=True)
    )
    lead.post(f"/webhooks/{row.pk}/off/")
    lead.post(f"/webhooks/{row.pk}/remove/")
    assert not WebhookEndpoint.objects.exists()
    verbs = set(AuditEvent.objects.filter(verb__startswith="webhook").values_list("verb", flat=True))
    assert verbs == {"webhook enabled", "webhook disabled", "webhook removed"}


def test_a_period_is_sent_again_with_what_was_missed(lead: Client) -> None:
    row = make_webhook()
    outbox_publish_all(kind="verdicts.stored", payloads=[{"n": 1}])
    Delivery.objects.update(state="delivered", attempts=3)
    WebhookEndpoint.objects.update(active=False)
    outbox_publish_all(kind="verdicts.stored", payloads=[{"n": 2}])
    outbox_publish_all(kind="run.finished", payloads=[{"n": 3}])
    WebhookEndpoint.objects.update(active=True, kinds=["verdicts.stored"])
    hour = timedelta(hours=1)
    now = timezone.now()
    period = {"since": (now - hour).isoformat(), "until": (now + hour).isoformat()}
    answer = send(lead, "POST", f"{row.pk}/replay/", period)
    assert (answer.status_code, answer.json()) == (202, {"events": 2})
    rows = list(Delivery.objects.values_list("state", "attempts"))
    assert rows == [("waiting", 0)] * 2
    old = {"since": "2020-01-01T00:00Z", "until": "2020-01-02T00:00Z"}
    assert "no event of this period" in str(send(lead, "POST", f"{row.pk}/replay/", old).json())
    form = {"since": "2026-01-02T00:00", "until": "2026-01-01T00:00"}
    assert "Must be after the start" in text_of(lead.post(f"/webhooks/{row.pk}/replay/", form))
    assert send(lead, "POST", f"{row.pk}/replay/", {"event": str(uuid4())}).status_code == 400
    assert send(lead, "POST", f"{row.pk}/replay/", {}).status_code == 400
    assert lead.post(f"/webhooks/{row.pk}/again/", {"event": "no uuid"}).status_code == 404


def test_the_api_changes_tests_and_lists_deliveries(lead: Client) -> None:
    new = send(lead, "POST", "", FORM).json()
    assert SHOWN.fullmatch(new["secret"])
    path = f"{new['id']}/"
    changed = send(lead, "PATCH", path, {"name": "Other"}).json()
    assert (changed["name"], changed["kinds"]) == ("Other", FORM["kinds"]) and "secret" not in changed
    assert send(lead, "POST", f"{path}test/").status_code == 202
    assert SHOWN.fullmatch(send(lead, "POST", f"{path}secret/").json()["secret"])
    (row,) = send(lead, "GET", f"{path}deliveries/?kind=webhook.test&page_size=9").json()["results"]
    assert (row["state"], row["event"]) == ("waiting", str(OutboxEvent.objects.get().pk))
    assert send(lead, "DELETE", path).status_code == 409
    assert send(lead, "PATCH", path, {"active": False}).json()["active"] is False
    assert send(lead, "POST", f"{path}test/").json()["code"] == "webhook_state"
    assert send(lead, "DELETE", path).status_code == 204
    assert not Delivery.objects.exists()


def test_the_pages_take_as_many_queries_for_many_rows(lead: Client) -> None:
    row = make_webhook()
    outbox_publish_all(kind="verdicts.stored", payloads=[{"n": 0}])

    def queries(page: str) -> int:
        with CaptureQueriesContext(connection) as caught:
            lead.get(page)
        return len(caught)

    pages = ("/webhooks/", f"/webhooks/{row.pk}/", f"/api/webhooks/{row.pk}/deliveries/")
    first = [queries(page) for page in pages]
    make_webhook(name="another")
    outbox_publish_all(kind="verdicts.stored", payloads=[{"n": n} for n in range(70)])
    assert [queries(page) for page in pages] == first
    older = re.search(r"before=(\d+)", lead.get(pages[1]).content.decode())
    assert older and lead.get(f"{pages[1]}?before={older[1]}").status_code == 200
