"""A run that stands still says why, on its page and in the API."""

import re
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.runs import EndpointState, Run, WorkerHeartbeat, WorkerLease
from evaluation.runs.worker.heartbeats import heartbeat
from evaluation.runs.worker.leases import lease_begin
from labeling.models.people import User
from tests.factories.rows import make_rubric, make_set
from tests.factories.verdicts import make_judge, make_run

pytestmark = pytest.mark.django_db
SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="a file on a disk")


@pytest.fixture
def run() -> Run:
    """A run on which a worker works."""
    rubric = make_rubric("polite")
    judge = make_judge(rubric)
    judge.config |= {"endpoint": "https://here", "model": "m"}
    judge.save()
    run = make_run(judge, make_set(rubric), state="running", units_total=3)
    heartbeat(name="judge1@here", queues=["judge"])
    lease_begin(run.pk)
    return run


@pytest.fixture
def author(client: Client, author_user: User) -> Client:
    client.force_login(author_user)
    return client


def told(client: Client, run: Run) -> str:
    """What page and API say, which is the same but for the seconds that pass between them."""
    page = client.get(f"/runs/{run.pk}/").content.decode()
    sentence: str = client.get(f"/api/runs/{run.pk}/").json()["hold_up"]
    assert ("No action needed." in page) is (not sentence)
    if sentence:
        assert re.search(rf"<b>{re.sub(r'[0-9]+', '[0-9]+', sentence)}[.]</b>", page)
    return sentence


def test_a_run_that_goes_on_has_nothing_to_say(author: Client, run: Run) -> None:
    assert told(author, run) == ""


def test_a_frozen_worker_is_named(author: Client, run: Run) -> None:
    ago = timezone.now() - timedelta(seconds=130)
    WorkerLease.objects.update(beat_at=ago, expires_at=timezone.now() + timedelta(seconds=1))
    WorkerHeartbeat.objects.update(beat_at=ago)
    assert told(author, run) == "No worker has been heard of for 2 minutes"
    assert author.get(f"/api/runs/{run.pk}/").json()["workers"] == 0


def test_a_run_without_a_worker_goes_by_the_heartbeats(author: Client, run: Run) -> None:
    WorkerLease.objects.all().delete()
    page = author.get(f"/runs/{run.pk}/").content.decode()
    assert "Waits for a free worker" in page
    WorkerHeartbeat.objects.update(beat_at=timezone.now() - timedelta(seconds=31))
    assert told(author, run) == "No worker has been heard of for 31 seconds"
    WorkerHeartbeat.objects.all().delete()
    assert told(author, run) == "No worker is running"


def test_a_rate_limit_is_named_with_its_end(author: Client, run: Run) -> None:
    state = EndpointState.objects.create(endpoint="https://here", model="m", not_before=time.time() + 3600.5)
    assert re.fullmatch(r"The endpoint asks to wait: next call in 3[56]\d\d s", told(author, run))
    state.opened_at, state.probe_at = time.time(), time.time() + 1800.5
    state.save()
    assert re.fullmatch(r"The endpoint does not answer: next try in 1[78]\d\d s", told(author, run))
    EndpointState.objects.update(opened_at=None, not_before=time.time() - 1)
    assert told(author, run) == ""


@SQLITE
def test_a_full_disk_comes_first(author: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.disk.LEAST_FREE", 2**62)
    WorkerHeartbeat.objects.all().delete()
    assert told(author, run) == "The database cannot be written: disk full"


@pytest.mark.parametrize("state", ["paused", "done", "cancelled"])
def test_a_run_at_rest_is_held_up_by_nothing(author: Client, run: Run, state: str) -> None:
    Run.objects.update(state=state)
    WorkerLease.objects.all().delete()
    WorkerHeartbeat.objects.all().delete()
    assert author.get(f"/api/runs/{run.pk}/").json()["hold_up"] == ""


def test_a_paused_run_names_the_connected_endpoint_whose_key_is_refused(author: Client, run: Run) -> None:
    error = "https://here: HTTP 401: the endpoint does not accept the API key"
    Run.objects.update(state="paused", error=error)
    page = author.get(f"/runs/{run.pk}/").content.decode()
    assert "Ask the operator of this server to check the endpoint&#x27;s key" in page
    ConnectedEndpoint.objects.create(name="Office", address="https://here")
    page = author.get(f"/runs/{run.pk}/").content.decode()
    assert "Edit the endpoint Office on the page Models: enter its key." in page
    assert 'href="/models/"' in page
