"""Paired comparison of judges on the same chats, by tier and overall, with chats as clusters."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from alignment.comparison.core.codes import Clusters
from alignment.judge_comparison.core.coverage import Exclusion, answered_by, suggested_exclusion
from alignment.judge_comparison.core.tallies import (
    ComparedAnswers,
    CriterionAnswers,
    Flags,
    compared_answers,
)
from alignment.reports.core.human_side import NO_MAJORITY, NO_OVERLAP
from alignment.reports.core.status import StatusPolicy
from alignment.statistics.agreement import Confusion
from alignment.statistics.design_effect import MeanShare, mean_difference
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.macro_rates import ClassCounts, macro_difference, macro_rates, too_few
from alignment.statistics.paired_tests import PairedTable, holm

OVERALL = "overall"
TIERS = ("simple", "context", "subjective")
ALPHA = 0.05
UNUSABLE = "no criterion has labels that can measure a judge"
NOTHING = "no chat and criterion with a consensus and a verdict of every judge"


@dataclass(frozen=True)
class JudgeResult:
    """One judge of a group: its answers counted by cell and its rates with intervals.

    rates : accuracy over all answers; balanced_accuracy, tpr and tnr are means over criteria. answered :
    human answers on which this judge also has a verdict, whatever the other judges have. unjudged : share of
    human True, and of human False, on which it has none, averaged over criteria; `abstains` if one of them is
    above the policy's limit. cautions : on these, from the policy's share for a caution on.
    """

    run: int
    answered: int
    table: Confusion
    rates: dict[str, Estimate]
    unjudged: tuple[float, float] = (0.0, 0.0)
    abstains: bool = False
    cautions: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Counts, rates, and the reason for each missing rate."""
        cells = {"tp": self.table.tp, "fn": self.table.fn, "fp": self.table.fp, "tn": self.table.tn}
        rates = {name: rate.as_json() for name, rate in self.rates.items()}
        counts = {"run": self.run, "answered": self.answered, "confusion": cells}
        without = dict(zip(("true", "false"), self.unjudged, strict=True))
        return {
            **counts,
            **rates,
            "unjudged_share": without,
            "abstains": self.abstains,
            "cautions": list(self.cautions),
            "undefined": undefined_reasons(self.rates),
        }


@dataclass(frozen=True)
class JudgePair:
    """Two judges of a group on the same answers.

    table : counts by which judge is right, the judge of run `first` first. difference : its accuracy minus
    the other's, over all answers. balanced : the same for balanced accuracy, averaged over criteria. strict :
    the same on all human answers of these criteria, where an answer without a verdict counts as wrong. Each
    has a two-sided p value, None on too few chats, and one adjusted over all pairs of the league.
    abstaining : the runs of judges that leave too many answers without a verdict to be called better.
    """

    first: int
    second: int
    table: PairedTable
    difference: Estimate
    balanced: Estimate
    strict: Estimate
    p: float | None
    balanced_p: float | None
    strict_p: float | None
    p_holm: float | None = None
    balanced_p_holm: float | None = None
    strict_p_holm: float | None = None
    abstaining: tuple[int, ...] = ()

    @property
    def more_right(self) -> int | None:
        """The run whose judge is right significantly more often, or None."""
        return self._ahead(self.difference, self.p_holm)

    @property
    def more_balanced(self) -> int | None:
        """The run whose judge has the significantly higher balanced accuracy, or None."""
        return self._ahead(self.balanced, self.balanced_p_holm)

    @property
    def better(self) -> int | None:
        """The run with the significantly higher balanced accuracy.

        A judge that gives the more frequent answer of each criterion can be right more often without being
        better, so accuracy does not decide. A judge that leaves answers without a verdict is better only if
        it stays so when these count as wrong, and if they are few.
        """
        ahead = self.more_balanced
        strict = self._ahead(self.strict, self.strict_p_holm)
        return None if ahead in self.abstaining or ahead != strict else ahead

    def _ahead(self, difference: Estimate, p: float | None) -> int | None:
        # NB: the interval then excludes 0, because it inverts the same score test, unadjusted.
        if p is None or p >= ALPHA or not difference.value:
            return None
        return self.first if difference.value > 0 else self.second

    def as_json(self) -> dict[str, Any]:
        """`first` and `second` name runs, `only_first` and `only_second` count answers."""
        differences = {
            "difference": self.difference,
            "balanced_difference": self.balanced,
            "strict_difference": self.strict,
        }
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
            "balanced_p": self.balanced_p,
            "balanced_p_holm": self.balanced_p_holm,
            "strict_p": self.strict_p,
            "strict_p_holm": self.strict_p_holm,
            "more_right": self.more_right,
            "more_balanced": self.more_balanced,
            "better": self.better,
            "undefined": undefined_reasons(differences),
        }


