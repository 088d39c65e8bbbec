"""A misalignment as a row, with the run in which it was seen."""

from alignment.models.misalignments import Misalignment, Sighting
from evaluation.models.runs import Run
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion


def stored_misalignment(criterion: Criterion, chat: Chat, run: Run, *, by: User, text: str) -> int:
    """The id of a triaged item whose note holds the text."""
    item = Misalignment.objects.create(
        chat=chat,
        criterion=criterion,
        newest_run=run,
        cause="judge",
        state="triaged",
        note=f"{text}-triage",
        owner=by,
    )
    Sighting.objects.create(misalignment=item, run=run, human=True, judge=False)
    return item.pk
