"""The leads' rules for chats that come in: what saving means, and a trial that stores nothing."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from labeling.models.chats import Chat
from labeling.models.ingest import IngestSettings
from labeling.models.people import AuditEvent, Role
from tests.factories.rows import make_chat, make_rubric, make_set, make_user

pytestmark = pytest.mark.django_db
PAGE, TRY, API = "/workspace/chats/", "/workspace/chats/try/", "/api/incoming/"
RULES = [{"topic": "returns", "any": ["refund*"]}]


@pytest.fixture
def lead(client: Client) -> Client:
    client.force_login(make_user("ines", Role.LEAD))
    return client


def save(lead: Client, **fields: Any) -> str:
    body = {"regions": "", "retention_days": "", "topic_rules": "", **fields}
    return lead.post(PAGE, body, follow=True).content.decode()


def patch(lead: Client, **body: Any) -> Any:
    return lead.patch(API, json.dumps(body), content_type="application/json")


def test_rules_are_saved_and_logged(lead: Client) -> None:
    page = save(lead, redact=["phone", "email"], regions="gb, DE", topic_rules=json.dumps(RULES))
    assert "Rules saved" in page
    row = IngestSettings.current()
    assert (row.redact, row.regions, row.topic_rules) == (["email", "phone"], ["GB", "DE"], RULES)
    event = AuditEvent.objects.get()
    assert event.verb == "settings changed" and event.detail["topic_rules"] == {"old": [], "new": "1 rule"}
    assert lead.get(API).json()["redact"] == ["email", "phone"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"regions": "XX"}, "is not the code of a country"),
        ({"retention_days": "0"}, "Must be from 1 to 36,500"),
        ({"topic_rules": "[{"}, "not JSON"),
        ({"topic_rules": '[{"topic": "x"}]'}, "Rule 1: has no condition"),
        ({"topic_rules": '{"topic": "x"}'}, "Must be a list of rules"),
        ({"redact": ["name"]}, "not one of the available choices"),
    ],
)
def test_a_wrong_rule_is_named_and_nothing_is_saved(
    lead: Client, fields: dict[str, Any], message: str
) -> None:
    assert message in save(lead, **fields)
    assert not IngestSettings.objects.exclude(redact=[], regions=[], topic_rules=[]).exists()
    assert IngestSettings.current().retention_days is None


def test_a_shorter_retention_says_how_many_texts_it_deletes(lead: Client) -> None:
    old, curated, _ = make_chat("old"), make_chat("curated"), make_chat("new")
    make_set(make_rubric("polite"), curated)
    past = timezone.now() - timedelta(days=40)
    Chat.objects.filter(pk__in=(old.pk, curated.pk)).update(last_at=past)
    page = save(lead, retention_days="30")
    assert "1 chat of 30 or more days loses the text" in page
    assert IngestSettings.current().retention_days is None
    assert patch(lead, retention_days=30).json()["code"] == "unconfirmed"
    save(lead, retention_days="30", confirmed="on")
    assert IngestSettings.current().retention_days == 30
    assert patch(lead, retention_days=60).status_code == 200


def test_a_trial_uses_the_rules_in_the_form_and_stores_nothing(lead: Client) -> None:
    body = {
        "redact": ["email"],
        "regions": "",
        "retention_days": "",
        "topic_rules": json.dumps(RULES),
        "chat": "Customer: A refund please, I am ann@example.com\nBot: <b>Sure</b>",
    }
    page = lead.post(TRY, body, headers={"HX-Request": "true"}).content.decode()
    assert "returns" in page and "rule 1" in page and "[email 1]" in page
    assert "ann@example.com" not in page and "<b>Sure" not in page
    assert not IngestSettings.objects.exists() and not Chat.objects.exists()
    whole = lead.post(TRY, {"chat": "[]"}).content.decode()
    assert "must contain at least one message" in whole and "<h1>" in whole
    assert "must be JSON, or lines" in lead.post(TRY, {"chat": "hello"}).content.decode()


def test_only_leads_see_the_rules(client: Client) -> None:
    client.force_login(make_user("ada", Role.AUTHOR))
    assert client.get(PAGE).status_code == 404
    assert client.get(API).status_code == 404