@dataclass(frozen=True)
class Group:
    """A tier, or all criteria: its judges in the order of the runs, and every pair of them.

    n, chats : compared answers, and their chats. answered : human answers, compared or not.
    ceiling : balanced accuracy of a rater against the others on the compared answers, averaged over criteria,
    without interval. averaged : number of criteria with both human answers, which balanced accuracy averages;
    left_out : keys of the others. problems : by key, why the labels of a criterion cannot measure a judge.
    untested : the reason why no pair is tested, or ''.
    exclusion : judges whose exclusion makes the comparison clearly larger.
    """

    key: str
    n: int
    chats: int
    answered: int
    ceiling: Estimate
    averaged: int
    left_out: tuple[str, ...]
    problems: dict[str, str]
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
            "criteria_averaged": self.averaged,
            "criteria_left_out": list(self.left_out),
            "label_problems": self.problems,
            "untested": self.untested or None,
            "without": self.exclusion and self.exclusion.as_json(),
            "judges": [one.as_json() for one in self.results],
            "pairs": [one.as_json() for one in self.pairs],
            "undefined": {"ceiling": self.ceiling.reason} if self.ceiling.value is None else {},
        }


def compare(
    criteria: Sequence[CriterionAnswers],
    *,
    runs: Sequence[int],
    clusters: Clusters = None,
    policy: StatusPolicy | None = None,
) -> list[Group]:
    """
    Compare the judges of these runs on the answers that the consensus and all judges gave.

    Parameters
    ----------
    criteria : answers, with the judges in the order of `runs`.
    runs : two ids or more.
    clusters : number of each chat's cluster, shape (chats,); None if every chat is alone.
    policy : limits the answers without a verdict of a judge that is called better; None: the start values.

    Returns
    -------
    list of Group : overall, then each tier that has criteria. Empty without criteria.

    Notes
    -----
    Accuracy is over all answers; balanced accuracy, TPR and TNR are averaged over criteria (`macro_rates`),
    so that a judge that gives one answer on each criterion gets 0.50. Answers on one chat are correlated:
    intervals and tests use effective counts (`mean_share`, `mean_difference`). If each chat counts once,
    these are the plain intervals of Wilson and Tango.
    Holm's adjustment covers every pair of every group, because a reader sees them together: once for each
    difference. A tier that has all compared answers counts as one with overall. A
    group of fewer than 10 compared chats (or clusters) is not tested.

    Examples
    --------
    >>> human = np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    >>> judges = np.array([human, np.zeros(20)], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", human, judges, np.zeros((20, 3), dtype=np.int64))
    >>> overall, simple = compare([one], runs=[7, 9])
    >>> overall.pairs[0].table, overall.pairs[0].better
    (PairedTable(both=10, first=10, second=0, neither=0), 7)
    """
    if not criteria:
        return []
    answers = compared_answers(criteria, clusters)
    limits, tiers = policy or StatusPolicy(), [tier for tier in TIERS if tier in answers.tiers]
    overall = _group(OVERALL, answers, runs, limits)
    if len(tiers) == 1:
        return _adjusted([overall, replace(overall, key=tiers[0])])
    return _adjusted([overall, *(_group(tier, answers.of_tier(tier), runs, limits) for tier in tiers)])


def _adjusted(groups: Sequence[Group]) -> list[Group]:
    """Adjust p-values. NB: a tier with all compared answers repeats overall, so its pairs count once."""
    overall, *tiers = groups
    distinct = [overall, *(tier for tier in tiers if tier.n < overall.n)]
    pairs = [pair for group in distinct for pair in group.pairs]
    accuracy, balanced = _holm(pairs, lambda pair: pair.p), _holm(pairs, lambda pair: pair.balanced_p)
    strict = _holm(pairs, lambda pair: pair.strict_p)
    adjusted = {
        group.key: tuple(
            replace(pair, p_holm=next(accuracy), balanced_p_holm=next(balanced), strict_p_holm=next(strict))
            for pair in group.pairs
        )
        for group in distinct
    }
    return [replace(group, pairs=adjusted.get(group.key, adjusted[OVERALL])) for group in groups]


