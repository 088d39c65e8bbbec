"""Runs a run to its end, from any state."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from structlog.contextvars import bound_contextvars

from common.inbox.services import Kind, inbox_add
from evaluation.day_counts.services import days_recount
from evaluation.judges.services.judges import judge_sent
from evaluation.models.runs import (
    ON_WORKER,
    UNITS_LEFT,
    Attempt,
    ModelCall,
    Passage,
    Run,
    Unit,
    UnitCall,
    Verdict,
)
from evaluation.outbox.services import run_publish
from evaluation.runs.queries.costs import cost_sums, costs_of
from evaluation.runs.queries.verdict_counts import verdicts_counted
from evaluation.runs.worker.leases import has_suspects, units_release
from evaluation.runs.worker.plan import plan_load, texts_check
from evaluation.runs.worker.process_units import Plan, Trouble, process_units


def run_execute(
    run: Run,
    *,
    on_unit: Callable[[bool], None],
    max_in_flight: int | None = None,
    seconds: float | None = None,
    leave: threading.Event | None = None,
    waits: bool = False,
) -> Run:
    """Process a run's open units, for `seconds` or until `leave`, and set its state.

    Returns the refreshed run: done / done_with_failures if no unit is open, paused if the endpoint is down
    (`error` says why) or on Ctrl-C (KeyboardInterrupt is re-raised). With `waits` it stays running through
    errors that may pass. A done run is returned unchanged. Raises what texts_check and plan_load raise,
    before anything is sent.
    """
    if run.state == Run.State.DONE:
        return run
    texts_check(run)
    plan = plan_load(run, max_in_flight=max_in_flight)
    units_release(run)
    try:
        with bound_contextvars(run=run.pk):  # in all that is logged
            trouble = _process_all(plan, on_unit=on_unit, seconds=seconds, leave=leave)
    except KeyboardInterrupt:
        run_settle(run, trouble="interrupted")
        raise
    finally:
        judge_sent(run.judge, plan.profiles)
    run_settle(run, trouble=trouble, waits=waits and not trouble.lasting)
    return run


def _process_all(
    plan: Plan, *, on_unit: Callable[[bool], None], seconds: float | None, leave: threading.Event | None
) -> Trouble:
    """Process suspect units first, one at a time, then all others."""
    if has_suspects(plan.run_id):
        begun = time.monotonic()
        alone = replace(plan, max_in_flight=1, suspects=True)
        if trouble := process_units(alone, on_unit=on_unit, seconds=seconds, leave=leave):
            return trouble
        seconds = seconds and max(0.0, seconds - (time.monotonic() - begun))
    return process_units(plan, on_unit=on_unit, seconds=seconds, leave=leave)


@transaction.atomic
def run_settle(run: Run, *, trouble: str, waits: bool = False) -> None:
    """Set the run's state from its units, and its calls and cost from the record.

    `trouble` pauses a running run; with `waits` it is only shown.
    """
    # The lock keeps two workers that end together from writing an older state over a newer one.
    run.refresh_from_db(from_queryset=Run.objects.select_for_update())
    was_finished = run.finished_at is not None
    units = run.units.aggregate(
        left=Count("id", filter=Q(state__in=UNITS_LEFT)),
        failed=Count("id", filter=Q(state=Unit.State.FAILED)),
    )
    if units["left"] == 0 and run.state != Run.State.CANCELLED:
        run.state = Run.State.DONE_WITH_FAILURES if units["failed"] else Run.State.DONE
        run.finished_at = run.finished_at or timezone.now()
        run.error = _first_error(run)
    elif run.state == Run.State.RUNNING:
        run.state = Run.State.PAUSED if trouble and not waits else Run.State.RUNNING
        run.error = trouble
        if run.state == Run.State.PAUSED:
            tell_paused([run])
    ended = run.finished_at is not None
    counted = _paid(run) | {"verdict_counts": verdicts_counted([run.pk])[run.pk] if ended else None}
    for name, value in counted.items():
        setattr(run, name, value)
    run.save(update_fields=["state", "error", "finished_at", *counted])
    if ended and not was_finished:
        run_publish(run)


def tell_paused(runs: Iterable[Run]) -> None:
    """Tell who started these runs that they paused by themselves."""
    for run in runs:
        if run.started_by is not None:
            inbox_add(users=[run.started_by], kind=Kind.PAUSED, subject=f"run:{run.pk}")


def run_reopen(run: Run, *, on_worker: bool = False) -> Run:
    """Reopen a paused or failed run: failed units are open again and their failed verdicts are deleted.

    The caller processes it, or the workers with `on_worker`. A done run is returned unchanged.
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
            verdict_counts=None,
            units_failed=F("units_failed") - reopened,
            options=run.options | {ON_WORKER: on_worker},
            rung_at=None,
        )
        if reopened:
            days_recount(run.pk)
    run.refresh_from_db()
    return run


def _first_error(run: Run) -> str:
    """Return why a unit failed, "" if none did."""
    failed = run.units.filter(state=Unit.State.FAILED).order_by("finished_at", "id")
    return failed.values_list("error", flat=True).first() or ""


def _paid(run: Run) -> dict[str, Any]:
    """Return calls, tokens and cost from the record of every request, earlier parts of the run included.

    The cost is None if the cost of an answer is unknown; requests that broke off are not in it.
    """
    attempts = Attempt.objects.filter(run=run)
    asked_calls, uses = attempts.values("call"), UnitCall.objects.filter(unit__run=run)
    sums = attempts.aggregate(
        calls=Count("call", distinct=True),
        prompt_tokens=Coalesce(Sum("prompt_tokens"), 0),
        completion_tokens=Coalesce(Sum("completion_tokens"), 0),
        **cost_sums(),
    )
    cached = ModelCall.objects.filter(pk__in=asked_calls).aggregate(sum=Coalesce(Sum("cached_tokens"), 0))[
        "sum"
    ]
    used_first = uses.filter(call__in=asked_calls).values("call").distinct().count()
    return {
        **{name: sums[name] for name in ("calls", "prompt_tokens", "completion_tokens")},
        "cached_tokens": cached,
        "cost_usd": costs_of(sums).cost_usd,
        "reused": uses.count() - used_first,
    }
