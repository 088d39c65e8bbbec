"""An item to adjudicate, i.e. a pair of chat and criterion: labels without names, notes, decisions.

This module reads no verdicts: adjudications must not depend on the judge.
"""

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, RaterNote
from labeling.models.people import Workspace
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class RaterLabel:
    """A rater's label; `letter` replaces the rater's name, which is shown on demand."""

    letter: str
    rater: str
    value: bool | None
    rationale: str
    # {"message", "start"?, "end"?, "quote"?}; without start and end the whole message.
    evidence: list[dict[str, Any]]
    version: int
    outdated: bool
    # False where the label answers an earlier question than the newest one labelled on this chat.
    counts: bool
    given_at: datetime

    @property
    def turns(self) -> list[int]:
        """Return the numbers of the evidence messages, each once."""
        return sorted({int(place["message"]) for place in self.evidence})


@dataclass(frozen=True, slots=True)
class Note:
    """A rater's note; `letter` is '' for a rater without a label here."""

    letter: str
    rater: str
    kind: str
    text: str
    created_at: datetime
    settled: bool


@dataclass(frozen=True, slots=True)
class AdjudicationItem:
    """The page of an item; `history` has the earlier decisions, newest first."""

    chat: Chat
    criterion: Criterion
    version: CriterionVersion
    consensus: Consensus | None
    labels: list[RaterLabel]
    # Number of labels changed after the reveal; they do not count and are not shown.
    left_out: int
    notes: list[Note]
    decision: Adjudication | None
    history: list[Adjudication]

    @property
    def turns(self) -> set[int]:
        """Return the messages that any rater marked as evidence."""
        return {turn for label in self.labels for turn in label.turns}

    @property
    def texts(self) -> dict[int, str]:
        """Return the texts of those messages by number; `start` and `end` refer to them."""
        return {row["n"]: row["content"] for row in self.chat.messages if row["n"] in self.turns}


def adjudication_item(*, chat: Chat, criterion: Criterion) -> AdjudicationItem:
    """Return the item in a constant number of queries."""
    version = criterion.versions.latest("number")
    submitted = Label.objects.filter(chat=chat, criterion=criterion, state=Label.State.SUBMITTED)
    rows = list(submitted.select_related("rater", "version"))
    blind = [row for row in rows if not row.post_reveal]
    counted = set(Label.objects.counted().filter(chat=chat, criterion=criterion).values_list("pk", flat=True))
    letters = _letters(chat, criterion, [row.rater_id for row in blind])
    decisions = Adjudication.objects.filter(chat=chat, criterion=criterion).order_by("-pk")
    labels = [_label(row, letters[row.rater_id], version, row.pk in counted) for row in blind]
    return AdjudicationItem(
        chat=chat,
        criterion=criterion,
        version=version,
        consensus=Consensus.objects.filter(chat=chat, criterion=criterion).first(),
        labels=sorted(labels, key=lambda label: (len(label.letter), label.letter)),
        left_out=len(rows) - len(blind),
        notes=[_note(row, letters) for row in _notes(chat, criterion)],
        decision=next((row for row in decisions if row.replaced_at is None), None),
        history=[row for row in decisions if row.replaced_at is not None],
    )


def _letters(chat: Chat, criterion: Criterion, raters: Iterable[int]) -> dict[int, str]:
    """Assign letters to raters: stable on this item, different on others, so that they stay anonymous."""
    secret = bytes(Workspace.current().fence_secret)

    def shuffled(rater_id: int) -> bytes:
        place = f"adjudicate:{chat.pk}:{criterion.pk}:{rater_id}".encode()
        return hmac.new(secret, place, sha256).digest()

    return {rater: _letter(n) for n, rater in enumerate(sorted(raters, key=shuffled))}


def _letter(number: int) -> str:
    """Format a number as letters: 0 → A, 25 → Z, 26 → AA."""
    rest, last = divmod(number, len(ascii_uppercase))
    return (_letter(rest - 1) if rest else "") + ascii_uppercase[last]


def _label(row: Label, letter: str, newest: CriterionVersion, counts: bool) -> RaterLabel:
    return RaterLabel(
        letter=letter,
        rater=row.rater.name,
        value=row.value,
        rationale=row.rationale,
        evidence=[_place(part) for part in row.evidence],
        version=row.version.number,
        outdated=row.version_id != newest.pk,
        counts=counts,
        given_at=row.given_at,
    )


def _place(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"message": part["n"], **{name: part[name] for name in ("start", "end", "quote") if name in part}}


def _notes(chat: Chat, criterion: Criterion) -> QuerySet[RaterNote]:
    """Return the notes on this criterion or on the chat, without those written after the reveal."""
    revealed = Assignment.objects.filter(
        chat=OuterRef("chat"), rater=OuterRef("rater"), revealed_at__lte=OuterRef("created_at")
    )
    here = RaterNote.objects.filter(chat=chat, criterion=criterion) | RaterNote.objects.filter(
        chat=chat, criterion=None
    )
    return here.exclude(Exists(revealed)).select_related("rater").order_by("pk")


def _note(row: RaterNote, letters: Mapping[int, str]) -> Note:
    return Note(
        letter=letters.get(row.rater_id, ""),
        rater=row.rater.name,
        kind=row.get_kind_display(),
        text=row.text,
        created_at=row.created_at,
        settled=row.settled_at is not None,
    )
