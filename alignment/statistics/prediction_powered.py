"""The share of True in all chats from a judge's verdicts and people's labels drawn at random among them."""

import math

import numpy as np
from numpy.typing import NDArray

from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import normal_quantile

FEW_FALSE = 20
FEW_FALSE_FLAG = f"fewer than {FEW_FALSE} labels of False: the interval is too narrow"

Floats = NDArray[np.float64]


def ppi_weight(labels: Floats, verdicts: Floats, *, unlabelled: int) -> float:
    """The weight of the verdicts with the smallest variance, cov(Y, f) / ((1 + n / N) var(f)), within [0, 1].

    >>> ppi_weight(np.array([0.0, 1.0]), np.array([0.0, 1.0]), unlabelled=2)
    0.5
    """
    spread = float(np.var(verdicts))
    if spread == 0:
        return 0.0
    together = float(np.mean(labels * verdicts) - np.mean(labels) * np.mean(verdicts))
    return min(1.0, max(0.0, together / ((1 + labels.size / unlabelled) * spread)))


def ppi_share(
    labels: Floats,
    verdicts: Floats,
    unlabelled_verdicts: Floats,
    *,
    weight: float | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Prediction-powered mean: w mean(f on unlabelled) + mean(Y - w f), normal interval.

    Parameters
    ----------
    labels, verdicts : shape (labelled chats,), 1 True, 0 False; the labelled chats are a random sample.
    unlabelled_verdicts : shape (all other chats,).
    weight : of the verdicts; None: the one of smallest variance (PPI++), 0: people alone.

    Returns
    -------
    Estimate : not clipped. Undefined without a label or a verdict. Flagged below 20 labels of False, where
        the interval covers less than it says.

    Notes
    -----
    Angelopoulos et al. (2023), Science 382:669; PPI++: Angelopoulos, Duchi & Zrnic (2023), arXiv 2311.01453.
    Variances divide by n.

    Examples
    --------
    >>> one = np.array([1.0, 0.0, 1.0, 1.0])
    >>> ppi_share(one, one, np.array([1.0, 0.0]), weight=0.0).value
    0.75
    """
    if not labels.size or not unlabelled_verdicts.size:
        return Estimate(None, reason="needs labelled chats and chats with a verdict alone")
    if weight is None:
        weight = ppi_weight(labels, verdicts, unlabelled=unlabelled_verdicts.size)
    corrected = labels - weight * verdicts
    value = weight * float(unlabelled_verdicts.mean()) + float(corrected.mean())
    spread = (
        weight**2 * np.var(unlabelled_verdicts) / unlabelled_verdicts.size + np.var(corrected) / labels.size
    )
    margin = normal_quantile(confidence) * math.sqrt(float(spread))
    flag = FEW_FALSE_FLAG if (labels == 0).sum() < FEW_FALSE else ""
    return Estimate(value, Interval(value - margin, value + margin), flag=flag)
