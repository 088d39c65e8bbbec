"""Paired comparison of judges on the same chats, by tier and overall, with chats as clusters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from alignment.judge_comparison.core.coverage import Exclusion, answered_by, suggested_exclusion
from alignment.judge_comparison.core.tallies import CriterionAnswers, Tallies, tally
from alignment.reports.core.human_side import NO_MAJORITY, NO_OVERLAP
from alignment.reports.core.judge_side import NO_HUMAN_FALSE, NO_HUMAN_TRUE
from alignment.statistics.agreement import Confusion
from alignment.statistics.design_effect import PairedAnswers, difference, mean, share
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import MINIMUM_CHATS
from alignment.statistics.paired_tests import PairedTable, holm

OVERALL = "overall"
TIERS = ("simple", "context", "subjective")
ALPHA = 0.05
FEWEST_CHATS = MINIMUM_CHATS  # on fewer no pair is tested
FEW_CHATS = f"fewer than {FEWEST_CHATS} chats"
NOTHING = "no chat and criterion with a consensus and a verdict of every judge"


@dataclass(frozen=True)
class JudgeResult:
    """One judge of a group: its confusion matrix and its rates with intervals.

    rates : accuracy, balanced_accuracy, tpr and tnr. answered : human answers on which this judge also has a
    verdict, whatever the other judges have.
    """

    run: int
    answered: int
    table: Confusion
    rates: dict[str, Estimate]

    def as_json(self) -> dict[str, Any]:
        """Counts, rates, and the reason for each missing rate."""
        cells = {"tp": self.table.tp, "fn": self.table.fn, "fp": self.table.fp, "tn": self.table.tn}
        rates = {name: rate.as_json() for name, rate in self.rates.items()}
        counts = {"run": self.run, "answered": self.answered, "confusion": cells}
        return {**counts, **rates, "undefined": undefined_reasons(self.rates)}


@dataclass(frozen=True)
class JudgePair:
    """Two judges of a group on the same answers.

    table : counts by which judge is right, the judge of run `first` first. difference : its accuracy minus
    the other's. balanced : the same for balanced accuracy. p : two-sided, for the accuracy; None on too few
    chats. p_holm : p adjusted over all tests of the league.
    """

    first: int
    second: int
    table: PairedTable
    difference: Estimate
    balanced: Estimate
    p: float | None
    p_holm: float | None = None

    @property
    def more_right(self) -> int | None:
        """The run whose judge is right significantly more often, or None.

        NB: the interval then excludes 0, because it inverts the same score test, unadjusted.
        """
        if self.p_holm is None or self.p_holm >= ALPHA or not self.difference.value:
            return None
        return self.first if self.difference.value > 0 else self.second

    @property
    def better(self) -> int | None:
        """The same, if the balanced accuracy is significantly higher too, or undefined.

        A judge that always gives the majority answer can be right more often without being better.
        """
        if self.balanced.value is None:
            return self.more_right
        if self.balanced.interval is None or self.balanced.interval.low <= 0 <= self.balanced.interval.high:
            return None
        ahead = self.first if self.balanced.value > 0 else self.second
        return ahead if ahead == self.more_right else None

    def as_json(self) -> dict[str, Any]:
        """`first` and `second` name runs, `only_first` and `only_second` count answers."""
        differences = {"difference": self.difference, "balanced_difference": self.balanced}
        return {
            "first": self.first,
            "second": self.second,
            "both": self.table.both,
            "only_first": self.table.first,
            "only_second": self.table.second,
            "neither": self.table.neither,
            **{name: estimate.as_json() for name, estimate in differences.items()},
            "p": self.p,
            "p_holm": self.p_holm,
            "more_right": self.more_right,
            "better": self.better,
            "undefined": undefined_reasons(differences),
        }


@dataclass(frozen=True)
class Group:
    """A tier, or all criteria: its judges in the order of the runs, and every pair of them.

    n, chats : compared answers, and their chats. answered : human answers, compared or not.
    ceiling : balanced accuracy of a rater against the others on the compared answers, without interval.
    untested : the reason why no pair is tested, or ''.
    exclusion : judges whose exclusion makes the comparison clearly larger.
    """

    key: str
    n: int
    chats: int
    answered: int
    ceiling: Estimate
    untested: str
    exclusion: Exclusion | None
    results: tuple[JudgeResult, ...]
    pairs: tuple[JudgePair, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the group as it is cached."""
        return {
            "key": self.key,
            "n": self.n,
            "chats": self.chats,
            "answered": self.answered,
            "ceiling": self.ceiling.value,
            "untested": self.untested or None,
            "without": self.exclusion and self.exclusion.as_json(),
            "judges": [one.as_json() for one in self.results],
            "pairs": [one.as_json() for one in self.pairs],
            "undefined": {"ceiling": self.ceiling.reason} if self.ceiling.value is None else {},
        }


