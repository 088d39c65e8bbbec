"""The progress of a run, from queries that cost the same for any run size."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Min, Q
from django.utils import timezone

from evaluation.models.runs import Attempt, Run, Unit, WorkerLease, error_in_words
from evaluation.runs.queries.costs import RunCosts, cost_sums, costs_json, costs_of
from evaluation.runs.queries.hold_ups import hold_up
from evaluation.runs.queries.workers import HEARD_WITHIN

WINDOW = timedelta(seconds=60)
SHORTEST = 10.0  # seconds; less is no basis for a rate


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A run's live numbers.

    `in_flight` calls are pending; `workers` work on the run now, heard of lately. `hold_up` says in a
    sentence why a running run stands still, "" if nothing is known to hold it up. `rate` is finished units
    per minute over the last minute. `seconds_left` follows from it, None if no unit finished recently.
    `committed_usd` counts against the budget: known costs, and reservations of requests without one.
    """

    id: int
    state: str
    state_label: str
    error: str
    total: int
    done: int
    failed: int
    in_flight: int
    workers: int
    hold_up: str
    calls: int
    reused: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    costs: RunCosts
    committed_usd: Decimal
    budget_usd: Decimal | None
    rate: float
    seconds_left: float | None

    @property
    def active(self) -> bool:
        """Return whether the numbers may still change."""
        return self.state == Run.State.RUNNING or self.in_flight > 0

    @property
    def percent(self) -> float:
        """Return the units done or failed, of 100."""
        return 100 * (self.done + self.failed) / self.total if self.total else 100.0

    @property
    def budget_share(self) -> float | None:
        """Return the share of the budget that is spent or reserved, None without one."""
        return float(self.committed_usd / self.budget_usd) if self.budget_usd else None


def run_progress(run: Run) -> RunProgress:
    """Return the numbers of a run; up to five queries, at most about 20 ms each at 100,000 units."""
    now = timezone.now()
    spent = Attempt.objects.filter(run=run).aggregate(
        in_flight=Count("id", filter=Q(ended_at=None)), **cost_sums()
    )
    rate = units_a_minute([run], now=now)
    beats = list(WorkerLease.objects.filter(run=run, expires_at__gte=now).values_list("beat_at", flat=True))
    return RunProgress(
        id=run.pk,
        state=run.state,
        state_label=run.get_state_display(),
        error=error_in_words(run.error),
        total=run.units_total,
        done=run.units_done,
        failed=run.units_failed,
        in_flight=spent["in_flight"],
        workers=sum(beat >= now - HEARD_WITHIN for beat in beats),
        hold_up=hold_up(run, beats=beats),
        calls=run.calls,
        reused=run.reused,
        prompt_tokens=run.prompt_tokens,
        cached_tokens=run.cached_tokens,
        completion_tokens=run.completion_tokens,
        costs=costs_of(spent),
        committed_usd=run.committed_usd,
        budget_usd=run.budget_usd,
        rate=rate,
        seconds_left=60 * run.units_left / rate if rate and run.state == Run.State.RUNNING else None,
    )


def progress_json(progress: RunProgress) -> dict[str, Any]:
    """Return the numbers as commands and API show them, under the names of `list_runs`."""
    body = asdict(progress) | costs_json(progress.costs)
    del body["costs"], body["committed_usd"]
    body["budget_usd"] = None if progress.budget_usd is None else float(progress.budget_usd)
    body |= {"units": body.pop("total"), "units_done": body.pop("done"), "units_failed": body.pop("failed")}
    return body


def units_a_minute(runs: Collection[Run], *, now: datetime) -> float:
    """Return the units that these runs finished, over the last minute or since the first of them ended."""
    lately = Unit.objects.filter(run__in=runs, finished_at__gte=now - WINDOW)
    finished = lately.aggregate(count=Count("id"), first=Min("finished_at"))
    if not finished["count"]:
        return 0.0
    seconds = max((now - finished["first"]).total_seconds(), SHORTEST)
    return float(60 * finished["count"] / seconds)


def seconds_left(runs: Collection[Run]) -> dict[int, float]:
    """Return the estimated seconds left of running runs that finished a unit lately; at most one query."""
    running = {run.pk: run for run in runs if run.state == Run.State.RUNNING}
    if not running:
        return {}
    now = timezone.now()
    lately = Unit.objects.filter(run__in=running, finished_at__gte=now - WINDOW).order_by()
    rows = lately.values_list("run").annotate(count=Count("id"), first=Min("finished_at"))
    return {
        run: running[run].units_left * max((now - first).total_seconds(), SHORTEST) / count
        for run, count, first in rows
    }
