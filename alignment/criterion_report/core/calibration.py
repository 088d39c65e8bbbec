"""Calibration of the judge's stated probabilities: statistics as JSON, and the reliability diagram."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, HumanCode
from alignment.statistics.calibration import ReliabilityBin, calibration
from alignment.statistics.intervals import proportion

SIDE = 320  # px, side of the square
LEFT, TOP = 40, 12  # px, space for the numbers of the axes
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
LARGEST = 9.0  # px, radius of the bin with the most verdicts
SMALLEST = 3.0


def probabilities(human: Codes, p_true: NDArray[np.float64]) -> dict[str, Any]:
    """Compute Brier score, expected calibration error and the bins of a reliability diagram.

    Parameters
    ----------
    human : HumanCode by chat, shape (chats,).
    p_true : stated probability of True by chat, in [0, 1]; NaN without one.

    Returns
    -------
    dict : `n` counts verdicts with a probability. `constant` is the Brier score of always stating the share
        of True. Each bin has its `observed` share with a Wilson interval. `reason` explains missing bins.

    Examples
    --------
    >>> result = probabilities(np.array([0, 1, 4], dtype=np.int8), np.array([0.9, 0.1, 0.5]))
    >>> result["n"], round(result["brier"], 4), result["constant"]
    (2, 0.01, 0.25)
    """
    stated = (human <= HumanCode.FALSE) & ~np.isnan(p_true)
    is_true = human[stated] == HumanCode.TRUE
    result = calibration(is_true, p_true[stated])
    share = float(is_true.mean()) if result.n else None
    return {
        "n": result.n,
        "brier": result.brier,
        "constant": None if share is None else share * (1 - share),
        "ece": result.ece,
        "bins": [_bin(one) for one in result.bins],
        "reason": result.reason,
    }


def _bin(one: ReliabilityBin) -> dict[str, Any]:
    observed = proportion(round(one.observed * one.n), one.n, reason="")
    return {
        "low": one.low,
        "high": one.high,
        "n": one.n,
        "stated": one.stated,
        "observed": observed.as_json(),
    }


@dataclass(frozen=True)
class Dot:
    """A bin of the diagram in px: the area of its dot grows with n; `low` and `high` end its interval."""

    x: float
    y: float
    radius: float
    low: float
    high: float


@dataclass(frozen=True)
class Diagram:
    """The diagram in px; `across` and `up` are (position, number) of the grid lines."""

    width: int
    height: int
    dots: tuple[Dot, ...]
    across: tuple[tuple[float, float], ...]
    up: tuple[tuple[float, float], ...]
    label: str

    left, top, right, bottom = LEFT, TOP, LEFT + SIDE, TOP + SIDE


def diagram(bins: Sequence[Mapping[str, Any]]) -> Diagram:
    """Lay out the bins of `probabilities`: stated probability to the right, observed share upwards.

    Examples
    --------
    >>> one = {"n": 4, "stated": 0.75, "observed": {"value": 0.5, "low": 0.25, "high": 1.0}}
    >>> layout = diagram([one])
    >>> layout.dots[0], layout.label
    (Dot(x=280.0, y=172.0, radius=9.0, low=252.0, high=12.0), 'stated 0.75, observed 0.50 (4 verdicts)')
    """
    most = max((one["n"] for one in bins), default=1)
    return Diagram(
        width=LEFT + SIDE + 12,
        height=TOP + SIDE + 24,
        dots=tuple(_dot(one, most) for one in bins),
        across=tuple((_x(value), value) for value in GRID),
        up=tuple((_y(value), value) for value in GRID),
        label=", ".join(
            f"stated {one['stated']:.2f}, observed {one['observed']['value']:.2f} ({one['n']} verdicts)"
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
