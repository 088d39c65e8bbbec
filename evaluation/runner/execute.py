"""Carries a run to its end, from wherever it stands."""

from collections.abc import Callable
from decimal import Decimal

from django.db import transaction
from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from evaluation.models.runs import ModelCall, Run, Unit, UnitCall, Verdict
from evaluation.runner.drain import drain
from evaluation.runner.plan import plan_load
from evaluation.runner.units import units_release


def run_execute(run: Run, *, on_unit: Callable[[bool], None], max_in_flight: int | None = None) -> Run:
    """Work off a run's open units and settle its state; returns the refreshed run.

    done / done_with_failures when nothing is open, paused when the endpoint is down (`error` says why) or on
    Ctrl-C (KeyboardInterrupt goes on to the caller). Raises what plan_load raises, before anything is sent.
    """
    plan = plan_load(run, max_in_flight=max_in_flight)
    units_release(run)
    try:
        trouble = drain(plan, on_unit=on_unit)
    except KeyboardInterrupt:
        run_settle(run, trouble="interrupted")
        raise
    run_settle(run, trouble=trouble)
    return run


def run_settle(run: Run, *, trouble: str) -> None:
    """Write the state that the units amount to."""
    units = run.units.aggregate(
        left=Count("id", filter=Q(state__in=[Unit.State.OPEN, Unit.State.LEASED])),
        failed=Count("id", filter=Q(state=Unit.State.FAILED)),
    )
    run.refresh_from_db()
    if units["left"] == 0:
        run.state = Run.State.DONE_WITH_FAILURES if units["failed"] else Run.State.DONE
        run.finished_at = timezone.now()
    elif trouble:
        run.state = Run.State.PAUSED
    run.error = trouble
    run.cost_usd = _cost(run)
    run.save(update_fields=["state", "error", "finished_at", "cost_usd"])


def run_reopen(run: Run) -> Run:
    """Let a paused or failed run go on: failed units are open again and their failed verdicts are gone."""
    with transaction.atomic():
        failed = Unit.objects.filter(run=run, state=Unit.State.FAILED)
        Verdict.objects.filter(run=run, unit__in=failed).delete()
        reopened = failed.update(state=Unit.State.OPEN, error="", finished_at=None)
        Run.objects.filter(pk=run.pk).update(
            state=Run.State.RUNNING, error="", finished_at=None, units_failed=F("units_failed") - reopened
        )
    run.refresh_from_db()
    return run


def _cost(run: Run) -> Decimal | None:
    """What this run paid, or None when any of its calls has no known price."""
    paid = UnitCall.objects.filter(unit__run=run, reused=False).values("call")
    sums = ModelCall.objects.filter(pk__in=paid).aggregate(
        cost=Sum("cost_usd"), unknown=Count("id", filter=Q(cost_usd__isnull=True))
    )
    total: Decimal | None = sums["cost"]
    return None if sums["unknown"] else total
