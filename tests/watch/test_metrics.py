"""/metrics: who may read it, and that every figure is true, also over several web processes."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from evaluation.call_counts.queries import call_totals
from evaluation.call_counts.services import LAG, calls_count
from evaluation.models.call_counts import CallCount, WorkCounter
from evaluation.models.runs import Attempt, EndpointState, ModelCall, Run, WorkerLease
from evaluation.runs.worker.heartbeats import heartbeat
from evaluation.runs.worker.leases import lease_begin, leases_release
from labeling.models.people import User
from lace_site.watch import collector, metrics
from lace_site.watch.pages_timed import page_timed
from tests.factories.runs import MODEL, always, answering, evaluate, point_at, workspace
from tests.factories.workers import launched

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-prometheus"
ENDPOINT = "https://models.example/v1"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(autouse=True)
def site(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.LACE_METRICS_TOKEN = TOKEN
    settings.CELERY_BROKER_URL, settings.BROKER_DIR = "filesystem://localhost", tmp_path / "broker"
    (tmp_path / "broker" / "queue").mkdir(parents=True)
    monkeypatch.setattr(metrics.SITE, "_kept", 0.0)
    return tmp_path


def samples(client: Client) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample by its name and the values of its labels, in the order of their names."""
    answer = client.get("/metrics", headers=BEARER)
    assert answer["Content-Type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.content.decode())
    found = [
        (one.name, tuple(value for _, value in sorted(one.labels.items())), one.value)
        for family in families
        for one in family.samples
    ]
    assert len({(name, labels) for name, labels, _ in found}) == len(found)
    return {(name, labels): value for name, labels, value in found}


def call(number: int, *, outcome: str = "answered", ago: float | None = 0.0, **row: Any) -> Attempt:
    """An attempt that ended so many seconds ago; None: it is on its way."""
    asked = ModelCall.objects.create(
        key=f"{number:064}", endpoint=ENDPOINT, model=MODEL, role="judge", settings={}, parts=[]
    )
    ended = None if ago is None else timezone.now() - timedelta(seconds=ago)
    return Attempt.objects.create(
        call=asked, number=1, sent_at=timezone.now(), ended_at=ended, outcome=outcome, **row
    )


# ---------- who may read it ----------


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer wrong", f"Token {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
)
def test_without_the_token_there_is_no_such_route(client: Client, lead_user: User, sent: str) -> None:
    client.force_login(lead_user)
    assert client.get("/metrics", headers={"authorization": sent}).status_code == 404
    assert client.get("/metrics", headers=BEARER).status_code == 200


def test_without_the_setting_no_token_opens_it(client: Client, settings: Settings) -> None:
    settings.LACE_METRICS_TOKEN = ""
    for sent in ("Bearer ", "Bearer", f"Bearer {TOKEN}"):
        assert client.get("/metrics", headers={"authorization": sent}).status_code == 404


# ---------- calls ----------


def test_calls_tokens_and_cost_are_summed_by_model_and_outcome(client: Client) -> None:
    call(1, prompt_tokens=100, completion_tokens=10, cost_usd=Decimal("0.01"))
    call(2, prompt_tokens=200, completion_tokens=20, cost_usd=Decimal("0.02"))
    call(3, outcome="rate_limited")
    call(4, outcome="sent", ago=None)
    calls_count()
    found = samples(client)
    where = (ENDPOINT, MODEL)
    assert found["lace_calls_total", (ENDPOINT, MODEL, "answered")] == 2
    assert found["lace_calls_total", (*where, "rate_limited")] == 1
    assert found["lace_tokens_total", (ENDPOINT, "prompt", MODEL)] == 300
    assert found["lace_tokens_total", (ENDPOINT, "completion", MODEL)] == 30
    assert found["lace_cost_usd_total", where] == pytest.approx(0.03)
    assert found["lace_calls_in_flight", ("live",)] == 1


def test_each_attempt_is_counted_once_whenever_the_counting_runs() -> None:
    began = timezone.now() - timedelta(minutes=10)
    for number in range(12):
        call(number, ago=600 - 50 * number, outcome="answered" if number % 3 else "timeout")
        calls_count(now=began + timedelta(seconds=50 * number))
        assert sum(one.calls for one in call_totals(now=timezone.now())) == number + 1 or number == 0
    for _ in range(2):
        calls_count(now=timezone.now() + LAG + timedelta(seconds=60 * _))
    assert {row.outcome: row.calls for row in CallCount.objects.all()} == {"answered": 8, "timeout": 4}


def test_a_long_backlog_is_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.call_counts.services.AT_ONCE", 3)
    for number in range(8):
        call(number, ago=3600 - number)
    counted = []
    for _ in range(3):
        calls_count()
        counted.append(sum(CallCount.objects.values_list("calls", flat=True)))
    assert counted == [4, 8, 8]


def test_the_tail_is_not_read_where_the_counting_stopped_long_ago() -> None:
    call(1, ago=7200)
    calls_count(now=timezone.now() - timedelta(hours=1, minutes=30))
    call(2)
    assert sum(one.calls for one in call_totals()) == 1
    calls_count()
    assert sum(one.calls for one in call_totals()) == 2


@pytest.mark.django_db(transaction=True)
def test_the_calls_of_a_run_arrive_and_its_units_are_left_no_more(client: Client, settings: Settings) -> None:
    chat_set = workspace("polite", chats=3)
    with answering(settings, always(True)) as stub:
        launched(chat_set)
        assert samples(client)["lace_units_left", ()] == 3
        calls_count()
        Run.objects.update(state="cancelled")
        evaluate("--set", "calibration", "--engine", "direct")
        found = samples(client)
        assert found["lace_calls_total", (stub.base_url, MODEL, "answered")] == 3
    assert found["lace_units_left", ()] == 0


# ---------- workers, queues, endpoints ----------


def test_workers_are_counted_by_queue(client: Client) -> None:
    heartbeat(name="judge1@here", queues=["judge"])
    found = samples(client)
    assert (found["lace_workers", ("judge", "alive")], found["lace_workers", ("default", "alive")]) == (1, 0)


def test_a_queues_oldest_message_has_its_age(client: Client, site: Path) -> None:
    for number, age in enumerate((100, 10)):
        file = site / "broker" / "queue" / f"{number}_a.judge.msg"
        file.write_text("{}")
        os.utime(file, (time.time() - age,) * 2)
    found = samples(client)
    assert found["lace_queue_oldest_seconds", ("judge",)] == pytest.approx(100, abs=30)
    assert found["lace_queue_messages", ("judge",)] == 2
    assert found["lace_queue_oldest_seconds", ("default",)] == 0


def test_an_open_circuit_shows(client: Client) -> None:
    call(1)
    calls_count()
    EndpointState.objects.create(endpoint=ENDPOINT, model=MODEL, opened_at=time.time(), failures=5)
    assert samples(client)["lace_endpoint_circuit_open", (ENDPOINT, MODEL)] == 1


def test_a_lease_that_ran_out_is_counted(client: Client) -> None:
    assert samples(client)["lace_leases_lost_total", ()] == 0
    lease = lease_begin(None)
    WorkerLease.objects.filter(pk=lease.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    for _ in range(2):
        leases_release(WorkerLease.objects.all())
    assert samples(client)["lace_leases_lost_total", ()] == 1
    assert WorkCounter.objects.get(name="leases_lost").value == 1


def test_a_run_without_a_worker_is_stuck(client: Client, settings: Settings) -> None:
    point_at(settings, "http://127.0.0.1:9/v1")
    run = launched(workspace("polite"))
    assert samples(client)["lace_runs_stuck", ()] == 0
    ago = timezone.now() - timedelta(minutes=3)
    Run.objects.filter(pk=run.pk).update(created_at=ago, rung_at=ago)
    found = samples(client)
    assert (found["lace_runs_stuck", ()], found["lace_runs", ("running",)]) == (1, 1)


# ---------- reading ----------


def test_the_number_of_queries_does_not_grow(client: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            samples(client)
        return len(captured)

    call(0)
    calls_count()
    few = queries()
    for number in range(1, 30):
        call(number, outcome=("answered", "timeout", "auth")[number % 3])
        heartbeat(name=f"w{number}", queues=["judge"])
    assert queries() == few <= 12


def test_several_scrapes_within_ten_seconds_read_once(
    client: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(metrics.SITE, "_kept", 10.0)
    monkeypatch.setattr(metrics.SITE, "_metrics", [])
    client.get("/metrics", headers=BEARER)
    with django_assert_num_queries(0):
        client.get("/metrics", headers=BEARER)


def test_without_a_database_the_rest_is_still_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(collector, "PARTS", (gone,))
    found = samples(client)
    assert found["lace_database_up", ()] == 0
    assert found["lace_disk_free_bytes", ("data",)] > 0


# ---------- pages ----------


def test_a_page_is_timed_by_route_and_not_by_address(client: Client, lead_user: User) -> None:
    client.force_login(lead_user)
    before = samples(client).get(("lace_http_responses_total", ("GET", "evaluation:run_detail", "404")), 0)
    for number in (471_147_114_711, 471_147_114_712):
        client.get(f"/runs/{number}/")
    client.get("/no-such-page/")
    found = samples(client)
    assert found["lace_http_responses_total", ("GET", "evaluation:run_detail", "404")] == before + 2
    assert found["lace_http_request_seconds_count", ("GET", "evaluation:run_detail")] >= 2
    assert found["lace_http_responses_total", ("GET", "none", "404")] >= 1
    assert "471147114711" not in client.get("/metrics", headers=BEARER).content.decode()


def test_an_invented_method_is_no_label_of_its_own() -> None:
    page_timed(route="home", method="BREW", status=405, seconds=0.1)


SCRIPT = """
import sys
from lace_site.watch.pages_timed import page_timed
for _ in range(int(sys.argv[1])):
    page_timed(route="home", method="GET", status=200, seconds=0.2)
print("ready", flush=True)
sys.stdin.read()
"""
READ = """
from prometheus_client import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import CollectorRegistry
registry = CollectorRegistry()
MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


@pytest.mark.heavy
def test_several_processes_are_added_up_and_a_restart_goes_on_in_its_file(tmp_path: Path) -> None:
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics")}
    folder = Path(__file__).parents[2]

    def process(times: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SCRIPT, str(times)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started = subprocess.Popen(command, cwd=folder, env=environ, text=True, **pipes)  # type: ignore[call-overload]
        assert started.stdout.readline() == "ready\n"
        return started  # type: ignore[no-any-return]

    def total() -> str:
        done = subprocess.run(
            [sys.executable, "-c", READ], env=environ, text=True, capture_output=True, check=True
        )
        name = 'lace_http_responses_total{method="GET",route="home",status="200"}'
        return next(line.split()[-1] for line in done.stdout.splitlines() if line.startswith(name))

    def end(one: subprocess.Popen[str]) -> None:
        one.communicate("")

    first, second = process(2), process(3)
    assert total() == "5.0"
    end(second)
    third = process(4)
    assert total() == "9.0"
    assert len(list((tmp_path / "metrics").glob("counter_*.db"))) == 2
    end(first)
    end(third)
    alone = process(1)  # all had ended: the counts start anew
    assert total() == "1.0"
    end(alone)
