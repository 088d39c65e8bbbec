"""Geometry of the small chart of agreement over the runs of a chat set."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from common.plots import Estimate, figure

PLOT, MARGIN, LINE = 52, 6, 15  # px: the plot, its margins, and a line of text below it
BASELINE = 11  # px from the top of a line of text
HALF = 0.5  # balanced accuracy of a constant judge
DATES_APART = 2  # places between two dates, so that they do not overlap on a phone


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """A run: its balanced accuracy, and what its figures are comparable with.

    name, url, day : of the run. recipe : engine and model. prompts : equal for equal prompt versions.
    version : the text below the point, '' for none. current : whether the page shows this run.
    """

    name: str
    url: str
    day: date
    value: Estimate
    recipe: str
    prompts: str = ""
    version: str = ""
    current: bool = False


@dataclass(frozen=True, slots=True)
class TrendDot:
    """A run in the chart: x in percent of the width, y in px; `link` joins it to the one before.

    `change` is the x of the mark between runs with different prompts. `date` is '' if the axis has none here.
    """

    point: TrendPoint
    x: str
    y: float
    low: float | None
    high: float | None
    link: tuple[str, float] | None
    change: str | None
    date: str


@dataclass(frozen=True, slots=True)
class RunTrend:
    """The chart, oldest run left; `label` is for screen readers, `lowest` the foot of the axis."""

    dots: tuple[TrendDot, ...]
    label: str
    lowest: float

    @property
    def has_versions(self) -> bool:
        """Whether a line with prompt versions stands below the plot."""
        return any(dot.point.version for dot in self.dots)

    @property
    def has_changes(self) -> bool:
        """Whether neighbours have different prompts."""
        return any(dot.change for dot in self.dots)

    @property
    def has_gaps(self) -> bool:
        """Whether neighbours have another engine or model."""
        return any(dot.link is None for dot in self.dots[1:])

    @property
    def half_y(self) -> float:
        """The line of a constant judge."""
        return _height(HALF, self.lowest)

    @property
    def height(self) -> int:
        """Height of plot and axis."""
        return PLOT + LINE * (2 if self.has_versions else 1)

    @property
    def version_y(self) -> int:
        """Baseline of the versions."""
        return PLOT + BASELINE

    @property
    def date_y(self) -> int:
        """Baseline of the dates."""
        return self.height - LINE + BASELINE


def run_trend(points: Sequence[TrendPoint]) -> RunTrend:
    """
    Lay out runs from left to right. Runs of another engine or model are not joined.

    The values stand between 0.5 and 1, or 0 and 1 if one is below 0.5. Below them is the date of the first
    run of each week, where there is room.

    Parameters
    ----------
    points : oldest first, each with a value.

    Examples
    --------
    >>> days = (date(2026, 6, 1), date(2026, 6, 9))
    >>> values = (Estimate(0.5), Estimate(0.75))
    >>> points = [TrendPoint(f"run {day:%d}", "", day, one, "direct") for day, one in zip(days, values)]
    >>> chart = run_trend(points)
    >>> chart.dots[1].x, chart.dots[1].y, chart.dots[1].link
    ('75.00%', 26.0, ('25.00%', 46.0))
    >>> chart.dots[0].date, chart.label
    ('1 Jun', 'run 01 0.50, run 09 0.75')
    """
    dots: list[TrendDot] = []
    lowest = HALF if all((point.value.value or 0) >= HALF for point in points) else 0.0
    dates = _dates([point.day for point in points])
    for place, point in enumerate(points):
        before = dots[-1] if dots else None
        joined = before if before and before.point.recipe == point.recipe else None
        changed = before is not None and before.point.prompts != point.prompts
        dots.append(
            TrendDot(
                point,
                x=_percent(place + 0.5, len(points)),
                y=_height(point.value.value or 0, lowest),
                low=None if point.value.low is None else _height(point.value.low, lowest),
                high=None if point.value.high is None else _height(point.value.high, lowest),
                link=(joined.x, joined.y) if joined else None,
                change=_percent(place, len(points)) if changed else None,
                date=dates.get(place, ""),
            )
        )
    label = ", ".join(f"{one.name} {figure(one.value.value or 0)}" for one in points)
    return RunTrend(tuple(dots), label, lowest)


def _dates(days: Sequence[date]) -> dict[int, str]:
    """Return the dates on the axis by place."""
    shown: dict[int, str] = {}
    last, week = -DATES_APART, (0, 0)
    for place, day in enumerate(days):
        if day.isocalendar()[:2] != week and place - last >= DATES_APART:
            last, week = place, day.isocalendar()[:2]
            shown[place] = f"{day:%-d %b}"
    return shown


def _percent(place: float, places: int) -> str:
    return f"{100 * place / places:.2f}%"


def _height(value: float, lowest: float) -> float:
    share = (max(value, lowest) - lowest) / (1 - lowest)
    return round(MARGIN + (PLOT - 2 * MARGIN) * (1 - share), 1)
