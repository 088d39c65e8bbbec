"""Save and withdraw a rater's answers."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Subquery
from django.utils import timezone

from common.problems import FieldProblem
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rating.core.evidence import EvidenceError, evidence_of
from labeling.rating.queries.labels import Answer, answer_in, answers_of, draft_revisions, rules_of, seen_by
from labeling.rating.services.leases import LEASE, Conflict, check_held
from labeling.rubric.queries.criteria import version_read

LEEWAY = timedelta(minutes=1)  # tolerance for a browser's clock
LONGEST_MS = 2**31 - 1  # largest value of the column


class Incomplete(Exception):
    """Answers that lack required evidence or a required comment; they can't be submitted."""

    def __init__(self, *, evidence: Sequence[str], comment: Sequence[str]) -> None:
        parts = [f"{what} on {', '.join(keys)}" for what, keys in _lacks(evidence, comment) if keys]
        super().__init__(f"Missing: {'; '.join(parts)}.")
        self.evidence, self.comment = list(evidence), list(comment)
        self.keys = list(dict.fromkeys([*evidence, *comment]))


def _lacks(evidence: Sequence[str], comment: Sequence[str]) -> Sequence[tuple[str, Sequence[str]]]:
    return ("evidence", evidence), ("comment", comment)


class Stale(Exception):
    """The answer changed in another tab since it was read; `current` is None where it was withdrawn."""

    def __init__(self, current: Answer | None) -> None:
        super().__init__("This answer was changed in another tab or window. Your version is not saved.")
        self.current = current


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of an answer, as the history stores it."""

    version: CriterionVersion
    value: bool | None
    cleared: bool = False
    rationale: str = ""
    evidence: list[dict[str, Any]] = field(default_factory=list)
    submitted: bool = False
    post_reveal: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of a label and of its revision."""
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
        """Whether the revision stores the same change."""
        return (
            self.value == revision.value
            and self.cleared == (revision.state == Label.State.CLEARED)
            and self.rationale == revision.rationale
            and self.evidence == revision.evidence
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """The request of a change: its id, the revision its sender knew (None = unknown), active time."""

    client_id: uuid.UUID
    revision: int | None = None
    active_ms: int = 0
    source: Label.Source = Label.Source.SCREEN


@dataclass(frozen=True, slots=True)
class _Target:
    """The label to change and two of its revision numbers.

    `done`: the revision that the same client_id made; `current`: the rater's current answer (0 = none).
    """

    label: Label | None
    done: int | None = None
    current: int = 0


# ---------- answering ----------


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
    source: Label.Source = Label.Source.SCREEN,
) -> Answer:
    """Save an answer (None = not applicable) and its revision; repeating a client_id changes nothing.

    `version` is the number of the criterion version that the rater read, by default the newest. `revision`
    is the number of the answer that they saw, 0 for none. On an open chat the answer is a draft until
    `assignment_submit`. On a submitted chat it is a correction and counts immediately; if the rater could
    see others' answers since, only the history stores it.

    Raises FieldProblem, Stale where another answer was saved since, Incomplete for a correction against the
    rules, or Conflict where the rater no longer holds the chat.
    """
    read = version_read(criterion=criterion, number=version)
    if value is None and not read.allow_na:
        raise FieldProblem("value", "This criterion always applies. Answer true or false.")
    places = _places(assignment, turns=turns, evidence=evidence)
    change = _Change(version=read, value=value, rationale=rationale, evidence=places)
    sent = _Request(client_id=client_id, revision=revision, active_ms=active_ms, source=source)
    answer = _changed(assignment=assignment, rater=rater, criterion=criterion, change=change, sent=sent)
    return cast(Answer, answer)  # only a withdrawal may find nothing to do


def label_clear(
    *,
    assignment: Assignment,
    rater: Rater,
    criterion: Criterion,
    client_id: uuid.UUID | None = None,
    revision: int | None = None,
) -> None:
    """Withdraw a draft answer; the history keeps it. Without a draft, change nothing.

    Raises Conflict on a submitted chat or one that the rater no longer holds, or Stale.
    """
    change = _Change(version=version_read(criterion=criterion, number=None), value=None, cleared=True)
    sent = _Request(client_id=client_id or uuid.uuid4(), revision=revision)
    _changed(assignment=assignment, rater=rater, criterion=criterion, change=change, sent=sent)


