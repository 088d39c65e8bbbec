"""Preview of a redesign: labels that would carry over and labelling jobs that it affects."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from django.db.models import Count, Q, QuerySet

from common.jsonl import in_batches
from common.problems import FieldProblem, shown
from labeling.consensus.core.votes import Decision
from labeling.models.labels import Adjudication, Consensus, Label, LabelingJob, counting_versions
from labeling.models.rubric import Criterion, Dimension
from labeling.rubric.core.carry_over import OldAnswers, chat_carry_over
from labeling.rubric.core.redesign import Redesign, Successor, redesign_check

IDS_AT_ONCE = 1000
MANY = 0.05
OPEN_JOBS = (LabelingJob.State.OPEN, LabelingJob.State.WAITING)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of answers that carry over, and of those on chats that are excluded."""

    carried: int = 0
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class ChatTally:
    """
    Counts of chats that carry over, and of those excluded because the answers to the old questions differ.

    Of the carried ones, `one_only` have answers to one of several old questions, and on `unresolved` an old
    consensus is unresolved.
    """

    carried: int = 0
    excluded: int = 0
    one_only: int = 0
    unresolved: int = 0

    @property
    def compared(self) -> int:
        """Number of chats with answers to several old questions."""
        return self.carried + self.excluded - self.one_only

    @property
    def share_excluded(self) -> float:
        """Share of the compared chats that are excluded."""
        return self.excluded / self.compared if self.excluded else 0.0

    @property
    def many_excluded(self) -> bool:
        """Whether the old questions often have different answers."""
        return self.share_excluded > MANY


@dataclass(frozen=True, slots=True)
class LabelCarryOver:
    """
    The answers that carry over to one new criterion.

    `differing` carried labels are of raters who answered the old questions differently.
    """

    key: str
    olds: tuple[str, ...]
    labels: Tally = Tally()
    adjudications: Tally = Tally()
    chats: ChatTally = ChatTally()
    differing: int = 0


@dataclass(frozen=True, slots=True)
class CarryOverPlan:
    """The answers that carry over: labels with the id of their old criterion, adjudications, and counts."""

    counts: LabelCarryOver
    labels: tuple[tuple[int, QuerySet[Label]], ...]
    adjudications: tuple[Adjudication, ...]


@dataclass(frozen=True, slots=True)
class TouchedJob:
    """An open job that asks a criterion to be retired, and its number of other criteria."""

    id: int
    name: str
    left: int


@dataclass(frozen=True, slots=True)
class Consequences:
    """The effects of a redesign on labelling. The old criteria always keep their labels."""

    labels: int
    adjudications: int
    drafts: int
    carrying: tuple[LabelCarryOver, ...]
    jobs: tuple[TouchedJob, ...]


def redesigned(*, redesign: Redesign) -> list[Criterion]:
    """
    Return the criteria to retire, in the rubric's order, if the redesign is valid.

    Raises FieldProblem: what `redesign_check` refuses; an unknown or retired criterion, or one of another
    rubric; an unknown dimension; a key that is in use; "not applicable" answers that would carry over to a
    criterion that does not allow them.
    """
    redesign_check(redesign)
    rows = list(Criterion.objects.filter(key__in=redesign.olds).order_by("position", "pk"))
    if unknown := sorted(set(redesign.olds) - {row.key for row in rows}):
        raise FieldProblem("others", f"no criterion {shown(unknown[0])}")
    for row in rows:
        if row.state == Criterion.State.RETIRED:
            raise FieldProblem("others", f"{row.key} is already retired")
        if row.rubric_id != rows[0].rubric_id:
            raise FieldProblem("others", f"{row.key} belongs to another rubric than {rows[0].key}")
    _check_successors(redesign.into)
    for n, successor in enumerate(redesign.into):
        _check_not_applicable(n, successor, rows)
    return rows


