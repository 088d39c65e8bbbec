"""The verdicts of a run as a download: the lines of `export verdicts`, of chats that the reader may see."""

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.models.runs import RunChat, Verdict
from labeling.models.people import AuditEvent
from tests.factories.compared_runs import SPLITS, Compared

pytestmark = pytest.mark.django_db


def text(client: Client, compared: Compared, kind: str, query: str = "") -> str:
    answer: Any = client.get(reverse("api_run_verdicts", args=[compared.run.pk, kind]) + query)
    assert answer.status_code == 200
    return b"".join(answer).decode("utf-8-sig")


def lines(client: Client, compared: Compared, query: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in text(client, compared, "jsonl", query).splitlines()]


def test_a_lead_downloads_every_verdict_with_its_rationale(compared: Compared, lead: Client) -> None:
    rows = lines(lead, compared)
    assert len(rows) == Verdict.objects.filter(run=compared.run).count()
    assert rows[0].keys() == {"chat_id", "criterion", "judge", "value", "rationale"}
    table = list(csv.DictReader(io.StringIO(text(lead, compared, "csv"))))
    assert [(row["chat_id"], row["criterion"]) for row in table] == [
        (row["chat_id"], row["criterion"]) for row in rows
    ]


def test_an_author_downloads_no_holdout_chat(compared: Compared, author: Client) -> None:
    held = {f"chat-{n}" for n in range(1, 41) if SPLITS[n % 4] == "holdout"}
    found = {row["chat_id"] for row in lines(author, compared)}
    assert found and not found & held


def test_the_filters_of_the_report_choose_the_chats(compared: Compared, lead: Client) -> None:
    dev = RunChat.objects.filter(run=compared.run, split="dev").values_list("chat__external_id", flat=True)
    assert {row["chat_id"] for row in lines(lead, compared, "?split=dev")} == set(dev)


def test_a_download_is_in_the_log_and_unknown_formats_are_not_found(compared: Compared, lead: Client) -> None:
    lines(lead, compared)
    assert AuditEvent.objects.get(verb="verdicts exported").detail == {"format": "jsonl"}
    assert lead.get(reverse("api_run_verdicts", args=[compared.run.pk, "xml"])).status_code == 404
