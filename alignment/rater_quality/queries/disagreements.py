"""Chats with different labels on one criterion, with the labels grouped by answer."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser

from alignment.rater_quality.queries.answers import Labels
from alignment.rater_quality.queries.criteria import chat_counts, minority_counts
from alignment.rater_quality.queries.pace import rushed_among
from alignment.rater_quality.queries.scope import QualityScope
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, RaterNote
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown


@dataclass(frozen=True, slots=True)
class RaterLabel:
    """One rater's label on the chat; `evidence` as stored, `rushed` if faster than the chat can be read."""

    rater: str
    rationale: str
    evidence: list[dict[str, Any]]
    version: int
    given_at: datetime
    rushed: bool

    @property
    def turns(self) -> list[int]:
        """Numbers of the messages marked as evidence, each once."""
        return sorted({int(part["n"]) for part in self.evidence})

    @property
    def quotes(self) -> list[dict[str, Any]]:
        """Evidence with a quote."""
        return [part for part in self.evidence if part.get("quote")]


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Labels with the same answer."""

    value: bool | None
    labels: list[RaterLabel] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A chat with its labels by answer, most frequent first, raters' notes and the current decision."""

    chat: Chat
    groups: list[AnswerGroup]
    notes: list[RaterNote]
    decision: Adjudication | None

    @property
    def raters(self) -> int:
        """Number of raters."""
        return sum(len(group.labels) for group in self.groups)

    @property
    def turns(self) -> set[int]:
        """Numbers of all messages marked as evidence."""
        return {turn for group in self.groups for label in group.labels for turn in label.turns}


def disagreement_ids(
    scope: QualityScope, labels: Labels, user: User | AnonymousUser, *, criterion_id: int
) -> list[int]:
    """Return ids of visible chats with different labels, most evenly split first, then by age."""
    place = np.flatnonzero(labels.criterion_ids == criterion_id)
    chats, counts = chat_counts(labels, int(place[0]) if place.size else -1)
    minority = minority_counts(counts)
    differing = np.flatnonzero(minority)
    share = minority[differing] / counts[differing].sum(axis=1)
    ids = labels.chat_ids[chats[differing[np.argsort(-share, kind="stable")]]].tolist()
    visible = set(chats_shown(user=user).filter(pk__in=scope.chats).values_list("pk", flat=True))
    return [pk for pk in ids if pk in visible]


def disagreements(scope: QualityScope, chat_ids: Sequence[int], *, criterion_id: int) -> list[Disagreement]:
    """Return these chats in this order; five queries."""
    chats = Chat.objects.select_related("topic").in_bulk(chat_ids)
    groups = _answer_groups(scope, chat_ids, criterion_id)
    decisions = {
        row.chat_id: row
        for row in Adjudication.objects.filter(chat__in=chat_ids, criterion=criterion_id, replaced_at=None)
    }
    notes = _notes(chat_ids, criterion_id)
    return [
        Disagreement(chats[pk], groups.get(pk, []), notes.get(pk, []), decisions.get(pk)) for pk in chat_ids
    ]


def _answer_groups(
    scope: QualityScope, chat_ids: Collection[int], criterion_id: int
) -> dict[int, list[AnswerGroup]]:
    rows = scope.labels_on(chat_ids).filter(criterion=criterion_id)
    labels = list(rows.select_related("rater", "version").order_by("rater__name"))
    rushed = rushed_among({row.assignment_id for row in labels if row.assignment_id})
    groups: dict[int, dict[bool | None, AnswerGroup]] = {}
    for row in labels:
        group = groups.setdefault(row.chat_id, {}).setdefault(row.value, AnswerGroup(row.value))
        group.labels.append(
            RaterLabel(
                rater=row.rater.name,
                rationale=row.rationale,
                evidence=row.evidence,
                version=row.version.number,
                given_at=row.given_at,
                rushed=row.assignment_id in rushed,
            )
        )
    return {
        pk: sorted(by_value.values(), key=lambda group: -len(group.labels)) for pk, by_value in groups.items()
    }


def _notes(chat_ids: Collection[int], criterion_id: int) -> dict[int, list[RaterNote]]:
    rows = RaterNote.objects.filter(chat__in=chat_ids, criterion=criterion_id).select_related("rater")
    notes: dict[int, list[RaterNote]] = {}
    for row in rows.order_by("pk"):
        notes.setdefault(row.chat_id, []).append(row)
    return notes
