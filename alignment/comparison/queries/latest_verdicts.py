"""The judge's latest verdicts on a criterion, and those that differ from the consensus."""

from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

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
    """Finished runs with the current verdicts; `by_champion`: whether they use the champion's prompt."""

    criterion: Criterion
    runs: QuerySet[Run]
    by_champion: bool

    @property
    def verdicts(self) -> QuerySet[Verdict]:
        """The latest verdict on each chat, annotated with the consensus as `human`, which may be None."""
        rows = Verdict.objects.filter(run__in=self.runs.values("pk"), criterion=self.criterion)
        newest = rows.filter(chat=OuterRef("chat")).order_by("-run_id").values("run_id")[:1]
        human = Consensus.objects.filter(chat=OuterRef("chat"), criterion=self.criterion).values("state")[:1]
        latest = rows.annotate(newest=Subquery(newest), human=Subquery(human)).filter(run_id=F("newest"))
        return latest.order_by("-run_id", "-chat_id")

    @property
    def disagreements(self) -> QuerySet[Verdict]:
        """Latest verdicts that differ from the consensus, newest first."""
        return self.verdicts.filter(DISAGREES, state=Verdict.State.READ)


def latest_verdicts(*, criterion: Criterion, champion: PromptVersion | None) -> LatestVerdicts:
    """The champion's finished runs; if it was never run, the finished runs of any other judge."""
    finished = Run.objects.filter(state__in=FINISHED, purpose__in=COUNTED)
    # By content: the same prompt may have another number.
    content = champion.content_hash if champion else ""
    prompts = JudgePrompt.objects.filter(
        judge=OuterRef("judge"), criterion=criterion, prompt_version__content_hash=content
    )
    own = finished.filter(Exists(prompts))
    if own.exists():
        return LatestVerdicts(criterion, own, by_champion=True)
    verdicts = Verdict.objects.filter(run=OuterRef("pk"), criterion=criterion)
    return LatestVerdicts(criterion, finished.filter(Exists(verdicts)), by_champion=False)
