"""Which judge is worth its price where: what an answer costs, and what an extra right one does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alignment.judge_comparison.core.compare import Group
from alignment.statistics.estimates import Interval


@dataclass(frozen=True)
class Extra:
    """A judge that is shown to be better than the cheapest one.

    `gain` is its share of right answers above the cheapest's, `more` what an answer of it costs more, in
    dollars, `each` the quotient: dollars for one more right answer, with `interval` from that of the gain.
    """

    run: int
    gain: float
    more: float
    each: float
    interval: Interval


@dataclass(frozen=True)
class Worth:
    """Of one group: the cheapest judge (None without prices), who is better, whose price is not known."""

    cheapest: int | None
    better: tuple[Extra, ...]
    unpriced: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """Runs by id; dollars."""
        return {
            "cheapest": self.cheapest,
            "better": [
                {
                    "run": one.run,
                    "gain": one.gain,
                    "more_per_answer": one.more,
                    "per_right_answer": {
                        "value": one.each,
                        "low": one.interval.low,
                        "high": one.interval.high,
                    },
                }
                for one in self.better
            ],
            "price_not_known": list(self.unpriced),
        }


def worth(group: Group, *, prices: Mapping[int, float | None]) -> Worth:
    """
    What being right more often costs in this group.

    Parameters
    ----------
    group : compared judges.
    prices : dollars an answer by run; None where it is not known.

    Returns
    -------
    Worth : `better` by dollars for one more right answer. A judge whose difference to the cheapest may be
        none is not in it.

    Examples
    --------
    >>> import numpy as np
    >>> from alignment.judge_comparison.core.compare import CriterionAnswers, compare
    >>> people = np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    >>> judges = np.array([people, np.zeros(20)], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", people, judges, np.zeros((20, 3), dtype=np.int64))
    >>> found = worth(compare([one], runs=[7, 9])[0], prices={7: 0.003, 9: 0.001})
    >>> found.cheapest, found.better[0].run, round(found.better[0].each, 4)
    (9, 7, 0.004)
    """
    known = {run: price for run, price in prices.items() if price is not None}
    unpriced = tuple(run for run in prices if run not in known)
    if not known:
        return Worth(None, (), unpriced)
    cheapest = min(known, key=lambda run: known[run])
    found = [_extra(group, run, cheapest, known[run] - known[cheapest]) for run in known]
    better = sorted((one for one in found if one is not None), key=lambda one: one.each)
    return Worth(cheapest, tuple(better), unpriced)


def _extra(group: Group, run: int, cheapest: int, more: float) -> Extra | None:
    """None where it is not shown to be better than the cheapest."""
    for duel in group.duels:
        if {duel.first, duel.second} == {run, cheapest} and duel.better == run:
            gain, interval = duel.difference.value, duel.difference.interval
            assert gain is not None and interval is not None  # noqa: S101  it is better by something
            ends = sorted(abs(end) for end in (interval.low, interval.high))
            return Extra(run, abs(gain), more, more / abs(gain), Interval(more / ends[1], more / ends[0]))
    return None