def _places(
    assignment: Assignment, *, turns: Sequence[int], evidence: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the evidence; messages, which may be long, are read only where an answer refers to them."""
    if not turns and not evidence:
        return []
    messages = Chat.objects.values_list("messages", flat=True).get(pk=assignment.chat_id)
    contents = {int(message["n"]): str(message["content"]) for message in messages}
    try:
        return evidence_of(turns=turns, parts=evidence, contents=contents)
    except EvidenceError as error:
        raise FieldProblem("evidence", str(error)) from error


def _changed(
    *, assignment: Assignment, rater: Rater, criterion: Criterion, change: _Change, sent: _Request
) -> Answer | None:
    """Apply the change; retry once where an import created the same label at the same time."""
    apply = partial(_apply, assignment=assignment, rater=rater, criterion=criterion, change=change, sent=sent)
    try:
        return apply()
    except IntegrityError:
        return apply()


@transaction.atomic
def _apply(
    *, assignment: Assignment, rater: Rater, criterion: Criterion, change: _Change, sent: _Request
) -> Answer | None:
    now = timezone.now()
    row, revealed = work_locked(assignment=assignment, rater=rater)
    target = _target(row=row, criterion=criterion, client_id=sent.client_id)
    # A known client_id gets its earlier result, even after the chat was lost.
    if target.done is not None:
        return _again(target.label, target.done, criterion=criterion, change=change)
    submitted = row.state == Assignment.State.SUBMITTED
    _check(row=row, criterion=criterion, change=change, sent=sent, current=target.current)
    if change.cleared and not target.current:
        return None
    label = target.label or Label(
        chat_id=row.chat_id, criterion=criterion, rater=rater, revision=0, post_reveal=revealed
    )
    spent = time_spent(row, sent.active_ms, now)
    label.active_ms = min(label.active_ms + (0 if revealed else spent), LONGEST_MS)
    change = replace(change, submitted=submitted, post_reveal=revealed)
    revision = _record(row=row, label=label, change=change, sent=sent, at=now)
    if not submitted:
        row.lease_expires_at = now + LEASE
    elif not revealed:
        consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[row.chat_id])
    row.active_ms += spent
    row.save(update_fields=["lease_expires_at", "active_ms"])
    return answer_in(revision, criterion.key)


def work_locked(*, assignment: Assignment, rater: Rater) -> tuple[Assignment, bool]:
    """Lock the rater's assignment; also return whether they could see others' answers by now."""
    seen = Assignment.objects.filter(seen_by(rater), chat=OuterRef("chat"), rater=rater)
    rows = Assignment.objects.select_for_update(of=("self",)).select_related("job__chat_set")
    row = rows.annotate(seen=Exists(seen)).get(pk=assignment.pk, rater=rater)
    return row, row.seen


def _target(*, row: Assignment, criterion: Criterion, client_id: uuid.UUID) -> _Target:
    revisions = LabelRevision.objects.filter(label=OuterRef("pk"), client_id=client_id)
    drafts = draft_revisions(assignment=row, criterion_ids=[criterion.pk]).filter(label=OuterRef("pk"))
    labels = Label.objects.filter(chat=row.chat_id, criterion=criterion, rater=row.rater_id).annotate(
        done=Subquery(revisions.values("number")[:1]), draft=Subquery(drafts.values("number")[:1])
    )
    label: Any = labels.select_for_update(of=("self",)).first()
    if label is None:
        return _Target(None)
    if row.state == Assignment.State.SUBMITTED:
        in_force = label.revision if label.state == Label.State.SUBMITTED else 0
        return _Target(label, label.done, in_force)
    return _Target(label, label.done, label.draft or 0)


def _again(label: Label | None, number: int, *, criterion: Criterion, change: _Change) -> Answer:
    """Return the earlier result of this client_id; raise Conflict where that was another change."""
    earlier = LabelRevision.objects.select_related("version").get(label=label, number=number)
    if not change.is_of(earlier):
        raise Conflict("client_id_used")
    return answer_in(earlier, criterion.key)


def time_spent(row: Assignment, sent_ms: int, now: datetime) -> int:
    """Return the active time in ms, limited to the time since the rater got the chat."""
    passed = (now - (row.taken_at or row.job.created_at) + LEEWAY) // timedelta(milliseconds=1)
    return max(0, min(sent_ms, min(passed, LONGEST_MS) - row.active_ms))


def _check(*, row: Assignment, criterion: Criterion, change: _Change, sent: _Request, current: int) -> None:
    """Raise the reason to refuse: chat lost, another tab was first, or a correction breaks the rules."""
    submitted = row.state == Assignment.State.SUBMITTED
    if submitted and change.cleared:
        raise Conflict("submitted")
    check_held(row)
    if sent.revision not in (None, current):
        raise Stale(answers_of(assignment=row, criteria=[criterion]).get(criterion.key))
    if submitted:
        rules_check({criterion: change})


def rules_check(answers: Mapping[Criterion, _Change | LabelRevision]) -> None:
    """Raise Incomplete where answers, by criterion, lack required evidence or comments."""
    rules = rules_of()
    evidence = [
        criterion.key
        for criterion, answer in answers.items()
        if not answer.evidence
        and rules.needs_evidence(value=answer.value, criterion=criterion, version=answer.version)
    ]
    comment = [
        criterion.key
        for criterion, answer in answers.items()
        if rules.lacks_comment(rationale=answer.rationale)
    ]
    if evidence or comment:
        raise Incomplete(evidence=evidence, comment=comment)


def _record(*, row: Assignment, label: Label, change: _Change, sent: _Request, at: datetime) -> LabelRevision:
    """Add the revision; also change the label, unless it must keep its submitted answer (`stands`)."""
    answer = change.fields
    label.revision += 1
    if not stands(label, submitted=change.submitted, revealed=change.post_reveal):
        given = {"assignment": row, "source": sent.source, "carried_from": None, "given_at": at}
        for name, value in (answer | given).items():
            setattr(label, name, value)
    label.save()
    return LabelRevision.objects.create(
        label=label, number=label.revision, client_id=sent.client_id, created_at=at, **answer
    )


def stands(label: Label, *, submitted: bool, revealed: bool) -> bool:
    """Whether a submitted label keeps its answer: against drafts and against changes after the reveal."""
    seen_since = revealed and not label.post_reveal
    return label.state == Label.State.SUBMITTED and (not submitted or seen_since)
