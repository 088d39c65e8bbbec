"""Ask the judge's model for the name of an issue."""

from alignment.issues.core.naming import Drafted, Unreadable, read_name
from alignment.models.issues import Issue, IssueNaming
from evaluation.runs.worker.stored_questions import StoredQuestions

NAME = "alignment.tasks.name_issue"
ROLE = "namer"


class _Namings(StoredQuestions[IssueNaming, Drafted]):
    model = IssueNaming
    task = NAME
    role = ROLE
    unreadable = Unreadable

    def read(self, row: IssueNaming, text: str) -> Drafted:
        return read_name(text)

    def store(self, row: IssueNaming, answer: Drafted) -> None:
        issue = Issue.objects.select_for_update(of=("self",)).get(pk=row.issue_id)
        issue.name, issue.summary, issue.name_by = answer.name, answer.summary, Issue.NameBy.MODEL
        issue.save(update_fields=["name", "summary", "name_by"])


NAMINGS = _Namings()
