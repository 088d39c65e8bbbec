"""The list of misalignments: who may read which, the filters of the address, rows grouped by rationale."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db.models import Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, Value, When

from alignment.comparison.queries.rationales import judge_rationales
from alignment.comparison.queries.requested_scope import own_chats
from alignment.comparison.queries.scope import Scope
from alignment.misalignments.queries.runs import counted_runs
from alignment.models.misalignments import Misalignment, Sighting
from alignment.statistics.text_similarity import groups_of
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import ChatSet
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import (
    chats_hidden,
    chats_shown,
    labels_too,
    sees_every_chat,
    to_label,
)

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
        """Narrowed by criterion, run and set: what the causes are counted over; a query for each but run."""
        if self.criterion:
            rows = rows.filter(criterion__in=list(Criterion.objects.filter(key=self.criterion)))
        if self.run:
            rows = rows.filter(Exists(_seen_in([self.run])))
        if self.chat_set:
            # NB: by number: the database then looks each item up, instead of all sightings of the set.
            runs = list(Run.objects.filter(chat_set=self.chat_set).values_list("pk", flat=True))
            rows = rows.filter(Exists(_seen_in(runs)))
        return rows

    def owned(self, *, user: User) -> Q:
        """Whom the items asked for belong to."""
        if self.owner == NOBODY:
            return Q(owner=None)
        name = user.username if self.owner == ME else self.owner
        return Q(owner__in=list(User.objects.filter(username=name))) if name else Q()

    @property
    def states(self) -> list[str]:
        """The states asked for."""
        every: list[str] = list(Misalignment.State.values)
        left = [state for state in every if state != Misalignment.State.CLOSED]
        return {"": left, "all": every}.get(self.state, [self.state])

    @property
    def causes(self) -> list[str]:
        """The causes asked for, '' is none yet."""
        if not self.cause:
            return ["", *Misalignment.Cause.values]
        return ["" if self.cause == UNTRIAGED else self.cause]


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
    if sees_every_chat(user=user):
        return rows
    # NB: looked up item by item; IN would list all chats first.
    return rows.filter(Exists(chats_shown(user=user).filter(pk=OuterRef("chat"))))


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
    rows = Misalignment.objects.all()
    # NB: what is hidden is left out: over IN the database would look up the items of each chat shown.
    for hidden in chats_hidden(user=user):
        rows = rows.exclude(chat__in=hidden)
    if without:
        seen = Sighting.objects.filter(run__in=without).values("misalignment")
        rows = rows.exclude(newest_run__in=without).exclude(pk__in=seen)
    return rows


def not_closed(criterion: Criterion, *, user: User | AnonymousUser) -> int:
    """On how many chats people and the judge differ on this criterion, of those that the user may list."""
    shown = misalignments_listed(user=user, without=closed_runs(user=user))
    return shown.filter(criterion=criterion).exclude(state=Misalignment.State.CLOSED).count()


class Tally(NamedTuple):
    """How many items of a criterion have one cause and were closed by one thing, '' for none of either."""

    criterion: int
    cause: str
    closed_by: str
    n: int


class Found:
    """The items that a filter asks for, counted once and read a page at a time, however many there are.

    By criterion in the rubric's order, then the newest run first. Six queries for a page at most.
    """

    def __init__(self, rows: QuerySet[Misalignment], only: MisalignmentFilter, *, user: User) -> None:
        owned = only.owned(user=user)
        covered = only.where(rows)
        kinds = (
            covered.order_by().values_list("criterion", "state", "cause", "closed_by").annotate(n=Count("pk"))
        )
        if owned:
            kinds = kinds.annotate(own=Count("pk", filter=owned))
        self.tally: list[Tally] = []  # whatever their state and owner
        asked: dict[int, int] = {}
        for criterion, state, cause, closed_by, n, *own in kinds:
            self.tally.append(Tally(criterion, cause, closed_by, n))
            if state in only.states and cause in only.causes:
                asked[criterion] = asked.get(criterion, 0) + (own[0] if own else n)
        places = ("rubric", "dimension__position", "position", "pk")
        of_all = {one.criterion for one in self.tally}
        self.criteria = Criterion.objects.filter(pk__in=of_all).order_by(*places)
        self._asked = {one.pk: asked[one.pk] for one in self.criteria if asked.get(one.pk)}
        self._rows = covered.filter(owned, state__in=only.states, cause__in=only.causes)

    def count(self) -> int:
        """How many there are."""
        return sum(self._asked.values())

    __len__ = count

    def __getitem__(self, page: slice) -> list[Misalignment]:
        """Some of them, as `listed` reads them."""
        begins: dict[int, int] = {}  # where each criterion with items on the page begins in the whole
        before = 0
        for criterion, n in self._asked.items():
            if before < page.stop and before + n > page.start:
                begins[criterion] = before
            before += n
        if not begins:
            return []
        place = Case(*(When(criterion=criterion, then=Value(at)) for criterion, at in begins.items()))
        rows = self._rows.filter(criterion__in=begins).order_by(place, "-newest_run_id", "pk")
        first = min(begins.values())
        wanted = list(rows.values_list("pk", flat=True)[page.start - first : page.stop - first])
        items = listed(Misalignment.objects.all()).in_bulk(wanted)
        return [items[pk] for pk in wanted]


def _seen_in(runs: Sequence[int]) -> QuerySet[Sighting]:
    return Sighting.objects.filter(misalignment=OuterRef("pk"), run__in=runs)


def listed(rows: QuerySet[Misalignment]) -> QuerySet[Misalignment]:
    """With what a row shows; one query. NB: of a page's rows alone, it looks up each of them."""
    said = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    judged = Verdict.objects.filter(
        run=OuterRef("newest_run"), chat=OuterRef("chat"), criterion=OuterRef("criterion")
    )
    rows = rows.annotate(human=Subquery(said.values("state")[:1]), verdict=Subquery(judged.values("pk")[:1]))
    shown = rows.select_related("chat__topic", "criterion", "owner", "changed_by", "closed_by_version")
    return shown.defer("chat__messages", "closed_by_version__text")


