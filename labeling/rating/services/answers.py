"""What a rater answers: saving and withdrawing. `submitting` finishes a chat, `leases` says who holds it."""

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
from labeling.consensus.services import consensus_refresh
from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rating.core.evidence import EvidenceError, evidence_of
from labeling.rating.queries.labels import Answer, answer_in, answers_of, draft_revisions, rules_of, seen_by
from labeling.rating.services.leases import LEASE, Conflict, check_held
from labeling.rubric.queries.criteria import version_read

LEEWAY = timedelta(minutes=1)  # of a browser's clock
LONGEST_MS = 2**31 - 1  # that a column holds


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
    source: Label.Source = Label.Source.SCREEN


@dataclass(frozen=True, slots=True)
class _Held:
    """The label that a change goes to, and the numbers of two of its revisions: the one that the change's
    client_id made before, and the answer that the rater has before them (0 = none)."""

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
    """Save an answer (None = not applicable) and its revision; the same client_id again changes nothing.

    `version` is the number of the criterion version that the rater read, by default the newest; `revision`
    that of the answer they saw, 0 for none. A draft waits for `assignment_submit`; on a submitted chat the
    answer is a correction and counts at once, unless the rater could see others' answers since: then it is
    history only.

    Raises FieldProblem, Stale where another answer was saved since, Incomplete for a correction against the
    rules, or Conflict where the rater no longer holds the chat.
    """
    asked = version_read(criterion=criterion, number=version)
    if value is None and not asked.allow_na:
        raise FieldProblem("value", "This criterion always applies: answer true or false.")
    places = _places(assignment, turns=turns, evidence=evidence)
    change = _Change(version=asked, value=value, rationale=rationale, evidence=places)
    sent = _Sent(client_id=client_id, revision=revision, active_ms=active_ms, source=source)
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
    """Withdraw a draft answer; it stays in the history. Without one nothing changes.

    Raises Conflict on a submitted chat or one that the rater no longer holds, or Stale.
    """
    change = _Change(version=version_read(criterion=criterion, number=None), value=None, cleared=True)
    sent = _Sent(client_id=client_id or uuid.uuid4(), revision=revision)
    _changed(assignment=assignment, rater=rater, criterion=criterion, change=change, sent=sent)


def _places(
    assignment: Assignment, *, turns: Sequence[int], evidence: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """NB: the messages of a chat may be long; they are read only where an answer points into them."""
    if not turns and not evidence:
        return []
    messages = Chat.objects.values_list("messages", flat=True).get(pk=assignment.chat_id)
    contents = {int(message["n"]): str(message["content"]) for message in messages}
    try:
        return evidence_of(turns=turns, parts=evidence, contents=contents)
    except EvidenceError as error:
        raise FieldProblem("evidence", str(error)) from error


def _changed(
    *, assignment: Assignment, rater: Rater, criterion: Criterion, change: _Change, sent: _Sent
) -> Answer | None:
    """Apply the change; where an import made the same label at the same time, once more over that."""
    apply = partial(_apply, assignment=assignment, rater=rater, criterion=criterion, change=change, sent=sent)
    try:
        return apply()
    except IntegrityError:
        return apply()


@transaction.atomic
def _apply(
    *, assignment: Assignment, rater: Rater, criterion: Criterion, change: _Change, sent: _Sent
) -> Answer | None:
    now = timezone.now()
    row, revealed = work_locked(assignment=assignment, rater=rater)
    held = _held(row=row, criterion=criterion, client_id=sent.client_id)
    # A known client_id is answered even after the chat was lost: it says what happened then.
    if held.done is not None:
        return _again(held.label, held.done, criterion=criterion, change=change)
    submitted = row.state == Assignment.State.SUBMITTED
    _check(row=row, criterion=criterion, change=change, sent=sent, current=held.current)
    if change.cleared and not held.current:
        return None
    label = held.label or Label(
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
    """The rater's row, locked, and whether they could see others' answers to the chat by now."""
    seen = Assignment.objects.filter(seen_by(rater), chat=OuterRef("chat"), rater=rater)
    rows = Assignment.objects.select_for_update(of=("self",)).select_related("job__chat_set")
    row = rows.annotate(seen=Exists(seen)).get(pk=assignment.pk, rater=rater)
    return row, row.seen


def _held(*, row: Assignment, criterion: Criterion, client_id: uuid.UUID) -> _Held:
    revisions = LabelRevision.objects.filter(label=OuterRef("pk"), client_id=client_id)
    drafts = draft_revisions(assignment=row, criterion_ids=[criterion.pk]).filter(label=OuterRef("pk"))
    labels = Label.objects.filter(chat=row.chat_id, criterion=criterion, rater=row.rater_id).annotate(
        done=Subquery(revisions.values("number")[:1]), draft=Subquery(drafts.values("number")[:1])
    )
    label: Any = labels.select_for_update(of=("self",)).first()
    if label is None:
        return _Held(None)
    if row.state == Assignment.State.SUBMITTED:
        in_force = label.revision if label.state == Label.State.SUBMITTED else 0
        return _Held(label, label.done, in_force)
    return _Held(label, label.done, label.draft or 0)


def _again(label: Label | None, number: int, *, criterion: Criterion, change: _Change) -> Answer:
    """What the same client_id did; raises Conflict where that was something else."""
    earlier = LabelRevision.objects.select_related("version").get(label=label, number=number)
    if not change.is_of(earlier):
        raise Conflict("client_id_used")
    return answer_in(earlier, criterion.key)


def time_spent(row: Assignment, sent_ms: int, now: datetime) -> int:
    """The active time that counts: never more than has passed since the rater took the chat."""
    passed = (now - (row.taken_at or row.job.created_at) + LEEWAY) // timedelta(milliseconds=1)
    return max(0, min(sent_ms, min(passed, LONGEST_MS) - row.active_ms))


def _check(*, row: Assignment, criterion: Criterion, change: _Change, sent: _Sent, current: int) -> None:
    """Raise what forbids it: the chat is lost, another tab was first, a correction breaks the rules."""
    submitted = row.state == Assignment.State.SUBMITTED
    if submitted and change.cleared:
        raise Conflict("submitted")
    check_held(row)
    if sent.revision not in (None, current):
        raise Stale(answers_of(assignment=row, criteria=[criterion]).get(criterion.key))
    if submitted:
        rules_check({criterion.key: change})


def rules_check(answers: Mapping[str, _Change | LabelRevision]) -> None:
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


def _record(*, row: Assignment, label: Label, change: _Change, sent: _Sent, at: datetime) -> LabelRevision:
    """Add the revision; the label itself changes too, unless what was submitted has to stand (`stands`)."""
    answer = change.fields
    label.revision += 1
    if not stands(label, submitted=change.submitted, revealed=change.post_reveal):
        for name, value in (answer | {"assignment": row, "source": sent.source, "given_at": at}).items():
            setattr(label, name, value)
    label.save()
    return LabelRevision.objects.create(
        label=label, number=label.revision, client_id=sent.client_id, created_at=at, **answer
    )


def stands(label: Label, *, submitted: bool, revealed: bool) -> bool:
    """Whether a submitted label stays: a draft takes nothing back, nor does who has seen the judge's view."""
    seen_since = revealed and not label.post_reveal
    return label.state == Label.State.SUBMITTED and (not submitted or seen_since)
