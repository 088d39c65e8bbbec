"""Charts of the monitoring pages: the rows of a chart's table, which the script reads its lines from."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date

from alignment.models.alerts import RateMark
from alignment.monitoring.core.corrected_rates import Rate
from alignment.monitoring.core.series import Mark, Point, Series, Step
from alignment.monitoring.queries.judged import Window

Address = Callable[[Point], str]


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A point: `value`, `low` and `high` as text for the script, "" where undefined.

    `marked` : the CUSUM of these weeks is above its limit.
    """

    name: str
    at: str
    value: str
    low: str
    high: str
    point: Point
    rate: Rate
    url: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart and its table; `word` says how its rates are computed."""

    key: str
    name: str
    series: Series
    rows: Sequence[ChartRow]
    marks: Sequence[Mark]

    @property
    def word(self) -> str:
        """Whether the line is corrected for the judge's errors."""
        return "corrected" if self.series.is_corrected else "uncorrected"

    @property
    def latest(self) -> ChartRow | None:
        """The newest point."""
        return self.rows[-1] if self.rows else None

    @property
    def change(self) -> str:
        """Difference to the point before as text with a sign, in points; "" where not comparable."""
        change = self.series.change
        return "" if change is None else f"{change:+.1f}".replace("-", "−")

    @property
    def before(self) -> str:
        """Name of the point that `change` compares with."""
        return self.rows[-2].name if len(self.rows) > 1 else ""


def chart(
    found: Series,
    *,
    window: Window,
    key: str,
    name: str,
    url: Address | None = None,
    marked: Collection[date] = (),
) -> Chart:
    """Return the chart of a series; `url` is the page behind a point, `marked` the marked weeks."""
    rows = [
        _row(found, point, window.step, url(point) if url else "", marked=_week(point) in marked)
        for point in found.points
    ]
    return Chart(key, name, found, rows, found.marks)


def marked_weeks(window: Window) -> dict[int, frozenset[date]]:
    """Return the weeks of a window in which the judged rate is marked, by criterion id; one query."""
    if window.step is not Step.WEEK:
        return {}
    rows = RateMark.objects.filter(marked=True, week__gte=window.first, week__lte=window.last)
    weeks: dict[int, set[date]] = defaultdict(set)
    for criterion, week in rows.values_list("criterion", "week"):
        weeks[criterion].add(week)
    return {criterion: frozenset(found) for criterion, found in weeks.items()}


def _week(point: Point) -> date:
    return Step.WEEK.first(point.first)


def _row(found: Series, point: Point, step: Step, url: str, *, marked: bool) -> ChartRow:
    rate = found.shown(point)
    interval = rate.estimate.interval
    return ChartRow(
        name=days_name(point.first, point.last, step),
        at=point.first.isoformat(),
        value=_text(rate.estimate.value),
        low=_text(interval.low if interval else None),
        high=_text(interval.high if interval else None),
        point=point,
        rate=rate,
        url=url,
        marked=marked,
    )


def days_name(first: date, last: date, step: Step) -> str:
    """Name the days of a point.

    >>> days_name(date(2026, 11, 30), date(2026, 12, 6), Step.WEEK)
    '30 Nov–6 Dec'
    """
    end = f"{last.day} {last:%b}"
    if step is Step.DAY or first == last:
        return end
    return f"{first.day}–{end}" if first.month == last.month else f"{first.day} {first:%b}–{end}"


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
