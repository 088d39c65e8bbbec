"""The chats behind the cells of a regression test's paired table, as one person may read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode
from alignment.comparison.queries.answers import JUDGE_STATES, JUDGE_VALUES
from alignment.comparison.queries.disclosure import concealed, held_counts
from alignment.comparison.queries.filters import chosen_filter
from alignment.comparison.queries.requested_scope import Own, own_chats
from alignment.comparison.queries.scope import Scope
from alignment.models.regressions import RegressionTest
from alignment.regression.core import CELLS, PairedVerdicts
from alignment.regression.queries.paired_verdicts import judge_codes, paired_answers
from alignment.reports.queries.chat_lists import excerpt
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown, reads_holdout, sees_every_chat

NAMES = {
    "fixed": "Fixed",
    "broken": "Broken",
    "still_right": "Still right",
    "still_wrong": "Still wrong",
    "no_verdict": "No verdict",
}
MEANINGS = {
    "fixed": "The champion answers these otherwise than people, the candidate as they do.",
    "broken": "The champion answers these as people do, the candidate does not.",
    "still_right": "Champion and candidate both answer these as people do.",
    "still_wrong": "Neither champion nor candidate answers these as people do.",
    "no_verdict": "Calls to one of the judges failed here, so these are left out of the paired table.",
}
VALUES = {code: value for value, code in JUDGE_VALUES.items()}
STATES = {code: str(state) for state, code in JUDGE_STATES.items()} | {JudgeCode.NONE: "none"}
# What a decided test stores of a criterion, by the name of the cell.
STORED = {name: name for name in CELLS} | {"no_verdict": "left_out"}


@dataclass(frozen=True, slots=True)
class Told:
    """One judge's answer on a chat; `again` is what it said when asked once more, None where it was not."""

    state: str
    value: bool | None
    again: "Told | None" = None

    @property
    def unstable(self) -> bool:
        """Whether it said something else when asked again."""
        return self.again is not None and (self.again.state, self.again.value) != (self.state, self.value)


@dataclass(frozen=True, slots=True)
class Member:
    """A chat that the person may read, with its place in the runs' order."""

    place: int
    pk: int
    external_id: str
    topic: str
    topic_name: str
    split: str


@dataclass(frozen=True, slots=True)
class Narrow:
    """What a list is narrowed to: a topic's key, a split, a part of the chat's id; '' = all."""

    topic: str = ""
    split: str = ""
    search: str = ""

    def fits(self, member: Member) -> bool:
        """Whether the chat is among them."""
        return (
            self.topic in ("", member.topic)
            and self.split in ("", member.split)
            and self.search.casefold() in member.external_id.casefold()
        )

    def query(self, **more: str) -> str:
        """The query string that keeps it from page to page; '' where there is nothing to keep."""
        given = more | {"topic": self.topic, "split": self.split, "q": self.search}
        text = urlencode({name: value for name, value in given.items() if value})
        return f"?{text}" if text else ""


@dataclass(frozen=True, slots=True)
class CellRow:
    """One chat as the list shows it."""

    chat_id: str
    title: str
    topic: str
    split: str
    excerpt: str
    human: bool
    champion: Told
    candidate: Told
    url: str


