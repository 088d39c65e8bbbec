"""Where judge and people part on one criterion: the champion's newest run on the splits that authors read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.core.agreement import Confusion
from alignment.core.report import Pair
from alignment.selectors.cells import CELL_CODES, Disagreements, PairRow, disagreements, pair_rows
from alignment.selectors.measured import Measured
from alignment.selectors.report_page import notices
from alignment.selectors.scope import Scope
from alignment.selectors.versions import VersionRow
from evaluation.models.runs import Run, Verdict
from evaluation.selectors.steps import final_rationales
from labeling.models.chats import Split
from labeling.models.labels import Label
from labeling.models.people import User
from labeling.models.rubric import Criterion

READ_BY_AUTHORS = (Split.DEV, Split.TRAIN)
DISAGREEMENTS_SHOWN = 5
LONGEST_WORDS = 280  # characters of a rationale in the list

Words = Mapping[str, str]  # by a chat's external id


@dataclass(frozen=True, slots=True)
class PartedChat:
    """A chat of the list with what people and the judge gave as their reasons; '' where they gave none."""

    row: PairRow
    people: str
    judge: str


@dataclass(frozen=True, slots=True)
class Parting:
    """People against the champion on one split: the counts, links behind them, the first disagreements.

    `hidden` disagreements are on chats that this user may not read.
    """

    measured: Measured
    cells: dict[str, str]
    chats: tuple[PartedChat, ...]
    hidden: int

    @property
    def name(self) -> str:
        """What the matrix is of."""
        return f"{self.measured.criterion.name}, {self.measured.split}"

    @property
    def confusion(self) -> Confusion:
        """The counts, as the matrix takes them."""
        return self.measured.table

    @property
    def differ(self) -> int:
        """On how many chats they part."""
        return self.measured.table.fn + self.measured.table.fp


def partings_of(champion: VersionRow | None, *, user: User | AnonymousUser) -> list[Parting]:
    """One a split that the champion was measured on; the number of queries does not depend on chats."""
    newest = {one.split: one for one in reversed(champion.measured)} if champion else {}
    return [_parting(newest[split], user) for split in READ_BY_AUTHORS if split in newest]


def notices_of(partings: Iterable[Parting]) -> list[str]:
    """What has to be said of the verdicts and labels shown, once each."""
    return list(dict.fromkeys(said for one in partings for said in notices(_scope(one.measured))))


def _scope(one: Measured) -> Scope:
    return Scope(one.run.chat_set, one.run, one.split, only=one.criterion.key)


def _parting(one: Measured, user: User | AnonymousUser) -> Parting:
    scope, key, query = _scope(one), one.criterion.key, {"split": one.split}
    found = disagreements(scope, user)
    return Parting(
        measured=one,
        cells={
            cell: reverse("alignment:cell", args=[one.run.pk, key, cell], query=query) for cell in CELL_CODES
        },
        chats=tuple(_chats(scope, found, one)),
        hidden=found.hidden,
    )


def _chats(scope: Scope, found: Disagreements, one: Measured) -> Iterable[PartedChat]:
    pairs = found.pairs(found.places[:DISAGREEMENTS_SHOWN])
    people, judge = _people_said(one.criterion, pairs), _judge_said(one.run, one.criterion, pairs)
    for row in pair_rows(scope, pairs, f"&split={one.split}"):
        yield PartedChat(row, people.get(row.chat_id, ""), judge.get(row.chat_id, ""))


def _people_said(criterion: Criterion, pairs: Sequence[Pair]) -> Words:
    """The first reason given for the answer that people amount to."""
    answers = {pair.chat_id: pair.human for pair in pairs}
    labels = Label.objects.counted().filter(criterion=criterion, chat__external_id__in=answers)
    rows = labels.exclude(rationale="").order_by("-pk").values_list("chat__external_id", "value", "rationale")
    return {chat: _short(said) for chat, value, said in rows if answers[chat] == value}


def _judge_said(run: Run, criterion: Criterion, pairs: Sequence[Pair]) -> Words:
    """The sentence that the formatter kept, else the rationale's beginning."""
    chats = [pair.chat_id for pair in pairs]
    rows = list(
        Verdict.objects.filter(run=run, criterion=criterion, chat__external_id__in=chats).select_related(
            "chat"
        )
    )
    final = final_rationales(rows)
    said = {row.chat.external_id: row.explanation or row.rationale or final.get(row.pk, "") for row in rows}
    return {chat: _short(text) for chat, text in said.items()}


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 1].rstrip()}…"
