"""Scan finished runs for disagreements in batches; SQL inserts, closes and reopens the items."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils import timezone

from alignment.comparison.queries.latest_verdicts import DISAGREES
from alignment.misalignments.queries.runs import (
    AGREES,
    counted_runs,
    labels_seq,
    not_overtaken,
    runs_after,
    runs_waiting,
    verdicts_with_consensus,
)
from alignment.models.misalignments import Misalignment, MisalignmentCount, Sighting
from common.sql import insert_select
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict

log = logging.getLogger(__name__)

# Verdicts scanned, and items changed, in one transaction.
SCAN_BATCH, UPDATE_BATCH = 20_000, 1_000
_State, _ClosedBy = Misalignment.State, Misalignment.ClosedBy


def disagreements_sweep() -> None:
    """Scan finished runs that wait: new ones, and those on whose chats labels have changed."""
    for run in runs_waiting():
        try:
            misalignments_refresh(run)
        except Exception:
            # One run that cannot be scanned must not hold up the others.
            log.exception("run %s could not be scanned for disagreements", run.pk)


def misalignments_refresh(run: Run) -> None:
    """Store the disagreements of a finished run with the consensus; close and reopen the items it affects.

    Idempotent. Where a newer run has a verdict on the same chat and criterion, this run changes nothing;
    after labels change, only its other verdicts are scanned again.
    NB: each batch is a transaction of its own, so locks are short. An interrupted scan leaves the run
    unscanned; the next scan starts from its first chat.

    Raises ValueError for a run that is not a finished evaluation or import.
    """
    if not counted_runs().filter(pk=run.pk).exists():
        raise ValueError(f"run {run.pk} is not scanned: only finished evaluations and imports are")
    seq, later = labels_seq(), runs_after(run)
    rescan = MisalignmentCount.objects.filter(run=run).exists()
    disagreeing = verdicts_with_consensus(run).filter(DISAGREES, not_overtaken(later) if rescan else Q())
    for chats in _batches(run):
        _insert_items(run, disagreeing.filter(chats))
    _reopen(run, disagreeing)
    _close_by_labels()
    _close_by_run(run)
    if not rescan:  # newer runs may settle items that were inserted only now
        MisalignmentCount.objects.filter(run__in=later).update(seq=-1)
    _mark_scanned(run, seq, later)


def _mark_scanned(run: Run, seq: int, later: Sequence[int]) -> None:
    overtaken = bool(later) and not verdicts_with_consensus(run).filter(not_overtaken(later)).exists()
    values = {"seq": seq, "at": timezone.now(), "overtaken": overtaken}
    MisalignmentCount.objects.update_or_create(run=run, defaults=values)


def _batches(run: Run) -> Iterator[Q]:
    """Ranges of chat ids that hold about `SCAN_BATCH` verdicts of the run each."""
    chats = Verdict.objects.filter(run=run).order_by("chat_id").values_list("chat_id", flat=True)
    after = 0
    while ends := list(chats.filter(chat__gt=after)[SCAN_BATCH - 1 : SCAN_BATCH]):
        yield Q(chat__gt=after, chat__lte=ends[0])
        after = ends[0]
    yield Q(chat__gt=after)


def _update(rows: QuerySet[Misalignment], **values: Any) -> None:
    """Update the rows in batches; each batch applies the rows' filter again."""
    ids = list(rows.values_list("pk", flat=True))
    for at in range(0, len(ids), UPDATE_BATCH):
        rows.filter(pk__in=ids[at : at + UPDATE_BATCH]).update(**values)


@transaction.atomic
def _insert_items(run: Run, disagreeing: QuerySet[Verdict]) -> None:
    """Insert new items, and a sighting in this run for each item."""
    insert_select(
        Misalignment,
        ("chat", "criterion"),
        disagreeing.values_list("chat_id", "criterion_id"),
        constants={"cause": "", "note": "", "state": _State.OPEN.value, "newest_run": run.pk}
        | {"closed_by": "", "returned": False, "revision": 0},
        ignore_conflicts=True,
    )
    same = Misalignment.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    consensus = Case(When(value=True, then=Value(False)), default=Value(True))
    sightings = disagreeing.annotate(item=Subquery(same.values("pk")[:1]), consensus=consensus)
    insert_select(
        Sighting,
        ("misalignment", "human", "judge"),
        sightings.values_list("item", "consensus", "value"),
        constants={"run": run.pk},
        ignore_conflicts=True,
    )


def _has(verdicts: QuerySet[Verdict]) -> Exists:
    """Whether there is such a verdict on the item's chat and criterion."""
    return Exists(verdicts.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion")))


def _reopen(run: Run, disagreeing: QuerySet[Verdict]) -> None:
    """Make this run the newest of its items; reopen closed ones with their earlier triage."""
    seen = Sighting.objects.filter(run=run).values("misalignment")
    rows = Misalignment.objects.filter(_has(disagreeing), pk__in=seen)
    state = Case(When(cause="", then=Value(_State.OPEN)), default=Value(_State.TRIAGED))
    closed = rows.filter(state=_State.CLOSED, newest_run__lte=run.pk)
    not_closed = {"closed_by": "", "closed_by_version": None, "closed_at": None}
    _update(closed, state=state, returned=True, newest_run=run, **not_closed)
    _update(rows.filter(newest_run__lt=run.pk), newest_run=run)


def _close_by_labels() -> None:
    """Close items whose consensus now matches the verdict of their newest run."""
    agreeing = _has(verdicts_with_consensus(OuterRef("newest_run")).filter(AGREES))
    not_closed = Misalignment.objects.exclude(state=_State.CLOSED)
    _close(not_closed.filter(agreeing), closed_by=_ClosedBy.LABEL)


def _close_by_run(run: Run) -> None:
    """Close items on which this run's judge, another one than before, matches the consensus."""
    prompts = JudgePrompt.objects.filter(criterion=OuterRef("criterion"))
    before = prompts.filter(judge=OuterRef("newest_run__judge")).values("prompt_version__number")
    own = prompts.filter(judge=run.judge_id)
    agreeing = _has(verdicts_with_consensus(run).filter(AGREES))
    rows = Misalignment.objects.exclude(state=_State.CLOSED)
    rows = rows.filter(agreeing, newest_run__lt=run.pk).exclude(newest_run__judge=run.judge_id)
    rows = rows.annotate(before=Subquery(before[:1]), now=Subquery(own.values("prompt_version__number")[:1]))
    # A later run of an older version closes nothing. Imported judges have no versions.
    newer = rows.filter(Q(before=None) | Q(now=None) | Q(now__gte=F("before")))
    version = Subquery(own.values("prompt_version")[:1])
    closed_by = Case(When(Exists(own), then=Value(_ClosedBy.VERSION)), default=Value(_ClosedBy.JUDGE))
    _close(newer, closed_by=closed_by, closed_by_version=version, newest_run=run)


def _close(rows: QuerySet[Misalignment], **values: Any) -> None:
    _update(rows, state=_State.CLOSED, closed_at=timezone.now(), **values)