@dataclass(frozen=True)
class PairedCriterion:
    """One criterion of a decided test: who answered what, and which chats `user` may read."""

    test: RegressionTest
    pair: PairedVerdicts
    chat_ids: list[str]
    champion_again: Codes | None
    candidate_again: Codes | None
    user: User | AnonymousUser

    @property
    def scope(self) -> Scope:
        """The champion's run on this criterion."""
        return Scope(self.test.chat_set, self.test.baseline_run, only=self.pair.key)

    @cached_property
    def members(self) -> list[Member]:
        """The chats that the user may read, in the runs' order."""
        rows = self.scope.members
        if not sees_every_chat(user=self.user):
            rows = rows.filter(chat__in=chats_shown(user=self.user))
        places = {external_id: place for place, external_id in enumerate(self.chat_ids)}
        columns = ("chat_id", "chat__external_id", "chat__topic__key", "chat__topic__name", "split")
        return [Member(places[row[1]], *row) for row in rows.values_list(*columns)]

    def total(self, cell: str) -> int:
        """All chats of the cell, those too that the user may not read."""
        return self.pair.count(cell)

    def readable(self, cell: str, narrow: Narrow) -> list[Member]:
        """Those of the cell that the user may read and asks for; none while the lists are closed."""
        if self.own.closed:
            return []
        inside = set(np.flatnonzero(self.pair.cells[cell]).tolist())
        return [member for member in self.members if member.place in inside and narrow.fits(member)]

    def cell_of(self, place: int) -> str:
        """The cell that the chat at this place falls into; '' where people have no True or False."""
        return next((name for name in CELLS if self.pair.cells[name][place]), "")

    def human(self, place: int) -> bool:
        """What people say of an answered chat."""
        return bool(self.pair.human[place] == HumanCode.TRUE)

    def champion(self, place: int) -> Told:
        """The champion's answer."""
        return _told(self.pair.champion, self.champion_again, place)

    def candidate(self, place: int) -> Told:
        """The candidate's answer."""
        return _told(self.pair.candidate, self.candidate_again, place)

    @cached_property
    def concealed(self) -> bool:
        """Whether so few held-out chats are counted that the user is not told how many fall into a cell."""
        if reads_holdout(user=self.user) or not self.stored:
            return False
        run = self.test.baseline_run_id
        return concealed(self.stored, held=held_counts([run]).get((run, self.pair.key), {}))

    @cached_property
    def own(self) -> Own:
        """The chats of the test that are still the user's to label."""
        return own_chats(self.scope, user=self.user)

    @cached_property
    def stored(self) -> Mapping[str, Any]:
        """What the gate counted; empty for a criterion that it did not."""
        found = (self.test.body or {}).get("criteria", ())
        return next((row for row in found if row["key"] == self.pair.key), {})

    @property
    def changed(self) -> bool:
        """Whether labels or verdicts are others than those that the gate counted."""
        return bool(self.stored) and any(self.stored[STORED[name]] != self.pair.count(name) for name in CELLS)


def paired_criterion(test: RegressionTest, *, key: str, user: User | AnonymousUser) -> PairedCriterion | None:
    """The test's criterion of this key; None where it was not compared, or the gate has not decided yet."""
    if test.body is None:
        return None
    found = paired_answers(test, candidate=test.candidate_run, only=key)
    if not found.criteria:
        return None
    noise, confirm = (
        judge_codes(run, only=key).get(key) if run else None for run in (test.noise_run, test.confirm_run)
    )
    return PairedCriterion(test, found.criteria[0], list(found.chat_ids), noise, confirm, user)


def cell_rows(tested: PairedCriterion, members: list[Member], query: str) -> list[CellRow]:
    """Rows of one page of a cell's list; one query. `query` is added to each chat's address."""
    chats = Chat.objects.select_related("topic").in_bulk([member.pk for member in members])
    return [
        CellRow(
            chat_id=member.external_id,
            title=chats[member.pk].title,
            topic=member.topic_name,
            split=member.split,
            excerpt=excerpt(chats[member.pk].messages),
            human=tested.human(member.place),
            champion=tested.champion(member.place),
            candidate=tested.candidate(member.place),
            url=chat_url(tested, member) + query,
        )
        for member in members
    ]


def chat_url(tested: PairedCriterion, member: Member) -> str:
    """The page of a chat side by side."""
    return reverse("alignment:regression_chat", args=[tested.test.pk, tested.pair.key, member.pk])


def cell_filters(chats: list[Member], narrow: Narrow) -> list[dict[str, Any]]:
    """Topic and split, of the chats that the person may read alone: a name, too, could tell of another."""
    topics = sorted({(member.topic, member.topic_name) for member in chats}, key=lambda pair: pair[1])
    splits = [(split, split) for split in sorted({member.split for member in chats if member.split})]
    return [
        chosen_filter("topic", narrow.topic, topics),
        chosen_filter("split", narrow.split, splits),
    ]


def _told(codes: Codes, again: Codes | None, place: int) -> Told:
    state, value = _answer(codes[place])
    return Told(state, value, None if again is None else Told(*_answer(again[place])))


def _answer(code: int) -> tuple[str, bool | None]:
    """A judge's code as a verdict's state and value."""
    found = JudgeCode(code)
    return STATES.get(found, "read"), VALUES.get(found)
