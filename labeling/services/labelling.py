"""What a rater does with a chat: answer, clear, submit. Taking and skipping come from `leases`."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from labeling.core.evidence import EvidenceError, evidence_of
from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.selectors.labels import (
    Answer,
    answer_in,
    criteria_of,
    draft_revisions,
    newest_version,
)
from labeling.services.consensus import consensus_refresh
from labeling.services.leases import (
    LEASE,
    Conflict,
    SkipReason,
    assignment_locked,
    assignment_next,
    assignment_skip,
    check_held,
)

__all__ = [
    "BadAnswer",
    "Conflict",
    "SkipReason",
    "Unanswered",
    "assignment_next",
    "assignment_skip",
    "assignment_submit",
    "label_clear",
    "label_save",
]


class Unanswered(Exception):
    """Criteria without an answer; the chat can't be submitted."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"Not answered yet: {', '.join(keys)}.")
        self.keys = list(keys)


class BadAnswer(ValueError):
    """An answer that this criterion or chat doesn't allow; `field` is the input's name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of an answer, as it goes into the history."""

    version: CriterionVersion
    value: bool | None
    cleared: bool = False
    rationale: str = ""
    evidence: list[dict[str, Any]] = field(default_factory=list)

    def is_of(self, revision: LabelRevision) -> bool:
        """Whether the revision recorded this very change."""
        return (
            self.value == revision.value
            and self.cleared == (revision.state == Label.State.CLEARED)
            and self.rationale == revision.rationale
            and self.evidence == revision.evidence
        )


# ---------- answering ----------


@transaction.atomic
def label_save(
    *,
    assignment: Assignment,
    rater: Rater,
    criterion: Criterion,
    value: bool | None,
    client_id: uuid.UUID,
    rationale: str = "",
    turns: Sequence[int] = (),
    evidence: Sequence[Mapping[str, Any]] = (),
    version: int | None = None,
    active_ms: int = 0,
) -> Answer:
    """Save an answer (None = not applicable) and its revision; the same client_id again changes nothing.

    `version` is the number of the criterion version that the rater read, by default the newest. A draft
    waits for `assignment_submit`; on a submitted chat the answer is a correction and counts at once.

    Raises BadAnswer, or Conflict where the rater no longer holds the chat.
    """
    row = assignment_locked(assignment=assignment, rater=rater)
    asked = _version(criterion=criterion, number=version)
    if value is None and not asked.allow_na:
        raise BadAnswer("value", "This criterion always applies: answer true or false.")
    contents = {int(message["n"]): str(message["content"]) for message in row.chat.messages}
    try:
        places = evidence_of(turns=turns, parts=evidence, contents=contents)
    except EvidenceError as error:
        raise BadAnswer("evidence", str(error)) from error
    change = _Change(version=asked, value=value, rationale=rationale, evidence=places)
    return _apply(row=row, criterion=criterion, change=change, client_id=client_id, active_ms=active_ms)


@transaction.atomic
def label_clear(
    *, assignment: Assignment, rater: Rater, criterion: Criterion, client_id: uuid.UUID | None = None
) -> None:
    """Withdraw a draft answer; it stays in the history. Raises Conflict on a submitted chat."""
    row = assignment_locked(assignment=assignment, rater=rater)
    if row.state == Assignment.State.SUBMITTED:
        raise Conflict("submitted")
    if draft_revisions(assignment=row, criterion_ids=[criterion.pk]).exists():
        change = _Change(version=_version(criterion=criterion, number=None), value=None, cleared=True)
        _apply(row=row, criterion=criterion, change=change, client_id=client_id or uuid.uuid4(), active_ms=0)


def _version(*, criterion: Criterion, number: int | None) -> CriterionVersion:
    if number is None:
        return newest_version(criterion)
    if found := criterion.versions.filter(number=number).first():
        return found
    raise BadAnswer("version", f"{criterion.key} has no version {number}.")


