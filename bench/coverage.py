"""How often the report's intervals hold what was planted: simulated sets through the product's functions."""

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from alignment.comparison.core.codes import CriterionData, CriterionSpec, HumanCode, JudgeCode, ReportData
from alignment.comparison.core.tally import Tally, tally
from alignment.judge_comparison.core import CriterionAnswers, compare
from alignment.reports.core.human_side import human_side
from alignment.reports.core.judge_side import NAMES, judge_rates, judge_statistics, precision_of
from alignment.reports.core.pass_rates import Method, corrected_pass_rate, human_pass_rate, judge_pass_rate
from alignment.reports.core.pooled import POOLED, pooled
from alignment.reports.core.weighted import human_share, weighted_statistics
from alignment.statistics.agreement import Confusion, formulas
from alignment.statistics.agreement.many_raters import (
    ac1_of_sums,
    ac1_parts,
    alpha_of_sums,
    alpha_parts,
    ceiling_parts,
)
from alignment.statistics.estimates import Estimate, Interval
from bench import Figure
from bench._clustered_rates import clustered_shares
from bench._session_scores import session_shares
from bench._thin_criteria import thin_shares

RATES = (0.70, 0.80, 0.90, 0.97)
SIZES = ((30, 30), (30, 200), (200, 30), (100, 100), (200, 200))
SETS = 2000
SETS_OF_MANY = 500  # sets of many answers a chat are hardly ever equal: each needs its own bootstrap
UNLABELLED = (1000, 5000)  # chats of a run beyond the labelled ones, in the judge's rate and errors
METHODS = (Method.ROGAN_GLADEN, Method.PPI)
RATERS = 3
CRITERIA = 3
# How often a chat's other criteria repeat what happened on the first.
ALIKE = 0.5
MEAN = (93.0, 97.0)
LEAST = 90.0
SEED = 1

# Precision on few chats.
CHATS, SHARES_OF_TRUE, RARE_RATES = (30, 60, 100), (0.1, 0.5, 0.9, 0.95), (0.7, 0.9, 0.95, 0.97)

PASSES = "pass rate, people"
RUN = 1000  # chats of a run over which labels are drawn by verdict

Flags = NDArray[np.bool_]
Found = tuple[Mapping[str, Estimate], int]


