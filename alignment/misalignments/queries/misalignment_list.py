"""The list of disagreements: visibility, filters of the query string, rows grouped by similar rationale."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db.models import Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, Value, When

from alignment.comparison.core.outcomes import outcome_of
from alignment.comparison.queries.filters import chosen_filter, same_words
from alignment.comparison.queries.rationales import judge_rationales
from alignment.comparison.queries.requested_scope import own_chats
from alignment.comparison.queries.scope import Scope
from alignment.misalignments.queries.runs import counted_runs
from alignment.models.misalignments import Misalignment, Sighting
from alignment.statistics.text_similarity import similar_text_groups
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.chats import ChatSet, ChatSetMember, Split
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

STATES = {"": "Open or triaged", "open": "Open", "triaged": "Triaged", "closed": "Closed", "all": "All"}
UNTRIAGED = "none"
NOBODY, ME = "nobody", "me"


@dataclass(frozen=True, slots=True)
class MisalignmentFilter:
    """Filters of the list; '' and 0 are no filter, `state` '' means all that are not closed."""

    criterion: str = ""
    cause: str = ""
    state: str = ""
    owner: str = ""
    run: int = 0
    chat_set: int = 0
    split: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "MisalignmentFilter":
        """Read the filters from a query string; unknown values are ignored."""
        texts = {name: query.get(name, "") for name in ("criterion", "cause", "state", "owner")}
        run, chat_set = (_number(query.get(name, "")) for name in ("run", "set"))
        if texts["cause"] not in (*Misalignment.Cause.values, UNTRIAGED):
            texts["cause"] = ""
        if texts["state"] not in STATES:
            texts["state"] = ""
        split = query.get("split", "")
        return cls(**texts, run=run, chat_set=chat_set, split=split if split in Split.values else "")

    @property
    def narrows(self) -> bool:
        """Whether any filter is set."""
        return self != MisalignmentFilter()

    @property
    def mixes_triaged(self) -> bool:
        """Whether items with and without a cause are selected."""
        return not self.cause and self.state not in (Misalignment.State.OPEN, Misalignment.State.TRIAGED)

    def where(self, rows: QuerySet[Misalignment]) -> QuerySet[Misalignment]:
        """Filter the rows by criterion, run and set; causes are counted over these. At most two queries."""
        if self.criterion:
            rows = rows.filter(criterion__in=list(Criterion.objects.filter(key=self.criterion)))
        if self.run:
            rows = rows.filter(Exists(_seen_in([self.run])))
        if self.chat_set:
            # NB: run ids, not a subquery: the database then looks up items instead of the set's sightings.
            runs = list(Run.objects.filter(chat_set=self.chat_set).values_list("pk", flat=True))
            rows = rows.filter(Exists(_seen_in(runs)))
        if self.split:
            members = ChatSetMember.objects.filter(chat=OuterRef("chat"), split=self.split)
            rows = rows.filter(Exists(members))
        return rows

    def owned(self, *, user: User) -> Q:
        """The condition on the owner."""
        if self.owner == NOBODY:
            return Q(owner=None)
        name = user.username if self.owner == ME else self.owner
        return Q(owner__in=list(User.objects.filter(username=name))) if name else Q()

    @property
    def states(self) -> list[str]:
        """The selected states."""
        every: list[str] = list(Misalignment.State.values)
        not_closed = [state for state in every if state != Misalignment.State.CLOSED]
        return {"": not_closed, "all": every}.get(self.state, [self.state])

    @property
    def causes(self) -> list[str]:
        """The selected causes; '' is no cause yet."""
        if not self.cause:
            return ["", *Misalignment.Cause.values]
        return ["" if self.cause == UNTRIAGED else self.cause]


@dataclass(frozen=True, slots=True)
class MisalignmentRow:
    """An item as the list shows it: consensus, and verdict and rationale of its newest run.

    `passes_when` is the answer that is good for the chatbot.
    """

    item: Misalignment
    human: str
    verdict: Verdict | None
    rationale: str
    passes_when: bool

    @property
    def outcome(self) -> str:
        """`missed_failure` or `false_alarm`; '' if consensus and verdict do not differ now."""
        value = self.verdict.value if self.verdict else None
        if value is None or self.human != str(not value).lower():
            return ""
        return outcome_of(human=not value, judge=value, passes_when=self.passes_when).value


@dataclass(frozen=True, slots=True)
class MisalignmentGroup:
    """Rows of one criterion and verdict with similar rationales."""

    criterion: Criterion
    rows: tuple[MisalignmentRow, ...]


def misalignments_shown(*, user: User | AnonymousUser) -> QuerySet[Misalignment]:
    """Items that the user may open: those on chats they can see."""
    rows = Misalignment.objects.all()
    if sees_every_chat(user=user):
        return rows
    # NB: EXISTS looks up each item; IN would list all chats first.
    return rows.filter(Exists(chats_shown(user=user).filter(pk=OuterRef("chat"))))


def hidden_runs(*, user: User | AnonymousUser) -> list[int]:
    """Ids of runs whose items are hidden from a user who also labels.

    The user still has so few chats to label there that the report's figures minus the list would disclose
    their consensus.
    """
    if not labels_too(user=user):
        return []
    with_own_chats = counted_runs().filter(run_chats__chat__in=to_label(user=user)).distinct()
    runs = with_own_chats.select_related("chat_set")
    return [run.pk for run in runs if own_chats(Scope(run.chat_set, run), user=user).closed]


def runs_with_own_chats(*, user: User | AnonymousUser) -> list[int]:
    """Ids of runs with chats that the user still labels; at most one query, however many runs there are.

    They include `hidden_runs`, and runs with so many such chats that their figures disclose no consensus.
    """
    if not labels_too(user=user):
        return []
    runs = counted_runs().filter(run_chats__chat__in=to_label(user=user)).order_by()
    return list(runs.distinct().values_list("pk", flat=True))


def misalignments_listed(*, user: User | AnonymousUser, without: Sequence[int]) -> QuerySet[Misalignment]:
    """Items that the user may see in lists and counts, `without` those seen or closed by these runs."""
    rows = Misalignment.objects.all()
    # NB: exclude the hidden chats: with IN the database would look up the items of each visible chat.
    for hidden in chats_hidden(user=user):
        rows = rows.exclude(chat__in=hidden)
    if without:
        seen = Sighting.objects.filter(run__in=without).values("misalignment")
        rows = rows.exclude(newest_run__in=without).exclude(pk__in=seen)
    return rows


def open_disagreement_counts(
    criteria: Collection[Criterion], *, user: User | AnonymousUser
) -> dict[int, int]:
    """Numbers of open or triaged disagreements that the user may see, by criterion id, without zeros."""
    shown = misalignments_listed(user=user, without=hidden_runs(user=user))
    rows = shown.filter(criterion__in=criteria).exclude(state=Misalignment.State.CLOSED).order_by()
    return dict(rows.values_list("criterion").annotate(n=Count("pk")))


def own_disagreements(*, user: User) -> int:
    """Number of open or triaged disagreements that the user owns and may see."""
    own = Misalignment.objects.filter(owner=user).exclude(state=Misalignment.State.CLOSED)
    if not user.has_perm("labeling.see_judge") or not own.exists():
        return 0
    return misalignments_listed(user=user, without=hidden_runs(user=user)).filter(pk__in=own).count()


class Tally(NamedTuple):
    """Number of items of a criterion with one cause and one `closed_by`; '' is none."""

    criterion: int
    cause: str
    closed_by: str
    n: int


class DisagreementSelection:
    """The items that a filter selects: counted once, read one page at a time. A sequence for a paginator.

    Ordered by criterion as in the rubric, then newest run first. At most six queries for a page.
    """

    def __init__(self, rows: QuerySet[Misalignment], only: MisalignmentFilter, *, user: User) -> None:
        owned = only.owned(user=user)
        rows = only.where(rows)
        columns = ("criterion", "state", "cause", "closed_by")
        kinds = rows.order_by().values_list(*columns).annotate(n=Count("pk"))
        if owned:
            kinds = kinds.annotate(own=Count("pk", filter=owned))
        self.tally: list[Tally] = []  # of any state and owner
        self.triaged = 0  # selected items with a cause
        selected: dict[int, int] = {}
        for criterion, state, cause, closed_by, n, *own in kinds:
            self.tally.append(Tally(criterion, cause, closed_by, n))
            if state in only.states and cause in only.causes:
                number = own[0] if own else n
                selected[criterion] = selected.get(criterion, 0) + number
                self.triaged += number if cause else 0
        order = ("rubric", "dimension__position", "position", "pk")
        with_items = {one.criterion for one in self.tally}
        self.criteria = Criterion.objects.filter(pk__in=with_items).order_by(*order)
        self._counts = {one.pk: selected[one.pk] for one in self.criteria if selected.get(one.pk)}
        self._rows = rows.filter(owned, state__in=only.states, cause__in=only.causes)

    def count(self) -> int:
        """Number of items."""
        return sum(self._counts.values())

    __len__ = count

    def __getitem__(self, page: slice) -> list[Misalignment]:
        """Items of one page, loaded by `listed`."""
        offsets: dict[int, int] = {}  # of each criterion on the page: its first item's index in the whole
        before = 0
        for criterion, n in self._counts.items():
            if before < page.stop and before + n > page.start:
                offsets[criterion] = before
            before += n
        if not offsets:
            return []
        place = Case(*(When(criterion=criterion, then=Value(at)) for criterion, at in offsets.items()))
        rows = self._rows.filter(criterion__in=offsets).order_by(place, "-newest_run_id", "pk")
        first = min(offsets.values())
        ids = list(rows.values_list("pk", flat=True)[page.start - first : page.stop - first])
        items = with_row_data(Misalignment.objects.all()).in_bulk(ids)
        return [items[pk] for pk in ids]


def _seen_in(runs: Sequence[int]) -> QuerySet[Sighting]:
    return Sighting.objects.filter(misalignment=OuterRef("pk"), run__in=runs)


def with_row_data(rows: QuerySet[Misalignment]) -> QuerySet[Misalignment]:
    """Annotate and join what a row shows; one query. NB: only for the rows of one page: it looks up each."""
    consensus = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    verdict = Verdict.objects.filter(
        run=OuterRef("newest_run"), chat=OuterRef("chat"), criterion=OuterRef("criterion")
    )
    rows = rows.annotate(
        human=Subquery(consensus.values("state")[:1]), verdict=Subquery(verdict.values("pk")[:1])
    )
    joined = rows.select_related("chat__topic", "criterion", "owner", "changed_by", "closed_by_version")
    return joined.defer("chat__messages", "closed_by_version__text")


def misalignment_rows(items: Sequence[Misalignment]) -> list[MisalignmentRow]:
    """Rows of these items, which `listed` has loaded; three queries."""
    verdicts = Verdict.objects.in_bulk([item.verdict for item in items if item.verdict])  # type: ignore[attr-defined]
    rationales = judge_rationales(list(verdicts.values()))
    versions = newest_versions(criteria={item.criterion for item in items})
    return [
        MisalignmentRow(
            item,
            item.human or "none",  # type: ignore[attr-defined]
            verdicts.get(item.verdict),  # type: ignore[attr-defined]
            rationales.get(item.verdict, ""),  # type: ignore[attr-defined]
            versions[item.criterion_id].passes_when,
        )
        for item in items
    ]


def grouped(rows: Iterable[MisalignmentRow]) -> list[MisalignmentGroup]:
    """Group a page by criterion and verdict, then by similar rationale, the largest group first."""
    groups = []
    for _, of_criterion in groupby(rows, key=lambda row: row.item.criterion_id):
        for _, of_verdict in groupby(sorted(of_criterion, key=_verdict_value), key=_verdict_value):
            groups += _similar(list(of_verdict))
    return groups


def _verdict_value(row: MisalignmentRow) -> str:
    return str(row.verdict and row.verdict.value)


def _similar(rows: Sequence[MisalignmentRow]) -> list[MisalignmentGroup]:
    groups: dict[int, list[MisalignmentRow]] = {}
    for row, place in zip(rows, similar_text_groups([row.rationale for row in rows]), strict=True):
        groups.setdefault(place, []).append(row)
    largest_first = sorted(groups.values(), key=len, reverse=True)
    return [MisalignmentGroup(group[0].item.criterion, tuple(group)) for group in largest_first]


def filter_rows(shown: QuerySet[Misalignment], only: MisalignmentFilter) -> list[dict[str, Any]]:
    """Return the filters, with the criteria, owners and chat sets that have items; three queries."""
    item = shown.filter(pk=OuterRef("misalignment"))
    seen = Sighting.objects.filter(Exists(item), run=OuterRef("pk"))
    runs = counted_runs().filter(Exists(seen)).values("chat_set")
    criteria = Criterion.objects.filter(Exists(shown.filter(criterion=OuterRef("pk")))).order_by("key")
    owners = User.objects.filter(Exists(shown.filter(owner=OuterRef("pk")))).order_by("username")
    names = [user.get_username() for user in owners]
    sets = ChatSet.objects.listed(also=only.chat_set).filter(pk__in=runs).order_by("name")
    return [
        chosen_filter("criterion", only.criterion, [(row.key, row.name) for row in criteria]),
        chosen_filter("cause", only.cause, [(UNTRIAGED, "None yet"), *Misalignment.Cause.choices]),
        chosen_filter("state", only.state, list(STATES.items())),
        chosen_filter("owner", only.owner, [(ME, "Me"), (NOBODY, "Unassigned"), *same_words(names)]),
        chosen_filter("set", str(only.chat_set or ""), [(str(row.pk), row.name) for row in sets]),
        chosen_filter("split", only.split, same_words(Split.values)),
    ]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
