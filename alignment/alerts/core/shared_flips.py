"""Flips of the anchors in all criteria together: whether the judge changed as a whole.

Evidence is the least of several detectors, each without one criterion: what one criterion explains is no
change of all. The stored state has the share over all criteria, for charts, and a part `apart` a criterion.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from alignment.alerts.core.baselines import mean_flip_band, mean_flip_bound
from alignment.alerts.core.detectors import Detector, Sample
from alignment.alerts.core.stored_state import (
    Json,
    band_json,
    detector_json,
    detector_of,
    sample_json,
    sample_of,
)

# Anchors that the shares of flips need before they are frozen.
FEWEST_ANCHORS = 30
# Whether each anchor flipped, by chat and criterion.
Flipped = Mapping[int, Mapping[int, bool]]


def flips_start() -> Json:
    """State before the first night."""
    empty = detector_json(Detector.empty())
    return {"nights": [], "band": None, "detector": empty, "alarmed": False, "apart": {}}


def flips_collect(flips: Json, flipped: Flipped, *, nights: int, alpha: float, tolerance: float) -> Json:
    """Add a night of the baseline, and freeze it with the last one; an earlier state may lack `apart`."""
    samples = [*flips["nights"], sample_json(shares(flipped))]
    apart = dict(flips.get("apart", {}))
    for key in sorted({*_criteria(flipped), *map(int, apart)}):
        own = shares(flipped, apart=key)
        added = [own.n(), own.total(), (own.counts * own.values**2).sum()]
        sums = apart.get(str(key), {"sums": [0.0, 0.0, 0.0]})["sums"]
        apart[str(key)] = {"sums": [float(a + b) for a, b in zip(sums, added, strict=True)]}
    enough = sum(count for one in samples for _, count in one) >= FEWEST_ANCHORS
    if len(samples) < nights or not enough:
        return flips | {"nights": samples, "apart": apart}
    band = mean_flip_band([sample_of(one) for one in samples], alpha=alpha, tolerance=tolerance)
    frozen = {
        key: {"high": float(mean_flip_bound(*one["sums"], alpha=alpha, tolerance=tolerance))}
        for key, one in apart.items()
        if one["sums"][0] >= FEWEST_ANCHORS
    }
    return flips | {"nights": [], "band": band_json(band), "apart": frozen}


def flips_watch(flips: Json, flipped: Flipped, *, limit: float) -> Json:
    """Add a night after the baseline. limit : logarithm of the evidence that raises an alarm."""
    before, apart = flips.get("apart", {}), {}
    keys, high = sorted({*_criteria(flipped), *map(int, before)}), flips["band"][2]
    for key in keys:
        own = before.get(str(key), {})
        detector = detector_of(own["detector"]) if "detector" in own else Detector.empty()
        # One that came later: no share without it can be above this, as its own flips are not below 0.
        bound = own.get("high", min(1.0, high * len(keys) / max(1, len(keys) - 1)))
        detector = detector.update(shares(flipped, apart=key), np.array(bound))
        apart[str(key)] = {"high": bound, "detector": detector_json(detector)}
    whole = detector_of(flips["detector"]).update(shares(flipped), np.array(high))
    flips = flips | {"detector": detector_json(whole), "apart": apart}
    return flips | {"alarmed": bool(flips["alarmed"] or flips_evidence(flips) >= limit)}


def flips_evidence(flips: Mapping[str, Any]) -> float:
    """Logarithm of the evidence: the least without any one criterion, -inf before the first night."""
    detectors = [detector_of(one["detector"]) for one in flips.get("apart", {}).values() if "detector" in one]
    return min((float(one.log_evidence()) for one in detectors), default=-np.inf)


def shares(flipped: Flipped, *, apart: int | None = None) -> Sample:
    """Share of flipped criteria of each anchor as a sample, without the criterion `apart`.

    >>> flipped = {7: {1: True, 2: False}, 8: {1: False, 2: False}, 9: {1: True}}
    >>> shares(flipped).mean().item(), shares(flipped, apart=1).mean().item()
    (0.5, 0.0)
    """
    others = [[flip for key, flip in one.items() if key != apart] for one in flipped.values()]
    values, counts = np.unique([sum(one) / len(one) for one in others if one], return_counts=True)
    return Sample(values, counts.astype(np.float64))


def _criteria(flipped: Flipped) -> set[int]:
    return {key for one in flipped.values() for key in one}
