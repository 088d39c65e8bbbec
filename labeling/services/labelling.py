"""What a rater does with a chat: answer, clear, submit, see the judge's view. Leases come from `leases`."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from labeling.core.evidence import EvidenceError, evidence_of
from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.selectors.guidelines import guideline_in_force
from labeling.selectors.labels import (
    Answer,
    answer_in,
    answers_of,
    criteria_of,
    draft_revisions,
    may_reveal,
    newest_version,
    rules_of,
    was_revealed,
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
    "Incomplete",
    "SkipReason",
    "Stale",
    "Unanswered",
    "assignment_next",
    "assignment_reveal",
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


class Incomplete(Exception):
    """Answers that the workspace's rules find lacking, by what they lack; they can't be submitted so."""

    def __init__(self, *, evidence: Sequence[str], comment: Sequence[str]) -> None:
        said = [f"a {what} on {', '.join(keys)}" for what, keys in _lacks(evidence, comment) if keys]
        super().__init__(f"Still needed: {'; '.join(said)}.")
        self.evidence, self.comment = list(evidence), list(comment)
        self.keys = list(dict.fromkeys([*evidence, *comment]))


def _lacks(evidence: Sequence[str], comment: Sequence[str]) -> Sequence[tuple[str, Sequence[str]]]:
    return ("place in the chat", evidence), ("comment", comment)


class Stale(Exception):
    """The answer has changed since it was read, in another tab; `current` is None where it is withdrawn."""

    def __init__(self, current: Answer | None) -> None:
        super().__init__("This answer was changed in another tab or window; nothing was overwritten.")
        self.current = current


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
    submitted: bool = False
    post_reveal: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """As a label and its revision store it."""
        state = Label.State.SUBMITTED if self.submitted else Label.State.DRAFT
        return {
            "value": self.value,
            "rationale": self.rationale,
            "evidence": self.evidence,
            "version": self.version,
            "state": Label.State.CLEARED if self.cleared else state,
            "post_reveal": self.post_reveal,
        }

    def is_of(self, revision: LabelRevision) -> bool:
        """Whether the revision recorded this very change."""
        return (
            self.value == revision.value
            and self.cleared == (revision.state == Label.State.CLEARED)
            and self.rationale == revision.rationale
            and self.evidence == revision.evidence
        )


@dataclass(frozen=True, slots=True)
class _Sent:
    """How a change came: its own id, the revision its sender knew (None = not said), the time it took."""

    client_id: uuid.UUID
    revision: int | None = None
    active_ms: int = 0


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
    revision: int | None = None,
    active_ms: int = 0,
) -> Answer:
    """Save an answer (None = not applicable) and its revision; the same client_id again changes nothing.

    `version` is the number of the criterion version that the rater read, by default the newest; `revision`
    that of the answer they saw, 0 for none. A draft waits for `assignment_submit`; on a submitted chat the
    answer is a correction and counts at once, unless the judge's view was shown: then it is history only.

    Raises BadAnswer, Stale where another answer was saved since, Incomplete for a correction against the
    rules, or Conflict where the rater no longer holds the chat.
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
    sent = _Sent(client_id=client_id, revision=revision, active_ms=active_ms)
    return _apply(row=row, criterion=criterion, change=change, sent=sent)


@transaction.atomic
def label_clear(
    *,
    assignment: Assignment,
    rater: Rater,
    criterion: Criterion,
    client_id: uuid.UUID | None = None,
    revision: int | None = None,
) -> None:
    """Withdraw a draft answer; it stays in the history. Raises Conflict on a submitted chat, or Stale."""
    row = assignment_locked(assignment=assignment, rater=rater)
    if row.state == Assignment.State.SUBMITTED:
        raise Conflict("submitted")
    if draft_revisions(assignment=row, criterion_ids=[criterion.pk]).exists():
        change = _Change(version=_version(criterion=criterion, number=None), value=None, cleared=True)
        sent = _Sent(client_id=client_id or uuid.uuid4(), revision=revision)
        _apply(row=row, criterion=criterion, change=change, sent=sent)


def _version(*, criterion: Criterion, number: int | None) -> CriterionVersion:
    if number is None:
        return newest_version(criterion)
    if found := criterion.versions.filter(number=number).first():
        return found
    raise BadAnswer("version", f"{criterion.key} has no version {number}.")


def _apply(*, row: Assignment, criterion: Criterion, change: _Change, sent: _Sent) -> Answer:
    now = timezone.now()
    where = {"chat_id": row.chat_id, "criterion": criterion, "rater_id": row.rater_id}
    # A known client_id is answered even after the chat was lost: it says what happened then.
    done = LabelRevision.objects.filter(
        client_id=sent.client_id, **{f"label__{name}": value for name, value in where.items()}
    )
    if (earlier := done.select_related("version").first()) is not None:
        if not change.is_of(earlier):
            raise Conflict("client_id_used")
        return answer_in(earlier, criterion.key)
    submitted = row.state == Assignment.State.SUBMITTED
    _check(row=row, criterion=criterion, change=change, sent=sent, submitted=submitted)
    revealed = was_revealed(chat_id=row.chat_id, rater_id=row.rater_id or 0)
    label, _ = Label.objects.select_for_update().get_or_create(
        **where,
        defaults={"version": change.version, "revision": 0, "given_at": now, "post_reveal": revealed},
    )
    label.active_ms += 0 if revealed else sent.active_ms
    revision = _record(
        row=row,
        label=label,
        change=replace(change, submitted=submitted, post_reveal=revealed),
        client_id=sent.client_id,
        at=now,
    )
    if not submitted:
        row.lease_expires_at = now + LEASE
    elif not revealed:
        consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[row.chat_id])
    row.active_ms += sent.active_ms
    row.save(update_fields=["lease_expires_at", "active_ms"])
    return answer_in(revision, criterion.key)


