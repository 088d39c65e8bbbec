"""Pause, resume, cancel: from the command line and from code; what is refused; a broker that is down."""

import socket
import threading
import time
from datetime import datetime

import pytest
from django.db import connections
from pytest_django import Settings

from evaluation.models.runs import Run, Unit, Verdict
from evaluation.runs.services.control import run_cancel, run_pause, run_resume
from evaluation.runs.services.runs import RunRefused
from evaluation.runs.worker.enqueue import runs_waiting_in_queue, sweep_runs
from evaluation.tasks import process_units
from lace_site import celery_app
from tests.factories.runs import always, answering, workspace
from tests.factories.workers import control, launched, purge_tasks, wait_until
from tests.stub_endpoint import StubReply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet() -> None:
    purge_tasks()


def waiting_run(settings: Settings, chats: int = 3) -> Run:
    with answering(settings, always(True)):
        return launched(workspace("polite", chats=chats))


def test_a_run_is_paused_resumed_and_cancelled_from_the_command_line(settings: Settings) -> None:
    run = waiting_run(settings)
    paused = control(run, "pause")
    assert (paused.code, paused.answer["id"], paused.answer["state"]) == (0, run.pk, "paused")
    assert paused.answer["error"] == "paused by the command line"
    before = runs_waiting_in_queue()
    resumed = control(run, "resume")
    assert (resumed.answer["state"], resumed.answer["error"]) == ("running", "")
    assert runs_waiting_in_queue() == before + 1
    cancelled = control(run, "cancel")
    assert (cancelled.code, cancelled.answer["state"]) == (0, "cancelled")
    run.refresh_from_db()
    assert run.finished_at is not None


@pytest.mark.parametrize(
    ("state", "refused"),
    [
        ("running", ["resume"]),
        ("paused", ["pause"]),
        ("done", ["pause", "resume", "cancel"]),
        ("done_with_failures", ["pause", "cancel"]),
        ("cancelled", ["pause", "resume", "cancel"]),
    ],
)
def test_what_a_state_does_not_allow_is_one_clear_line_and_exit_2(
    settings: Settings, state: str, refused: list[str]
) -> None:
    run = waiting_run(settings)
    for action in refused:
        Run.objects.update(state=state)
        ended = control(run, action)
        assert ended.code == 2
        label = Run.State(state).label.lower()
        assert ended.error.startswith(f"error: run {run.pk} is {label}: it cannot be ")
        run.refresh_from_db()
        assert run.state == state


def test_an_imported_run_and_a_missing_one_cannot_be_controlled(settings: Settings) -> None:
    run = waiting_run(settings)
    Run.objects.update(purpose="import", state="paused")
    for act in (run_pause, run_resume, run_cancel):
        with pytest.raises(RunRefused, match=f"run {run.pk} was imported"):
            act(run=run, by=None)
    run.pk = 999999
    assert control(run, "pause").error == "error: there is no run 999999"


def test_of_two_that_pause_at_once_one_is_refused(settings: Settings) -> None:
    run, refused = waiting_run(settings), []

    def pause() -> None:
        try:
            run_pause(run=run, by=None)
        except RunRefused as error:
            refused.append(str(error))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=pause) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == [f"run {run.pk} is paused: it cannot be paused"] * 3


def test_resume_opens_failed_units_again(settings: Settings) -> None:
    with answering(settings, lambda body: StubReply(raw=b"[]")) as stub:
        run = launched(workspace("polite", chats=2))
        process_units(run.pk)
        run.refresh_from_db()
        assert (run.state, run.units_failed) == ("done_with_failures", 2)
        stub.answer = always(True)
        resumed = run_resume(run=run, by=None)
        assert (resumed.units_failed, Verdict.objects.count()) == (0, 0)
        process_units(run.pk)
    run.refresh_from_db()
    assert (run.state, run.units_done, run.units_failed) == ("done", 2, 0)


def test_a_paused_run_begins_no_further_unit_and_keeps_what_was_on_its_way(settings: Settings) -> None:
    good = always(True)
    settings.LACE_MAX_IN_FLIGHT = 4
    with answering(settings, lambda body: StubReply(good(body).text, delay=1.5)) as stub:
        run = launched(workspace("polite", chats=60))
        worker = threading.Thread(target=_drain, args=(run.pk,))
        worker.start()
        wait_until(lambda: stub.count >= 4, "calls in flight")
        run_pause(run=run, by=None)
        worker.join(30)
        assert not worker.is_alive()
        asked = stub.count
    run.refresh_from_db()
    assert (run.state, run.error) == ("paused", "paused by the command line")
    assert 4 <= asked <= 12  # those in flight, and those begun in the second until it was seen
    assert Unit.objects.filter(state="done").count() == Verdict.objects.count() == asked
    assert not Unit.objects.filter(state="leased").exists()


def _drain(run_id: int) -> None:
    try:
        process_units(run_id)
    finally:
        connections.close_all()


# ---------- trouble ----------


@pytest.mark.heavy
def test_passing_trouble_leaves_the_run_running_and_enqueues_it_again_later(settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        run = launched(workspace("polite", chats=2))
        stub.answer = lambda body: StubReply(close=True)
        begun = time.time()
        process_units(run.pk)
    run.refresh_from_db()
    assert (run.state, run.units_done) == ("running", 0)
    assert run.error
    assert run.rung_at is not None and run.rung_at.timestamp() >= begun + 10
    assert not Unit.objects.exclude(state="open").exists()


def test_a_run_of_another_endpoint_is_paused_and_says_why(settings: Settings) -> None:
    run = waiting_run(settings)
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    process_units(run.pk)
    run.refresh_from_db()
    assert run.state == "paused"
    assert run.error.startswith(f"run {run.pk} began at http://127.0.0.1:")
    assert "the server is set to http://127.0.0.1:9/v1" in run.error


# ---------- a broker that is down ----------


def test_without_a_broker_a_run_is_planned_at_once_and_enqueued_later(settings: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"  # nobody listens there
        with broker_at(address):
            run = waiting_run(settings)
            assert (run.state, rung_at(run)) == ("running", None)
            sweep_runs()  # neither fails nor pretends
            assert rung_at(run) is None
    sweep_runs()
    assert rung_at(run) is not None
    assert runs_waiting_in_queue() == 1


def test_a_broker_that_accepts_and_never_answers_holds_nobody_up(settings: Settings) -> None:
    settings.CELERY_ENQUEUE_OPTIONS = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with broker_at(f"redis://127.0.0.1:{mute.getsockname()[1]}/0"):
            run = waiting_run(settings)
    assert (run.state, rung_at(run)) == ("running", None)


def rung_at(run: Run) -> datetime | None:
    return Run.objects.values_list("rung_at", flat=True).get(pk=run.pk)


class broker_at:
    """The application's broker for as long as the block lasts."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        celery_app.conf.broker_url = self._url

    def __exit__(self, *_: object) -> None:
        celery_app.conf.broker_url = "memory://"
