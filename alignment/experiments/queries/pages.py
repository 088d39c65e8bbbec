"""The pages and documents of experiments, from stored sums; the lists of chats from metric rows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet, Sum

from alignment.experiments.core.comparison import (
    DECISION_NAMES,
    SEVERAL_JUDGES,
    Decision,
    Difference,
    Judge,
    SequencePoint,
    difference,
    sequence,
    variant_rates,
)
from alignment.experiments.core.unit_sums import Sums
from alignment.experiments.queries.counting import counted_metrics
from alignment.models.experiments import Experiment, ExperimentDay, ExperimentMetric, ExperimentRun
from alignment.monitoring.core.corrected_rates import Rate
from alignment.monitoring.queries.criterion import FailingChat, failing_chats
from alignment.monitoring.queries.curated import curated_labels
from alignment.monitoring.queries.judged import Judges
from alignment.statistics.agreement import Confusion
from alignment.statistics.sequential import SampleRatio, sample_ratio
from evaluation.models.runs import Verdict
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_hidden, reads_holdout

NAMES = Sums.__slots__
Reader = User | AnonymousUser


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant: all its chats and units, the judged units, and its planned share of the units."""

    name: str
    chats: int
    units: int
    judged_units: int
    share: float | None
    is_control: bool


@dataclass(frozen=True)
class ExperimentFacts:
    """An experiment without its rates. `ratio`: None with fewer than two variants or without their shares."""

    row: Experiment
    variants: Sequence[Variant]
    first: date | None
    last: date | None
    ratio: SampleRatio | None

    @property
    def control(self) -> str:
        """The control's name; "" without variants."""
        return next((one.name for one in self.variants if one.is_control), "")

    @property
    def chats(self) -> int:
        """Chats of all variants."""
        return sum(one.chats for one in self.variants)

    @property
    def units(self) -> int:
        """Units of all variants."""
        return sum(one.units for one in self.variants)

    @property
    def broken(self) -> bool:
        """Whether the numbers of units contradict the planned shares."""
        return self.ratio is not None and self.ratio.mismatch

    @property
    def is_counted(self) -> bool:
        """Whether the stored sums are those of all finished runs and of the settings."""
        return self.row.state == Experiment.State.IDLE


def experiment_facts(rows: Sequence[Experiment]) -> list[ExperimentFacts]:
    """Return the facts of these experiments, whose variants are prefetched."""
    return [_facts(row) for row in rows]


def experiments() -> QuerySet[Experiment]:
    """Return the experiments with their variants."""
    return Experiment.objects.prefetch_related("variants")


def _facts(row: Experiment) -> ExperimentFacts:
    stored = list(row.variants.all())
    names = [one.variant for one in stored]
    control = row.control if row.control in names else next(iter(names), "")
    shares = planned_shares(row, names)
    variants = [
        Variant(
            one.variant,
            one.chats,
            one.units,
            one.judged_units,
            shares.get(one.variant),
            one.variant == control,
        )
        for one in stored
    ]
    days = [day for one in stored for day in (one.first_day, one.last_day) if day]
    ratio = None
    if len(stored) > 1 and shares:
        ratio = sample_ratio([one.units for one in stored], [shares[name] for name in names])
    return ExperimentFacts(
        row=row,
        variants=sorted(variants, key=lambda one: (not one.is_control, one.name)),
        first=min(days, default=None),
        last=max(days, default=None),
        ratio=ratio,
    )


def planned_shares(row: Experiment, names: Sequence[str]) -> dict[str, float]:
    """Return the planned share of each variant, of 1; {} if a variant has none."""
    if not names:
        return {}
    equal = 0.0 if row.shares else 1.0
    shares = {name: float(row.shares.get(name, equal)) for name in names}
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()} if min(shares.values()) > 0 else {}


# ---------- rates and differences


@dataclass(frozen=True)
class Cell:
    """A criterion and variant; `difference` to the control, None for the control itself."""

    variant: Variant
    chats: int
    failed: int
    units: int
    uncorrected: Rate
    corrected: Rate
    difference: Difference | None
    decision: Decision | None

    @property
    def decision_name(self) -> str:
        """The decision for pages."""
        return DECISION_NAMES[self.decision] if self.decision else "Control"


@dataclass(frozen=True)
class CriterionRow:
    """A criterion, its judge's errors, and a cell for each variant: the control first."""

    criterion: Criterion
    judge: Judge
    cells: Sequence[Cell]

    @property
    def clarity(self) -> float:
        """How far the clearest difference is from 0, in half-widths of its interval."""
        return max((_clarity(one.difference) for one in self.cells), default=0.0)


def _clarity(found: Difference | None) -> float:
    interval = found.shown.interval if found else None
    if found is None or interval is None or found.shown.value is None:
        return 0.0
    return abs(found.shown.value) / max(interval.high - interval.low, 1e-9)


@dataclass(frozen=True)
class Comparison:
    """An experiment with its rates; none, and `for_leads`, if the user may not see them."""

    facts: ExperimentFacts
    criteria: Sequence[CriterionRow]
    judges: Sequence[str]
    for_leads: bool = False

    @property
    def clearest(self) -> CriterionRow | None:
        """The criterion with the clearest difference."""
        return max(self.criteria, key=lambda one: one.clarity, default=None)

    def row_of(self, key: str) -> CriterionRow | None:
        """The criterion with this key, else the clearest one."""
        return next((one for one in self.criteria if one.criterion.key == key), self.clearest)


