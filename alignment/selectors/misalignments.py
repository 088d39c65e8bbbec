"""Which runs count for misalignments, and which of them are to be looked through."""

from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils import timezone

from alignment.models.misalignments import MisalignmentCount
from evaluation.models.runs import FINISHED, Run, Verdict
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion

COUNTED = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)
ANSWERED_ALIKE = Q(value=True, human=Consensus.State.TRUE) | Q(value=False, human=Consensus.State.FALSE)
# Labels come in one by one: a run is not looked through again for each of them.
LOOK_AGAIN = timedelta(seconds=60)
# So many verdicts are looked through while somebody waits for a page.
SMALL = 5_000


def counted_runs() -> QuerySet[Run]:
    """Finished evaluations and imports; what authors try and what tests repeat is not counted."""
    return Run.objects.filter(state__in=FINISHED, purpose__in=COUNTED)


def labels_seq() -> int:
    """How often labels have changed, over all criteria."""
    return int(Criterion.objects.aggregate(all=Sum("labels_seq"))["all"] or 0)


def people_answers(run: Run | OuterRef) -> QuerySet[Verdict]:
    """A run's readable verdicts with people's consensus as `human`."""
    said = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    rows = Verdict.objects.filter(run=run, state=Verdict.State.READ, value__isnull=False)
    return rows.annotate(human=Subquery(said.values("state")[:1]))


def runs_waiting() -> QuerySet[Run]:
    """Runs to look through, oldest first: those not yet, and each set's newest where labels have changed."""
    looked = MisalignmentCount.objects.filter(run=OuterRef("pk"))
    stale = looked.exclude(seq=labels_seq()).filter(at__lt=timezone.now() - LOOK_AGAIN)
    later = counted_runs().filter(chat_set=OuterRef("chat_set"), pk__gt=OuterRef("pk"))
    return counted_runs().filter(~Exists(looked) | (Exists(stale) & ~Exists(later))).order_by("pk")


def is_small(run: Run) -> bool:
    """Whether a page may look it through."""
    return Verdict.objects.filter(run=run)[: SMALL + 1].count() <= SMALL
