"""Carries a run to its end, from wherever it stands."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from evaluation.models.runs import ON_WORKER, Attempt, ModelCall, Passage, Run, Unit, UnitCall, Verdict
from evaluation.runs.queries.progress import PAID
from evaluation.runs.worker.leases import has_suspects, units_release
from evaluation.runs.worker.plan import plan_load
from evaluation.runs.worker.process_units import Plan, Trouble, drain


def run_execute(
    run: Run,
    *,
    on_unit: Callable[[bool], None],
    max_in_flight: int | None = None,
    seconds: float | None = None,
    leave: threading.Event | None = None,
    waits: bool = False,
) -> Run:
    """Work off a run's open units, for `seconds` or until `leave`, and settle its state.

    Returns the refreshed run: done / done_with_failures when nothing is open, paused when the endpoint is
    down (`error` says why) or on Ctrl-C (KeyboardInterrupt goes on to the caller). With `waits` it stays
    running through trouble that may pass. A run that is done stays as it is. Raises what plan_load raises,
    before anything is sent.
    """
    if run.state == Run.State.DONE:
        return run
    plan = plan_load(run, max_in_flight=max_in_flight)
    units_release(run)
    try:
        trouble = _drain(plan, on_unit=on_unit, seconds=seconds, leave=leave)
    except KeyboardInterrupt:
        run_settle(run, trouble="interrupted")
        raise
    run_settle(run, trouble=trouble, waits=waits and not trouble.lasting)
    return run


def _drain(
    plan: Plan, *, on_unit: Callable[[bool], None], seconds: float | None, leave: threading.Event | None
) -> Trouble:
    """Suspects first and one at a time, then everything."""
    if has_suspects(plan.run_id):
        begun = time.monotonic()
        alone = replace(plan, max_in_flight=1, suspects=True)
        if trouble := drain(alone, on_unit=on_unit, seconds=seconds, leave=leave):
            return trouble
        seconds = seconds and max(0.0, seconds - (time.monotonic() - begun))
    return drain(plan, on_unit=on_unit, seconds=seconds, leave=leave)


@transaction.atomic
def run_settle(run: Run, *, trouble: str, waits: bool = False) -> None:
    """Write the state that the units amount to, and what the run asked and paid for.

    `trouble` pauses a running run; with `waits` it is only shown.
    """
    # The lock keeps two workers that end together from writing an older state over a newer one.
    run.refresh_from_db(from_queryset=Run.objects.select_for_update())
    units = run.units.aggregate(
        left=Count("id", filter=Q(state__in=[Unit.State.OPEN, Unit.State.LEASED])),
        failed=Count("id", filter=Q(state=Unit.State.FAILED)),
    )
    if units["left"] == 0 and run.state != Run.State.CANCELLED:
        run.state = Run.State.DONE_WITH_FAILURES if units["failed"] else Run.State.DONE
        run.finished_at = run.finished_at or timezone.now()
        run.error = _first_error(run)
    elif run.state == Run.State.RUNNING:
        run.state = Run.State.PAUSED if trouble and not waits else Run.State.RUNNING
        run.error = trouble
    paid = _paid(run)
    for name, value in paid.items():
        setattr(run, name, value)
    run.save(update_fields=["state", "error", "finished_at", *paid])


def run_reopen(run: Run, *, on_worker: bool = False) -> Run:
    """Let a paused or failed run go on: failed units are open again and their failed verdicts are gone.

    Whoever calls this works it off; `on_worker`: the workers do. A run that is done stays as it is.
    """
    if run.state == Run.State.DONE:
        return run
    with transaction.atomic():
        failed = Unit.objects.filter(run=run, state=Unit.State.FAILED)
        for left in (Verdict, UnitCall, Passage):
            left._default_manager.filter(unit__in=failed).delete()
        reopened = failed.update(state=Unit.State.OPEN, tries=0, error="", finished_at=None)
        Run.objects.filter(pk=run.pk).update(
            state=Run.State.RUNNING,
            error="",
            finished_at=None,
            units_failed=F("units_failed") - reopened,
            options=run.options | {ON_WORKER: on_worker},
            rung_at=None,
        )
    run.refresh_from_db()
    return run


def _first_error(run: Run) -> str:
    """Why a unit failed, '' when none did."""
    failed = run.units.filter(state=Unit.State.FAILED).order_by("finished_at", "id")
    return failed.values_list("error", flat=True).first() or ""


def _paid(run: Run) -> dict[str, Any]:
    """Calls, tokens and cost by the record of every request; a resumed run has paid for its earlier part too.

    The cost is None where the price of an answer is unknown; requests without an answer are not in it.
    """
    attempts = Attempt.objects.filter(run=run)
    asked, uses = attempts.values("call"), UnitCall.objects.filter(unit__run=run)
    sums = attempts.aggregate(
        calls=Count("call", distinct=True),
        prompt_tokens=Coalesce(Sum("prompt_tokens"), 0),
        completion_tokens=Coalesce(Sum("completion_tokens"), 0),
        cost=Coalesce(Sum("cost_usd"), Decimal(0)),
        unpriced=Count("id", filter=Q(outcome__in=PAID, cost_usd__isnull=True)),
    )
    cached = ModelCall.objects.filter(pk__in=asked).aggregate(sum=Coalesce(Sum("cached_tokens"), 0))["sum"]
    cost, unpriced = sums.pop("cost"), sums.pop("unpriced")
    used_first = uses.filter(call__in=asked).values("call").distinct().count()
    return sums | {
        "cached_tokens": cached,
        "cost_usd": None if unpriced else cost,
        "reused": uses.count() - used_first,
    }
