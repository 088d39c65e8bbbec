"""Which running runs stand still, and since when: read for all of them at once."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Max
from django.utils import timezone

from evaluation.models.runs import ON_WORKER, Run
from evaluation.runs.queries.workers import HEARD_WITHIN

# A run of the workers waits this long for a worker before it counts as stuck, and a batch for its next step.
WAITS = timedelta(minutes=2)
LONGEST_POLL = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class StuckRun:
    """A run that stands still: since when nobody worked on it, and the trouble that it noted."""

    run: Run
    since: datetime
    why: str


def stuck_runs(*, now: datetime | None = None) -> list[StuckRun]:
    """Return the running runs on which nothing moves, the oldest first; one query."""
    now = now or timezone.now()
    rows = (
        Run.objects.filter(state=Run.State.RUNNING, units_total__gt=F("units_done") + F("units_failed"))
        .exclude(purpose=Run.Purpose.IMPORT)
        .annotate(beat=Max("leases__beat_at"), polled=Max("batches__polled_at"))
        .select_related("chat_set", "judge")
        .order_by("pk")
    )
    return [stuck for run in rows if (stuck := _stuck(run, now))]


def _stuck(run: Run, now: datetime) -> StuckRun | None:
    moments = [run.beat, run.polled, run.rung_at]  # type: ignore[attr-defined]
    since = max((moment for moment in moments if moment is not None), default=run.created_at)
    if run.mode == Run.Mode.BATCH:
        patience = LONGEST_POLL
    else:
        patience = WAITS if run.options.get(ON_WORKER) else HEARD_WITHIN
    if now - since > patience:
        return StuckRun(run, since, run.error or "No worker works on it.")
    if run.error and run.mode == Run.Mode.LIVE:
        return StuckRun(run, since, run.error)  # a worker is on it, but gets no answer
    return None
