"""Who is right where only one of two judges is: paired, by tier and overall, with chats as clusters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from alignment.judge_comparison.core.coverage import Without, answered_by, without
from alignment.judge_comparison.core.tallies import CriterionAnswers, Tallies, tallied
from alignment.reports.core.human_side import NO_MAJORITY, NO_OVERLAP
from alignment.reports.core.judge_side import NO_HUMAN_FALSE, NO_HUMAN_TRUE
from alignment.statistics.agreement import Confusion
from alignment.statistics.design_effect import Paired, difference, mean, share
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import MINIMUM_CHATS
from alignment.statistics.paired_tests import PairedTable, holm

OVERALL = "overall"
TIERS = ("simple", "context", "subjective")
ALPHA = 0.05
FEWEST_CHATS = MINIMUM_CHATS  # on fewer no pair is tested
FEW_CHATS = f"fewer than {FEWEST_CHATS} chats"
NOTHING = "no chat and criterion that people and every judge answered"


@dataclass(frozen=True)
class Standing:
    """One judge of a group: people against it, and its rates with intervals.

    `rates` has accuracy, balanced_accuracy, tpr and tnr. `answered` counts those of people's answers that it
    answered, too, whether the others did or not.
    """

    run: int
    answered: int
    table: Confusion
    rates: dict[str, Estimate]

    def as_json(self) -> dict[str, Any]:
        """Counts, rates, and why one of them is missing."""
        cells = {"tp": self.table.tp, "fn": self.table.fn, "fp": self.table.fp, "tn": self.table.tn}
        rates = {name: rate.as_json() for name, rate in self.rates.items()}
        counts = {"run": self.run, "answered": self.answered, "confusion": cells}
        return {**counts, **rates, "undefined": undefined_reasons(self.rates)}


@dataclass(frozen=True)
class Duel:
    """Two judges of a group on the same answers.

    `table` counts by who is right, the judge of run `first` first. `difference` is its share of right answers
    minus the other's, `balanced` the same of balanced accuracy. `p` is two-sided, `p_holm` the same adjusted
    over the league's tests; both of the share of right answers, and None on too few chats.
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
        """The run whose judge is shown to be right more often; None where no difference is shown.

        NB: the interval then excludes 0, since it is made of the same score test, unadjusted.
        """
        if self.p_holm is None or self.p_holm >= ALPHA or not self.difference.value:
            return None
        return self.first if self.difference.value > 0 else self.second

    @property
    def better(self) -> int | None:
        """The same, where balanced accuracy shows it too or cannot be had.

        Who always gives the frequent answer is right more often and no better.
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
    """A tier, or all criteria: its judges in the order given, and every pair of them.

    `n` answers on `chats` chats are compared, of the `answered` ones that people gave. `ceiling` is a rater's
    balanced accuracy against the others on the same answers, without interval. `untested`: why no pair is
    tested, else ''; `without`: who makes the comparison clearly smaller.
    """

    key: str
    n: int
    chats: int
    answered: int
    ceiling: Estimate
    untested: str
    without: Without | None
    standings: tuple[Standing, ...]
    duels: tuple[Duel, ...]

    def as_json(self) -> dict[str, Any]:
        """The group as stored."""
        return {
            "key": self.key,
            "n": self.n,
            "chats": self.chats,
            "answered": self.answered,
            "ceiling": self.ceiling.value,
            "untested": self.untested or None,
            "without": self.without and self.without.as_json(),
            "judges": [one.as_json() for one in self.standings],
            "pairs": [one.as_json() for one in self.duels],
            "undefined": {"ceiling": self.ceiling.reason} if self.ceiling.value is None else {},
        }


def compare(criteria: Sequence[CriterionAnswers], *, runs: Sequence[int]) -> list[Group]:
    """
    The judges of these runs on the answers that people and all of them gave.

    Parameters
    ----------
    criteria : judges in the order of `runs`.
    runs : two ids or more.

    Returns
    -------
    list of Group : overall, then each tier that has criteria. Empty without criteria.

    Notes
    -----
    A chat's answers hang together, so each count is divided by its design effect: the variance with chats as
    clusters over that of independent answers, at least 1 (Rao & Scott 1992, Biometrics 48:577). From the
    effective counts: Wilson's interval for TPR and TNR, MOVER with the correlation of the two for balanced
    accuracy, Tango's score interval and test for a difference, MOVER of two such intervals, on people's True
    and on their False, for that of balanced accuracy: where a judge never varies they have a width. Where
    each chat counts once these are the plain ones. Simulated, nominal .95, 30 to 300 chats of 1 to 10
    criteria: .94 to .96 for differences, .93 to .96 for balanced accuracy, .93 and more for its differences
    (.96 on the mean where a judge errs); percentiles of 1,000 chat resamples .92 to .97. Holm's adjustment
    goes over every pair of every group, for they are all looked at together; overall and a tier that holds
    all compared answers are one. A group of fewer than 10 compared chats tests none.

    Examples
    --------
    >>> import numpy as np
    >>> people = np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    >>> judges = np.array([people, np.zeros(20)], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", people, judges, np.zeros((20, 3), dtype=np.int64))
    >>> overall, simple = compare([one], runs=[7, 9])
    >>> overall.duels[0].table, overall.duels[0].better
    (PairedTable(both=10, first=10, second=0, neither=0), 7)
    """
    present = {one.tier for one in criteria}
    tiers = {
        tier: tallied([one for one in criteria if one.tier == tier]) for tier in TIERS if tier in present
    }
    if not tiers:
        return []
    first, *others = tiers.values()
    total = first
    for other in others:
        total += other
    return _adjusted([_group(key, tallies, runs) for key, tallies in {OVERALL: total, **tiers}.items()])


def _adjusted(groups: Sequence[Group]) -> list[Group]:
    """NB: a tier with all compared answers asks the same as overall, so its pairs are counted once."""
    overall, *tiers = groups
    distinct = [overall, *(tier for tier in tiers if tier.n < overall.n)]
    found = iter(holm([duel.p for group in distinct for duel in group.duels if duel.p is not None]))
    adjusted = {group.key: _with_holm(group.duels, found) for group in distinct}
    return [replace(group, duels=adjusted.get(group.key, adjusted[OVERALL])) for group in groups]


def _with_holm(duels: Sequence[Duel], found: Iterator[float]) -> tuple[Duel, ...]:
    return tuple(duel if duel.p is None else replace(duel, p_holm=next(found)) for duel in duels)


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
        without=without(tallies.answerers, runs=tuple(runs)),
        standings=tuple(_standing(tallies, place, runs[place]) for place in places),
        duels=tuple(
            _duel(tallies, (one, other), (runs[one], runs[other])) for one, other in combinations(places, 2)
        ),
    )


def _untested(tallies: Tallies) -> str:
    if not tallies.n:
        return NOTHING
    return FEW_CHATS if tallies.chats < FEWEST_CHATS else ""


def _standing(tallies: Tallies, place: int, run: int) -> Standing:
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
    return Standing(run, answered_by(tallies.answerers, place), table, rates)


def _duel(tallies: Tallies, places: tuple[int, int], runs: tuple[int, int]) -> Duel:
    one, other = places
    true = Paired(tallies.tp[one], tallies.tp[other], tallies.true, int(tallies.both_tp[places]))
    false = Paired(tallies.tn[one], tallies.tn[other], tallies.false, int(tallies.both_tn[places]))
    every = true + false
    right = difference(every, reason=NOTHING)
    balanced = mean(difference(true, reason=NO_HUMAN_TRUE), difference(false, reason=NO_HUMAN_FALSE))
    if why := _untested(tallies):
        return Duel(*runs, every.table, _unbounded(right.estimate, why), _unbounded(balanced, why), p=None)
    return Duel(*runs, every.table, right.estimate, balanced, p=right.p)


def _unbounded(estimate: Estimate, why: str) -> Estimate:
    return Estimate(estimate.value, reason=estimate.reason or why)
