"""Cost effectiveness of judges: the price of one more right answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alignment.judge_comparison.core.compare import Group
from alignment.statistics.estimates import Interval


@dataclass(frozen=True)
class BetterJudge:
    """A judge that is better than the cheapest one, and significantly more often right.

    gain : its accuracy minus the cheapest judge's. extra_cost : difference in dollars an answer.
    per_right_answer : extra_cost / gain, dollars for one more right answer; interval : from that of the gain.
    """

    run: int
    gain: float
    extra_cost: float
    per_right_answer: float
    interval: Interval


@dataclass(frozen=True)
class CostEffectiveness:
    """The cheapest judge of a group (None without prices), better judges, and judges without a price."""

    cheapest: int | None
    better: tuple[BetterJudge, ...]
    unpriced: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """Run ids and dollars."""
        return {
            "cheapest": self.cheapest,
            "better": [
                {
                    "run": one.run,
                    "gain": one.gain,
                    "more_per_answer": one.extra_cost,
                    "per_right_answer": {
                        "value": one.per_right_answer,
                        "low": one.interval.low,
                        "high": one.interval.high,
                    },
                }
                for one in self.better
            ],
            "price_not_known": list(self.unpriced),
        }


def cost_effectiveness(group: Group, *, prices: Mapping[int, float | None]) -> CostEffectiveness:
    """
    Compute what a higher accuracy costs in this group.

    Parameters
    ----------
    group : compared judges.
    prices : dollars an answer by run; None if unknown.

    Returns
    -------
    CostEffectiveness : `better` has the judges that are better and more often right than the cheapest, by
        dollars for one more right answer.

    Examples
    --------
    >>> import numpy as np
    >>> from alignment.judge_comparison.core.compare import CriterionAnswers, compare
    >>> human = np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    >>> judges = np.array([human, np.zeros(20)], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", human, judges, np.zeros((20, 3), dtype=np.int64))
    >>> costs = cost_effectiveness(compare([one], runs=[7, 9])[0], prices={7: 0.003, 9: 0.001})
    >>> costs.cheapest, costs.better[0].run, round(costs.better[0].per_right_answer, 4)
    (9, 7, 0.004)
    """
    known = {run: price for run, price in prices.items() if price is not None}
    unpriced = tuple(run for run in prices if run not in known)
    if not known:
        return CostEffectiveness(None, (), unpriced)
    cheapest = min(known, key=lambda run: known[run])
    judges = [_better_judge(group, run, cheapest, known[run] - known[cheapest]) for run in known]
    better = sorted((one for one in judges if one is not None), key=lambda one: one.per_right_answer)
    return CostEffectiveness(cheapest, tuple(better), unpriced)


def _better_judge(group: Group, run: int, cheapest: int, extra: float) -> BetterJudge | None:
    """Return None unless the judge is better than the cheapest, and significantly more often right."""
    for pair in group.pairs:
        if {pair.first, pair.second} == {run, cheapest} and pair.better == pair.more_right == run:
            gain, interval = pair.difference.value, pair.difference.interval
            assert gain is not None and interval is not None  # noqa: S101  a better judge has a gain
            small, large = sorted(abs(end) for end in (interval.low, interval.high))
            each = Interval(extra / large, extra / small)
            return BetterJudge(run, abs(gain), extra, extra / abs(gain), each)
    return None