@dataclass(frozen=True, slots=True)
class Cell:
    """What is planted: chats of each class, the judge's rates, and whether each chat's truth is drawn."""

    true: int
    false: int
    tpr: float
    tnr: float
    drawn: bool

    @property
    def n(self) -> int:
        """Labelled chats."""
        return self.true + self.false

    @property
    def share(self) -> float:
        """Share of True."""
        return self.true / self.n

    @property
    def population(self) -> Confusion:
        """A hundred times the expected table, in whole numbers."""
        tp, tn = round(100 * self.true * self.tpr), round(100 * self.false * self.tnr)
        return Confusion(tp, 100 * self.true - tp, 100 * self.false - tn, tn)

    def trues(self, draw: np.random.Generator, sets: int) -> NDArray[np.int64]:
        """How many chats are True in each of so many sets."""
        return draw.binomial(self.n, self.share, sets) if self.drawn else np.full(sets, self.true)

    def truth(self, draw: np.random.Generator) -> Flags:
        """Each chat's truth in one set."""
        return np.arange(self.n) < self.trues(draw, 1)

    def answers(self, truth: Flags, draw: np.random.Generator) -> Flags:
        """Somebody's answers, at the planted rates."""
        return np.where(truth, draw.random(truth.size) < self.tpr, draw.random(truth.size) >= self.tnr)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Labelled chats: as they came, and drawn of those judged False and of those judged True."""

    anyway: int
    judged_false: int
    judged_true: int

    @property
    def chats(self) -> int:
        """All of them."""
        return self.anyway + self.judged_false + self.judged_true


DRAWS = (Drawn(60, 40, 10), Drawn(60, 40, 0), Drawn(0, 60, 30), Drawn(100, 60, 60))


def figures() -> Iterator[Figure]:
    """For each interval the mean over all cells and the least; truth drawn by chat, then fixed counts."""
    cells = [
        Cell(*size, *rates, drawn)
        for drawn in (True, False)
        for size in SIZES
        for rates in itertools.product(RATES, RATES)
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(zip(cells, pool.map(covered, cells), strict=True))
    for drawn, how in ((True, "drawn"), (False, "fixed")):
        shares = [shares for cell, shares in found if cell.drawn is drawn]
        for name in shares[0]:
            yield from _of(f"{name}, {how}", [100 * one[name] for one in shares if name in one])
    yield from exact_figures()
    yield from precision_figures()
    yield from drawn_figures()
    yield from league_figures()
    thin = [("mean over thin criteria", thin_shares(SETS_OF_MANY))]
    for name, held in (*thin, *clustered_shares(SETS_OF_MANY), *session_shares(SETS_OF_MANY)):
        yield from _wide_enough(name, held)


def drawn_figures() -> Iterator[Figure]:
    """Of labels that were drawn by verdict, beside some that were not."""
    cells = list(itertools.product(DRAWS, (0.5, 0.9), (0.8, 0.9), (0.7, 0.9)))
    found = [
        drawn_by_verdict(labelled, tpr=tpr, tnr=tnr, share=share, sets=SETS_OF_MANY)
        for labelled, share, tpr, tnr in cells
    ]
    for name in found[0]:
        yield from _of(f"{name}, drawn by verdict", [100 * one[name] for one in found if name in one])


@dataclass(frozen=True, slots=True)
class League:
    """Two judges on so many chats and criteria; `hard`: share of their errors' variance due to the chat.

    shares : share of True by criterion, in turn. first, second : TPR and TNR of the judges.
    """

    chats: int
    criteria: int
    hard: float
    shares: tuple[float, ...]
    first: tuple[float, float]
    second: tuple[float, float]

    def answers(self, draw: np.random.Generator) -> list[CriterionAnswers]:
        """One simulated set; the judges share half of a chat's hardness."""
        shape = (self.criteria, self.chats)
        human = (draw.random(shape) >= np.resize(self.shares, self.criteria)[:, np.newaxis]).astype(np.int8)
        common = draw.standard_normal(self.chats)
        judges = []
        for tpr, tnr in (self.first, self.second):
            hardness = (common + draw.standard_normal(self.chats)) * np.sqrt(self.hard / 2)
            luck = draw.standard_normal(shape) * np.sqrt(1 - self.hard)
            right = ndtr(hardness + luck) < np.where(human == HumanCode.TRUE, tpr, tnr)
            judges.append(np.where(right, human, 1 - human).astype(np.int8))
        labels = np.zeros((self.chats, 3), dtype=np.int64)
        return [
            CriterionAnswers(f"c{n}", "simple", human[n], np.stack([judges[0][n], judges[1][n]]), labels)
            for n in range(self.criteria)
        ]

    @property
    def planted(self) -> dict[str, float]:
        """The true rates of the first judge, and its lead over the second."""
        true = float(np.resize(self.shares, self.criteria).mean())
        (tpr, tnr), (other_tpr, other_tnr) = self.first, self.second
        accuracy, other = (true * one + (1 - true) * two for one, two in (self.first, self.second))
        return {
            "league tpr": tpr,
            "league tnr": tnr,
            "league balanced_accuracy": (tpr + tnr) / 2,
            "league accuracy": accuracy,
            "league difference": accuracy - other,
            "league balanced difference": (tpr + tnr - other_tpr - other_tnr) / 2,
        }

    def covered(self, sets: int = SETS_OF_MANY) -> dict[str, float]:
        """Of the intervals over so many simulated leagues, the share that holds what was planted, by name."""
        draw = np.random.default_rng([SEED, self.chats, self.criteria, round(100 * self.hard)])
        return _shares((self._found(draw) for _ in range(sets)), self.planted)

    def _found(self, draw: np.random.Generator) -> Found:
        overall = compare(self.answers(draw), runs=(1, 2))[0]
        (pair,) = overall.pairs
        rates = {f"league {name}": rate for name, rate in overall.results[0].rates.items()}
        return {**rates, "league difference": pair.difference, "league balanced difference": pair.balanced}, 1


LEAGUES = [
    League(chats, criteria, hard, shares, *rates)
    for chats in (30, 60, 200)
    for criteria in (1, 4, 10)
    for hard in (0.0, 0.7)
    for shares in ((0.5,), (0.8, 0.2))
    for rates in (((0.90, 0.85), (0.90, 0.85)), ((0.95, 0.80), (0.85, 0.80)))
]