def _check(*, row: Assignment, criterion: Criterion, change: _Change, sent: _Sent, submitted: bool) -> None:
    """Raise what forbids it: the chat is lost, another tab was first, a correction breaks the rules."""
    check_held(row)
    if sent.revision is not None:
        current = answers_of(assignment=row, criteria=[criterion]).get(criterion.key)
        if sent.revision != (current.revision if current else 0):
            raise Stale(current)
    if submitted:
        _check_rules({criterion.key: change})


def _check_rules(answers: Mapping[str, _Change | LabelRevision]) -> None:
    """Raise Incomplete where answers, by criterion key, lack what the workspace asks for."""
    rules = rules_of()
    evidence = [
        key
        for key, answer in answers.items()
        if rules.lacks_evidence(value=answer.value, evidence=answer.evidence)
    ]
    comment = [key for key, answer in answers.items() if rules.lacks_comment(rationale=answer.rationale)]
    if evidence or comment:
        raise Incomplete(evidence=evidence, comment=comment)


def _record(
    *, row: Assignment, label: Label, change: _Change, client_id: uuid.UUID, at: datetime
) -> LabelRevision:
    """Add the revision; the label itself changes too, unless what was submitted has to stand (`_stands`)."""
    answer = change.fields
    label.revision += 1
    if not _stands(label, submitted=change.submitted, revealed=change.post_reveal):
        for name, value in (
            answer | {"assignment": row, "source": Label.Source.SCREEN, "given_at": at}
        ).items():
            setattr(label, name, value)
    label.save()
    return LabelRevision.objects.create(
        label=label, number=label.revision, client_id=client_id, created_at=at, **answer
    )


def _stands(label: Label, *, submitted: bool, revealed: bool) -> bool:
    """Whether a submitted label stays: a draft takes nothing back, nor does who has seen the judge's view."""
    seen_since = revealed and not label.post_reveal
    return label.state == Label.State.SUBMITTED and (not submitted or seen_since)


# ---------- finishing a chat ----------


@transaction.atomic
def assignment_submit(*, assignment: Assignment, rater: Rater) -> Assignment:
    """Submit every answer of the chat in one transaction, consensus included; a second time changes nothing.

    Raises Unanswered while a criterion of the job is open, Incomplete while an answer lacks what the
    workspace asks for, Conflict where the rater no longer holds the chat.
    """
    row = assignment_locked(assignment=assignment, rater=rater)
    if row.state == Assignment.State.SUBMITTED:
        return row
    check_held(row)
    criteria = criteria_of(row.job)
    if not criteria:
        raise Conflict("nothing_asked")
    drafts = draft_revisions(assignment=row, criterion_ids=[criterion.pk for criterion in criteria])
    locked = drafts.select_related("label", "version").select_for_update(of=("label",)).order_by("label_id")
    by_criterion = {draft.label.criterion_id: draft for draft in locked}
    if missing := [criterion.key for criterion in criteria if criterion.pk not in by_criterion]:
        raise Unanswered(missing)
    _check_rules({criterion.key: by_criterion[criterion.pk] for criterion in criteria})
    now = timezone.now()
    revealed = was_revealed(chat_id=row.chat_id, rater_id=rater.pk)
    _submit_labels(row=row, drafts=list(by_criterion.values()), revealed=revealed, at=now)
    row.state, row.submitted_at = Assignment.State.SUBMITTED, now
    row.lease_token = row.lease_expires_at = None
    row.guideline = guideline_in_force(rubric_id=row.job.chat_set.rubric_id)
    row.save(update_fields=["state", "submitted_at", "lease_token", "lease_expires_at", "guideline"])
    if not revealed:
        consensus_refresh(criterion_ids=sorted(by_criterion), chat_ids=[row.chat_id])
    return row


def _submit_labels(*, row: Assignment, drafts: Sequence[LabelRevision], revealed: bool, at: datetime) -> None:
    answer = ("value", "rationale", "evidence", "version")
    for draft in drafts:
        label = draft.label
        label.revision += 1
        if _stands(label, submitted=True, revealed=revealed):
            continue
        for name in answer:
            setattr(label, name, getattr(draft, name))
        label.assignment, label.state, label.given_at = row, Label.State.SUBMITTED, at
        label.source, label.post_reveal = Label.Source.SCREEN, revealed
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
            post_reveal=revealed,
            created_at=at,
            **{name: getattr(draft, name) for name in answer},
        )
        for draft in drafts
    )


@transaction.atomic
def assignment_reveal(*, assignment: Assignment, rater: Rater) -> Assignment | None:
    """Note that the rater sees the judge's view of a submitted chat, once; None where they may not.

    From here on what this rater answers on this chat is kept apart from consensus and agreement.
    """
    # NB: taking a chat locks the rater too, so none can be taken between the check and the note.
    Rater.objects.select_for_update(no_key=True).get(pk=rater.pk)
    row = assignment_locked(assignment=assignment, rater=rater)
    if not may_reveal(assignment=row):
        return None
    if row.revealed_at is None:
        row.revealed_at = timezone.now()
        row.save(update_fields=["revealed_at"])
    return row
