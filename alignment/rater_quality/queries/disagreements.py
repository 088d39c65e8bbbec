"""The chats on which raters part on one criterion, with everybody's answer side by side."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser

from alignment.rater_quality.queries.answers import Given
from alignment.rater_quality.queries.criteria import chat_counts, split_of
from alignment.rater_quality.queries.pace import rushed_among
from alignment.rater_quality.queries.scope import QualityScope
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, RaterNote
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown


@dataclass(frozen=True, slots=True)
class Said:
    """One rater's answer on the chat; `evidence` as stored, `rushed`: faster than the chat can be read."""

    rater: str
    rationale: str
    evidence: list[dict[str, Any]]
    version: int
    given_at: datetime
    rushed: bool

    @property
    def turns(self) -> list[int]:
        """The messages given as evidence, each once."""
        return sorted({int(part["n"]) for part in self.evidence})

    @property
    def quotes(self) -> list[dict[str, Any]]:
        """Of the evidence what was quoted word by word."""
        return [part for part in self.evidence if part.get("quote")]


@dataclass(frozen=True, slots=True)
class Side:
    """Those who gave the same answer."""

    value: bool | None
    said: list[Said] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartedChat:
    """A chat with the answers by side, largest side first, raters' notes, and the decision in force."""

    chat: Chat
    sides: list[Side]
    notes: list[RaterNote]
    decision: Adjudication | None

    @property
    def raters(self) -> int:
        """Who answered."""
        return sum(len(side.said) for side in self.sides)

    @property
    def turns(self) -> set[int]:
        """Every message that somebody gave as evidence."""
        return {turn for side in self.sides for said in side.said for turn in said.turns}


def parted_ids(
    scope: QualityScope, found: Given, user: User | AnonymousUser, *, criterion_id: int
) -> list[int]:
    """The chats that the user may see, most evenly split first, then in the order they were added."""
    place = np.flatnonzero(found.criterion_ids == criterion_id)
    chats, counts = chat_counts(found, int(place[0]) if place.size else -1)
    minority = split_of(counts)
    parted = np.flatnonzero(minority)
    share = minority[parted] / counts[parted].sum(axis=1)
    ids = found.chat_ids[chats[parted[np.argsort(-share, kind="stable")]]].tolist()
    seen = set(chats_shown(user=user).filter(pk__in=scope.chats).values_list("pk", flat=True))
    return [pk for pk in ids if pk in seen]


def parted_chats(scope: QualityScope, chat_ids: Sequence[int], *, criterion_id: int) -> list[PartedChat]:
    """These chats in this order; five queries."""
    chats = Chat.objects.select_related("topic").in_bulk(chat_ids)
    sides = _sides(scope, chat_ids, criterion_id)
    decisions = {
        row.chat_id: row
        for row in Adjudication.objects.filter(chat__in=chat_ids, criterion=criterion_id, replaced_at=None)
    }
    notes = _notes(chat_ids, criterion_id)
    return [PartedChat(chats[pk], sides.get(pk, []), notes.get(pk, []), decisions.get(pk)) for pk in chat_ids]


def _sides(scope: QualityScope, chat_ids: Collection[int], criterion_id: int) -> dict[int, list[Side]]:
    rows = scope.labels_on(chat_ids).filter(criterion=criterion_id)
    labels = list(rows.select_related("rater", "version").order_by("rater__name"))
    rushed = rushed_among({row.assignment_id for row in labels if row.assignment_id})
    found: dict[int, dict[bool | None, Side]] = {}
    for row in labels:
        side = found.setdefault(row.chat_id, {}).setdefault(row.value, Side(row.value))
        side.said.append(
            Said(
                rater=row.rater.name,
                rationale=row.rationale,
                evidence=row.evidence,
                version=row.version.number,
                given_at=row.given_at,
                rushed=row.assignment_id in rushed,
            )
        )
    return {pk: sorted(by_value.values(), key=lambda side: -len(side.said)) for pk, by_value in found.items()}


def _notes(chat_ids: Collection[int], criterion_id: int) -> dict[int, list[RaterNote]]:
    rows = RaterNote.objects.filter(chat__in=chat_ids, criterion=criterion_id).select_related("rater")
    notes: dict[int, list[RaterNote]] = {}
    for row in rows.order_by("pk"):
        notes.setdefault(row.chat_id, []).append(row)
    return notes
