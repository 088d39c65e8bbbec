"""Coverage of a mean over criteria of which some have hardly an answer of a class."""

from collections.abc import Sequence

import numpy as np

from alignment.statistics.design_effect import mean_share

# Answers and rate of each criterion: a few answers of one class, where a judge is worse than elsewhere.
THIN = [
    ((2,) + (60,) * 5, (0.5,) + (0.95,) * 5),
    ((3, 60), (0.5, 0.95)),
    ((5,) + (60,) * 5, (0.6,) + (0.95,) * 5),
    ((5,) * 2 + (60,) * 10, (0.5,) * 2 + (0.95,) * 10),
    ((2,) * 6 + (40,) * 6, (0.5,) * 6 + (0.95,) * 6),
    ((4,) * 3 + (60,) * 3, (0.95,) * 3 + (0.7,) * 3),
]
THIN_CHATS = 200


def thin_covered(sizes: Sequence[int], rates: Sequence[float], *, sets: int) -> float:
    """Share of the intervals of `mean_share` that hold the mean of the rates, chats drawn by criterion."""
    draw, shape = np.random.default_rng(list(sizes)), (len(sizes), THIN_CHATS)
    mean, found = float(np.mean(rates)), 0
    for _ in range(sets):
        places = draw.permuted(np.tile(np.arange(THIN_CHATS), (len(sizes), 1)), axis=1)
        n = (places < np.array(sizes)[:, np.newaxis]).astype(np.int64)
        right = n * (draw.random(shape) < np.array(rates)[:, np.newaxis])
        interval = mean_share(right, n, reason="").estimate.interval
        found += interval is not None and interval.low <= mean <= interval.high
    return found / sets


def thin_shares(sets: int) -> list[float]:
    """Coverage in percent of each case of `THIN`."""
    return [100 * thin_covered(*cell, sets=sets) for cell in THIN]
