"""Geometry of a chart of one statistic by prompt version: one dot for each version on a 0–1 axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from alignment.statistics.estimates import Estimate

HEIGHT = 180  # px from 1 at the top to 0
TOP = 12
LEFT, RIGHT = 9.0, 97.0  # percent of the width; the axis stands to their left
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class VersionPoint:
    """A version's statistic; `recipe` is equal for judges that differ only in their prompts."""

    number: int
    estimate: Estimate
    recipe: str
    is_champion: bool = False


@dataclass(frozen=True)
class Dot:
    """A version in the chart: x in percent as text; y and its interval in px from the top."""

    number: int
    x: str
    y: float
    low: float | None
    high: float | None
    is_champion: bool


@dataclass(frozen=True)
class Link:
    """A line between two comparable neighbours."""

    x1: str
    y1: float
    x2: str
    y2: float


@dataclass(frozen=True)
class VersionLine:
    """The chart; `breaks` are the x positions where the judge changed, `grid` pairs of y and value."""

    height: int
    dots: tuple[Dot, ...]
    links: tuple[Link, ...]
    breaks: tuple[str, ...]
    grid: tuple[tuple[float, float], ...]
    ceiling: float | None
    label: str


def version_line(points: Sequence[VersionPoint], *, ceiling: float | None = None) -> VersionLine:
    """
    Lay out versions from left to right, without those that have no value.

    Parameters
    ----------
    points : oldest first.
    ceiling : the human ceiling, a horizontal line.

    Examples
    --------
    >>> first = VersionPoint(1, Estimate(0.5), "a")
    >>> chart = version_line([first, VersionPoint(2, Estimate(0.75), "a", is_champion=True)])
    >>> [(dot.number, dot.x, dot.y) for dot in chart.dots], len(chart.links), chart.label
    ([(1, '31.00%', 102.0), (2, '75.00%', 57.0)], 1, 'version 1 0.50, version 2 0.75')
    """
    shown = [point for point in points if point.estimate.value is not None]
    places = [LEFT + (RIGHT - LEFT) * (i + 0.5) / len(shown) for i in range(len(shown))]
    dots = tuple(_dot(point, x) for point, x in zip(shown, places, strict=True))
    links, breaks = [], []
    for (left, right), (old, new), (x1, x2) in zip(
        pairwise(dots), pairwise(shown), pairwise(places), strict=True
    ):
        if old.recipe == new.recipe:
            links.append(Link(left.x, left.y, right.x, right.y))
        else:
            breaks.append(_percent((x1 + x2) / 2))
    return VersionLine(
        height=TOP + HEIGHT + 28,
        dots=dots,
        links=tuple(links),
        breaks=tuple(breaks),
        grid=tuple((_y(value), value) for value in GRID),
        ceiling=None if ceiling is None else _y(ceiling),
        label=_in_words(shown, ceiling),
    )


def _dot(point: VersionPoint, x: float) -> Dot:
    interval = point.estimate.interval
    return Dot(
        number=point.number,
        x=_percent(x),
        y=_y(point.estimate.value or 0.0),
        low=_y(interval.low) if interval else None,
        high=_y(interval.high) if interval else None,
        is_champion=point.is_champion,
    )


def _y(share: float) -> float:
    return round(TOP + HEIGHT * (1 - min(max(share, 0.0), 1.0)), 1)


def _percent(place: float) -> str:
    return f"{place:.2f}%"


def _in_words(points: Sequence[VersionPoint], ceiling: float | None) -> str:
    words = [f"version {point.number} {point.estimate.value:.2f}" for point in points]
    return ", ".join([*words, *([] if ceiling is None else [f"human ceiling {ceiling:.2f}"])])
