"""CUSUM of a judged rate against its frozen baseline: marks for charts, and how often they are false."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from alignment.alerts.core.detectors import MONTHS_A_YEAR, WEEKS_A_YEAR
from alignment.statistics.cusum import ALLOWANCE, LIMIT, lower_cusum

FEWEST_CHATS = 30
GRID = 200


@dataclass(frozen=True)
class Week:
    """Judged chats of a week and their pass rate; `version` is that of bot, judge and prompt together."""

    rate: float
    n: float
    version: str = ""


@dataclass(frozen=True)
class Mark:
    """A week of a chart.

    Parameters
    ----------
    sum : None where there is no baseline for the week's version.
    marked : the sum is above the limit.
    starts : the version differs from the week before: the line breaks, and the sum starts at 0.
    """

    sum: float | None
    marked: bool
    starts: bool


def rate_marks(
    weeks: Sequence[Week],
    baselines: Mapping[str, float],
    *,
    allowance: float = ALLOWANCE,
    limit: float = LIMIT,
) -> tuple[Mark, ...]:
    """Mark the weeks in which a rate has sunk below its baseline.

    The sum of standard scores z = (rate - p0) / sqrt(p0 (1 - p0) / n), less the allowance. Only another
    version resets it.

    Parameters
    ----------
    weeks : in order. With fewer than 30 chats a week leaves the sum unchanged.
    baselines : the frozen rate, strictly inside (0, 1), by version.
    allowance, limit : k and h, in standard scores.

    Returns
    -------
    One mark a week.

    Raises
    ------
    ValueError : a baseline is 0 or 1, whose standard error is 0.

    Notes
    -----
    Page (1954), Biometrika 41:100. Marks are no alarms: see `run_length`.

    Examples
    --------
    >>> [round(mark.sum, 2) for mark in rate_marks([Week(0.9, 200), Week(0.8, 200)], {"": 0.9})]
    [0.0, 4.21]
    """
    for rate in baselines.values():
        if not 0 < rate < 1:
            raise ValueError(f"a baseline must lie between 0 and 1, not at {rate}")
    marks: list[Mark] = []
    start = 0
    for end in range(1, len(weeks) + 1):
        if end < len(weeks) and weeks[end].version == weeks[start].version:
            continue
        part = weeks[start:end]
        marks += _version_marks(part, baselines.get(part[0].version), allowance, limit, first=start == 0)
        start = end
    return tuple(marks)


def _version_marks(
    weeks: Sequence[Week], rate: float | None, allowance: float, limit: float, *, first: bool
) -> list[Mark]:
    starts = [not first, *(False for _ in weeks[1:])]
    if rate is None:
        return [Mark(None, False, new) for new in starts]
    scores = [_score(week, rate) if week.n >= FEWEST_CHATS else None for week in weeks]
    sums = lower_cusum(scores, target=0.0, allowance=allowance, limit=limit).sums
    return [Mark(value, value > limit, new) for value, new in zip(sums, starts, strict=True)]


def _score(week: Week, rate: float) -> float:
    return (week.rate - rate) / math.sqrt(rate * (1 - rate) / week.n)


@dataclass(frozen=True)
class RunLength:
    """Mean weeks to a mark, and what that amounts to as probabilities of at least one."""

    weeks: float
    in_a_month: float
    in_a_year: float


def run_length(
    rate: float, *, baseline: float, n: int, allowance: float = ALLOWANCE, limit: float = LIMIT
) -> RunLength:
    """Mean weeks until the CUSUM of one rate marks a week: false ones if `rate` is the baseline.

    Parameters
    ----------
    rate : true pass rate from now on. baseline : the frozen one. Both in (0, 1).
    n : chats a week. allowance, limit : k and h, in standard scores.

    Returns
    -------
    RunLength : from a sum of 0. A month has 52 / 12 weeks.

    Notes
    -----
    Integral equation of the run length L(s) = 1 + E L(max(0, s - z - k)), with binomial weeks, on a grid with
    linear interpolation: Page (1954); Brook & Evans (1972), Biometrika 59:539. The probabilities assume
    geometric run lengths.

    Examples
    --------
    >>> round(run_length(0.85, baseline=0.9, n=200).weeks, 1)
    2.9
    """
    if not (0 < rate < 1 and 0 < baseline < 1):
        raise ValueError("rates must lie between 0 and 1")
    passes = np.arange(n + 1)
    chances = binom.pmf(passes, n, rate)
    scores = (passes / n - baseline) / math.sqrt(baseline * (1 - baseline) / n)
    grid = np.linspace(0.0, limit, GRID)
    reached = np.maximum(0.0, grid[:, np.newaxis] - scores - allowance)
    places = np.minimum(reached / grid[1], GRID - 1)
    left = np.minimum(places.astype(np.int64), GRID - 2)
    inside = np.where(reached <= limit, chances, 0.0)
    moves = np.zeros((GRID, GRID))
    rows = np.broadcast_to(np.arange(GRID)[:, np.newaxis], left.shape)
    np.add.at(moves, (rows, left), inside * (1 - (places - left)))
    np.add.at(moves, (rows, left + 1), inside * (places - left))
    weeks = float(np.linalg.solve(np.eye(GRID) - moves, np.ones(GRID))[0])
    quiet = math.log1p(-1 / weeks) if weeks > 1 else -math.inf
    month = WEEKS_A_YEAR / MONTHS_A_YEAR
    return RunLength(weeks, -math.expm1(quiet * month), -math.expm1(quiet * WEEKS_A_YEAR))
