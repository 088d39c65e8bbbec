"""E-detectors: evidence that a mean has risen above a bound, valid on every night it is looked at."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]

NIGHTS_A_YEAR = 365
WEEKS_A_YEAR = 52
MONTHS_A_YEAR = 12
# Bets as shares of the largest one that cannot lose everything: halved seven times.
BETS = 0.5 ** np.arange(1, 9)


@dataclass(frozen=True)
class Sample:
    """Values of one night as distinct values and how often each occurred.

    Parameters
    ----------
    values : not negative, shape (..., values). For a weighted sample 0 and the weights, with mean weight 1.
    counts : shape (..., values).
    """

    values: Floats
    counts: Floats

    @classmethod
    def of_counts(cls, hits: ArrayLike, n: ArrayLike) -> "Sample":
        """Ones and zeros from their counts, each of any one shape.

        >>> Sample.of_counts(3, 10).counts.tolist()
        [7.0, 3.0]
        """
        ones, all_ = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
        return cls(np.array([0.0, 1.0]), np.stack([all_ - ones, ones], axis=-1))

    @classmethod
    def of_strata(cls, hits: ArrayLike, n: ArrayLike, weights: ArrayLike) -> "Sample":
        """Weighted zeros and ones by stratum.

        Parameters
        ----------
        hits, n : ones and items by stratum, shape (..., strata).
        weights : 1 / inclusion probability, up to a factor, shape (strata,). They are scaled to mean 1 over
            the items.

        Examples
        --------
        >>> Sample.of_strata([5, 1], [50, 50], [9.0, 1.0]).mean().item()
        0.092
        """
        ones, items = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
        given = np.asarray(weights, dtype=np.float64)
        totals = items.sum(axis=-1, keepdims=True)
        sums = (given * items).sum(axis=-1, keepdims=True)
        scale = np.divide(sums, totals, out=np.ones(totals.shape), where=totals > 0)
        zeros = np.zeros((*ones.shape[:-1], 1))
        rest = (items - ones).sum(axis=-1, keepdims=True)
        return cls(np.concatenate([zeros, given / scale], axis=-1), np.concatenate([rest, ones], axis=-1))

    def n(self) -> Floats:
        """Number of items, shape (...)."""
        return np.asarray(self.counts.sum(axis=-1))

    def total(self) -> Floats:
        """Sum of values, shape (...)."""
        return np.asarray((self.counts * self.values).sum(axis=-1))

    def mean(self) -> Floats:
        """Mean value, shape (...); NaN without an item."""
        n = self.n()
        return np.asarray(np.divide(self.total(), n, out=np.full(n.shape, np.nan), where=n > 0))


@dataclass(frozen=True)
class Detector:
    """Evidence that a mean exceeds a bound, for any number of streams side by side.

    Parameters
    ----------
    logs : logarithm of the evidence by bet, shape (..., bets), as all that follow.
    scores : logarithm of a bet's gain since it last was no gain: a CUSUM, which dates the change.
    nights, n, total : nights, items, and sum of values since then.
    """

    logs: Floats
    scores: Floats
    nights: Floats
    n: Floats
    total: Floats

    @classmethod
    def empty(cls, shape: tuple[int, ...] = ()) -> "Detector":
        """Without evidence yet: for changes that may begin on any night."""
        zeros = np.zeros((*shape, BETS.size))
        return cls(np.full(zeros.shape, -np.inf), zeros, zeros, zeros, zeros)

    @classmethod
    def test(cls, shape: tuple[int, ...] = ()) -> "Detector":
        """With evidence 1: for a hypothesis tested from now on. Update it with `looks_a_year=None`."""
        return replace(cls.empty(shape), logs=np.zeros((*shape, BETS.size)))

    def update(
        self, sample: Sample, bound: ArrayLike, *, looks_a_year: int | None = NIGHTS_A_YEAR
    ) -> "Detector":
        """Add a night.

        Each bet c multiplies its evidence by the product over items of 1 + c (value / bound - 1). Before, it
        adds 1 / looks a year, a new process that starts on this night (Shiryaev-Roberts), so that evidence
        for a late change is not lost to the quiet nights before it.

        Parameters
        ----------
        sample : the night's items; its leading shape is the detector's.
        bound : largest mean without drift, above 0; shape (...).
        looks_a_year : nights or weeks a year; None: no restarts.

        Returns
        -------
        Detector : while no night's mean exceeds the bound, the probability that the evidence reaches c within
            a year is at most 1 / c; within m years, m / c. Without restarts: 1 / c, ever.

        Notes
        -----
        E-detectors: Shin, Ramdas & Rinaldo (2023), NEJSDS 2:229, arXiv 2203.03532. Betting: Waudby-Smith &
        Ramdas (2024), JRSS B 86:1. With R the evidence after t of m looks a year, R + (m - t) / m is a
        supermartingale that starts at 1, and Ville's inequality bounds its maximum. Items need no common
        mean, only a mean of at most the bound over the night (AM-GM): strata, and anchors that differ, are
        covered, also if sampled without replacement (Hoeffding 1963, JASA 58:13, theorem 4).
        """
        limits = np.asarray(bound, dtype=np.float64)
        if np.any(limits <= 0):
            raise ValueError("a bound must be above 0")
        ratios = sample.values / limits[..., np.newaxis] - 1
        gains = np.log1p(ratios[..., np.newaxis] * BETS)
        gain = (sample.counts[..., np.newaxis] * gains).sum(axis=-2)
        restart = -math.inf if looks_a_year is None else -math.log(looks_a_year)
        scores = self.scores + gain
        running = (scores > 0) | (looks_a_year is None)
        return Detector(
            np.logaddexp(self.logs, restart) + gain,
            np.where(running, scores, 0.0),
            np.where(running, self.nights + 1, 0.0),
            np.where(running, self.n + sample.n()[..., np.newaxis], 0.0),
            np.where(running, self.total + sample.total()[..., np.newaxis], 0.0),
        )

    def log_evidence(self) -> Floats:
        """Logarithm of the e-value: of the mean over bets; shape (...)."""
        return np.asarray(np.logaddexp.reduce(self.logs, axis=-1) - math.log(BETS.size))

    def age(self) -> Floats:
        """Nights since the estimated start of the change, 0 if there is none; shape (...).

        The start that the best bet's CUSUM gives (Hinkley 1970, Biometrika 57:1).
        """
        return self._best(self.nights)

    def items(self) -> Floats:
        """Items since then, or of the whole test; shape (...)."""
        return self._best(self.n)

    def mean(self) -> Floats:
        """Mean value since then; NaN without an item; shape (...)."""
        n = self.items()
        return np.asarray(np.divide(self._best(self.total), n, out=np.full(n.shape, np.nan), where=n > 0))

    def where(self, chosen: NDArray[np.bool_], other: "Detector") -> "Detector":
        """Take this detector's streams where `chosen`, shape (...), else the other's."""
        mask = chosen[..., np.newaxis]
        return Detector(
            np.where(mask, self.logs, other.logs),
            np.where(mask, self.scores, other.scores),
            np.where(mask, self.nights, other.nights),
            np.where(mask, self.n, other.n),
            np.where(mask, self.total, other.total),
        )

    def _best(self, values: Floats) -> Floats:
        best = self.scores.argmax(axis=-1)[..., np.newaxis]
        return np.asarray(np.take_along_axis(values, best, axis=-1)[..., 0])


def detector_age(detector: Detector) -> int:
    """Return the age of one stream, shape () or (1,), as a whole number."""
    return int(np.ravel(detector.age())[0])


def mean_evidence(*detectors: Detector) -> Floats:
    """Logarithm of the mean of several detectors' evidence, again an e-value whatever their dependence.

    Vovk & Wang (2021), Ann Stat 49:1736.

    >>> mean_evidence(Detector.test(), Detector.test()).item()
    0.0
    """
    stacked = np.stack([one.log_evidence() for one in detectors])
    return np.asarray(logsumexp(stacked, axis=0) - math.log(len(detectors)))


def threshold(alpha: float, *, members: int) -> float:
    """Evidence that raises an alarm, if a year without drift may have one with probability `alpha`.

    `members` are the detectors of the family: Bonferroni's inequality. 0 < alpha < 1.

    >>> threshold(0.05, members=14)
    280.0
    """
    if not 0 < alpha < 1:
        raise ValueError("alpha must be between 0 and 1")
    return members / alpha


def false_alarms_a_month(limit: float, *, members: int) -> float:
    """Largest probability of a false alarm in a month, for a threshold and the detectors it applies to.

    >>> round(false_alarms_a_month(280.0, members=14), 4)
    0.0042
    """
    return min(1.0, members / limit / MONTHS_A_YEAR)


def expected_nights(
    rate: float, *, bound: float, per_night: float, limit: float, looks_a_year: int = NIGHTS_A_YEAR
) -> float | None:
    """Approximate nights from a change to its alarm.

    Parameters
    ----------
    rate : share of ones after the change. bound : the largest share without drift. Both in (0, 1).
    per_night : items a night. limit : evidence that raises an alarm.

    Returns
    -------
    float or None : None if the change stays within the bound, or is too small for every bet. At least 1.

    Notes
    -----
    (log limit + log looks a year + log bets) / the growth of the best bet a night; Wald's approximation
    without overshoot.

    Examples
    --------
    >>> round(expected_nights(0.10, bound=0.05, per_night=100, limit=1000), 1)
    7.4
    """
    growth = rate * np.log1p(BETS * (1 / bound - 1)) + (1 - rate) * np.log1p(-BETS)
    best = per_night * float(growth.max())
    if best <= 0:
        return None
    return max(1.0, (math.log(limit) + math.log(looks_a_year) + math.log(BETS.size)) / best)