def _check_successors(into: Sequence[Successor]) -> None:
    keys = [successor.spec.key for successor in into]
    taken = set(Criterion.objects.filter(key__in=keys).values_list("key", flat=True))
    dimensions = set(Dimension.objects.values_list("key", flat=True))
    for n, successor in enumerate(into):
        if successor.spec.key in taken:
            raise FieldProblem(f"into[{n}].key", f"{shown(successor.spec.key)} is already in use")
        if successor.spec.dimension not in dimensions:
            raise FieldProblem(f"into[{n}].dimension", f"no dimension {shown(successor.spec.dimension)}")


def _check_not_applicable(n: int, successor: Successor, olds: Sequence[Criterion]) -> None:
    ids = [row.pk for row in olds if row.key in successor.carries]
    if successor.spec.allow_na or not ids:
        return
    labels, adjudications = labels_to_carry(ids), adjudications_of(ids)
    if total := labels.filter(value=None).count() + adjudications.filter(value=None).count():
        raise FieldProblem(
            f"into[{n}].allow_na",
            f"{total:,} of the answers to carry over are “not applicable”: allow that answer, "
            "or carry no labels",
        )


def labels_to_carry(criterion_ids: Collection[int]) -> QuerySet[Label]:
    """Return the counted labels of these criteria: blind, to the question that counts."""
    # NB: by version ids, as for the consensus: else PostgreSQL searches them again for each label.
    versions = list(counting_versions().filter(criterion__in=criterion_ids).values_list("pk", flat=True))
    return Label.objects.given().filter(version__in=versions)


def adjudications_of(criterion_ids: Collection[int]) -> QuerySet[Adjudication]:
    """Return the current adjudications on these criteria."""
    return Adjudication.objects.filter(criterion__in=criterion_ids, replaced_at=None)


def consequences(*, redesign: Redesign, olds: Sequence[Criterion]) -> Consequences:
    """Return the current effects of the redesign; queries grow only with the new criteria."""
    ids = [row.pk for row in olds]
    waiting = Label.objects.filter(criterion__in=ids, state=Label.State.DRAFT)
    return Consequences(
        labels=Label.objects.filter(criterion__in=ids, state=Label.State.SUBMITTED).count(),
        adjudications=adjudications_of(ids).count(),
        drafts=waiting.count(),
        carrying=tuple(_carrying(successor, olds) for successor in redesign.into),
        jobs=touched_jobs(criterion_ids=ids),
    )


def _carrying(successor: Successor, olds: Sequence[Criterion]) -> LabelCarryOver:
    rows = [row for row in olds if row.key in successor.carries]
    if not rows:
        return LabelCarryOver(successor.spec.key, ())
    return carry_over_plan(key=successor.spec.key, olds=rows).counts


# ---------- what carries over ----------


def carry_over_plan(*, key: str, olds: Sequence[Criterion]) -> CarryOverPlan:
    """Return what carries over to the new criterion `key`; `olds` in the rubric's order.

    All answers of a single old criterion carry over, of several those that `chat_carry_over` returns. The
    number of queries is constant.
    """
    keys, ids = tuple(row.key for row in olds), [row.pk for row in olds]
    return _of_one(key, keys, ids[0]) if len(ids) == 1 else _of_several(key, keys, ids)


def _of_one(key: str, keys: tuple[str, ...], old: int) -> CarryOverPlan:
    labels, adjudications = labels_to_carry([old]), tuple(adjudications_of([old]))
    unresolved = Count("pk", filter=Q(state=Consensus.State.UNRESOLVED))
    chats = Consensus.objects.filter(criterion=old).aggregate(carried=Count("pk"), unresolved=unresolved)
    counts = LabelCarryOver(
        key, keys, Tally(labels.count()), Tally(len(adjudications)), chats=ChatTally(**chats)
    )
    return CarryOverPlan(counts, ((old, labels),), adjudications)


