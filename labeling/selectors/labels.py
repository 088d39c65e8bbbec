"""Reads of labels and assignments: what one rater answered, and which chats are free for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Prefetch, QuerySet

from labeling.models.labels import Assignment, Label, LabelingJob, LabelRevision
from labeling.models.rubric import Criterion, CriterionVersion

# The skip reason of a slot that went to somebody else because its lease ran out.
EXPIRED = "lease expired"


@dataclass(frozen=True, slots=True)
class Answer:
    """A rater's own answer on one criterion; value None = not applicable."""

    criterion: str
    value: bool | None
    state: str
    version: int
    revision: int
    rationale: str = ""
    # As stored: [{"n": 3}] for a whole message, with start, end (code points) and quote for a part of it.
    evidence: list[dict[str, Any]] = field(default_factory=list)

    @property
    def places(self) -> list[dict[str, Any]]:
        """The evidence under the names of the files: `message` instead of `n`."""
        return [{"message" if name == "n" else name: part[name] for name in part} for part in self.evidence]

    @property
    def turns(self) -> list[int]:
        """The messages given as evidence, each once."""
        return sorted({int(part["n"]) for part in self.evidence})


def criteria_of(job: LabelingJob) -> list[Criterion]:
    """The job's criteria that are still asked, in the rubric's order, each with its versions."""
    criteria = (
        job.criteria.filter(state=Criterion.State.ACTIVE)
        .select_related("dimension")
        .order_by("dimension__position", "dimension_id", "position", "id")
        .prefetch_related(Prefetch("versions", CriterionVersion.objects.order_by("number")))
    )
    return list(criteria)


def newest_version(criterion: Criterion) -> CriterionVersion:
    """The version in force, from the prefetched rows."""
    return list(criterion.versions.all())[-1]


def draft_revisions(*, assignment: Assignment, criterion_ids: Iterable[int]) -> QuerySet[LabelRevision]:
    """The newest revision of each of the rater's answers on this chat that waits to be submitted.

    A label that was submitted earlier (an older job, an import) stays in force and is not shown again: its
    rater answers afresh, and only submitting replaces it.
    """
    return LabelRevision.objects.filter(
        label__chat_id=assignment.chat_id,
        label__rater=assignment.rater_id,
        label__criterion__in=criterion_ids,
        number=F("label__revision"),
        state=Label.State.DRAFT,
    )


def answers_of(*, assignment: Assignment, criteria: Sequence[Criterion]) -> dict[str, Answer]:
    """The assignment's answers by criterion key: drafts, or after submitting the labels in force."""
    keys = {criterion.pk: criterion.key for criterion in criteria}
    if assignment.state == Assignment.State.SUBMITTED:
        labels = Label.objects.filter(
            chat_id=assignment.chat_id,
            rater=assignment.rater_id,
            criterion__in=keys,
            state=Label.State.SUBMITTED,
        ).select_related("version")
        return {keys[row.criterion_id]: answer_in(row, keys[row.criterion_id]) for row in labels}
    revisions = draft_revisions(assignment=assignment, criterion_ids=keys).select_related("version", "label")
    return {keys[row.label.criterion_id]: answer_in(row, keys[row.label.criterion_id]) for row in revisions}


def answer_in(row: Label | LabelRevision, key: str) -> Answer:
    """The answer to the criterion `key` that a label, or one revision of it, holds."""
    return Answer(
        criterion=key,
        value=row.value,
        state=row.state,
        version=row.version.number,
        revision=row.revision if isinstance(row, Label) else row.number,
        rationale=row.rationale,
        evidence=row.evidence,
    )


def own_assignment(*, assignment_id: int, rater_id: int) -> Assignment | None:
    """The rater's own assignment with its job and chat; None for anybody else's."""
    return (
        Assignment.objects.filter(pk=assignment_id, rater=rater_id)
        .select_related("job__chat_set", "chat__topic", "rater")
        .first()
    )
