"""Reads of labels and assignments: what one rater answered, and which chats are free for them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from labeling.models.labels import Assignment, Label, LabelingJob, LabelRevision, through_with
from labeling.models.people import Rater, User, Workspace
from labeling.models.rubric import Criterion


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
    # Given after the judge's view was shown: kept, not counted.
    post_reveal: bool = False

    @property
    def places(self) -> list[dict[str, Any]]:
        """The evidence under the names of the files: `message` instead of `n`."""
        return [{"message" if name == "n" else name: part[name] for name in part} for part in self.evidence]

    @property
    def turns(self) -> list[int]:
        """The messages given as evidence, each once."""
        return sorted({int(part["n"]) for part in self.evidence})


@dataclass(frozen=True, slots=True)
class Rules:
    """What the workspace asks of an answer beside its value before a chat can be submitted."""

    evidence_on_false: bool
    comment_required: bool

    def lacks_evidence(self, *, value: bool | None, evidence: Sequence[Any]) -> bool:
        """Whether a False stands there without the place in the chat that it rests on."""
        return self.evidence_on_false and value is False and not evidence

    def lacks_comment(self, *, rationale: str) -> bool:
        """Whether the comment is missing."""
        return self.comment_required and not rationale.strip()


def rules_of() -> Rules:
    """The rules in force."""
    workspace = _workspace()
    return Rules(evidence_on_false=workspace.evidence_on_false, comment_required=workspace.comment_required)


def _workspace() -> Workspace:
    """The settings, without making the row: reads write nothing."""
    return Workspace.objects.first() or Workspace()


def draft_revisions(*, assignment: Assignment, criterion_ids: Iterable[int]) -> QuerySet[LabelRevision]:
    """The newest of each of the rater's answers on this chat that waits to be submitted.

    A label in force (of an older job, of an import) is not shown again: its rater answers afresh, and only
    submitting replaces it. Nor does it hide a draft: drafts end with the submitting of a chat that was done
    before this assignment was taken.
    """
    mine = {"label__chat": assignment.chat_id, "label__rater": assignment.rater_id}
    return newest_drafts().filter(
        drafts_left(assignment=assignment), **mine, label__criterion__in=criterion_ids
    )


def newest_drafts() -> QuerySet[LabelRevision]:
    """Of each label the draft that its rater saved last, unless they withdrew it."""
    saved = LabelRevision.objects.filter(
        label=OuterRef("label"), state__in=(Label.State.DRAFT, Label.State.CLEARED)
    )
    return LabelRevision.objects.filter(
        state=Label.State.DRAFT, number=Subquery(saved.order_by("-number").values("number")[:1])
    )


def drafts_left(*, assignment: Assignment) -> Q:
    """Of the rater's drafts on its chat, those that did not end before they took it."""
    done = Assignment.objects.filter(
        chat=assignment.chat_id,
        rater=assignment.rater_id,
        state=Assignment.State.SUBMITTED,
        submitted_at__gte=OuterRef("created_at"),
    )
    if assignment.taken_at is not None:
        done = done.filter(submitted_at__lte=assignment.taken_at)
    return Q(~Exists(done))


def answers_of(*, assignment: Assignment, criteria: Sequence[Criterion]) -> dict[str, Answer]:
    """The assignment's answers by criterion key: drafts, or after submitting the labels in force.

    An answer changed after the judge's view was shown stands for the label, which stays as it counts.
    """
    keys = {criterion.pk: criterion.key for criterion in criteria}
    if assignment.state == Assignment.State.SUBMITTED:
        labels = Label.objects.filter(
            chat_id=assignment.chat_id,
            rater=assignment.rater_id,
            criterion__in=keys,
            state=Label.State.SUBMITTED,
        ).select_related("version")
        found = {keys[row.criterion_id]: answer_in(row, keys[row.criterion_id]) for row in labels}
        return found | _post_reveal(labels=labels, keys=keys)
    revisions = draft_revisions(assignment=assignment, criterion_ids=keys).select_related("version", "label")
    return {keys[row.label.criterion_id]: answer_in(row, keys[row.label.criterion_id]) for row in revisions}


def _post_reveal(*, labels: QuerySet[Label], keys: Mapping[int, str]) -> dict[str, Answer]:
    """By criterion key, the newest revision after the reveal."""
    revisions = LabelRevision.objects.filter(
        label__in=labels, post_reveal=True, state=Label.State.SUBMITTED
    ).select_related("version", "label")
    rows = [(keys[row.label.criterion_id], row) for row in revisions.order_by("number")]
    return {key: answer_in(row, key) for key, row in rows}


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
        post_reveal=row.post_reveal,
    )


def seen_by(rater: Rater) -> Q:
    """Of a rater's assignments, those that say that they could see others' answers to the chat.

    That is once they were shown the judge's view. An account that may read verdicts or others' labels can do
    so as soon as it is through with the chat.
    """
    shown = Q(revealed_at__isnull=False)
    may = rater.user is not None and rater.user.sees_answers
    return shown | through_with() if may else shown


def answers_seen(*, assignment: Assignment) -> bool:
    """Whether its rater could see others' answers to the chat by now: then changes are kept, not counted."""
    rater = assignment.rater
    if rater is None:
        return False
    return Assignment.objects.filter(seen_by(rater), chat=assignment.chat_id, rater=rater).exists()


def may_reveal(*, assignment: Assignment) -> bool:
    """Whether the rater may see the judge's view: the workspace allows it, and no job waits for the label."""
    if assignment.state != Assignment.State.SUBMITTED or not _workspace().reveal_after_submit:
        return False
    in_work = Assignment.objects.filter(
        chat=assignment.chat_id,
        rater=assignment.rater_id,
        state=Assignment.State.LEASED,
        job__state=LabelingJob.State.OPEN,
    )
    return not in_work.exists()


def asked_criterion(*, job_id: int, key: str) -> Criterion | None:
    """A criterion that the job asks still."""
    asked = LabelingJob.criteria.through.objects.filter(labelingjob=job_id).values("criterion")
    return Criterion.objects.filter(key=key, state=Criterion.State.ACTIVE, pk__in=asked).first()


def own_work(*, assignment_id: int, user: User) -> Assignment | None:
    """The account's own assignment with its rater, without the chat; None for anybody else's."""
    row = Assignment.objects.filter(pk=assignment_id, rater__user=user).select_related("rater").first()
    if row is not None and row.rater is not None:
        row.rater.user = user  # spares asking for its permissions once more
    return row


def own_assignment(*, assignment_id: int, rater_id: int) -> Assignment | None:
    """The rater's own assignment with its job and chat; None for anybody else's."""
    return (
        Assignment.objects.filter(pk=assignment_id, rater=rater_id)
        .select_related("job__chat_set__rubric", "chat__topic", "rater")
        .first()
    )
