"""Pause and resume the runs of a regression test."""

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
    """Pause the running runs of the test. Raises RegressionRefused if none is running."""
    running = _runs_in(_locked(test), Run.State.RUNNING)
    if not running:
        raise RegressionRefused(f"regression test {test.pk} has no running run to pause")
    for run in running:
        run_pause(run=run, by=by)
    return _fresh(test)


@transaction.atomic
def regression_resume(
    *, test: RegressionTest, by: User | None, budget_usd: Decimal | None = None
) -> RegressionTest:
    """Resume the paused runs of the test, each with a new budget if there is one.

    Raises RegressionRefused if none is paused, and InputProblem for a budget that is too small.
    """
    paused = _runs_in(_locked(test), Run.State.PAUSED)
    if not paused:
        raise RegressionRefused(f"regression test {test.pk} has no paused run to resume")
    for run in paused:
        run_resume(run=run, by=by, budget_usd=budget_usd)
    return _fresh(test)


def _locked(test: RegressionTest) -> RegressionTest:
    """Return the current row, locked. Raises RegressionRefused if the test is over."""
    locked = RegressionTest.objects.select_for_update(of=("self",)).get(pk=test.pk)
    if not locked.is_open:
        raise RegressionRefused(f"regression test {test.pk} is over")
    return locked


def _runs_in(test: RegressionTest, state: Run.State) -> list[Run]:
    return [run for run in own_runs(test) if run.state == state]


def _fresh(test: RegressionTest) -> RegressionTest:
    return RegressionTest.objects.get(pk=test.pk)
