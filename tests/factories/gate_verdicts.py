"""Verdicts of two judges for the rule of the gate."""

import numpy as np

from alignment.regression.core import PairedVerdicts


def verdicts(
    *,
    fixed: int = 0,
    broken: int = 0,
    right: int = 0,
    wrong: int = 0,
    key: str = "polite",
    tier: str = "simple",
    ceiling: float | None = None,
) -> PairedVerdicts:
    """So many chats of each kind, half of each with the human answer True."""
    kinds = np.repeat([0, 1, 2, 3], [fixed, broken, right, wrong])
    human = (np.arange(len(kinds)) % 2).astype(np.int8)
    old = np.where(np.isin(kinds, (1, 2)), human, 1 - human).astype(np.int8)
    new = np.where(np.isin(kinds, (0, 2)), human, 1 - human).astype(np.int8)
    return PairedVerdicts(key, tier, human, old, new, ceiling)
