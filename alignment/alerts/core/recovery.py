"""When a rate that raised an alarm is back in the range of its baseline."""

from collections.abc import Sequence

# Nights of the judged sample, and weeks of raters' labels, whose rate must be in the range.
RECOVERY_NIGHTS, RECOVERY_WEEKS = 7, 4
FEWEST_ANSWERS = 30
Strata = Sequence[Sequence[float]]


def newest(samples: Sequence[Strata], most: int) -> list[Strata]:
    """Return the newest of these nights or weeks; those without an answer do not count."""
    return [one for one in samples if any(answers for _, answers, _ in one)][-most:]


def in_range(recent: Sequence[Strata], band: Sequence[float], *, samples: int) -> bool:
    """Whether so many newest nights together have a rate within the band.

    Parameters
    ----------
    recent : passed, answers and weight by topic, of each night or week since the alarm.
    band : rate, low and high.

    Examples
    --------
    >>> in_range([[(44, 50, 1.0)]] * 7, (0.9, 0.87, 0.93), samples=7)
    True
    >>> in_range([[(40, 50, 1.0)]] * 7, (0.9, 0.87, 0.93), samples=7)
    False
    >>> in_range([[(44, 50, 1.0)]] * 6, (0.9, 0.87, 0.93), samples=7)
    False
    """
    rows = [row for one in recent for row in one]
    if len(recent) < samples or sum(answers for _, answers, _ in rows) < FEWEST_ANSWERS:
        return False
    passed = sum(good * weight for good, _, weight in rows)
    rate = passed / sum(answers * weight for _, answers, weight in rows)
    return band[1] <= rate <= band[2]
