"""The list of misalignments: who may read which, the filters of the address, rows grouped by rationale."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, F, OuterRef, QuerySet, Subquery

from alignment.core.similar import groups_of
from alignment.models.misalignments import Misalignment, Sighting
from alignment.selectors.misalignments import counted_runs
from alignment.selectors.partings import judge_said
from alignment.selectors.scope import Scope, own_chats
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import ChatSet
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.selectors.blind import chats_shown, labels_too, sees_every_chat, to_label

STATES = {"": "Not closed", "open": "Open", "triaged": "Triaged", "closed": "Closed", "all": "All"}
UNTRIAGED = "none"
NOBODY, ME = "nobody", "me"


@dataclass(frozen=True, slots=True)
class MisalignmentFilter:
    """What the address asks for; '' and 0 are no filter, `state` '' all that are not closed."""

    criterion: str = ""
    cause: str = ""
    state: str = ""
    owner: str = ""
    run: int = 0
    chat_set: int = 0

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "MisalignmentFilter":
        """From a query string; a word that means nothing is no filter."""
        given = {name: query.get(name, "") for name in ("criterion", "cause", "state", "owner")}
        run, chat_set = (_number(query.get(name, "")) for name in ("run", "set"))
        if given["cause"] not in (*Misalignment.Cause.values, UNTRIAGED):
            given["cause"] = ""
        if given["state"] not in STATES:
            given["state"] = ""
        return cls(**given, run=run, chat_set=chat_set)

    @property
    def narrows(self) -> bool:
        """Whether it leaves anything out but what is closed."""
        return self != MisalignmentFilter()

    def where(self, rows: QuerySet[Misalignment]) -> QuerySet[Misalignment]:
        """Narrowed by criterion, run and set: what the causes are counted over."""
        if self.criterion:
            rows = rows.filter(criterion__key=self.criterion)
        if self.run or self.chat_set:
            seen = Sighting.objects.filter(misalignment=OuterRef("pk"))
            seen = seen.filter(run=self.run) if self.run else seen
            seen = seen.filter(run__chat_set=self.chat_set) if self.chat_set else seen
            rows = rows.filter(Exists(seen))
        return rows

    def of(self, rows: QuerySet[Misalignment], *, user: User) -> QuerySet[Misalignment]:
        """Narrowed by all of it."""
        rows = self.where(rows)
        if self.cause:
            rows = rows.filter(cause="" if self.cause == UNTRIAGED else self.cause)
        if self.owner == NOBODY:
            rows = rows.filter(owner=None)
        elif self.owner:
            rows = rows.filter(owner__username=user.username if self.owner == ME else self.owner)
        if self.state == "":
            return rows.exclude(state=Misalignment.State.CLOSED)
        return rows if self.state == "all" else rows.filter(state=self.state)


@dataclass(frozen=True, slots=True)
class MisalignmentRow:
    """An item as the list shows it: people's and the judge's answer in the run that said the last word."""

    item: Misalignment
    human: str
    verdict: Verdict | None
    said: str


@dataclass(frozen=True, slots=True)
class MisalignmentGroup:
    """Rows of one criterion and answer whose rationales share many words."""

    criterion: Criterion
    rows: tuple[MisalignmentRow, ...]


def misalignments_shown(*, user: User | AnonymousUser) -> QuerySet[Misalignment]:
    """Those that the user may read one by one: on chats that are shown to them."""
    rows = Misalignment.objects.all()
    return rows if sees_every_chat(user=user) else rows.filter(chat__in=chats_shown(user=user))


def closed_runs(*, user: User | AnonymousUser) -> list[int]:
    """The runs of which who labels, too, gets no list.

    So few of their chats are still to label that the report's figures less the list would tell of them.
    """
    if not labels_too(user=user):
        return []
    covering = counted_runs().filter(run_chats__chat__in=to_label(user=user)).distinct()
    runs = covering.select_related("chat_set")
    return [run.pk for run in runs if own_chats(Scope(run.chat_set, run), user=user).closed]


def misalignments_listed(*, user: User | AnonymousUser, without: Sequence[int]) -> QuerySet[Misalignment]:
    """Those that the user may read in lists and counts: none that the runs `without` have seen or settled."""
    rows = misalignments_shown(user=user)
    if without:
        seen = Sighting.objects.filter(run__in=without).values("misalignment")
        rows = rows.exclude(newest_run__in=without).exclude(pk__in=seen)
    return rows


def listed(rows: QuerySet[Misalignment]) -> QuerySet[Misalignment]:
    """In the order of the list, with what a row shows; one query."""
    said = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    judged = Verdict.objects.filter(
        run=OuterRef("newest_run"), chat=OuterRef("chat"), criterion=OuterRef("criterion")
    )
    rows = rows.annotate(human=Subquery(said.values("state")[:1]), verdict=Subquery(judged.values("pk")[:1]))
    rows = rows.annotate(judged=Subquery(judged.values("value")[:1]))
    shown = rows.select_related("chat__topic", "criterion", "owner", "changed_by", "closed_by_version")
    shown = shown.defer("chat__messages", "closed_by_version__text")
    place = ("criterion__rubric", "criterion__dimension__position", "criterion__position", "criterion")
    return shown.order_by(*place, F("judged").asc(nulls_first=True), "-newest_run", "pk")


def misalignment_rows(items: Sequence[Misalignment]) -> list[MisalignmentRow]:
    """What the list shows of these items of `listed`; two queries."""
    verdicts = Verdict.objects.in_bulk([item.verdict for item in items if item.verdict])  # type: ignore[attr-defined]
    said = judge_said(list(verdicts.values()))
    return [
        MisalignmentRow(
            item,
            item.human or "none",  # type: ignore[attr-defined]
            verdicts.get(item.verdict),  # type: ignore[attr-defined]
            said.get(item.verdict, ""),  # type: ignore[attr-defined]
        )
        for item in items
    ]


def grouped(rows: Iterable[MisalignmentRow]) -> list[MisalignmentGroup]:
    """By criterion and the judge's answer, then by similar rationale, the largest group first."""
    groups = []
    for _, some in groupby(rows, key=lambda row: (row.item.criterion_id, row.verdict and row.verdict.value)):
        together = list(some)
        found: dict[int, list[MisalignmentRow]] = {}
        for row, place in zip(together, groups_of([row.said for row in together]), strict=True):
            found.setdefault(place, []).append(row)
        for alike in sorted(found.values(), key=lambda one: -len(one)):
            groups.append(MisalignmentGroup(alike[0].item.criterion, tuple(alike)))
    return groups


def filter_choices(shown: QuerySet[Misalignment]) -> dict[str, Any]:
    """What the filters offer: criteria, owners and sets with items; three queries."""
    runs = Sighting.objects.filter(misalignment__in=shown).order_by().values("run")
    owners = User.objects.filter(pk__in=shown.exclude(owner=None).order_by().values("owner"))
    return {
        "criteria": Criterion.objects.filter(pk__in=shown.order_by().values("criterion")).order_by("key"),
        "owners": owners.order_by("username"),
        "sets": ChatSet.objects.filter(pk__in=Run.objects.filter(pk__in=runs).values("chat_set")).order_by(
            "name"
        ),
    }


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
