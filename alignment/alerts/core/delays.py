"""What a setting of the watch amounts to: false alarms a month, and nights until a change is named."""

import math
from dataclasses import dataclass

from alignment.alerts.core.attribution import Policy
from alignment.alerts.core.baselines import TOLERANCE, flip_band, share_bounds
from alignment.alerts.core.detectors import MONTHS_A_YEAR, NIGHTS_A_YEAR, expected_nights

# What is assumed before anything was measured: flips of a judge that is asked twice.
FLIPS = 0.03
ANCHOR_DETECTORS = 3
RATE_DETECTORS = 2


def alarm_in_a_month(policy: Policy) -> float:
    """Largest probability of a false alarm in a month, over all criteria and streams.

    >>> round(alarm_in_a_month(Policy()), 4)
    0.0042
    """
    return policy.alpha / MONTHS_A_YEAR


@dataclass(frozen=True)
class Delay:
    """Expected nights from a change of `effect` to its alarm; None: not within a year."""

    effect: float
    nights: int | None

    @property
    def points(self) -> int:
        """The effect in points of 100."""
        return round(100 * self.effect)


def anchor_delay(
    effect: float,
    *,
    anchors: int,
    criteria: int,
    policy: Policy,
    flips: float = FLIPS,
    nights: int = 21,
    tolerance: float = TOLERANCE,
) -> Delay:
    """Nights until anchors name a judge that turns a part of their answers.

    Parameters
    ----------
    effect : share of the answers of one kind, say passing, that turn. anchors : of that kind, a night.
    criteria : watched in all. flips : by chance, of a judge asked twice. nights : of the baseline of flips.

    Examples
    --------
    >>> anchor_delay(0.08, anchors=80, criteria=14, policy=Policy())
    Delay(effect=0.08, nights=12)
    """
    if anchors < 1:
        return Delay(effect, None)
    judged = anchors * nights
    band = flip_band(flips * judged, judged, alpha=policy.band_alpha(criteria), tolerance=tolerance)
    found = expected_nights(
        flips + effect * (1 - flips),
        bound=min(0.999, float(band.high)),
        per_night=anchors,
        limit=ANCHOR_DETECTORS * policy.limit(criteria),
    )
    return Delay(effect, _within_a_year(found))


def rate_delay(
    effect: float,
    *,
    chats: int,
    criteria: int,
    policy: Policy,
    rate: float = 0.9,
    nights: int = 28,
    tolerance: float = TOLERANCE,
) -> Delay:
    """Nights until the judged rate of one criterion raises an alarm, after it fell by `effect`.

    >>> rate_delay(0.08, chats=500, criteria=14, policy=Policy())
    Delay(effect=0.08, nights=3)
    """
    judged = chats * nights
    low, _ = share_bounds(rate * judged, judged, alpha=policy.band_alpha(criteria) / 2)
    found = expected_nights(
        min(0.999, 1 - rate + effect),
        bound=min(0.999, 1 - float(low) + tolerance),
        per_night=chats,
        limit=RATE_DETECTORS * policy.limit(criteria),
    )
    return Delay(effect, _within_a_year(found))


def _within_a_year(nights: float | None) -> int | None:
    return None if nights is None or nights > NIGHTS_A_YEAR else math.ceil(nights)


def guard_nights(*, anchors: int, policy: Policy) -> int | None:
    """Nights that the anchors of one kind take to be judged often enough to name the bot; None without any.

    >>> guard_nights(anchors=80, policy=Policy())
    4
    """
    return math.ceil(policy.guard / anchors) if anchors else None
