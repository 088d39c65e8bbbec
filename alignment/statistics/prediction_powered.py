"""Share of True in all chats, from all verdicts and from labels on a random sample of the chats."""

import math

import numpy as np
from numpy.typing import NDArray

from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import normal_quantile

FEW_FALSE = 20
FEW_FALSE_FLAG = f"fewer than {FEW_FALSE} False labels: the interval is too narrow"

Floats = NDArray[np.float64]


def ppi_weight(labels: Floats, verdicts: Floats, *, unlabelled: int) -> float:
    """Weight of the verdicts that minimises the variance (PPI++): cov(Y, f) / ((1 + n / N) var(f)).

    `labels` and `verdicts` have shape (n,) and values 1 and 0; `unlabelled` is N > 0. Clipped to [0, 1]; 0 if
    all verdicts are equal. Angelopoulos, Duchi & Zrnic (2023), arXiv 2311.01453.

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
    """Prediction-powered mean, w mean(f on unlabelled) + mean(Y - w f), with a normal interval.

    Parameters
    ----------
    labels, verdicts : shape (labelled chats,), 1 True, 0 False; the labelled chats are a random sample.
    unlabelled_verdicts : shape (all other chats,).
    weight : of the verdicts; None: the weight of smallest variance (PPI++), 0: labels only.
    confidence : two-sided.

    Returns
    -------
    Estimate : a share, not clipped to [0, 1]. Undefined without a label or an unlabelled verdict. Flagged
        below 20 False labels, where the interval's coverage is too low.

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
        return Estimate(None, reason="needs labelled chats, and unlabelled chats with a verdict")
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
