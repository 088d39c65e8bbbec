"""Geometry of the small chart of agreement over the runs of a chat set."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.plots import Estimate, figure

HEIGHT, MARGIN = 52, 6  # px
LOWEST = 0.5  # balanced accuracy of a constant judge: the foot of the chart


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """A run: its mean balanced accuracy, and what its figures are comparable with.

    name, url : of the run. recipe : engine and model. current : whether the page shows this run.
    """

    name: str
    url: str
    value: Estimate
    recipe: str
    current: bool = False


@dataclass(frozen=True, slots=True)
class TrendDot:
    """A run in the chart: x in percent of the width, y in px; `link` joins it to the one before."""

    point: TrendPoint
    x: str
    y: float
    low: float | None
    high: float | None
    link: tuple[str, float] | None


@dataclass(frozen=True, slots=True)
class RunTrend:
    """The chart, oldest run left; `label` describes it for screen readers."""

    dots: tuple[TrendDot, ...]
    label: str
    height: int = HEIGHT


def run_trend(points: Sequence[TrendPoint]) -> RunTrend:
    """
    Lay out runs from left to right, between 0.5 and 1. Runs of another engine or model are not joined.

    Parameters
    ----------
    points : oldest first, each with a value.

    Examples
    --------
    >>> points = [TrendPoint(f"run {n}", "", Estimate(n / 4), "direct") for n in (2, 3)]
    >>> chart = run_trend(points)
    >>> chart.dots[1].x, chart.dots[1].y, chart.dots[1].link
    ('75.00%', 26.0, ('25.00%', 46.0))
    >>> chart.label
    'run 2 0.50, run 3 0.75'
    """
    dots: list[TrendDot] = []
    for place, point in enumerate(points):
        before = dots[-1] if dots and dots[-1].point.recipe == point.recipe else None
        dots.append(
            TrendDot(
                point,
                x=f"{100 * (place + 0.5) / len(points):.2f}%",
                y=_height(point.value.value or 0),
                low=None if point.value.low is None else _height(point.value.low),
                high=None if point.value.high is None else _height(point.value.high),
                link=(before.x, before.y) if before else None,
            )
        )
    return RunTrend(tuple(dots), ", ".join(f"{one.name} {figure(one.value.value or 0)}" for one in points))


def _height(value: float) -> float:
    share = (max(value, LOWEST) - LOWEST) / (1 - LOWEST)
    return round(MARGIN + (HEIGHT - 2 * MARGIN) * (1 - share), 1)