def comparison(row: Experiment, *, user: Reader) -> Comparison:
    """Return the rates of an experiment; the number of queries does not depend on verdicts or variants.

    Users who may not read holdout chats get corrections without holdout labels, and no rates of chats outside
    samples: some of them may be holdout.
    """
    facts = _facts(row)
    if not row.sampled and not reads_holdout(user=user):
        return Comparison(facts, (), (), for_leads=True)
    sums = _sums(row)
    ids = {criterion for criterion, _ in sums}
    criteria = list(Criterion.objects.filter(pk__in=ids).select_related("dimension"))
    judges, names = _judges(row, sorted(ids), user=user)
    rows = [
        CriterionRow(
            one,
            judges[one.pk],
            _cells(facts, _of_criterion(sums, one.pk), judges[one.pk]),
        )
        for one in criteria
    ]
    return Comparison(facts, rows, names)


def _sums(row: Experiment) -> dict[tuple[int, str], Sums]:
    """The sums of all days, by criterion and variant; one query."""
    rows = ExperimentDay.objects.filter(experiment=row).order_by().values("criterion", "variant")
    rows = rows.annotate(**{f"sum_{name}": Sum(name) for name in NAMES})
    found = rows.values_list("criterion", "variant", *(f"sum_{name}" for name in NAMES))
    return {(criterion, variant): Sums(*numbers) for criterion, variant, *numbers in found}


def _of_criterion(sums: Mapping[tuple[int, str], Sums], criterion: int) -> dict[str, Sums]:
    return {variant: found for (pk, variant), found in sums.items() if pk == criterion}


def _cells(facts: ExperimentFacts, sums: Mapping[str, Sums], judge: Judge) -> list[Cell]:
    alpha = facts.row.alpha
    control = sums.get(facts.control, Sums()).totals
    cells = []
    for variant in facts.variants:
        own = sums.get(variant.name, Sums())
        uncorrected, corrected = variant_rates(own.totals, judge, alpha=alpha)
        found = None if variant.is_control else difference(control, own.totals, judge, alpha=alpha)
        decision = found.decision(broken=facts.broken) if found else None
        cells.append(Cell(variant, own.chats, own.failed, own.units, uncorrected, corrected, found, decision))
    return cells


def _judges(row: Experiment, criteria: Sequence[int], *, user: Reader) -> tuple[dict[int, Judge], list[str]]:
    """Return the judge's errors by criterion, and the names of all judges."""
    runs = ExperimentRun.objects.filter(experiment=row, added=True)
    if row.sampled:
        runs = runs.filter(run__chat_set__kind=ChatSet.Kind.SAMPLE)
    judges = Judges.of(list(runs.values_list("run", flat=True)), criteria)
    tables = curated_labels(judges, criteria, user=user) if criteria else {}
    found = {pk: _judge(judges, pk, tables.get(pk, {})) for pk in criteria}
    return found, sorted({run.judge.name for run in judges.rows.values()})


def _judge(judges: Judges, criterion: int, tables: Mapping[int, Confusion]) -> Judge:
    names = judges.names(criterion)
    asked = {one for one in names.values() if (one.judge, criterion) in judges.prompts}
    used = asked or set(names.values())
    if len({one.identity for one in used}) > 1:
        return Judge(None, SEVERAL_JUDGES)
    own = [tables[one.judge] for one in used if one.judge in tables]
    return Judge(max(own, key=lambda table: table.n)) if own else Judge()


# ---------- one criterion


@dataclass(frozen=True, slots=True)
class VariantSequence:
    """A variant's difference to the control at the end of each day."""

    variant: Variant
    points: Sequence[SequencePoint]


def sequences(facts: ExperimentFacts, row: CriterionRow) -> list[VariantSequence]:
    """Return the differences of a criterion over the days, for each variant but the control; one query."""
    stored = ExperimentDay.objects.filter(experiment=facts.row, criterion=row.criterion).order_by("day")
    days: dict[str, dict[date, Sums]] = defaultdict(dict)
    for variant, day, *numbers in stored.values_list("variant", "day", *NAMES):
        days[variant][day] = Sums(*numbers)
    control, alpha = days.get(facts.control, {}), facts.row.alpha
    return [
        VariantSequence(one, sequence(control, days.get(one.name, {}), row.judge, alpha=alpha))
        for one in facts.variants
        if not one.is_control
    ]


def failing_metrics(
    row: Experiment, criterion: Criterion, *, variant: str, user: Reader
) -> QuerySet[ExperimentMetric]:
    """Return the failing results of a criterion on chats that the user may read, newest first."""
    rows = counted_metrics(row).filter(criterion=criterion, passed=False).exclude(variant="")
    if row.starts_on:
        rows = rows.filter(day__gte=row.starts_on)
    if variant:
        rows = rows.filter(variant=variant)
    return shown_metrics(rows, user=user).order_by("-at", "-pk")


def shown_metrics(rows: QuerySet[ExperimentMetric], *, user: Reader) -> QuerySet[ExperimentMetric]:
    """Return the rows on chats that the user may read."""
    for hidden in chats_hidden(user=user):
        rows = rows.exclude(chat__in=hidden)
    return rows


def failing_of(rows: Sequence[ExperimentMetric]) -> list[FailingChat]:
    """Return the verdicts of these failing rows with their rationales; a constant number of queries."""
    places = {(one.run_id, one.chat_id): at for at, one in enumerate(rows)}
    verdicts: Any = Verdict.objects.filter(
        run__in={one.run_id for one in rows},
        chat__in={one.chat_id for one in rows},
        criterion__in={one.criterion_id for one in rows},
    ).select_related("chat__topic")
    own = [one for one in verdicts if (one.run_id, one.chat_id) in places]
    return failing_chats(sorted(own, key=lambda one: places[one.run_id, one.chat_id]))
