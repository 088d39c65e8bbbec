"""What `evaluate` refuses when a run is resumed, and what it does not report as success."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from evaluation.models.runs import Run, Unit, WorkerLease
from tests.factories.runs import always, answering, evaluate, the_run, workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "options", [["--set", "calibration"], ["--engine", "debate"], ["--criteria", "polite"], ["--limit", "1"]]
)
def test_a_resumed_run_keeps_its_plan(settings: Settings, options: list[str]) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "direct")
        ended = evaluate("--resume", str(the_run().pk), *options)
    assert ended.code == 2
    assert options[0] in ended.error


def test_a_cancelled_run_stays_cancelled(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "direct")
        Run.objects.update(state="cancelled")
        ended = evaluate("--resume", str(the_run().pk))
    assert (ended.code, the_run().state) == (2, "cancelled")
    assert "is cancelled: it cannot be resumed" in ended.error


def test_a_list_of_no_criteria_is_not_taken_for_all(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        ended = evaluate("--set", "calibration", "--engine", "direct", "--criteria", ",")
        assert stub.count == 0
    assert ended.code == 2
    assert "--criteria" in ended.error


def test_units_in_work_elsewhere_are_no_success(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "direct")
        run = the_run()
        in_work_elsewhere(run)
        ended = evaluate("--resume", str(run.pk))
    assert ended.code == 4
    assert "being processed elsewhere" in ended.error


def in_work_elsewhere(run: Run) -> None:
    """As if a live worker on another machine had just taken the run's only unit."""
    now = timezone.now()
    lease = WorkerLease.objects.create(
        token=uuid.uuid4(), worker="elsewhere", pid=1, beat_at=now, expires_at=now + timedelta(seconds=60)
    )
    run.verdicts.all().delete()
    run.units.update(state=Unit.State.LEASED, lease=lease)
    Run.objects.filter(pk=run.pk).update(state=Run.State.PAUSED, units_done=0)
