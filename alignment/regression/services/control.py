"""Pauses and resumes regression tests: what is done to one is done to its runs."""

from decimal import Decimal

from django.db import transaction

from alignment.models.regressions import RegressionTest
from alignment.regression.services.tests import RegressionRefused
from alignment.regression.worker import own_runs
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_pause, run_resume
from labeling.models.people import User


@transaction.atomic
def regression_pause(*, test: RegressionTest, by: User | None) -> RegressionTest:
    """Let no further call of the test begin. Raises RegressionRefused where none of its runs is running."""
    running = _runs_in(_locked(test), Run.State.RUNNING)
    if not running:
        raise RegressionRefused(f"regression test {test.pk} has no running run: it cannot be paused")
    for run in running:
        run_pause(run=run, by=by)
    return _fresh(test)


@transaction.atomic
def regression_resume(
    *, test: RegressionTest, by: User | None, budget_usd: Decimal | None = None
) -> RegressionTest:
    """Hand the test's paused runs to the workers again, each with a new cap if one is given.

    Raises RegressionRefused where none is paused, and InputProblem for a budget that cannot be kept.
    """
    paused = _runs_in(_locked(test), Run.State.PAUSED)
    if not paused:
        raise RegressionRefused(f"regression test {test.pk} has no paused run: it cannot be resumed")
    for run in paused:
        run_resume(run=run, by=by, budget_usd=budget_usd)
    return _fresh(test)


def _locked(test: RegressionTest) -> RegressionTest:
    """The test as it is now, under a lock. Raises RegressionRefused once it is over."""
    locked = RegressionTest.objects.select_for_update(of=("self",)).get(pk=test.pk)
    if not locked.is_open:
        raise RegressionRefused(f"regression test {test.pk} is over")
    return locked


def _runs_in(test: RegressionTest, state: Run.State) -> list[Run]:
    return [run for run in own_runs(test) if run.state == state]


def _fresh(test: RegressionTest) -> RegressionTest:
    return RegressionTest.objects.get(pk=test.pk)
