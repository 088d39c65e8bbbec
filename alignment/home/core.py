"""Geometry of the small charts on Home, and times in words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

LOWEST = 0.65  # balanced accuracy at the bottom of a sparkline; 1 is at its top
HEIGHT, TOP, BOTTOM = 32, 3.0, 28.0  # px
NEWEST_X, STEP_X = 92.3, 12.3  # percent of the width
WORKING_DAYS = 10
TALLEST, BASE = 44, 62  # px of the highest bar, and from the top to the bars' feet


@dataclass(frozen=True)
class GlancePoint:
    """A version's balanced accuracy; `recipe` is equal for judges that differ only in their prompts."""

    number: int
    value: float
    recipe: str


@dataclass(frozen=True)
class GlanceLine:
    """A sparkline: lines between comparable neighbours, single dots, the newest dot; x in percent as text."""

    links: tuple[tuple[str, float, str, float], ...]
    singles: tuple[tuple[str, float], ...]
    newest: tuple[str, float]
    ceiling: float | None
    label: str


def glance_line(points: Sequence[GlancePoint], *, ceiling: float | None = None) -> GlanceLine | None:
    """
    Lay out versions from left to right; None without one.

    Parameters
    ----------
    points : oldest first; where the recipe changes there is a gap. Values below 0.65 stand at the bottom.
    ceiling : the human ceiling, a horizontal line.

    Examples
    --------
    >>> line = glance_line([GlancePoint(1, 0.65, "a"), GlancePoint(2, 1.0, "a")], ceiling=0.9)
    >>> line.links, line.newest, line.label
    ((('80.0%', 28.0, '92.3%', 3.0),), ('92.3%', 3.0), 'version 1 0.65, version 2 1.00, human ceiling 0.90')
    """
    if not points:
        return None
    places = [(_x(len(points) - 1 - n), _y(point.value)) for n, point in enumerate(points)]
    joined = [old.recipe == new.recipe for old, new in pairwise(points)]
    words = [f"version {point.number} {point.value:.2f}" for point in points]
    return GlanceLine(
        links=tuple(
            (*left, *right) for join, (left, right) in zip(joined, pairwise(places), strict=True) if join
        ),
        singles=tuple(
            place for n, place in enumerate(places[:-1]) if not joined[n] and (n == 0 or not joined[n - 1])
        ),
        newest=places[-1],
        ceiling=None if ceiling is None else _y(ceiling),
        label=", ".join([*words, *([] if ceiling is None else [f"human ceiling {ceiling:.2f}"])]),
    )


def _x(back: int) -> str:
    return f"{NEWEST_X - STEP_X * back:.1f}%"


def _y(value: float) -> float:
    share = (min(max(value, LOWEST), 1.0) - LOWEST) / (1 - LOWEST)
    return round(BOTTOM - (BOTTOM - TOP) * share, 1)


@dataclass(frozen=True)
class Bar:
    """The chats of one day: x in percent as text, y and height in px."""

    day: date
    chats: int
    x: str
    middle: str
    y: float
    height: float


def pace_bars(days: Sequence[date], *, today: date) -> tuple[Bar, ...]:
    """
    Lay out the chats of the last ten working days, today's last; weekends count only with chats.

    Parameters
    ----------
    days : one date for each submitted chat, in any order; earlier ones are ignored.

    Examples
    --------
    >>> bars = pace_bars([date(2026, 11, 20), date(2026, 11, 20)], today=date(2026, 11, 20))
    >>> len(bars), bars[-1].chats, bars[-1].height, bars[0].day.isoformat()
    (10, 2, 44.0, '2026-11-09')
    """
    counts = Counter(days)
    shown: list[date] = []
    day = today
    while len(shown) < WORKING_DAYS:
        if day.weekday() < 5 or counts[day]:
            shown.append(day)
        day -= timedelta(days=1)
    most = max((counts[one] for one in shown), default=0) or 1
    width = 100 / WORKING_DAYS
    return tuple(
        Bar(
            one,
            counts[one],
            x=f"{place * width + 1:.1f}%",
            middle=f"{place * width + 4.5:.1f}%",
            y=round(BASE - TALLEST * counts[one] / most, 1),
            height=round(TALLEST * counts[one] / most, 1),
        )
        for place, one in enumerate(reversed(shown))
    )


def days_in_words(days: int) -> str:
    """
    Say how long ago a day was, or in how many days it will be.

    Examples
    --------
    >>> [days_in_words(days) for days in (0, 1, 4, -1, -10)]
    ['today', '1 day', '4 days', 'tomorrow', 'in 10 days']
    """
    if days == 0:
        return "today"
    if days < 0:
        return "tomorrow" if days == -1 else f"in {-days} days"
    return f"{days} day{'' if days == 1 else 's'}"