def compare(criteria: Sequence[CriterionAnswers], *, runs: Sequence[int]) -> list[Group]:
    """
    Compare the judges of these runs on the answers that the consensus and all judges gave.

    Parameters
    ----------
    criteria : answers, with the judges in the order of `runs`.
    runs : two ids or more.

    Returns
    -------
    list of Group : overall, then each tier that has criteria. Empty without criteria.

    Notes
    -----
    Answers on one chat are correlated, so each count is divided by its design effect: the variance with chats
    as clusters over that of independent answers, at least 1 (Rao & Scott 1992, Biometrics 48:577). Intervals
    from the effective counts: Wilson for TPR and TNR; MOVER with their correlation for balanced accuracy;
    Tango's score interval and test for a difference; MOVER of two such intervals, on human True and on human
    False, for a difference of balanced accuracy. They have a width even if a judge is constant. If each chat
    counts once, these are the plain intervals.
    Simulated coverage, nominal .95, 30 to 300 chats of 1 to 10 criteria: .94 to .96 for differences, .93 to
    .96 for balanced accuracy, at least .93 for its differences (.96 on average if a judge errs); percentiles
    of 1,000 chat resamples .92 to .97.
    Holm's adjustment covers every pair of every group, because a reader sees them together. A tier that has
    all compared answers counts as one with overall. A group of fewer than 10 compared chats is not tested.

    Examples
    --------
    >>> import numpy as np
    >>> human = np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    >>> judges = np.array([human, np.zeros(20)], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", human, judges, np.zeros((20, 3), dtype=np.int64))
    >>> overall, simple = compare([one], runs=[7, 9])
    >>> overall.pairs[0].table, overall.pairs[0].better
    (PairedTable(both=10, first=10, second=0, neither=0), 7)
    """
    present = {one.tier for one in criteria}
    tiers = {tier: tally([one for one in criteria if one.tier == tier]) for tier in TIERS if tier in present}
    if not tiers:
        return []
    first, *others = tiers.values()
    total = first
    for other in others:
        total += other
    return _adjusted([_group(key, tallies, runs) for key, tallies in {OVERALL: total, **tiers}.items()])


def _adjusted(groups: Sequence[Group]) -> list[Group]:
    """Adjust p-values. NB: a tier with all compared answers repeats overall, so its pairs count once."""
    overall, *tiers = groups
    distinct = [overall, *(tier for tier in tiers if tier.n < overall.n)]
    p_values = iter(holm([pair.p for group in distinct for pair in group.pairs if pair.p is not None]))
    adjusted = {group.key: _with_holm(group.pairs, p_values) for group in distinct}
    return [replace(group, pairs=adjusted.get(group.key, adjusted[OVERALL])) for group in groups]


def _with_holm(pairs: Sequence[JudgePair], p_values: Iterator[float]) -> tuple[JudgePair, ...]:
    return tuple(pair if pair.p is None else replace(pair, p_holm=next(p_values)) for pair in pairs)


def _group(key: str, tallies: Tallies, runs: Sequence[int]) -> Group:
    places = range(len(runs))
    return Group(
        key=key,
        n=tallies.n,
        chats=tallies.chats,
        answered=tallies.answered,
        ceiling=Estimate(
            tallies.ceiling.balanced_accuracy, reason=NO_MAJORITY if tallies.ceiling.n else NO_OVERLAP
        ),
        untested=_untested(tallies),
        exclusion=suggested_exclusion(tallies.answerers, runs=tuple(runs)),
        results=tuple(_judge_result(tallies, place, runs[place]) for place in places),
        pairs=tuple(
            _pair(tallies, (one, other), (runs[one], runs[other])) for one, other in combinations(places, 2)
        ),
    )


def _untested(tallies: Tallies) -> str:
    if not tallies.n:
        return NOTHING
    return FEW_CHATS if tallies.chats < FEWEST_CHATS else ""


def _judge_result(tallies: Tallies, place: int, run: int) -> JudgeResult:
    tp, tn = tallies.tp[place], tallies.tn[place]
    tpr = share(tp, tallies.true, reason=NO_HUMAN_TRUE)
    tnr = share(tn, tallies.false, reason=NO_HUMAN_FALSE)
    rates = {
        "balanced_accuracy": mean(tpr, tnr),
        "tpr": tpr.estimate,
        "tnr": tnr.estimate,
        "accuracy": share(tp + tn, tallies.by_chat, reason=NOTHING).estimate,
    }
    true, false = int(tallies.true.sum()), int(tallies.false.sum())
    hits, rejections = int(tp.sum()), int(tn.sum())
    table = Confusion(hits, true - hits, false - rejections, rejections)
    return JudgeResult(run, answered_by(tallies.answerers, place), table, rates)


def _pair(tallies: Tallies, places: tuple[int, int], runs: tuple[int, int]) -> JudgePair:
    one, other = places
    true = PairedAnswers(tallies.tp[one], tallies.tp[other], tallies.true, int(tallies.both_tp[places]))
    false = PairedAnswers(tallies.tn[one], tallies.tn[other], tallies.false, int(tallies.both_tn[places]))
    every = true + false
    right = difference(every, reason=NOTHING)
    balanced = mean(difference(true, reason=NO_HUMAN_TRUE), difference(false, reason=NO_HUMAN_FALSE))
    if reason := _untested(tallies):
        accuracy = _without_interval(right.estimate, reason)
        return JudgePair(*runs, every.table, accuracy, _without_interval(balanced, reason), p=None)
    return JudgePair(*runs, every.table, right.estimate, balanced, p=right.p)


def _without_interval(estimate: Estimate, reason: str) -> Estimate:
    return Estimate(estimate.value, reason=estimate.reason or reason)