def league_figures() -> Iterator[Figure]:
    """Of the engine league, on few chats that are hard on every criterion, too."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(League.covered, LEAGUES))
    for name in found[0]:
        yield from _wide_enough(name, [100 * one[name] for one in found])


def _wide_enough(name: str, shares: list[float]) -> Iterator[Figure]:
    """No upper limit: answers that are not alike after all get wider intervals than they need."""
    yield Figure(f"{name}: mean", sum(shares) / len(shares), MEAN[0], "%", floor=True)
    yield Figure(f"{name}: least", min(shares), LEAST, "%", floor=True)


def exact_figures() -> Iterator[Figure]:
    """Balanced accuracy, whose least cell 2,000 sets blur: over every table that 30 and 30 chats can give."""
    n, half = sum(SIZES[0]), SIZES[0][0]
    drawn = np.vstack([_all_tables(true, n - true) for true in range(n + 1)])
    for tables, how in ((drawn, "drawn"), (_all_tables(half, half), "fixed")):
        found = [judge_rates(Confusion(*table))["balanced_accuracy"].interval for table in tables.tolist()]
        shares = [100 * _exactly(found, tables, *rates) for rates in itertools.product(RATES, RATES)]
        yield from _of(f"balanced_accuracy, every table of {half} and {half}, {how}", shares)


def precision_figures() -> Iterator[Figure]:
    """Precision, almost 1 where True is frequent: over every number of chats that are judged True."""
    cells = itertools.product(CHATS, SHARES_OF_TRUE, RARE_RATES, RARE_RATES)
    yield from _of("precision, few chats, drawn", [100 * precision_covered(*cell) for cell in cells])


def precision_covered(chats: int, share: float, tpr: float, tnr: float) -> float:
    """The share of the shown intervals that hold the planted precision, each table as often as expected."""
    said = share * tpr + (1 - share) * (1 - tnr)
    precision, held, shown = share * tpr / said, 0.0, 0.0
    for judged, chance in enumerate(binom.pmf(np.arange(chats + 1), chats, said).tolist()):
        right = np.arange(judged + 1)
        expected = binom.pmf(right, judged, precision) if judged and chance > 1e-9 else right[:0]
        for tp, often in enumerate(expected.tolist()):
            interval = _precision(tp, judged).interval
            shown += chance * often * (interval is not None)
            held += chance * often * (interval is not None and _holds(interval, precision))
    return held / shown


@cache
def _precision(tp: int, judged: int) -> Estimate:
    """The report's precision of a judge that is right on `tp` of its verdicts of True."""
    return precision_of(Confusion(tp, 0, judged - tp, 0))


def _all_tables(true: int, false: int) -> NDArray[np.int64]:
    """(tp, fn, fp, tn) of every way to judge so many chats of each class."""
    tp, tn = (grid.ravel() for grid in np.meshgrid(np.arange(true + 1), np.arange(false + 1)))
    return np.column_stack([tp, true - tp, false - tn, tn])


def _exactly(found: Sequence[Interval | None], tables: NDArray[np.int64], tpr: float, tnr: float) -> float:
    """The share of the shown intervals that hold what is planted, each table as often as it is expected."""
    tp, fn, fp, tn = tables.T
    chance = binom.pmf(tp, tp + fn, tpr) * binom.pmf(tn, fp + tn, tnr)
    if np.ptp(tp + fn):
        chance *= binom.pmf(tp + fn, tables[0].sum(), 0.5)
    shown = [one is not None for one in found]
    held = [one is not None and _holds(one, (tpr + tnr) / 2) for one in found]
    return float(chance[held].sum() / chance[shown].sum())


def _of(name: str, shares: list[float]) -> Iterator[Figure]:
    mean = sum(shares) / len(shares)
    low, high = MEAN
    below = mean < (low + high) / 2
    yield Figure(f"{name}: mean", mean, low if below else high, "%", floor=below)
    yield Figure(f"{name}: least", min(shares), LEAST, "%", floor=True)


def covered(cell: Cell, *, sets: int = SETS, sets_of_many: int = SETS_OF_MANY) -> dict[str, float]:
    """Of the intervals shown over so many simulated sets, the share that holds what was planted, by name."""
    rates = (round(100 * cell.tpr), round(100 * cell.tnr))
    draw = np.random.default_rng([SEED, cell.true, cell.false, *rates])
    return {
        **_shares(_tables(cell, draw, sets), _planted(cell)),
        **_shares(_pass_rates(cell, draw, sets), _planted_pass_rates(cell)),
        **_shares(_people(cell, draw, sets_of_many), _planted_people(cell)),
        **_shares(_pooled(cell, draw, sets_of_many), _planted_pooled(cell)),
    }