def _of_several(key: str, keys: tuple[str, ...], olds: Sequence[int]) -> CarryOverPlan:
    counts: Counter[str] = Counter()
    label_ids: dict[int, list[int]] = {old: [] for old in olds}
    adjudications = []
    for chat in _chats(olds):
        answers = [chat.of(old) for old in olds]
        carried = chat_carry_over(answers)
        if carried is None:
            raters = {rater for one in answers for rater in one.labels}
            counts.update(excluded=1, labels_excluded=len(raters), decisions_excluded=chat.newest is not None)
            continue
        for rater, n in carried.sources.items():
            label_ids[olds[n]].append(chat.labels[olds[n]][rater][0])
        adjudications += [chat.newest] if chat.newest else []
        states = [one.state for one in answers if one.state]
        counts.update(carried=1, one_only=len(states) == 1, unresolved="unresolved" in states)
        counts.update(differing=carried.differing)
    tally = LabelCarryOver(
        key,
        keys,
        labels=Tally(sum(map(len, label_ids.values())), counts["labels_excluded"]),
        adjudications=Tally(len(adjudications), counts["decisions_excluded"]),
        chats=ChatTally(*(counts[name] for name in ("carried", "excluded", "one_only", "unresolved"))),
        differing=counts["differing"],
    )
    batches = ((old, batch) for old, ids in label_ids.items() for batch in in_batches(ids, IDS_AT_ONCE))
    labels = tuple((old, Label.objects.filter(pk__in=batch)) for old, batch in batches)
    return CarryOverPlan(tally, labels, tuple(adjudications))


@dataclass(frozen=True, slots=True)
class _Chat:
    """The answers on one chat by old criterion: (label id, value) by rater, and decisions, newest last."""

    labels: dict[int, dict[int, tuple[int, bool | None]]]
    decisions: dict[int, Adjudication]

    @property
    def newest(self) -> Adjudication | None:
        """The newest decision."""
        return next(reversed(self.decisions.values()), None)

    def of(self, old: int) -> OldAnswers:
        """Return the answers to one criterion."""
        decision = self.decisions.get(old)
        return OldAnswers(
            {rater: value for rater, (_, value) in self.labels.get(old, {}).items()},
            Decision(decision.value) if decision else None,
        )


def _chats(olds: Sequence[int]) -> Iterator[_Chat]:
    """Yield the chats with answers to these criteria, in two queries."""
    decided: dict[int, dict[int, Adjudication]] = {}
    for row in adjudications_of(olds).order_by("created_at", "pk"):
        decided.setdefault(row.chat_id, {})[row.criterion_id] = row
    labels = labels_to_carry(olds).order_by("chat", "rater")
    rows = labels.values_list("chat_id", "criterion_id", "rater_id", "pk", "value")
    for chat, group in groupby(rows.iterator(), itemgetter(0)):
        given: dict[int, dict[int, tuple[int, bool | None]]] = {}
        for _, criterion, rater, pk, value in group:
            given.setdefault(criterion, {})[rater] = (pk, value)
        yield _Chat(given, decided.pop(chat, {}))
    for decisions in decided.values():
        yield _Chat({}, decisions)


# ---------- jobs ----------


def touched_jobs(*, criterion_ids: Collection[int]) -> tuple[TouchedJob, ...]:
    """Return the jobs that are not closed and ask one of these criteria; one query."""
    ends = Q(criteria__in=criterion_ids)
    goes_on = Q(criteria__state=Criterion.State.ACTIVE) & ~ends
    jobs = LabelingJob.objects.filter(state__in=OPEN_JOBS).order_by("pk")
    counted = jobs.annotate(
        ending=Count("criteria", filter=ends, distinct=True),
        left=Count("criteria", filter=goes_on, distinct=True),
    )
    rows = counted.filter(ending__gt=0).values_list("pk", "name", "left")
    return tuple(TouchedJob(*row) for row in rows)
