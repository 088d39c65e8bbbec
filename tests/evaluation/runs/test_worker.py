"""Real Celery workers carry a launched run to its end, with either broker; the database holds the truth."""

from pathlib import Path

import pytest
from pytest_django import Settings

from evaluation.models.runs import Attempt, Run, WorkerLease
from evaluation.tasks import STOPPING, process_units
from tests.factories.runs import always, answering, verdicts_of, workspace
from tests.factories.workers import BROKER, ended, launched, not_enqueued, wait_until, workers_with
from tests.stub_endpoint import StubReply

pytestmark = pytest.mark.django_db(transaction=True)
CHATS = 6


@pytest.mark.flow
@pytest.mark.heavy
def test_workers_find_a_launched_run_and_carry_it_to_its_end(settings: Settings, tmp_path: Path) -> None:
    with answering(settings, always(True)) as stub:
        run = not_enqueued(launched(workspace("polite", chats=CHATS)))
        with workers_with(BROKER, stub.base_url, tmp_path, judges=2) as workers:
            ended(run, log=workers.log)
            assert (run.state, run.calls, run.units_done) == ("done", CHATS, CHATS), workers.log.read_text()
            wait_until(lambda: not WorkerLease.objects.exists(), "the end of the turn")
            workers.stop()
        assert stub.count == CHATS
        assert "Traceback" not in workers.log.read_text()
    assert verdicts_of(run) == {(f"c{n}", "polite"): ("read", True) for n in range(CHATS)}
    assert Attempt.objects.filter(outcome="answered").count() == CHATS


@pytest.mark.flow
@pytest.mark.heavy
def test_stopped_workers_wait_for_the_answers_on_their_way_and_reopen_the_rest(
    settings: Settings, tmp_path: Path
) -> None:
    good = always(True)
    with answering(settings, lambda body: StubReply(good(body).text, delay=2)) as stub:
        run = not_enqueued(launched(workspace("polite", chats=40)))
        with workers_with("filesystem", stub.base_url, tmp_path) as workers:
            wait_until(lambda: stub.count >= 4, "calls in flight")
            workers.stop()
        asked = stub.count
    run.refresh_from_db()
    assert (run.state, run.units_done) == ("running", asked), workers.log.read_text()
    assert asked < 40
    assert Attempt.objects.filter(outcome="answered").count() == Attempt.objects.count() == asked
    assert not WorkerLease.objects.exists()
    assert set(run.units.values_list("state", "tries")) == {("open", 0), ("done", 1)}


def test_a_worker_that_stops_puts_its_message_back_with_one_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(STOPPING, "is_set", lambda: True)
    process_units.apply(args=[1])
    (record,) = [each for each in caplog.records if each.name == "celery.app.trace"]
    assert ("this worker stops" in record.getMessage(), record.exc_info) == (True, None)


def test_a_task_for_a_run_that_is_not_running_asks_nothing(settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        run = launched(workspace("polite", chats=CHATS))
        Run.objects.filter(pk=run.pk).update(state="paused")
        process_units(run.pk)
        assert stub.count == 0
    run.refresh_from_db()
    assert (run.state, run.finished_at) == ("paused", None)
