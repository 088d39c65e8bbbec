"""Chats in the cells of a regression test's paired table, as far as a user can see them."""

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
from alignment.comparison.queries.disclosure import holdout_counts, is_small_count
from alignment.comparison.queries.filters import chosen_filter
from alignment.comparison.queries.requested_scope import OwnChats, own_chats
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
    "fixed": "Champion wrong, candidate right.",
    "broken": "Champion right, candidate wrong.",
    "still_right": "Champion and candidate are both right.",
    "still_wrong": "Champion and candidate are both wrong.",
    "no_verdict": "Excluded from the paired table, because a call of either judge failed.",
}
VALUES = {code: value for value, code in JUDGE_VALUES.items()}
STATES = {code: str(state) for state, code in JUDGE_STATES.items()} | {JudgeCode.NONE: "none"}
# Key of each cell in the stored result.
STORED = {name: name for name in CELLS} | {"no_verdict": "left_out"}


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """One judge's answer on a chat, and its answer in a repeated run if there is one."""

    state: str
    value: bool | None
    repeated: "JudgeAnswer | None" = None

    @property
    def unstable(self) -> bool:
        """Whether the repeated run has another answer."""
        other = self.repeated
        return other is not None and (other.state, other.value) != (self.state, self.value)


@dataclass(frozen=True, slots=True)
class Member:
    """A chat that the user can see, with its position in the runs."""

    place: int
    pk: int
    external_id: str
    topic: str
    topic_name: str
    split: str


@dataclass(frozen=True, slots=True)
class CellFilter:
    """Filter of a list: topic key, split, part of the chat id; '' means all."""

    topic: str = ""
    split: str = ""
    search: str = ""

    def fits(self, member: Member) -> bool:
        """Tell whether a chat matches the filter."""
        return (
            self.topic in ("", member.topic)
            and self.split in ("", member.split)
            and self.search.casefold() in member.external_id.casefold()
        )

    def query(self, **more: str) -> str:
        """Return the query string of the filter; '' if it is empty."""
        values = more | {"topic": self.topic, "split": self.split, "q": self.search}
        text = urlencode({name: value for name, value in values.items() if value})
        return f"?{text}" if text else ""


@dataclass(frozen=True, slots=True)
class CellRow:
    """One chat of the list."""

    chat_id: str
    title: str
    topic: str
    split: str
    excerpt: str
    human: bool
    champion: JudgeAnswer
    candidate: JudgeAnswer
    url: str


@dataclass(frozen=True)
class PairedCriterion:
    """One criterion of a decided test: labels, answers, and the chats that `user` can see."""

    test: RegressionTest
    pair: PairedVerdicts
    chat_ids: list[str]
    champion_again: Codes | None
    candidate_again: Codes | None
    user: User | AnonymousUser

    @property
    def scope(self) -> Scope:
        """Scope of the champion's run on this criterion."""
        return Scope(self.test.chat_set, self.test.baseline_run, only=self.pair.key)

    @cached_property
    def members(self) -> list[Member]:
        """The chats that the user can see, in the order of the runs."""
        rows = self.scope.members
        if not sees_every_chat(user=self.user):
            rows = rows.filter(chat__in=chats_shown(user=self.user))
        places = {external_id: place for place, external_id in enumerate(self.chat_ids)}
        columns = ("chat_id", "chat__external_id", "chat__topic__key", "chat__topic__name", "split")
        return [Member(places[row[1]], *row) for row in rows.values_list(*columns)]

    def total(self, cell: str) -> int:
        """Count all chats of the cell, hidden ones included."""
        return self.pair.count(cell)

    def readable(self, cell: str, narrow: CellFilter) -> list[Member]:
        """Return the visible chats of the cell that match the filter; none while lists are closed."""
        if self.own.closed:
            return []
        inside = set(np.flatnonzero(self.pair.cells[cell]).tolist())
        return [member for member in self.members if member.place in inside and narrow.fits(member)]

    def cell_of(self, place: int) -> str:
        """Return the cell of the chat at this position; '' without human True or False."""
        return next((name for name in CELLS if self.pair.cells[name][place]), "")

    def human(self, place: int) -> bool:
        """Return the human answer of a labelled chat."""
        return bool(self.pair.human[place] == HumanCode.TRUE)

    def champion(self, place: int) -> JudgeAnswer:
        """Return the champion's answer."""
        return _judge_answer(self.pair.champion, self.champion_again, place)

    def candidate(self, place: int) -> JudgeAnswer:
        """Return the candidate's answer."""
        return _judge_answer(self.pair.candidate, self.candidate_again, place)

    @cached_property
    def concealed(self) -> bool:
        """Whether the counts are hidden, because too few holdout chats are compared."""
        if reads_holdout(user=self.user) or not self.stored:
            return False
        run = self.test.baseline_run_id
        return is_small_count(self.stored, held=holdout_counts([run]).get((run, self.pair.key), {}))

    @cached_property
    def own(self) -> OwnChats:
        """The chats of the test that are still in the user's queue."""
        return own_chats(self.scope, user=self.user)

    @cached_property
    def stored(self) -> Mapping[str, Any]:
        """Counts of the gate; empty for a criterion without counts."""
        rows = (self.test.body or {}).get("criteria", ())
        return next((row for row in rows if row["key"] == self.pair.key), {})

    @property
    def changed(self) -> bool:
        """Whether labels or verdicts have changed since the gate counted them."""
        return bool(self.stored) and any(self.stored[STORED[name]] != self.pair.count(name) for name in CELLS)


def paired_criterion(test: RegressionTest, *, key: str, user: User | AnonymousUser) -> PairedCriterion | None:
    """Return a criterion of the test by key; None if it was not compared or the test is not decided."""
    if test.body is None:
        return None
    answers = paired_answers(test, candidate=test.candidate_run, only=key)
    if not answers.criteria:
        return None
    noise, confirm = (
        judge_codes(run, only=key).get(key) if run else None for run in (test.noise_run, test.confirm_run)
    )
    return PairedCriterion(test, answers.criteria[0], list(answers.chat_ids), noise, confirm, user)


def cell_rows(tested: PairedCriterion, members: list[Member], query: str) -> list[CellRow]:
    """Return the rows of one page; one query. `query` is appended to the URL of each chat."""
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
    """Return the URL of the page that compares both judges on a chat."""
    return reverse("alignment:regression_chat", args=[tested.test.pk, tested.pair.key, member.pk])


def cell_filters(chats: list[Member], narrow: CellFilter) -> list[dict[str, Any]]:
    """Return the filters by topic and split, with options from visible chats only."""
    topics = sorted({(member.topic, member.topic_name) for member in chats}, key=lambda pair: pair[1])
    splits = [(split, split) for split in sorted({member.split for member in chats if member.split})]
    return [
        chosen_filter("topic", narrow.topic, topics),
        chosen_filter("split", narrow.split, splits),
    ]


def _judge_answer(codes: Codes, again: Codes | None, place: int) -> JudgeAnswer:
    state, value = _answer(codes[place])
    return JudgeAnswer(state, value, None if again is None else JudgeAnswer(*_answer(again[place])))


def _answer(code: int) -> tuple[str, bool | None]:
    """Convert a judge code to state and value of a verdict."""
    judge_code = JudgeCode(code)
    return STATES.get(judge_code, "read"), VALUES.get(judge_code)
