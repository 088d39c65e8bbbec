"""Geometry of plots: from statistics to percentages and pixels on a 0–1 axis."""

from collections.abc import Sequence
from dataclasses import dataclass

PADDING = 14  # px from the edge of a plot to its first lane, and between lanes


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95% interval; None where it is undefined or has no interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


UNDEFINED = Estimate(None)


@dataclass(frozen=True)
class Lane:
    """One line of a plot.

    Parameters
    ----------
    name, estimate : what is plotted.
    css : class of its colour.
    circle : whether the mark is a circle, else a diamond.
    big : whether it is the headline.
    tick, tick_name : a value to compare with: a tick across the lane, its interval a band behind it.
    """

    name: str
    estimate: Estimate
    css: str = ""
    circle: bool = False
    big: bool = False
    tick: Estimate = UNDEFINED
    tick_name: str = ""


@dataclass(frozen=True)
class Mark:
    """The position of a lane: x in percent of the width as text, y in px; `symbol` is an id of base.html."""

    y: int
    css: str
    symbol: str
    x: str | None
    low: str | None
    high: str | None
    tick: str | None
    tick_low: str | None
    tick_high: str | None


@dataclass(frozen=True)
class Plot:
    """A plot that stretches with its column; `label` describes it for screen readers."""

    height: int
    marks: tuple[Mark, ...]
    goal: bool
    label: str


def plot(lanes: Sequence[Lane], *, goal: bool = False, padding: int = PADDING) -> Plot:
    """
    Lay out lanes below one another on a 0–1 axis.

    Parameters
    ----------
    lanes : top to bottom; an undefined estimate leaves its lane empty.
    goal : whether to mark 0.80.
    padding : px above the first lane and between lanes.

    Examples
    --------
    >>> result = plot([Lane("Share", Estimate(0.75, 0.5, 0.9))])
    >>> result.height, result.marks[0].x, result.label
    (28, '75.00%', 'Share 0.75 (0.50 to 0.90)')
    """
    marks = tuple(_mark(lane, padding * (i + 1)) for i, lane in enumerate(lanes))
    label = ", ".join(_in_words(lane) for lane in lanes)
    return Plot(height=padding * (len(lanes) + 1), marks=marks, goal=goal, label=label)


def figure(value: float) -> str:
    """Format with two decimals and a true minus sign; 0.00 has no sign.

    Examples
    --------
    >>> figure(-0.123), figure(-0.001)
    ('−0.12', '0.00')
    """
    return f"{value:z.2f}".replace("-", "−")


@dataclass(frozen=True)
class Step:
    """One period of a trend: x in percent of the width, y, low and high in px from the top."""

    x: str
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Trend:
    """A share over time, oldest period left; stretches with its column like a `Plot`."""

    height: int
    steps: tuple[Step, ...]
    label: str


def trend(parts: Sequence[Estimate], *, height: int = 32) -> Trend:
    """
    Lay out the periods of a trend side by side; 1 is at the top.

    Parameters
    ----------
    parts : oldest first, each with a value and an interval.

    Examples
    --------
    >>> result = trend([Estimate(1.0, 0.7, 1.0), Estimate(0.5, 0.2, 0.8)])
    >>> result.steps[0], result.label
    (Step(x='25.00%', y=2.0, low=10.4, high=2.0), '1.00, 0.50')
    """
    steps = tuple(
        Step(
            x=f"{100 * (place + 0.5) / len(parts):.2f}%",
            y=_height(part.value, height),
            low=_height(part.low, height),
            high=_height(part.high, height),
        )
        for place, part in enumerate(parts)
    )
    return Trend(height, steps, ", ".join(f"{part.value or 0:.2f}" for part in parts))


@dataclass(frozen=True)
class Dot:
    """So many cases at one place of a scatter plot, in px; its area grows with them."""

    x: float
    y: float
    radius: float
    title: str


@dataclass(frozen=True)
class Scatter:
    """A square from 0 to 1 in both directions, in px; `grid` are the (x, y) of its marked numbers."""

    width: int
    height: int
    left: int
    top: int
    right: int
    bottom: int
    grid: tuple[tuple[float, float, str], ...]
    dots: tuple[Dot, ...]


SQUARE, MARGIN = 240, 36  # px: side of a scatter plot, space for its numbers
SMALLEST, LARGEST = 2.5, 9.0  # px, radius of a dot


def scatter(cells: Sequence[tuple[float, float, int]], *, case: str) -> Scatter:
    """
    Lay out counts by two shares: the first to the right, the second upwards.

    Parameters
    ----------
    cells : both shares and a count.
    case : what is counted, in the plural.

    Examples
    --------
    >>> drawing = scatter([(0.5, 1.0, 4)], case="chats")
    >>> drawing.dots[0]
    Dot(x=156.0, y=12.0, radius=9.0, title='0.50, 1.00: 4 chats')
    """
    most = max((n for _, _, n in cells), default=1)
    numbers = ((0.0, "0"), (0.5, "0.5"), (1.0, "1"))
    return Scatter(
        width=MARGIN + SQUARE + 12,
        height=12 + SQUARE + 24,
        left=MARGIN,
        top=12,
        right=MARGIN + SQUARE,
        bottom=12 + SQUARE,
        grid=tuple((_across(value), _up(value), text) for value, text in numbers),
        dots=tuple(
            Dot(
                x=_across(first),
                y=_up(second),
                radius=round(max(SMALLEST, LARGEST * (n / most) ** 0.5), 1),
                title=f"{figure(first)}, {figure(second)}: {n:,} {case}",
            )
            for first, second, n in cells
        ),
    )


def _across(share: float) -> float:
    return round(MARGIN + SQUARE * share, 1)


def _up(share: float) -> float:
    return round(12 + SQUARE * (1 - share), 1)


def _height(share: float | None, height: int) -> float:
    """Leave two pixels free above and below."""
    return round(2 + (height - 4) * (1 - (share or 0)), 2)


def _mark(lane: Lane, y: int) -> Mark:
    low, high = _ends(lane.estimate)
    tick_low, tick_high = _ends(lane.tick)
    return Mark(
        y=y,
        css=f"{lane.css} big" if lane.big else lane.css,
        symbol=_symbol(lane),
        x=_percent(lane.estimate.value),
        low=low,
        high=high,
        tick=_percent(lane.tick.value),
        tick_low=tick_low,
        tick_high=tick_high,
    )


def _symbol(lane: Lane) -> str:
    if lane.estimate.value is not None and lane.estimate.value < 0:
        return "below"
    if lane.circle:
        return "c5" if lane.big else "c4"
    return "d6" if lane.big else "d4"


def _ends(estimate: Estimate) -> tuple[str | None, str | None]:
    if estimate.low is None or estimate.high is None:
        return None, None
    return _percent(estimate.low), _percent(estimate.high)


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * min(max(value, 0.0), 1.0):.2f}%"


def _in_words(lane: Lane) -> str:
    words = _named(lane.name, lane.estimate)
    return words if lane.tick.value is None else f"{words}, {_named(lane.tick_name, lane.tick)}"


def _named(name: str, estimate: Estimate) -> str:
    if estimate.value is None:
        return f"{name} undefined"
    if estimate.low is None or estimate.high is None:
        return f"{name} {figure(estimate.value)}"
    return f"{name} {figure(estimate.value)} ({figure(estimate.low)} to {figure(estimate.high)})"
