"""Geometry of a reliability diagram: stated probability to the right, what people answered upwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SIDE = 320  # px of the square
LEFT, TOP = 40, 12  # px for the axes' figures
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
LARGEST = 9.0  # px, radius of the bin with the most verdicts
SMALLEST = 3.0


@dataclass(frozen=True)
class Dot:
    """A bin as drawn, in px: the area of its dot grows with n; `low` and `high` end its interval."""

    x: float
    y: float
    radius: float
    low: float
    high: float


@dataclass(frozen=True)
class Diagram:
    """The drawing, in px; `across` and `up` are (place, figure) of the grid."""

    width: int
    height: int
    dots: tuple[Dot, ...]
    across: tuple[tuple[float, float], ...]
    up: tuple[tuple[float, float], ...]
    label: str

    left, top, right, bottom = LEFT, TOP, LEFT + SIDE, TOP + SIDE


def diagram(bins: Sequence[Mapping[str, Any]]) -> Diagram:
    """
    Lay out the bins of `probabilities`; on the diagonal, what is stated is what happens.

    Examples
    --------
    >>> one = {"n": 4, "stated": 0.75, "observed": {"value": 0.5, "low": 0.25, "high": 1.0}}
    >>> drawn = diagram([one])
    >>> drawn.dots[0], drawn.label
    (Dot(x=280.0, y=172.0, radius=9.0, low=252.0, high=12.0), 'stated 0.75, people answered 0.50 True of 4')
    """
    most = max((one["n"] for one in bins), default=1)
    return Diagram(
        width=LEFT + SIDE + 12,
        height=TOP + SIDE + 24,
        dots=tuple(_dot(one, most) for one in bins),
        across=tuple((_x(value), value) for value in GRID),
        up=tuple((_y(value), value) for value in GRID),
        label=", ".join(
            f"stated {one['stated']:.2f}, people answered {one['observed']['value']:.2f} True of {one['n']}"
            for one in bins
        ),
    )


def _dot(one: Mapping[str, Any], most: int) -> Dot:
    observed = one["observed"]
    return Dot(
        x=_x(one["stated"]),
        y=_y(observed["value"]),
        radius=round(max(SMALLEST, LARGEST * (one["n"] / most) ** 0.5), 1),
        low=_y(observed["low"]),
        high=_y(observed["high"]),
    )


def _x(share: float) -> float:
    return round(LEFT + SIDE * share, 1)


def _y(share: float) -> float:
    return round(TOP + SIDE * (1 - share), 1)
