"""Pause, cancel and trouble of a batch run, and its turns on a worker."""

import pytest
from pytest_django import Settings

from evaluation.gateway.batches import BatchClient
from evaluation.models.runs import Batch, Run, Unit
from evaluation.runs.services.control import run_cancel, run_pause
from evaluation.runs.worker import batch
from evaluation.runs.worker.batch import batch_advance, batches_to_stop
from evaluation.runs.worker.batch_replay import wave
from evaluation.runs.worker.enqueue import sweep_runs
from evaluation.runs.worker.time_slices import run_time_slice
from tests.factories.batches import DIRECT, batching, planned
from tests.factories.runs import always, evaluate, outcomes, the_run, workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("state", ["paused", "cancelled"])
def test_stopping_a_run_cancels_its_batch_and_keeps_what_was_answered(settings: Settings, state: str) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls, stub.behaviour.answered = 99, 1
        run = planned(settings, stub)
        assert batch_advance(run).requests == 3
        {"paused": run_pause, "cancelled": run_cancel}[state](run=run, by=None)
        assert batches_to_stop(every=30) == [run.pk]
        sweep_runs()
        assert stub.steps.count("cancel") == 1
        assert batches_to_stop(every=0) == []
        run.refresh_from_db()
        assert (run.state, outcomes()) == (state, ["answered", "cancelled", "cancelled"])
        stub.behaviour.polls = 1
        if state == "paused":
            assert evaluate("--resume", str(run.pk)).code == 0
            assert len(stub.asked) == 3


@pytest.mark.parametrize("at", ["upload", "create", "look"])
@pytest.mark.parametrize("state", ["paused", "cancelled"])
def test_a_run_stopped_while_its_batch_is_sent_leaves_nothing_running(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, at: str, state: str
) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls, stub.behaviour.answered = 99, 0
        step = getattr(BatchClient, at)

        def stopped_meanwhile(*args, **options):
            result = step(*args, **options)
            if (run := the_run()).state == "running":
                {"paused": run_pause, "cancelled": run_cancel}[state](run=run, by=None)
            return result

        monkeypatch.setattr(BatchClient, at, stopped_meanwhile)
        ended = evaluate(*DIRECT, "--batch")
        assert (ended.code, ended.answer["state"]) == (4, state)
        assert {batch.status for batch in stub.batches.values()} <= {"cancelled"}
        assert stub.asked == []
    assert outcomes() == ["cancelled"] * 3


def test_a_run_paused_while_its_requests_are_recorded_sends_none(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace("polite", chats=3)

    def paused_meanwhile(*args, **options):
        files = wave(*args, **options)
        run_pause(run=the_run(), by=None)
        return files

    with batching(settings, always(True)) as stub:
        monkeypatch.setattr(batch, "wave", paused_meanwhile)
        assert evaluate(*DIRECT, "--batch").code == 4
        assert stub.batches == {}
    assert outcomes() == ["cancelled"] * 3


def test_trouble_and_ctrl_c_leave_batches_at_the_endpoint(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.polls = 3
        run = planned(settings, stub)
        batch_advance(run)
        Run.objects.filter(pk=run.pk).update(state="paused", error="interrupted")
        sweep_runs()
        assert not batch_advance(run).waiting
        assert "cancel" not in stub.steps
        assert evaluate("--resume", str(run.pk)).code == 0
        assert stub.steps.count("create") == 1


def test_a_worker_steps_a_batch_run_by_turns(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        stub.behaviour.fail = 1
        turns = [run_time_slice(run.pk)]
        run.refresh_from_db()
        assert (run.state, "503" in run.error) == ("running", True)
        while turns[-1].again:
            turns.append(run_time_slice(run.pk))
        assert all(turn.wait == 0.01 for turn in turns)
    run.refresh_from_db()
    assert (run.state, run.error) == ("done", "")


def test_a_batch_that_was_never_sent_is_withdrawn(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        run = planned(settings, stub)
        stub.behaviour.fail = 1
        assert batch_advance(run).trouble
        run_cancel(run=run, by=None)
        sweep_runs()
        assert stub.batches == {}
    assert outcomes() == ["cancelled", "cancelled"]
    assert Batch.objects.get().state == "failed"


def test_a_batch_cancelled_at_the_endpoint_pauses_the_run(settings: Settings) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True)) as stub:
        stub.behaviour.ends, stub.behaviour.answered = "cancelled", 1
        ended = evaluate(*DIRECT, "--batch")
        assert ended.code == 4
        assert "was cancelled at the endpoint" in ended.error
        stub.behaviour.ends = "completed"
        assert evaluate("--resume", str(the_run().pk)).code == 0
    assert Unit.objects.filter(state="done").count() == 2
