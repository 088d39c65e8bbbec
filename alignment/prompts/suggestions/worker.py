"""Ask the model for open suggestions of a revised prompt."""

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.core import Revision, Unreadable, read_answer
from evaluation.runs.worker.stored_questions import StoredQuestions

SUGGEST = "alignment.tasks.suggest"


class _Suggestions(StoredQuestions[Suggestion, Revision]):
    model = Suggestion
    task = SUGGEST
    role = "reviser"
    unreadable = Unreadable

    def read(self, row: Suggestion, text: str) -> Revision:
        return read_answer(text, prompt=row.base_text, question=row.material["question"])

    def store(self, row: Suggestion, answer: Revision) -> None:
        row.text, row.reasons, row.reason = answer.text, answer.reasons, answer.reason


SUGGESTIONS = _Suggestions()
