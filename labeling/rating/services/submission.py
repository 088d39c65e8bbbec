"""Submit a chat and reveal the judge's view afterwards."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from common.problems import FieldProblem
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, RubricGuideline
from labeling.people.services.audit import audit
from labeling.rating.queries.labels import draft_revisions, may_reveal
from labeling.rating.services.answers import rules_check, stands, time_spent, work_locked
from labeling.rating.services.leases import Conflict, check_held
from labeling.rubric.queries.guidelines import guideline_in_force


class Unanswered(Exception):
    """Criteria without an answer prevent submission."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"Not answered yet: {', '.join(keys)}.")
        self.keys = list(keys)


class Outdated(Exception):
    """Answers that changed in another tab since the rater read them; the chat is not submitted."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"Changed in another tab or window: {', '.join(keys)}. The chat is not submitted.")
        self.keys = list(keys)


@transaction.atomic
def assignment_submit(
    *,
    assignment: Assignment,
    rater: Rater,
    revisions: Mapping[str, int] | None = None,
    guideline: int | None = None,
    active_ms: int = 0,
    source: Label.Source = Label.Source.SCREEN,
) -> Assignment:
    """Submit all answers of the chat and update the consensus in one transaction; repeating changes nothing.

    Parameters
    ----------
    revisions : by criterion key, of the answers on the rater's screen; 0 for no answer. None: unknown.
    guideline : number of the rubric's guideline that the rater read, 0 for none. None: the newest.
    active_ms : time since the last saved answer.
    source : of answers that replace earlier labels; the others keep theirs.

    Raises Outdated where an answer changed since, Unanswered while a criterion has no answer, Incomplete
    while required evidence or comments are missing, FieldProblem for an unknown criterion or guideline,
    Conflict where the rater no longer holds the chat.
    """
    row, revealed = work_locked(assignment=assignment, rater=rater)
    if row.state == Assignment.State.SUBMITTED:
        return row
    check_held(row)
    drafts = _drafts_to_submit(row, revisions or {})
    row.guideline = _guideline(row, guideline)
    now = timezone.now()
    _submit_labels(row=row, drafts=drafts, revealed=revealed, source=source, at=now)
    row.active_ms += time_spent(row, active_ms, now)
    row.state, row.submitted_at = Assignment.State.SUBMITTED, now
    row.lease_token = row.lease_expires_at = None
    row.save(
        update_fields=["state", "submitted_at", "lease_token", "lease_expires_at", "guideline", "active_ms"]
    )
    if not revealed:
        consensus_refresh(
            criterion_ids=[draft.label.criterion_id for draft in drafts], chat_ids=[row.chat_id]
        )
    return row


def _drafts_to_submit(row: Assignment, revisions: Mapping[str, int]) -> list[LabelRevision]:
    """Return one draft per active criterion of the job; raise the reason to refuse the submission."""
    criteria = row.job.criteria.order_by("dimension__position", "dimension_id", "position", "pk")
    keys = {criterion.pk: criterion.key for criterion in criteria}
    if unknown := revisions.keys() - keys.values():
        raise FieldProblem("revisions", f"Not a criterion of this job: {', '.join(sorted(unknown))}.")
    active = [criterion.pk for criterion in criteria if criterion.state == Criterion.State.ACTIVE]
    if not active:
        raise Conflict("nothing_asked")
    rows = draft_revisions(assignment=row, criterion_ids=active).select_related("label", "version")
    locked = rows.select_for_update(of=("label",)).order_by("label_id")
    drafts = {draft.label.criterion_id: draft for draft in locked}
    numbers = {keys[pk]: drafts[pk].number if pk in drafts else 0 for pk in active}
    if changed := [key for key, number in numbers.items() if revisions.get(key, number) != number]:
        raise Outdated(changed)
    if missing := [keys[pk] for pk in active if pk not in drafts]:
        raise Unanswered(missing)
    rules_check({criterion: drafts[criterion.pk] for criterion in criteria if criterion.pk in drafts})
    return list(drafts.values())


def _guideline(row: Assignment, number: int | None) -> RubricGuideline | None:
    rubric_id = row.job.chat_set.rubric_id
    if number is None:
        return guideline_in_force(rubric_id=rubric_id)
    guideline = RubricGuideline.objects.filter(rubric=rubric_id, number=number).first()
    if number and guideline is None:
        raise FieldProblem("guideline", f"The rubric has no guideline version {number}.")
    return guideline


def _submit_labels(
    *,
    row: Assignment,
    drafts: Sequence[LabelRevision],
    revealed: bool,
    source: Label.Source,
    at: datetime,
) -> None:
    """Turn the drafts into labels and revisions, in a fixed number of statements."""
    answer = ("value", "rationale", "evidence", "version_id")
    replaced = [draft for draft in drafts if draft.label.state == Label.State.SUBMITTED]
    unchanged = {draft.pk for draft in replaced if stands(draft.label, submitted=True, revealed=revealed)}
    labels = Label.objects.filter(pk__in=[draft.label_id for draft in drafts])
    labels.update(revision=F("revision") + 1)
    # NB: an unsubmitted label already has its newest draft: only its state changes.
    new = labels.exclude(pk__in=[draft.label_id for draft in drafts if draft.pk in unchanged])
    new.update(state=Label.State.SUBMITTED, assignment=row, given_at=at, post_reveal=revealed)
    changed = [draft for draft in replaced if draft.pk not in unchanged]
    for draft in changed:
        for name in answer:
            setattr(draft.label, name, getattr(draft, name))
        draft.label.source, draft.label.carried_from = source, None
    Label.objects.bulk_update(
        [draft.label for draft in changed],
        ["value", "rationale", "evidence", "version", "source", "carried_from"],
    )
    LabelRevision.objects.bulk_create(
        LabelRevision(
            label_id=draft.label_id,
            number=draft.label.revision + 1,
            client_id=uuid.uuid4(),
            state=Label.State.SUBMITTED,
            post_reveal=revealed,
            created_at=at,
            **{name: getattr(draft, name) for name in answer},
        )
        for draft in drafts
    )


@transaction.atomic
def assignment_reveal(*, assignment: Assignment, rater: Rater) -> Assignment | None:
    """Record that the rater sees the judge's view of a submitted chat; None where they may not.

    From then on, this rater's answers on this chat count in neither consensus nor agreement.
    """
    # NB: leasing a chat locks the rater too, so no lease can begin between check and record.
    Rater.objects.select_for_update(no_key=True).get(pk=rater.pk)
    row, _ = work_locked(assignment=assignment, rater=rater)
    if not may_reveal(assignment=row):
        return None
    if row.revealed_at is None:
        row.revealed_at = timezone.now()
        row.save(update_fields=["revealed_at"])
        audit(actor=rater.user, verb="verdicts revealed", obj=row, job=row.job.name)
    return row
