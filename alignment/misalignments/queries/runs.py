"""Which runs count for misalignments, and which of them are to be looked through."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils import timezone

from alignment.models.misalignments import MisalignmentCount
from evaluation.models.runs import EVALUATIONS, FINISHED, Run, RunChat, Verdict
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion

ANSWERED_ALIKE = Q(value=True, human=Consensus.State.TRUE) | Q(value=False, human=Consensus.State.FALSE)
ANSWERED = Q(state=Verdict.State.READ, value__isnull=False)
# Labels come in one by one: a run is not looked through again for each of them.
LOOK_AGAIN = timedelta(seconds=60)
# So many verdicts are looked through while somebody waits for a page.
SMALL = 5_000


def counted_runs() -> QuerySet[Run]:
    """Finished evaluations and imports; what authors try and what tests repeat is not counted."""
    return Run.objects.filter(state__in=FINISHED, purpose__in=EVALUATIONS)


def labels_seq() -> int:
    """How often labels have changed, over all criteria."""
    return int(Criterion.objects.aggregate(all=Sum("labels_seq"))["all"] or 0)


def people_answers(run: Run | OuterRef) -> QuerySet[Verdict]:
    """A run's readable verdicts with people's consensus as `human`."""
    said = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    return Verdict.objects.filter(ANSWERED, run=run).annotate(human=Subquery(said.values("state")[:1]))


def runs_after(run: Run) -> list[int]:
    """Newer runs that share chats with this one, whatever their set; by id."""
    shared = RunChat.objects.filter(run=OuterRef("pk"), chat__in=run.run_chats.values("chat"))
    return list(counted_runs().filter(Exists(shared), pk__gt=run.pk).values_list("pk", flat=True))


def last_word(later: Sequence[int]) -> Q:
    """Verdicts on whose chat and criterion none of the `later` runs has answered."""
    # NB: by number: the database then looks each verdict up, instead of all verdicts of these runs.
    answered = Verdict.objects.filter(ANSWERED, run__in=later)
    own = {"chat": OuterRef("chat"), "criterion": OuterRef("criterion")}
    return Q(~Exists(answered.filter(**own))) if later else Q()


def runs_waiting() -> QuerySet[Run]:
    """Runs to look through, oldest first: those not yet, and where labels have changed since.

    Of these not the runs that newer ones have overtaken on all their chats.
    """
    looked = MisalignmentCount.objects.filter(run=OuterRef("pk"))
    before = looked.filter(overtaken=False, at__lt=timezone.now() - LOOK_AGAIN)
    stale = before.exclude(seq=labels_seq())
    return counted_runs().filter(~Exists(looked) | Exists(stale)).order_by("pk")


def is_small(run: Run) -> bool:
    """Whether a page may look it through."""
    return Verdict.objects.filter(run=run)[: SMALL + 1].count() <= SMALL
