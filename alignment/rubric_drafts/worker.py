"""Ask the model for open drafts of a criterion's definition."""

from alignment.models.rubric_drafts import CriterionDraft
from alignment.rubric_drafts.core import DraftedDefinition, Unreadable, read_draft
from evaluation.runs.worker.stored_questions import StoredQuestions

DRAFT = "alignment.tasks.draft_definition"


class _Drafts(StoredQuestions[CriterionDraft, DraftedDefinition]):
    model = CriterionDraft
    task = DRAFT
    role = "definer"
    unreadable = Unreadable

    def read(self, row: CriterionDraft, text: str) -> DraftedDefinition:
        return read_draft(text)

    def store(self, row: CriterionDraft, answer: DraftedDefinition) -> None:
        row.text, row.remarks = answer.text, answer.remarks


DRAFTS = _Drafts()
