"""State of the watch as JSON: what a night's row stores and the next night starts from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from alignment.alerts.core.attribution import Anchors, TwoSided, Watch
from alignment.alerts.core.baselines import Band
from alignment.alerts.core.detectors import Detector, Floats, Sample

DIGITS = 12
Json = dict[str, Any]
COUNTERS = ("judged_since", "human_since", "anchors_since", "guard_since")


def band_json(band: Band) -> list[float]:
    """Return a band of one rate: rate, low and high."""
    return [float(np.ravel(one)[0]) for one in (band.rate, band.low, band.high)]


def band_of(values: Sequence[float], *, shape: tuple[int, ...] = (1,)) -> Band:
    """Return the band of `band_json`."""
    return Band(*(np.full(shape, float(one)) for one in values))


def detector_json(detector: Detector) -> Json:
    """Return a detector of one stream.

    >>> stored = detector_json(Detector.test().update(Sample.of_counts(3, 10), 0.1))
    >>> detector_json(detector_of(stored)) == stored
    True
    """
    return {
        field.name: [_number(one) for one in np.ravel(getattr(detector, field.name)).tolist()]
        for field in fields(detector)
    }


def detector_of(stored: Mapping[str, Any], *, shape: tuple[int, ...] = ()) -> Detector:
    """Return the detector of `detector_json`; `shape` of its streams: () or (1,)."""
    return Detector(*(_floats(stored[field.name], shape) for field in fields(Detector)))


def watch_json(watch: Watch) -> Json:
    """Return the watch of one criterion, shape (1,). Flips of all criteria are stored with the plan."""
    return {
        "night": watch.night,
        "judged": [detector_json(watch.judged.lower), detector_json(watch.judged.higher)],
        "human": [detector_json(watch.human.lower), detector_json(watch.human.higher)],
        "anchors": [
            detector_json(getattr(watch.anchors, name)) for name in ("to_false", "to_true", "flipped")
        ],
        "guard": detector_json(watch.guard),
        "claimed": float(watch.claimed[0]),
        "falls": bool(watch.falls[0]),
        **{name: int(getattr(watch, name)[0]) for name in COUNTERS},
    }


def watch_of(stored: Mapping[str, Any]) -> Watch:
    """Return the watch of `watch_json`."""
    to_false, to_true, flipped = (detector_of(one, shape=(1,)) for one in stored["anchors"])
    since: Json = {name: np.array([stored[name]]) for name in COUNTERS}
    return replace(
        Watch.start(1),
        night=stored["night"],
        judged=_two_sided(stored["judged"]),
        human=_two_sided(stored["human"]),
        anchors=Anchors(to_false, to_true, flipped, Detector.empty((1,))),
        guard=detector_of(stored["guard"], shape=(1,)),
        claimed=np.array([stored["claimed"]]),
        falls=np.array([stored["falls"]]),
        **since,
    )


def _two_sided(stored: Sequence[Mapping[str, Any]]) -> TwoSided:
    lower, higher = (detector_of(one, shape=(1,)) for one in stored)
    return TwoSided(lower, higher)


def sample_json(sample: Sample) -> list[list[float]]:
    """Return a sample as pairs of value and count."""
    return [[float(a), float(b)] for a, b in zip(sample.values, sample.counts, strict=True) if b]


def sample_of(pairs: Sequence[Sequence[float]]) -> Sample:
    """Return the sample of `sample_json`."""
    values = np.array([one[0] for one in pairs] or [0.0])
    return Sample(values, np.array([one[1] for one in pairs] or [0.0]))


def _number(value: float) -> float | None:
    """JSON knows no infinity: null is minus infinity, evidence of zero."""
    return None if value == -math.inf else float(f"{value:.{DIGITS}g}")


def _floats(values: Sequence[float | None], shape: tuple[int, ...]) -> Floats:
    numbers = np.array([-math.inf if one is None else one for one in values])
    return numbers.reshape((*shape, len(values)))
