"""Reads of a rater's answers and assignments, and of the workspace's rules."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from labeling.models.labels import Assignment, Label, LabelingJob, LabelRevision, through_with
from labeling.models.people import Rater, User, Workspace
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class Answer:
    """A rater's own answer on one criterion; value None = not applicable."""

    criterion: str
    value: bool | None
    state: str
    version: int
    revision: int
    rationale: str = ""
    # As stored: [{"n": 3}] for a whole message; with start, end (code points) and quote for a passage.
    evidence: list[dict[str, Any]] = field(default_factory=list)
    # Changed after the judge's view was shown: stored, not counted.
    post_reveal: bool = False

    @property
    def places(self) -> list[dict[str, Any]]:
        """Return the evidence with the field names of files: `message` instead of `n`."""
        return [{"message" if name == "n" else name: part[name] for name in part} for part in self.evidence]

    @property
    def turns(self) -> list[int]:
        """Return the numbers of the evidence messages, each once."""
        return sorted({int(part["n"]) for part in self.evidence})


@dataclass(frozen=True, slots=True)
class Rules:
    """The workspace's requirements on answers before a chat can be submitted; criteria add their own."""

    evidence_on_false: bool
    comment_required: bool

    def needs_evidence(self, *, value: bool | None, criterion: Criterion, version: CriterionVersion) -> bool:
        """Whether this answer needs evidence.

        The workspace may ask for it with each False, a criterion with its failing answer.
        """
        if value is None:
            return False
        fails = value != version.passes_when
        return (self.evidence_on_false and not value) or (criterion.evidence_on_fail and fails)

    def lacks_comment(self, *, rationale: str) -> bool:
        """Whether a required comment is missing."""
        return self.comment_required and not rationale.strip()


def rules_of() -> Rules:
    """Return the current rules."""
    workspace = _workspace()
    return Rules(evidence_on_false=workspace.evidence_on_false, comment_required=workspace.comment_required)


def _workspace() -> Workspace:
    """Return the settings without creating the row: queries do not write."""
    return Workspace.objects.first() or Workspace()


def draft_revisions(*, assignment: Assignment, criterion_ids: Iterable[int]) -> QuerySet[LabelRevision]:
    """Return the rater's newest drafts on this chat, one per label.

    A submitted label (of an older job or an import) is not shown: its rater answers again, and only
    submitting replaces it. It does not hide a draft either. A draft ends when its chat was submitted before
    this assignment was leased.
    """
    mine = {"label__chat": assignment.chat_id, "label__rater": assignment.rater_id}
    return newest_drafts().filter(
        drafts_left(assignment=assignment), **mine, label__criterion__in=criterion_ids
    )


def newest_drafts() -> QuerySet[LabelRevision]:
    """Return the latest draft of each label, unless the rater withdrew it."""
    saved = LabelRevision.objects.filter(
        label=OuterRef("label"), state__in=(Label.State.DRAFT, Label.State.CLEARED)
    )
    return LabelRevision.objects.filter(
        state=Label.State.DRAFT, number=Subquery(saved.order_by("-number").values("number")[:1])
    )


def drafts_left(*, assignment: Assignment) -> Q:
    """Return the rater's drafts on the chat that did not end before the lease began."""
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
    """Return the assignment's answers by criterion key: drafts, or labels after submission.

    Where the rater changed an answer after the reveal, the changed answer is returned; the label that counts
    stays the same.
    """
    keys = {criterion.pk: criterion.key for criterion in criteria}
    if assignment.state == Assignment.State.SUBMITTED:
        labels = Label.objects.filter(
            chat_id=assignment.chat_id,
            rater=assignment.rater_id,
            criterion__in=keys,
            state=Label.State.SUBMITTED,
        ).select_related("version")
        answers = {keys[row.criterion_id]: answer_in(row, keys[row.criterion_id]) for row in labels}
        return answers | _post_reveal(labels=labels, keys=keys)
    revisions = draft_revisions(assignment=assignment, criterion_ids=keys).select_related("version", "label")
    return {keys[row.label.criterion_id]: answer_in(row, keys[row.label.criterion_id]) for row in revisions}


def _post_reveal(*, labels: QuerySet[Label], keys: Mapping[int, str]) -> dict[str, Answer]:
    """Return the newest revision after the reveal by criterion key."""
    revisions = LabelRevision.objects.filter(
        label__in=labels, post_reveal=True, state=Label.State.SUBMITTED
    ).select_related("version", "label")
    rows = [(keys[row.label.criterion_id], row) for row in revisions.order_by("number")]
    return {key: answer_in(row, key) for key, row in rows}


def answer_in(row: Label | LabelRevision, key: str) -> Answer:
    """Build the answer to criterion `key` from a label or one of its revisions."""
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
    """Build the condition on a rater's assignments that they could see others' answers to the chat.

    That is the case after the reveal. An account that may read verdicts or others' labels sees them as soon
    as it submits or skips the chat.
    """
    shown = Q(revealed_at__isnull=False)
    may = rater.user is not None and rater.user.sees_answers
    return shown | through_with() if may else shown


def answers_seen(*, assignment: Assignment) -> bool:
    """Whether the rater could see others' answers by now; later changes are stored, not counted."""
    rater = assignment.rater
    if rater is None:
        return False
    return Assignment.objects.filter(seen_by(rater), chat=assignment.chat_id, rater=rater).exists()


def may_reveal(*, assignment: Assignment) -> bool:
    """Whether the rater may see the judge's view: the workspace allows it, no job needs their label."""
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
    """Return an active criterion of the job."""
    criteria = LabelingJob.criteria.through.objects.filter(labelingjob=job_id).values("criterion")
    return Criterion.objects.filter(key=key, state=Criterion.State.ACTIVE, pk__in=criteria).first()


def own_work(*, assignment_id: int, user: User) -> Assignment | None:
    """Return the account's own assignment with its rater, without the chat; else None."""
    row = Assignment.objects.filter(pk=assignment_id, rater__user=user).select_related("rater").first()
    if row is not None and row.rater is not None:
        row.rater.user = user  # avoids loading its permissions again
    return row


def own_assignment(*, assignment_id: int, rater_id: int) -> Assignment | None:
    """Return the rater's own assignment with its job and chat; else None."""
    return (
        Assignment.objects.filter(pk=assignment_id, rater=rater_id)
        .select_related("job__chat_set__rubric", "chat__topic", "rater")
        .first()
    )