def _apply(
    *, row: Assignment, criterion: Criterion, change: _Change, client_id: uuid.UUID, active_ms: int
) -> Answer:
    now = timezone.now()
    where = {"chat_id": row.chat_id, "criterion": criterion, "rater_id": row.rater_id}
    # A known client_id is answered even after the chat was lost: it says what happened then.
    done = LabelRevision.objects.filter(
        client_id=client_id, **{f"label__{name}": value for name, value in where.items()}
    )
    if (earlier := done.select_related("version").first()) is not None:
        if not change.is_of(earlier):
            raise Conflict("client_id_used")
        return answer_in(earlier, criterion.key)
    check_held(row)
    label, _ = Label.objects.select_for_update().get_or_create(
        **where, defaults={"version": change.version, "revision": 0, "given_at": now}
    )
    submitted = row.state == Assignment.State.SUBMITTED
    revision = _record(
        row=row,
        label=label,
        change=change,
        submitted=submitted,
        client_id=client_id,
        active_ms=active_ms,
        at=now,
    )
    if submitted:
        consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[row.chat_id])
    else:
        row.lease_expires_at = now + LEASE
    row.active_ms += active_ms
    row.save(update_fields=["lease_expires_at", "active_ms"])
    return answer_in(revision, criterion.key)


def _record(
    *,
    row: Assignment,
    label: Label,
    change: _Change,
    submitted: bool,
    client_id: uuid.UUID,
    active_ms: int,
    at: datetime,
) -> LabelRevision:
    """Add the revision; the label itself changes too, unless a draft would take back what was submitted."""
    state = Label.State.SUBMITTED if submitted else Label.State.DRAFT
    state = Label.State.CLEARED if change.cleared else state
    answer = {
        "value": change.value,
        "rationale": change.rationale,
        "evidence": change.evidence,
        "version": change.version,
        "state": state,
    }
    label.revision += 1
    label.active_ms += active_ms
    if submitted or label.state != Label.State.SUBMITTED:
        for name, value in (
            answer | {"assignment": row, "source": Label.Source.SCREEN, "given_at": at}
        ).items():
            setattr(label, name, value)
    label.save()
    return LabelRevision.objects.create(
        label=label, number=label.revision, client_id=client_id, created_at=at, **answer
    )


# ---------- finishing a chat ----------


@transaction.atomic
def assignment_submit(*, assignment: Assignment, rater: Rater) -> Assignment:
    """Submit every answer of the chat in one transaction, consensus included; a second time changes nothing.

    Raises Unanswered while a criterion of the job is open, Conflict where the rater no longer holds the chat.
    """
    row = assignment_locked(assignment=assignment, rater=rater)
    if row.state == Assignment.State.SUBMITTED:
        return row
    check_held(row)
    criteria = criteria_of(row.job)
    drafts = draft_revisions(assignment=row, criterion_ids=[criterion.pk for criterion in criteria])
    locked = drafts.select_related("label", "version").select_for_update(of=("label",)).order_by("label_id")
    by_criterion = {draft.label.criterion_id: draft for draft in locked}
    if missing := [criterion.key for criterion in criteria if criterion.pk not in by_criterion]:
        raise Unanswered(missing)
    now = timezone.now()
    _submit_labels(row=row, drafts=list(by_criterion.values()), at=now)
    row.state, row.submitted_at = Assignment.State.SUBMITTED, now
    row.lease_token = row.lease_expires_at = None
    row.save(update_fields=["state", "submitted_at", "lease_token", "lease_expires_at"])
    consensus_refresh(criterion_ids=sorted(by_criterion), chat_ids=[row.chat_id])
    return row


def _submit_labels(*, row: Assignment, drafts: Sequence[LabelRevision], at: datetime) -> None:
    answer = ("value", "rationale", "evidence", "version")
    for draft in drafts:
        label = draft.label
        for name in answer:
            setattr(label, name, getattr(draft, name))
        label.assignment, label.state, label.revision = row, Label.State.SUBMITTED, label.revision + 1
        label.given_at, label.source, label.post_reveal = at, Label.Source.SCREEN, False
    Label.objects.bulk_update(
        [draft.label for draft in drafts],
        [*answer, "assignment", "state", "revision", "given_at", "source", "post_reveal"],
    )
    LabelRevision.objects.bulk_create(
        LabelRevision(
            label=draft.label,
            number=draft.label.revision,
            client_id=uuid.uuid4(),
            state=Label.State.SUBMITTED,
            created_at=at,
            **{name: getattr(draft, name) for name in answer},
        )
        for draft in drafts
    )
