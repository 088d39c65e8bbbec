"""The judge's latest verdicts on a criterion, and those that differ from the consensus."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery

from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import FINISHED, Run, Verdict
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion

# NB: listed by name. Tries are excluded, and so are repeats, which only measure the judge's noise.
COUNTED = (Run.Purpose.EVALUATION, Run.Purpose.REGRESSION, Run.Purpose.IMPORT)
DISAGREES = Q(value=True, human=Consensus.State.FALSE) | Q(value=False, human=Consensus.State.TRUE)


@dataclass(frozen=True, slots=True)
class LatestVerdicts:
    """The newest verdicts of finished runs, named by id; `by_champion`: whether they used its prompt."""

    criterion: Criterion
    runs: Sequence[int]
    by_champion: bool

    def on(self, chats: QuerySet[Any] | Collection[int]) -> QuerySet[Verdict]:
        """The latest verdict on each of these chats, annotated with the consensus as `human`, or None."""
        rows = Verdict.objects.filter(run__in=self.runs, criterion=self.criterion, chat__in=chats)
        newest = rows.order_by().values("chat").annotate(newest=Max("pk")).values("newest")
        human = Consensus.objects.filter(chat=OuterRef("chat"), criterion=self.criterion).values("state")[:1]
        latest = Verdict.objects.filter(pk__in=newest).annotate(human=Subquery(human))
        return latest.order_by("-run_id", "-chat_id")

    @property
    def disagreements(self) -> QuerySet[Verdict]:
        """Latest verdicts that differ from the consensus, newest first."""
        # NB: without these chats every verdict of production is looked at, few of which have labels.
        labelled = Consensus.objects.filter(criterion=self.criterion, state__in=Consensus.ANSWERED).values(
            "chat"
        )
        return self.on(labelled).filter(DISAGREES, state=Verdict.State.READ)


def latest_verdicts(*, criterion: Criterion, champion: PromptVersion | None) -> LatestVerdicts:
    """The champion's finished runs; if it was never run, the finished runs of any other judge."""
    finished = Run.objects.filter(state__in=FINISHED, purpose__in=COUNTED)
    # By content: the same prompt may have another number.
    content = champion.content_hash if champion else ""
    prompts = JudgePrompt.objects.filter(
        judge=OuterRef("judge"), criterion=criterion, prompt_version__content_hash=content
    )
    # NB: ids, as the database would else look for the runs again at each verdict.
    if own := list(finished.filter(Exists(prompts)).values_list("pk", flat=True)):
        return LatestVerdicts(criterion, own, by_champion=True)
    verdicts = Verdict.objects.filter(run=OuterRef("pk"), criterion=criterion)
    others = finished.filter(Exists(verdicts)).values_list("pk", flat=True)
    return LatestVerdicts(criterion, list(others), by_champion=False)