def _shares(found: Iterable[Found], planted: Mapping[str, float]) -> dict[str, float]:
    """From estimates, each with the number of sets that had it."""
    shown: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for estimates, times in found:
        for name, value in planted.items():
            interval = estimates[name].interval
            if interval is not None:
                shown[name] += times
                held[name] += times * _holds(interval, value)
    return {name: held[name] / shown[name] for name in planted if shown[name]}


def _holds(interval: Interval, value: float) -> bool:
    return interval.low - 1e-12 <= value <= interval.high + 1e-12


def _estimate(body: Mapping[str, Any]) -> Estimate:
    """From what the report prints."""
    if body["low"] is None:
        return Estimate(body["value"])
    return Estimate(body["value"], Interval(body["low"], body["high"]))


# ---------- a judge against people ----------


def _planted(cell: Cell) -> dict[str, float]:
    return {name: getattr(cell.population, name) for name in NAMES}


def _drawn_tables(cell: Cell, draw: np.random.Generator, sets: int) -> NDArray[np.int64]:
    """(tp, fn, fp, tn) of each set."""
    true = cell.trues(draw, sets)
    tp, tn = draw.binomial(true, cell.tpr), draw.binomial(cell.n - true, cell.tnr)
    return np.column_stack([tp, true - tp, cell.n - true - tn, tn])


def _tables(cell: Cell, draw: np.random.Generator, sets: int) -> Iterator[Found]:
    """Equal tables have equal statistics: each is computed once."""
    distinct, times = np.unique(_drawn_tables(cell, draw, sets), axis=0, return_counts=True)
    for table, often in zip(distinct.tolist(), times.tolist(), strict=True):
        yield judge_statistics(Confusion(*table), seed=SEED), often


def _planted_pass_rates(cell: Cell) -> dict[str, float]:
    judge = cell.share * cell.tpr + (1 - cell.share) * (1 - cell.tnr)
    # With fixed counts people's share is the planted one in every set.
    people = {PASSES: cell.share} if cell.drawn else {}
    # Nor are chats drawn at random where their counts are fixed.
    methods = METHODS if cell.drawn else (Method.ROGAN_GLADEN,)
    corrected = {_corrected(how, more): cell.share for how in methods for more in UNLABELLED}
    return people | {"pass rate, judge": judge} | corrected


def _corrected(method: Method, more: int) -> str:
    how = ", at random" if method is Method.PPI else ""
    return f"pass rate, corrected{how}, {more:,} more"


def _pass_rates(cell: Cell, draw: np.random.Generator, sets: int) -> Iterator[Found]:
    """Runs over the labelled chats and more of them that are True as often."""
    said = [_more_said_true(cell, draw, sets, more) for more in UNLABELLED]
    for table, *true in zip(_drawn_tables(cell, draw, sets), *said, strict=True):
        runs = [_tally(table, *more) for more in zip(true, UNLABELLED, strict=True)]
        corrected = {
            _corrected(how, more): corrected_pass_rate(run, passes_when=True, method=how)
            for how in METHODS
            for run, more in zip(runs, UNLABELLED, strict=True)
        }
        people = human_pass_rate(runs[0], passes_when=True)
        judge = judge_pass_rate(runs[0], passes_when=True)
        yield {PASSES: people, "pass rate, judge": judge, **corrected}, 1


def _more_said_true(cell: Cell, draw: np.random.Generator, sets: int, more: int) -> list[int]:
    """How many of the chats nobody labelled the judge calls True, in each set."""
    true = draw.binomial(more, cell.share, sets)
    said: list[int] = (draw.binomial(true, cell.tpr) + draw.binomial(more - true, 1 - cell.tnr)).tolist()
    return said


def _tally(table: NDArray[np.int64], said_true: int, unlabelled: int) -> Tally:
    joint = np.zeros((len(HumanCode), len(JudgeCode)), dtype=np.int64)
    joint[:2, :2] = table.reshape(2, 2)
    joint[HumanCode.UNLABELLED, :2] = said_true, unlabelled - said_true
    return Tally(joint)


# ---------- labels drawn by verdict ----------


def drawn_by_verdict(labelled: Drawn, *, tpr: float, tnr: float, share: float, sets: int) -> dict[str, float]:
    """Of the intervals over so many simulated runs, the share that holds what was planted, by name."""
    cell = Cell(round(100 * share), round(100 - 100 * share), tpr, tnr, drawn=True)
    draw = np.random.default_rng([SEED, labelled.chats, *(round(100 * rate) for rate in (tpr, tnr, share))])
    found = (_drawn_run(labelled, cell, draw) for _ in range(sets))
    entries = (
        (weighted_statistics(data, tally(data), seed=SEED) | {PASSES: human_share(data, seed=SEED)}, 1)
        for data in found
    )
    return _shares(entries, _planted(cell) | {PASSES: cell.share})


