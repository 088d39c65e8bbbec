"""The judge's stated probabilities of True against what people answered, as JSON."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, HumanCode
from alignment.statistics.calibration import ReliabilityBin, reliability
from alignment.statistics.intervals import proportion


def probabilities(human: Codes, p_true: NDArray[np.float64]) -> dict[str, Any]:
    """
    Brier score, expected calibration error and the bins of a reliability diagram.

    Parameters
    ----------
    human : HumanCode by chat, shape (chats,).
    p_true : by chat, in [0, 1]; NaN where the judge stated none.

    Returns
    -------
    dict : `n` verdicts; `constant` is the Brier score of always stating the share of True; each bin's
        `observed` with a Wilson interval; `reason` why there are no bins.

    Examples
    --------
    >>> found = probabilities(np.array([0, 1, 4], dtype=np.int8), np.array([0.9, 0.1, 0.5]))
    >>> found["n"], round(found["brier"], 4), found["constant"]
    (2, 0.01, 0.25)
    """
    stated = (human <= HumanCode.FALSE) & ~np.isnan(p_true)
    is_true = human[stated] == HumanCode.TRUE
    found = reliability(is_true, p_true[stated])
    share = float(is_true.mean()) if found.n else None
    return {
        "n": found.n,
        "brier": found.brier,
        "constant": None if share is None else share * (1 - share),
        "ece": found.ece,
        "bins": [_bin(one) for one in found.bins],
        "reason": found.reason,
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
