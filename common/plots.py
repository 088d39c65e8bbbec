"""Geometry of interval plots: from statistics to percentages and pixels on a 0–1 axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# `before`: the judge to be replaced, beside its candidate.
Who = Literal["judge", "people", "before"]
PADDING = 14  # px from the edge of a plot to its first lane, and between lanes


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95% interval; None where it is undefined or has no interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Lane:
    """One line of a plot: a name, an estimate, its source, and whether it is the headline.

    `ceiling` is a tick across the lane, its interval a band behind it.
    """

    name: str
    estimate: Estimate
    who: Who = "judge"
    big: bool = False
    ceiling: float | None = None
    ceiling_low: float | None = None
    ceiling_high: float | None = None


@dataclass(frozen=True)
class Mark:
    """The position of a lane: x in percent of the width as text, y in px; `below` = value under 0."""

    y: int
    who: Who
    big: bool
    x: str | None
    low: str | None
    high: str | None
    below: bool
    ceiling: str | None
    ceiling_low: str | None
    ceiling_high: str | None


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
    goal : whether to mark the required TPR and TNR (0.80).
    padding : px above the first lane and between lanes.

    Examples
    --------
    >>> result = plot([Lane("TPR", Estimate(0.75, 0.5, 0.9))])
    >>> result.height, result.marks[0].x, result.label
    (28, '75.00%', 'TPR 0.75 (0.50 to 0.90)')
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
class Course:
    """A share over time, oldest period left; stretches with its column like a `Plot`."""

    height: int
    steps: tuple[Step, ...]
    label: str


def course(parts: Sequence[Estimate], *, height: int = 32) -> Course:
    """
    Lay out the periods of a trend side by side; 1 is at the top.

    Parameters
    ----------
    parts : oldest first, each with a value and an interval.

    Examples
    --------
    >>> result = course([Estimate(1.0, 0.7, 1.0), Estimate(0.5, 0.2, 0.8)])
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
    return Course(height, steps, ", ".join(f"{part.value or 0:.2f}" for part in parts))


def _height(share: float | None, height: int) -> float:
    """Leave two pixels free above and below."""
    return round(2 + (height - 4) * (1 - (share or 0)), 2)


def _mark(lane: Lane, y: int) -> Mark:
    estimate = lane.estimate
    has_interval = estimate.low is not None and estimate.high is not None
    has_band = lane.ceiling_low is not None and lane.ceiling_high is not None
    return Mark(
        y=y,
        who=lane.who,
        big=lane.big,
        x=_percent(estimate.value),
        low=_percent(estimate.low) if has_interval else None,
        high=_percent(estimate.high) if has_interval else None,
        below=estimate.value is not None and estimate.value < 0,
        ceiling=_percent(lane.ceiling),
        ceiling_low=_percent(lane.ceiling_low) if has_band else None,
        ceiling_high=_percent(lane.ceiling_high) if has_band else None,
    )


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * min(max(value, 0.0), 1.0):.2f}%"


def _in_words(lane: Lane) -> str:
    words = _named(lane.name, lane.estimate)
    if lane.ceiling is None:
        return words
    return f"{words}, {_named('human ceiling', Estimate(lane.ceiling, lane.ceiling_low, lane.ceiling_high))}"


def _named(name: str, estimate: Estimate) -> str:
    if estimate.value is None:
        return f"{name} undefined"
    if estimate.low is None or estimate.high is None:
        return f"{name} {figure(estimate.value)}"
    return f"{name} {figure(estimate.value)} ({figure(estimate.low)} to {figure(estimate.high)})"
