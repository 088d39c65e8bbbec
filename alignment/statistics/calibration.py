"""Calibration of a judge's probabilities: Brier score, reliability diagram, expected calibration error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 10
MINIMUM_VERDICTS = 100

FEW_VERDICTS = f"a reliability diagram needs {MINIMUM_VERDICTS} verdicts with a probability"


@dataclass(frozen=True)
class ReliabilityBin:
    """Verdicts with a probability of True in [low, high); the last bin includes 1.

    Parameters
    ----------
    n : number of verdicts.
    stated : mean probability, in [0, 1].
    observed : share with a consensus of True, in [0, 1].
    """

    low: float
    high: float
    n: int
    stated: float
    observed: float


@dataclass(frozen=True)
class Calibration:
    """Calibration of `n` verdicts: `brier` of all; non-empty `bins` with their `ece`, or a `reason`."""

    n: int
    brier: float | None
    bins: tuple[ReliabilityBin, ...] = ()
    ece: float | None = None
    reason: str = ""


def calibration(
    human_true: NDArray[np.bool_], p_true: NDArray[np.float64], *, bins: int = BINS
) -> Calibration:
    """Compare the judge's probabilities of True with the consensus.

    Parameters
    ----------
    human_true : shape (verdicts,), whether the consensus is True.
    p_true : shape (verdicts,), the judge's probability of True, in [0, 1].
    bins : number of bins of equal width.

    Returns
    -------
    Calibration : below 100 verdicts only the Brier score, in [0, 1]; without a verdict only the reason.

    Notes
    -----
    Brier (1950), Mon Weather Rev 78:1. Expected calibration error, sum of n_b / n |observed - stated|: Guo et
    al. (2017), arXiv 1706.04599.

    Examples
    --------
    >>> round(calibration(np.array([0, 1, 1, 0]) == 1, np.array([0.1, 0.9, 0.8, 0.3])).brier, 4)
    0.0375
    """
    n = int(p_true.size)
    if n == 0:
        return Calibration(0, None, reason="no verdict with a probability")
    brier = float(np.mean((p_true - human_true) ** 2))
    if n < MINIMUM_VERDICTS:
        return Calibration(n, brier, reason=FEW_VERDICTS)
    filled = reliability_bins(human_true, p_true, bins=bins)
    return Calibration(n, brier, filled, expected_calibration_error(filled))


def reliability_bins(
    human_true: NDArray[np.bool_], p_true: NDArray[np.float64], *, bins: int = BINS
) -> tuple[ReliabilityBin, ...]:
    """Bins of a reliability diagram that hold a verdict, lowest first; parameters as in `calibration`.

    A probability of 1 belongs to the last bin. DeGroot & Fienberg (1983), The Statistician 32:12.

    >>> reliability_bins(np.array([True, False]), np.array([1.0, 0.95]))
    (ReliabilityBin(low=0.9, high=1.0, n=2, stated=0.975, observed=0.5),)
    """
    places = np.minimum((p_true * bins).astype(np.int64), bins - 1)
    counts = np.bincount(places, minlength=bins)
    stated = np.bincount(places, weights=p_true, minlength=bins)
    observed = np.bincount(places, weights=human_true, minlength=bins)
    return tuple(
        ReliabilityBin(
            place / bins,
            (place + 1) / bins,
            int(counts[place]),
            float(stated[place] / counts[place]),
            float(observed[place] / counts[place]),
        )
        for place in np.flatnonzero(counts).tolist()
    )


def expected_calibration_error(bins: tuple[ReliabilityBin, ...]) -> float | None:
    """Mean distance of `observed` from `stated`, weighted by n, in [0, 1]. None without a verdict.

    Guo et al. (2017), arXiv 1706.04599.
    """
    n = sum(one.n for one in bins)
    return sum(one.n * abs(one.observed - one.stated) for one in bins) / n if n else None