def _drawn_run(labelled: Drawn, cell: Cell, draw: np.random.Generator) -> CriterionData:
    truth = draw.random(RUN) < cell.share
    said = cell.answers(truth, draw)
    inverse, human = np.zeros(RUN), np.full(RUN, HumanCode.UNLABELLED, dtype=np.int8)
    left = np.arange(labelled.anyway, RUN)
    for verdict, n in ((False, labelled.judged_false), (True, labelled.judged_true)):
        pool = left[said[left] == verdict]
        inverse[draw.permutation(pool)[:n]] = pool.size / max(1, n)
    known = (np.arange(RUN) < labelled.anyway) | (inverse > 0)
    human[known] = ~truth[known]
    counts = np.column_stack([human == HumanCode.TRUE, human == HumanCode.FALSE, np.zeros_like(human)])
    spec = CriterionSpec("c", "d", "D", "simple", True)
    return CriterionData(spec, human, (~said).astype(np.int8), counts.astype(np.int64), 1, inverse=inverse)


# ---------- people among themselves ----------


def _planted_people(cell: Cell) -> dict[str, float]:
    """From all ways in which three raters can answer, each as often as it is expected in 10 million chats."""
    chance = np.zeros(RATERS + 1)
    for answers in itertools.product((True, False), repeat=RATERS):
        if_true = np.prod([cell.tpr if one else 1 - cell.tpr for one in answers])
        if_false = np.prod([1 - cell.tnr if one else cell.tnr for one in answers])
        chance[sum(answers)] += cell.share * if_true + (1 - cell.share) * if_false
    true = np.arange(RATERS + 1)
    rows = np.column_stack([true, RATERS - true, 0 * true])
    alpha = alpha_of_sums(1e7 * chance @ alpha_parts(rows))
    return {
        "people's alpha": float(alpha),
        "people's AC1": float(ac1_of_sums((chance @ ac1_parts(rows))[:-1])),
        "human ceiling": float(formulas.balanced_accuracy(chance @ ceiling_parts(rows))),
        "human ceiling of accuracy": float(formulas.accuracy(chance @ ceiling_parts(rows))),
    }


def _people(cell: Cell, draw: np.random.Generator, sets: int) -> Iterator[Found]:
    """Three raters who answer at the planted rates, each alone."""
    for _ in range(sets):
        truth = cell.truth(draw)
        true = np.sum([cell.answers(truth, draw) for _ in range(RATERS)], axis=0)
        body = human_side(np.column_stack([true, RATERS - true, 0 * true]), raters=RATERS, seed=SEED).body
        ac1 = body["gwet_ac1_interval"] or {"low": None, "high": None}
        yield (
            {
                "people's alpha": _estimate(body["krippendorff_alpha"]),
                "people's AC1": _estimate({"value": body["gwet_ac1"], **ac1}),
                "human ceiling": _estimate(body["ceiling"]),
                "human ceiling of accuracy": _estimate(body["accuracy_ceiling"]),
            },
            1,
        )


# ---------- several criteria together ----------


def _planted_pooled(cell: Cell) -> dict[str, float]:
    return {f"{name} of {CRITERIA} criteria": getattr(cell.population, name) for name in POOLED}


def _pooled(cell: Cell, draw: np.random.Generator, sets: int) -> Iterator[Found]:
    """Criteria that share a chat's truth, and often the judge's answer."""
    for _ in range(sets):
        truth = cell.truth(draw)
        first = cell.answers(truth, draw)
        others = [
            np.where(draw.random(cell.n) < ALIKE, first, cell.answers(truth, draw))
            for _ in range(CRITERIA - 1)
        ]
        data = _report_data(truth, [first, *others])
        body = pooled(data, data.criteria)
        yield {f"{name} of {CRITERIA} criteria": _estimate(body[name]) for name in POOLED}, 1


def _report_data(truth: Flags, answers: list[Flags]) -> ReportData:
    human = (~truth).astype(np.int8)
    counts = np.column_stack([truth, ~truth, np.zeros_like(truth)]).astype(np.int64)
    criteria = tuple(
        CriterionData(
            spec=CriterionSpec(f"c{n}", "d", "D", "simple", True),
            human=human,
            judge=(~said).astype(np.int8),
            counts=counts,
            raters=1,
        )
        for n, said in enumerate(answers)
    )
    return ReportData([str(n) for n in range(truth.size)], criteria)
