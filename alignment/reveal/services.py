"""Show a rater the judge's verdicts on a chat that they have submitted."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from alignment.reveal.queries import ShownVerdict, judging_run, shown_verdicts
from labeling.models.labels import Assignment
from labeling.models.people import Rater
from labeling.rating.queries.labels import may_reveal
from labeling.rating.services.submission import assignment_reveal
from labeling.rubric.queries.criteria import criteria_of


@dataclass(frozen=True, slots=True)
class JudgeView:
    """A judge's verdicts on a chat; if no run has judged it, `judge` is '' and no verdict is revealed."""

    judge: str
    revealed_at: datetime | None
    verdicts: tuple[ShownVerdict, ...]


@transaction.atomic
def judge_view_reveal(*, assignment: Assignment, rater: Rater) -> JudgeView | None:
    """Return the verdicts on the job's criteria and record that they were shown; None if not allowed."""
    if not may_reveal(assignment=assignment):
        return None
    criteria = criteria_of(assignment.job)
    run = judging_run(chat_id=assignment.chat_id, criteria=criteria)
    if run is None:
        return JudgeView(judge="", revealed_at=assignment.revealed_at, verdicts=())
    row = assignment_reveal(assignment=assignment, rater=rater)
    if row is None:
        return None
    verdicts = shown_verdicts(run=run, chat_id=assignment.chat_id, criteria=criteria)
    return JudgeView(judge=run.judge.name, revealed_at=row.revealed_at, verdicts=verdicts)
