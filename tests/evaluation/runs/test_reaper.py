"""The reaper frees what dead workers held, parks what kills them, and enqueues runs that nobody works on."""

import os
import subprocess
import sys
import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from evaluation import tasks
from evaluation.models.runs import Attempt, ModelCall, Run, Unit, Verdict, WorkerLease
from evaluation.runs.worker.enqueue import run_enqueue, runs_waiting_in_queue, sweep_runs
from evaluation.runs.worker.execute import run_settle
from evaluation.runs.worker.leases import MOST_TRIES, POISON, lease_end, machine
from evaluation.runs.worker.time_slices import STOPPED, reap
from tests.factories.runs import always, answering, workspace
from tests.factories.workers import launched, purge_tasks
from tests.stub_endpoint import Body, StubReply, case_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet() -> None:
    purge_tasks()


@pytest.fixture
def run(settings: Settings) -> Run:
    with answering(settings, always(True)):
        return launched(workspace("polite", "short", chats=4))


def lease_of(run: Run, *, seconds: float = 60, worker: str = "elsewhere", pid: int = 1) -> WorkerLease:
    now = timezone.now()
    return WorkerLease.objects.create(
        token=uuid.uuid4(),
        run=run,
        worker=worker,
        pid=pid,
        beat_at=now,
        expires_at=now + timedelta(seconds=seconds),
    )


def hold(run: Run, lease: WorkerLease, *, tries: int = 1, units: int = 4) -> list[Unit]:
    """The run's first units in work under a lease, the first one with a request on its way."""
    rows = list(run.units.order_by("id")[:units])
    Unit.objects.filter(pk__in=[row.pk for row in rows]).update(
        state=Unit.State.LEASED, lease=lease, tries=tries
    )
    call, _ = ModelCall.objects.get_or_create(
        key=f"call of {rows[0].pk}",
        defaults={"endpoint": "e", "model": "m", "role": "direct", "settings": {}, "parts": []},
    )
    Attempt.objects.create(
        call=call, run=run, unit=rows[0], number=call.attempts.count() + 1, sent_at=timezone.now()
    )
    return rows


def gone_process() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def states(run: Run) -> list[str]:
    return list(run.units.order_by("id").values_list("state", flat=True))


# ---------- what the dead held ----------


def test_units_of_a_lost_worker_are_open_again_and_its_request_may_have_been_billed(run: Run) -> None:
    hold(run, lease_of(run, seconds=-1), units=3)
    assert reap().reopened == 3
    assert states(run) == ["open"] * 4
    assert Attempt.objects.get().outcome == "unknown_maybe_billed"
    assert not WorkerLease.objects.exists()


def test_a_dead_process_of_this_machine_is_noticed_without_a_timeout(run: Run) -> None:
    hold(run, lease_of(run, worker=machine(), pid=gone_process()))
    assert reap().reopened == 4


def test_a_living_worker_keeps_its_units(run: Run) -> None:
    hold(run, lease_of(run))
    hold(run, lease_of(run, worker=machine(), pid=os.getppid()), units=1)
    assert reap().reopened == 0
    assert states(run) == ["leased"] * 4


def test_two_reapers_at_once_take_each_unit_back_once(run: Run) -> None:
    hold(run, lease_of(run, seconds=-1), tries=2)
    found: list[int] = []

    def work() -> None:
        try:
            found.append(reap().reopened)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 0, 0, 4]
    assert set(run.units.values_list("tries", flat=True)) == {2}


@pytest.mark.heavy
def test_the_number_of_queries_does_not_grow_with_units_or_runs(run: Run, settings: Settings) -> None:
    with CaptureQueriesContext(connection) as few:
        reap()
    with answering(settings, always(True)):
        for n in range(1, 4):
            more = launched(run.chat_set, replicate=n)
            hold(more, lease_of(more))
    with CaptureQueriesContext(connection) as many:
        reap()
    assert len(many) == len(few)


# ---------- poison ----------


def test_the_unit_that_a_worker_died_on_three_times_fails_and_the_run_goes_on_without_it(run: Run) -> None:
    first, second = hold(run, lease_of(run, seconds=-1), tries=MOST_TRIES, units=2)
    reap()
    assert states(run) == ["failed", "open", "open", "open"]
    verdicts = Verdict.objects.filter(unit=first)
    assert set(verdicts.values_list("criterion__key", "state", "explanation")) == {
        ("polite", "failed", POISON),
        ("short", "failed", POISON),
    }
    second.refresh_from_db()
    assert second.tries == MOST_TRIES - 1  # it only stood behind
    run.units.filter(state=Unit.State.OPEN).update(state=Unit.State.DONE)
    assert reap().settled == 1
    run.refresh_from_db()
    assert (run.state, run.units_failed, run.error) == ("done_with_failures", 1, POISON)


