"""The judge's verdicts on a chat that a rater has submitted."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef
from django.db.models.functions import Coalesce

from evaluation.models.runs import FINISHED, Run, RunChat, Verdict
from evaluation.runs.queries.steps import final_rationales
from labeling.models.rubric import Criterion

# NB: an explicit list, so that raters never see verdicts of a try.
SHOWN = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)


@dataclass(frozen=True, slots=True)
class ShownVerdict:
    """One verdict; value None with state "read" is not applicable."""

    criterion: str
    value: bool | None
    state: str
    rationale: str


def judging_run(*, chat_id: int, criteria: Sequence[Criterion]) -> Run | None:
    """Return the newest finished run with a verdict on the chat; runs of the default profile first."""
    covers = RunChat.objects.filter(run=OuterRef("pk"), chat=chat_id)
    judged = Verdict.objects.filter(run=OuterRef("pk"), chat=chat_id, criterion__in=criteria)
    runs = Run.objects.filter(Exists(covers), Exists(judged), state__in=FINISHED, purpose__in=SHOWN)
    runs = runs.select_related("judge")
    return runs.order_by(Coalesce("judge__profile__is_default", False).desc(), "-pk").first()


def shown_verdicts(*, run: Run, chat_id: int, criteria: Sequence[Criterion]) -> tuple[ShownVerdict, ...]:
    """Return the run's verdicts on these criteria, in their order; two queries."""
    rows = {row.criterion_id: row for row in Verdict.objects.filter(run=run, chat=chat_id)}
    verdicts = [(criterion.key, rows[criterion.pk]) for criterion in criteria if criterion.pk in rows]
    prose = final_rationales([row for _, row in verdicts])
    return tuple(
        ShownVerdict(
            criterion=key,
            value=row.value,
            state=row.state,
            rationale=row.rationale or prose.get(row.pk, ""),
        )
        for key, row in verdicts
    )