def _holm(pairs: Sequence[JudgePair], p_of: Callable[[JudgePair], float | None]) -> Iterator[float | None]:
    """Yield the adjusted p value of each pair, None where there is none."""
    p_values = [p_of(pair) for pair in pairs]
    adjusted = iter(holm([p for p in p_values if p is not None]))
    return iter([None if p is None else next(adjusted) for p in p_values])


def _group(key: str, answers: ComparedAnswers, runs: Sequence[int], policy: StatusPolicy) -> Group:
    places, n = range(len(runs)), answers.counts()
    results = tuple(_judge_result(answers, n, place, runs[place], policy) for place in places)
    raters = any(one.n for one in answers.ceilings)
    both = n.both
    return Group(
        key=key,
        n=answers.n,
        chats=answers.chats,
        answered=int(np.count_nonzero(answers.human)),
        ceiling=Estimate(answers.ceiling, reason=NO_MAJORITY if raters else NO_OVERLAP),
        averaged=int(np.count_nonzero(both)),
        left_out=tuple(own for own, has_both in zip(answers.keys, both, strict=True) if not has_both),
        problems={key: one for key, one in zip(answers.keys, answers.problems, strict=True) if one},
        untested=_untested(answers, n),
        exclusion=suggested_exclusion(answers.answerers, runs=tuple(runs)),
        results=results,
        pairs=tuple(
            _pair(answers, n, (one, other), results=(results[one], results[other]))
            for one, other in combinations(places, 2)
        ),
    )


def _untested(answers: ComparedAnswers, n: ClassCounts) -> str:
    if not answers.n:
        return UNUSABLE if all(answers.problems) else NOTHING
    return too_few(n, clustered=answers.clusters is not None)


def _judge_result(
    answers: ComparedAnswers, n: ClassCounts, place: int, run: int, policy: StatusPolicy
) -> JudgeResult:
    right = answers.counts(answers.right[place])
    true, false = int(n.true.sum()), int(n.false.sum())
    hits, rejections = int(right.true.sum()), int(right.false.sum())
    unjudged, answered = answers.unjudged_shares(place), answered_by(answers.answerers, place)
    human = int(np.count_nonzero(answers.human))
    return JudgeResult(
        run=run,
        answered=answered,
        table=Confusion(hits, true - hits, false - rejections, rejections),
        rates=macro_rates(right, n, reason=NOTHING),
        unjudged=unjudged,
        abstains=max(unjudged) > policy.largest_abstention,
        cautions=(
            (f"no verdict on {human - answered} of {human} human answers",)
            if max(unjudged) > policy.cautioned_abstention
            else ()
        ),
    )


def _pair(
    answers: ComparedAnswers,
    n: ClassCounts,
    places: tuple[int, int],
    *,
    results: tuple[JudgeResult, JudgeResult],
) -> JudgePair:
    one, other = (answers.right[place] for place in places)
    first, second = answers.counts(one & ~other), answers.counts(other & ~one)
    accuracy = mean_difference(first.total, second.total, n.total, reason=NOTHING)
    balanced = macro_difference(first, second, n)
    strict = balanced if answers.n == np.count_nonzero(answers.asked) else _strict(answers, one, other)
    if reason := _untested(answers, n):
        accuracy, balanced, strict = (_without_test(of, reason) for of in (accuracy, balanced, strict))
    won, lost = int(first.total.sum()), int(second.total.sum())
    both = int(np.count_nonzero(one & other & answers.compared))
    return JudgePair(
        first=results[0].run,
        second=results[1].run,
        table=PairedTable(both, won, lost, int(n.total.sum()) - both - won - lost),
        difference=accuracy.estimate,
        balanced=balanced.estimate,
        strict=strict.estimate,
        p=accuracy.p,
        balanced_p=balanced.p,
        strict_p=strict.p,
        abstaining=tuple(result.run for result in results if result.abstains),
    )


def _strict(answers: ComparedAnswers, one: Flags, other: Flags) -> MeanShare:
    first, second = answers.counts_of_asked(one & ~other), answers.counts_of_asked(other & ~one)
    return macro_difference(first, second, answers.counts_of_asked())


def _without_test(difference: MeanShare, reason: str) -> MeanShare:
    estimate = difference.estimate
    return replace(difference, estimate=Estimate(estimate.value, reason=estimate.reason or reason), p=None)
