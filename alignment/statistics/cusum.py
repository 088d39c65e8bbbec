"""One-sided cumulative sum: detects a weekly rate that sinks below its baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

ALLOWANCE = 0.5
LIMIT = 4.0


@dataclass(frozen=True)
class Cusum:
    """The sum after each week, and the first week (from 0) in which it exceeds the limit, or None."""

    sums: tuple[float, ...]
    alarm: int | None


def lower_cusum(
    values: Sequence[float | None], *, target: float, allowance: float = ALLOWANCE, limit: float = LIMIT
) -> Cusum:
    """Sum up how far values lie below target by more than the allowance: S = max(0, S + target - x - k).

    Parameters
    ----------
    values : by week, in the unit of the target: rates, or standard scores with target 0. None, a week with
        too few chats, leaves the sum unchanged.
    allowance, limit : k and h, in the same unit; the defaults are for standard scores.

    Returns
    -------
    Cusum : one sum per week.

    Notes
    -----
    Page (1954), Biometrika 41:100.

    Examples
    --------
    >>> lower_cusum([0.0, -2.0, None, -4.0], target=0.0).sums
    (0.0, 1.5, 1.5, 5.0)
    """
    sums: list[float] = []
    reached = 0.0
    for value in values:
        if value is not None:
            reached = max(0.0, reached + target - value - allowance)
        sums.append(reached)
    alarm = next((week for week, value in enumerate(sums) if value > limit), None)
    return Cusum(tuple(sums), alarm)