def misalignment_rows(items: Sequence[Misalignment]) -> list[MisalignmentRow]:
    """What the list shows of these items of `listed`; two queries."""
    verdicts = Verdict.objects.in_bulk([item.verdict for item in items if item.verdict])  # type: ignore[attr-defined]
    said = judge_rationales(list(verdicts.values()))
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
    """A page by criterion and the judge's answer, then by similar rationale, the largest group first."""
    groups = []
    for _, some in groupby(rows, key=lambda row: row.item.criterion_id):
        for _, alike in groupby(sorted(some, key=_judged), key=_judged):
            groups += _similar(list(alike))
    return groups


def _judged(row: MisalignmentRow) -> str:
    return str(row.verdict and row.verdict.value)


def _similar(rows: Sequence[MisalignmentRow]) -> list[MisalignmentGroup]:
    found: dict[int, list[MisalignmentRow]] = {}
    for row, place in zip(rows, groups_of([row.said for row in rows]), strict=True):
        found.setdefault(place, []).append(row)
    largest = sorted(found.values(), key=len, reverse=True)
    return [MisalignmentGroup(some[0].item.criterion, tuple(some)) for some in largest]


def filter_choices(shown: QuerySet[Misalignment]) -> dict[str, Any]:
    """What the filters offer: criteria, owners and sets with items; three queries."""
    item = shown.filter(pk=OuterRef("misalignment"))
    seen = Sighting.objects.filter(Exists(item), run=OuterRef("pk"))
    runs = counted_runs().filter(Exists(seen)).values("chat_set")
    return {
        "criteria": Criterion.objects.filter(Exists(shown.filter(criterion=OuterRef("pk")))).order_by("key"),
        "owners": User.objects.filter(Exists(shown.filter(owner=OuterRef("pk")))).order_by("username"),
        "sets": ChatSet.objects.filter(pk__in=runs).order_by("name"),
    }


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