def test_units_that_two_workers_died_on_are_tried_one_at_a_time_before_the_others(settings: Settings) -> None:
    good = always(True)
    settings.LACE_MAX_IN_FLIGHT = 4
    with answering(settings, good) as stub:
        run = launched(workspace("polite", chats=8))
        suspects = list(run.units.order_by("-id")[:3])
        Unit.objects.filter(pk__in=[unit.pk for unit in suspects]).update(tries=MOST_TRIES - 1)
        seen: list[int] = []

        def slowly(body: Body) -> StubReply:
            seen.append(stub.most_in_flight)
            return StubReply(good(body).text, delay=0.1)

        stub.answer = slowly
        tasks.process_units(run.pk)
        cases = [case_of(body, {f"c{n}": {} for n in range(8)}) for body in stub.requests]
    assert cases[:3] == ["c5", "c6", "c7"]
    assert seen[:3] == [1, 1, 1]
    assert max(seen) > 1
    run.refresh_from_db()
    assert run.state == "done"


def test_an_orderly_hand_back_is_no_try(run: Run) -> None:
    for _ in range(5):
        lease = lease_of(run)
        hold(run, lease, tries=1)
        lease_end(lease.pk)
    assert set(run.units.values_list("state", "tries")) == {("open", 0)}


# ---------- runs to enqueue ----------


def test_a_run_whose_units_are_all_finished_is_settled(run: Run) -> None:
    run.units.update(state=Unit.State.DONE)
    assert reap().settled == 1
    run.refresh_from_db()
    assert run.state == "done"


def test_the_reaper_enqueues_a_run_without_a_task_once(run: Run) -> None:
    Run.objects.update(rung_at=None)
    before = runs_waiting_in_queue()
    sweep_runs()
    sweep_runs()
    assert runs_waiting_in_queue() == before + 1
    run.refresh_from_db()
    assert run.rung_at is not None


def test_a_run_in_work_paused_or_just_enqueued_is_not_enqueued(run: Run) -> None:
    found = reap()
    assert (found.unrung, found.quiet) == ((), ())  # rung for just now
    Run.objects.update(rung_at=None)
    lease = lease_of(run)
    assert reap().unrung == ()
    lease.delete()
    Run.objects.update(state="paused")
    assert reap().unrung == ()


def test_a_lost_task_is_repeated_and_a_waiting_one_is_not(run: Run) -> None:
    an_hour_ago = timezone.now() - timedelta(hours=1)
    Run.objects.update(rung_at=an_hour_ago)
    assert runs_waiting_in_queue() == 1  # the one of the launch
    sweep_runs()
    assert runs_waiting_in_queue() == 1
    purge_tasks()
    sweep_runs()
    assert runs_waiting_in_queue() == 1


def test_an_old_task_is_ignored_once_a_newer_one_counts(settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        run = launched(workspace("polite", chats=4))
        old = Run.objects.get(pk=run.pk).rung_at
        run_enqueue(run.pk, again=True)
        assert old is not None
        tasks.process_units(run.pk, old.isoformat())
        assert stub.count == 0
        new = Run.objects.get(pk=run.pk).rung_at
        assert new is not None
        tasks.process_units(run.pk, new.isoformat())
        assert stub.count == 4
    run.refresh_from_db()
    assert run.state == "done"


def test_a_run_whose_own_process_was_killed_is_paused_not_handed_to_workers(run: Run) -> None:
    Run.objects.update(options={}, rung_at=None)  # as `evaluate` plans it
    hold(run, lease_of(run, seconds=-1))
    found = reap()
    run.refresh_from_db()
    assert (found.unrung, run.state, run.error) == ((), "paused", STOPPED)


def test_a_cancelled_run_stays_cancelled_when_its_worker_ends(run: Run) -> None:
    Run.objects.update(state="cancelled")
    run_settle(run, trouble="the endpoint is down")
    run.units.update(state=Unit.State.DONE)
    run_settle(run, trouble="")
    run.refresh_from_db()
    assert run.state == "cancelled"
