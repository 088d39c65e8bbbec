"""Runs whose disagreements are listed, and runs that still have to be scanned for them."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils import timezone

from alignment.models.misalignments import MisalignmentCount
from evaluation.models.runs import EVALUATIONS, FINISHED, Run, RunChat, Verdict
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion

AGREES = Q(value=True, human=Consensus.State.TRUE) | Q(value=False, human=Consensus.State.FALSE)
ANSWERED = Q(state=Verdict.State.READ, value__isnull=False)
# Labels arrive one by one: a run is scanned again for them at most once in this time.
RESCAN_AFTER = timedelta(seconds=60)
# A reader who opens the list, say after adjudicating a label, waits less long.
RESCAN_ON_REQUEST_AFTER = timedelta(seconds=3)
# Runs with at most this many verdicts are scanned on request, without waiting for a worker.
SMALL = 5_000


def counted_runs() -> QuerySet[Run]:
    """Finished evaluations and imports; tries and the runs of regression tests are excluded."""
    return Run.objects.filter(state__in=FINISHED, purpose__in=EVALUATIONS)


def labels_seq() -> int:
    """Number of label changes, over all criteria."""
    return int(Criterion.objects.aggregate(all=Sum("labels_seq"))["all"] or 0)


def verdicts_with_consensus(run: Run | OuterRef) -> QuerySet[Verdict]:
    """Verdicts of a run that answer True or False, annotated with the consensus as `human`."""
    consensus = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    return Verdict.objects.filter(ANSWERED, run=run).annotate(human=Subquery(consensus.values("state")[:1]))


def runs_after(run: Run) -> list[int]:
    """Ids of newer runs that share chats with this one, over any chat set."""
    shared = RunChat.objects.filter(run=OuterRef("pk"), chat__in=run.run_chats.values("chat"))
    return list(counted_runs().filter(Exists(shared), pk__gt=run.pk).values_list("pk", flat=True))


def not_overtaken(later: Sequence[int]) -> Q:
    """Filter of verdicts on whose chat and criterion none of the `later` runs has an answer."""
    # NB: run ids, not a subquery: the database then looks up single verdicts instead of whole runs.
    answered = Verdict.objects.filter(ANSWERED, run__in=later)
    own = {"chat": OuterRef("chat"), "criterion": OuterRef("criterion")}
    return Q(~Exists(answered.filter(**own))) if later else Q()


def runs_waiting(*, after: timedelta = RESCAN_AFTER) -> QuerySet[Run]:
    """Runs to scan, oldest first: not scanned yet, or `after` ago and labels have changed since.

    A run whose every answer a newer run repeats is not scanned again.
    """
    scanned = MisalignmentCount.objects.filter(run=OuterRef("pk"))
    earlier = scanned.filter(overtaken=False, at__lt=timezone.now() - after)
    stale = earlier.exclude(seq=labels_seq())
    return counted_runs().filter(~Exists(scanned) | Exists(stale)).order_by("pk")


def is_small(run: Run) -> bool:
    """Whether a run is small enough to be scanned on request."""
    return Verdict.objects.filter(run=run)[: SMALL + 1].count() <= SMALL
