"""Where judge and people part on one criterion: the champion's newest run on the splits that authors read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import AnonymousUser
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.urls import reverse

from alignment.comparison.queries.rationales import judge_rationales, short_rationale
from alignment.comparison.queries.requested_scope import Own, own_chats
from alignment.comparison.queries.scope import Scope
from alignment.prompts.queries.version_metrics import Measured
from alignment.prompts.queries.versions import VersionRow
from alignment.reports.core import Pair
from alignment.reports.queries.chat_lists import CELL_CODES, PairRow, pair_rows
from alignment.reports.queries.page import notices
from alignment.statistics.agreement import Confusion
from evaluation.models.runs import RunChat, Verdict
from labeling.models.chats import Split
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown, sees_every_chat

READ_BY_AUTHORS = (Split.DEV, Split.TRAIN)
DISAGREEMENTS_SHOWN = 5

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

    `hidden` disagreements are on chats that this user may not read; who is still to label some of the run's
    chats is told the number of these alone.
    """

    measured: Measured
    cells: dict[str, str]
    chats: tuple[PartedChat, ...]
    hidden: int
    own: Own

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
    key, query = one.criterion.key, {"split": one.split}
    shown, own = _differing(one), own_chats(_scope(one), user=user)
    if own.closed:
        shown = shown.none()
    elif not sees_every_chat(user=user):
        shown = shown.filter(chat__in=chats_shown(user=user).values("pk"))
    parting = Parting(
        measured=one,
        cells={
            cell: reverse("alignment:cell", args=[one.run.pk, key, cell], query=query) for cell in CELL_CODES
        },
        chats=tuple(_chats(one, list(shown.select_related("chat")[:DISAGREEMENTS_SHOWN]))),
        hidden=0,
        own=own,
    )
    return parting if own.chats else replace(parting, hidden=parting.differ - shown.count())


def _differing(one: Measured) -> QuerySet[Verdict]:
    """The verdicts on the split that say otherwise than people, in the set's order.

    The database looks for them: of a large set a page needs a handful.
    """
    people = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    place = RunChat.objects.filter(run=one.run, split=one.split, chat=OuterRef("chat"))
    rows = Verdict.objects.filter(run=one.run, criterion=one.criterion, state=Verdict.State.READ)
    said = rows.annotate(
        people=Subquery(people.values("state")[:1]), place=Subquery(place.values("pk")[:1])
    ).filter(place__isnull=False)
    otherwise = Q(value=True, people=Consensus.State.FALSE) | Q(value=False, people=Consensus.State.TRUE)
    return said.filter(otherwise).order_by("place")


def _chats(one: Measured, verdicts: Sequence[Verdict]) -> Iterable[PartedChat]:
    key = one.criterion.key
    pairs = [Pair(row.chat.external_id, key, not row.value, bool(row.value)) for row in verdicts]
    people, judge = _people_said(one.criterion, pairs), judge_rationales(verdicts)
    for verdict, row in zip(verdicts, pair_rows(_scope(one), pairs, f"&split={one.split}"), strict=True):
        yield PartedChat(row, people.get(row.chat_id, ""), judge[verdict.pk])


def _people_said(criterion: Criterion, pairs: Sequence[Pair]) -> Words:
    """The first reason given for the answer that people amount to."""
    answers = {pair.chat_id: pair.human for pair in pairs}
    labels = Label.objects.counted().filter(criterion=criterion, chat__external_id__in=answers)
    rows = labels.exclude(rationale="").order_by("-pk").values_list("chat__external_id", "value", "rationale")
    return {chat: short_rationale(said) for chat, value, said in rows if answers[chat] == value}
