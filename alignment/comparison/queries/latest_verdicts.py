"""The judge's newest verdicts on a criterion, and the chats on which people answer otherwise."""

from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import FINISHED, Run, Verdict
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion

# NB: by name. A try is nobody's verdict; a repeat only tells how much the judge flips.
COUNTED = (Run.Purpose.EVALUATION, Run.Purpose.REGRESSION, Run.Purpose.IMPORT)
DISAGREES = Q(value=True, human=Consensus.State.FALSE) | Q(value=False, human=Consensus.State.TRUE)


@dataclass(frozen=True, slots=True)
class Judged:
    """The finished runs whose verdicts stand for today's; `by_champion`: all of them asked the champion."""

    criterion: Criterion
    runs: QuerySet[Run]
    by_champion: bool

    @property
    def verdicts(self) -> QuerySet[Verdict]:
        """The newest verdict on each chat, with people's answer as `human`; some have no answer."""
        rows = Verdict.objects.filter(run__in=self.runs.values("pk"), criterion=self.criterion)
        newest = rows.filter(chat=OuterRef("chat")).order_by("-run_id").values("run_id")[:1]
        said = Consensus.objects.filter(chat=OuterRef("chat"), criterion=self.criterion).values("state")[:1]
        found = rows.annotate(newest=Subquery(newest), human=Subquery(said)).filter(run_id=F("newest"))
        return found.order_by("-run_id", "-chat_id")

    @property
    def parted(self) -> QuerySet[Verdict]:
        """Those that people's consensus contradicts, newest first."""
        return self.verdicts.filter(DISAGREES, state=Verdict.State.READ)


def judged(*, criterion: Criterion, champion: PromptVersion | None) -> Judged:
    """The champion's finished runs; where it was never run, those of whatever else has judged."""
    finished = Run.objects.filter(state__in=FINISHED, purpose__in=COUNTED)
    # By content: what says the same under another number was asked with it.
    content = champion.content_hash if champion else ""
    asked = JudgePrompt.objects.filter(
        judge=OuterRef("judge"), criterion=criterion, prompt_version__content_hash=content
    )
    own = finished.filter(Exists(asked))
    if own.exists():
        return Judged(criterion, own, by_champion=True)
    brought = Verdict.objects.filter(run=OuterRef("pk"), criterion=criterion)
    return Judged(criterion, finished.filter(Exists(brought)), by_champion=False)
