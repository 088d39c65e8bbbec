"""The status page: what leads read of workers, queues, endpoints, runs and disks; it reloads in place."""

import os
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from common.memory import memory as cache
from evaluation.call_counts.services import calls_count
from evaluation.models.runs import Attempt, EndpointState, ModelCall, Run, WorkerHeartbeat
from evaluation.runs.worker.heartbeats import heartbeat, heartbeat_begin
from labeling.models.people import User
from lace_site.heartbeat import work_in_hand
from tests.factories.runs import MODEL, point_at, workspace
from tests.factories.workers import launched

pytestmark = pytest.mark.django_db
ENDPOINT = "https://models.example/v1"


@pytest.fixture(autouse=True)
def site(settings: Settings, tmp_path: Path) -> Path:
    cache.clear()
    settings.CELERY_BROKER_URL, settings.BROKER_DIR = "filesystem://localhost", tmp_path / "broker"
    (tmp_path / "broker" / "queue").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def text(client: Client, **headers: str) -> str:
    """The page's words."""
    page = client.get("/status/", headers=headers).content.decode()
    page = page[page.index('id="site-now"') :] if 'id="site-now"' in page else page
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("</main>")[0]))


def call(number: int, outcome: str, *, minutes: int, error: str = "") -> None:
    asked = ModelCall.objects.create(
        key=f"{number:064}", endpoint=ENDPOINT, model=MODEL, role="judge", settings={}, parts=[]
    )
    at = timezone.now() - timedelta(minutes=minutes)
    Attempt.objects.create(call=asked, number=1, sent_at=at, ended_at=at, outcome=outcome, error=error)


def test_authors_and_raters_have_no_such_page(client: Client, author_user: User, rater_user: User) -> None:
    for user in (author_user, rater_user):
        client.force_login(user)
        assert client.get("/status/").status_code == 404


def test_a_worker_is_shown_with_its_work_and_a_silent_one_without(lead: Client, settings: Settings) -> None:
    point_at(settings, ENDPOINT)
    run = launched(workspace("polite"))
    heartbeat_begin(name="judge1@here", queues=["judge"])
    doing = [{"task": "evaluation.tasks.process_units", "id": run.pk, "since": time.time()}]
    heartbeat(name="judge1@here", queues=["judge"], doing=doing)
    heartbeat(name="default@here", queues=["default"])
    heartbeat(name="lost@here", queues=["webhooks"], doing=doing)
    WorkerHeartbeat.objects.filter(name="lost@here").update(beat_at=timezone.now() - timedelta(hours=2))
    page = lead.get("/status/").content.decode()
    assert f'href="/runs/{run.pk}/"' in page
    words = text(lead)
    assert re.search(r"judge1@here judge [\d:]+ runs since .*? Judges run \d+ since", words)
    assert re.search(r"default@here default [\d:]+ nothing", words)
    assert re.search(r"lost@here webhooks \d+ \w+ \d{4}, [\d:]+ –", words)


def test_a_worker_tells_the_tasks_that_it_executes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Executed:
        name, args, time_start = "evaluation.tasks.process_units", [7, "2026-11-29"], 1.5

    monkeypatch.setattr("lace_site.heartbeat.active_requests", {Executed()})
    assert work_in_hand() == [{"task": Executed.name, "id": 7, "since": 1.5}]


def test_a_queue_tells_how_long_its_oldest_message_waits(lead: Client, site: Path) -> None:
    file = site / "broker" / "queue" / "1_a.judge.msg"
    file.write_text("{}")
    os.utime(file, (time.time() - 1000,) * 2)
    assert re.search(r"judge 0 1 10\d\d s", text(lead))
    assert "A message of the queue judge has waited for 16 minutes." in text(lead)


def test_an_endpoint_tells_its_last_answer_its_last_error_and_its_circuit(lead: Client) -> None:
    call(1, "answered", minutes=30)
    call(2, "server_error", minutes=20, error="HTTP 500: <b>busy</b>")
    call(3, "rate_limited", minutes=25)
    calls_count()
    assert "HTTP 500: <b>busy</b>".replace("<", "&lt;").replace(">", "&gt;") in text(lead)
    assert "Takes calls" in text(lead)
    EndpointState.objects.create(
        endpoint=ENDPOINT, model=MODEL, failures=5, opened_at=time.time(), probe_at=time.time() + 9
    )
    assert re.search(r"Circuit open next try in \d s", text(lead))


def test_a_run_that_stands_still_is_named_with_the_reason(lead: Client, settings: Settings) -> None:
    point_at(settings, ENDPOINT)
    run = launched(workspace("polite"))
    assert "Runs that stand still None." in text(lead)
    ago = timezone.now() - timedelta(minutes=3)
    Run.objects.filter(pk=run.pk).update(created_at=ago, rung_at=ago)
    assert re.search(rf"Run {run.pk} over calibration since .*? No worker works on it\.", text(lead))
    Run.objects.filter(pk=run.pk).update(state="paused", error="HTTP 401: key refused")
    assert "Runs that stand still None." in text(lead)
    assert re.search(rf"Last errors Run {run.pk} Paused: 0 of 3 .*? HTTP 401: key refused", text(lead))


def test_it_reloads_its_own_part_alone(lead: Client) -> None:
    whole = lead.get("/status/").content.decode()
    part = lead.get("/status/", headers={"hx-request": "true"}).content.decode()
    assert 'hx-get="/status/"' in whole
    assert part.lstrip().startswith('<div\n  id="site-now"')
    assert "<main" not in part


def test_the_number_of_queries_does_not_grow(lead: Client, settings: Settings) -> None:
    def queries() -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as captured:
            lead.get("/status/", headers={"hx-request": "true"})
        return len(captured)

    def more(number: int) -> None:
        call(number, ("answered", "timeout")[number % 2], minutes=number)
        heartbeat(name=f"w{number}", queues=["judge"])
        run: Any = launched(workspace("polite", name=f"set {number}") if number < 2 else sets[0])
        sets.append(run.chat_set)
        ago = timezone.now() - timedelta(minutes=5)
        state = ("running", "paused")[number % 2]
        Run.objects.filter(pk=run.pk).update(created_at=ago, rung_at=ago, state=state, error="HTTP 500")

    sets: list[Any] = []
    point_at(settings, ENDPOINT)
    more(1)
    few = queries()
    for number in range(2, 8):
        more(number)
    assert queries() <= few + 1
