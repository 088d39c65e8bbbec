"""The nightly watch over all criteria: alarms of three streams, and whether bot or judge changed."""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alignment.alerts.core.baselines import Band
from alignment.alerts.core.detectors import (
    WEEKS_A_YEAR,
    Detector,
    Floats,
    Sample,
    mean_evidence,
    threshold,
)

Bools = NDArray[np.bool_]
Nights = NDArray[np.int64]
NEVER = -1
# Judged rate, human rate, and three shares of flips by criterion.
BANDS_A_CRITERION = 5
MOST_CLAIMED = 0.95


class Cause(StrEnum):
    """What an alarm names."""

    BOT = "bot"
    JUDGE = "judge"
    UNCLEAR = "unclear"


class Stream(StrEnum):
    """Where an alarm comes from."""

    JUDGED = "judged"
    ANCHORS = "anchors"
    AUDIT = "audit"


class Change(StrEnum):
    """What moved: a rate, or the judge's answers on the anchors."""

    LOWER = "lower"
    HIGHER = "higher"
    STRICTER = "stricter"
    MORE_LENIENT = "more_lenient"
    LESS_CONSISTENT = "less_consistent"


@dataclass(frozen=True)
class Policy:
    """Settings of the watch.

    Parameters
    ----------
    alpha : largest probability of a false alarm in a year without drift, over all criteria and streams.
    baseline_share : part of `alpha` for the intervals of the baselines; the rest is for the detectors.
    claim : part of the judged rate's shift that the judge would show on the anchors if it were the cause.
    beta : probability of naming the bot where the judge shows at least that part.
    guard : anchors to judge again after an alarm of the judged rate, before the bot can be named: of those
        whose baseline answer the change would flip.
    """

    alpha: float = 0.05
    baseline_share: float = 0.2
    claim: float = 0.5
    beta: float = 0.05
    guard: int = 300

    def members(self, criteria: int) -> int:
        """Detectors of the family: each criterion in three streams, and the anchors of all criteria."""
        return 3 * criteria + 1

    def limit(self, criteria: int) -> float:
        """Evidence that raises an alarm, in any of the family.

        >>> round(Policy().limit(14))
        1075
        """
        return threshold(self.alpha * (1 - self.baseline_share), members=self.members(criteria))

    def band_alpha(self, criteria: int) -> float:
        """Error of the interval of each baseline.

        >>> round(Policy().band_alpha(14), 6)
        0.000141
        """
        return self.alpha * self.baseline_share / (BANDS_A_CRITERION * criteria + 1)


@dataclass(frozen=True)
class Baselines:
    """Bands by criterion, shape (..., criteria), frozen until the judge changes by a version.

    Parameters
    ----------
    judged : the judged pass rate. human : the raters' pass rate in the audit sample; None: no audit yet.
    to_false : False among anchors whose baseline answer is True. to_true : True among those with False.
    flipped : another answer than the baseline's, among all anchors of the criterion.
    flips : of the share of the other criteria that flip, a mean over anchors.
    """

    judged: Band
    to_false: Band
    to_true: Band
    flipped: Band
    flips: Band
    human: Band | None = None


@dataclass(frozen=True)
class Rates:
    """A sample of passes and the same items as failures, shape (..., criteria): a rate can move both ways."""

    passed: Sample
    failed: Sample

    @classmethod
    def of_counts(cls, passed: ArrayLike, n: ArrayLike) -> "Rates":
        """Without weights: passes of the applicable answers, shape (..., criteria)."""
        return cls(Sample.of_counts(passed, n), Sample.of_counts(np.subtract(n, passed), n))

    @classmethod
    def of_strata(cls, passed: ArrayLike, n: ArrayLike, weights: ArrayLike) -> "Rates":
        """By stratum, shape (..., criteria, strata), with weights (strata,); see `Sample.of_strata`."""
        failed = np.subtract(n, passed)
        return cls(Sample.of_strata(passed, n, weights), Sample.of_strata(failed, n, weights))


@dataclass(frozen=True)
class AnchorAnswers:
    """Flips of a night's anchors against their baseline answers; see `Baselines` for what each counts.

    flips : by criterion, the share of the other criteria that flip.
    """

    to_false: Sample
    to_true: Sample
    flipped: Sample
    flips: Sample


@dataclass(frozen=True)
class Night:
    """Data of one night; `human` only where a week's audit sample is complete."""

    judged: Rates
    anchors: AnchorAnswers
    human: Rates | None = None


@dataclass(frozen=True)
class TwoSided:
    """Detectors of a falling and of a rising rate."""

    lower: Detector
    higher: Detector

    def update(self, rates: Rates, band: Band, *, looks_a_year: int) -> "TwoSided":
        """Add a night or week."""
        return TwoSided(
            self.lower.update(rates.failed, 1 - band.low, looks_a_year=looks_a_year),
            self.higher.update(rates.passed, band.high, looks_a_year=looks_a_year),
        )

    def log_evidence(self) -> Floats:
        """Of either."""
        return mean_evidence(self.lower, self.higher)

    def falls(self) -> Bools:
        """True where the evidence for a falling rate is the larger."""
        return np.asarray(self.lower.log_evidence() >= self.higher.log_evidence())


@dataclass(frozen=True)
class Anchors:
    """Detectors of a stricter, a more lenient and a less consistent judge; and of flips in other criteria."""

    to_false: Detector
    to_true: Detector
    flipped: Detector
    flips: Detector

    def update(self, answers: AnchorAnswers, baselines: Baselines, *, looks_a_year: int) -> "Anchors":
        """Add a night."""
        return Anchors(
            self.to_false.update(answers.to_false, baselines.to_false.high, looks_a_year=looks_a_year),
            self.to_true.update(answers.to_true, baselines.to_true.high, looks_a_year=looks_a_year),
            self.flipped.update(answers.flipped, baselines.flipped.high, looks_a_year=looks_a_year),
            self.flips.update(answers.flips, baselines.flips.high, looks_a_year=looks_a_year),
        )

    def log_evidence(self) -> Floats:
        """By criterion, shape (..., criteria)."""
        return mean_evidence(self.to_false, self.to_true, self.flipped)

    def all_evidence(self) -> Floats:
        """Of all criteria, shape (...): the least that is left without any one of them.

        What one criterion explains is that criterion's alarm alone. The smallest of several e-values is one.
        """
        return np.asarray(self.flips.log_evidence().min(axis=-1))

    def changes(self) -> NDArray[np.int64]:
        """Index of the largest evidence: 0 stricter, 1 more lenient, 2 less consistent."""
        parts = (self.to_false, self.to_true, self.flipped)
        return np.asarray(np.argmax(np.stack([one.log_evidence() for one in parts]), axis=0))


@dataclass(frozen=True)
class Watch:
    """State after some nights, for families side by side, shape (...), each with its criteria.

    Parameters
    ----------
    night : nights seen.
    judged, human, anchors : the detectors.
    guard : test of the claim that the judge caused the judged rate's alarm; evidence against it.
    claimed : anchors that would keep their answer at most, by that claim, shape (..., criteria).
    judged_since, human_since, anchors_since, guard_since : night of the first alarm, from 0, or -1; shape
        (..., criteria). `guard_since`: the bot was named. flips_since : of all criteria, shape (...).
    """

    night: int
    judged: TwoSided
    human: TwoSided
    anchors: Anchors
    guard: Detector
    claimed: Floats
    falls: Bools
    judged_since: Nights
    human_since: Nights
    anchors_since: Nights
    guard_since: Nights
    flips_since: Nights

    @classmethod
    def start(cls, criteria: int, *, families: tuple[int, ...] = ()) -> "Watch":
        """Before the first night after the baselines."""
        shape = (*families, criteria)
        one, never = Detector.empty(shape), np.full(shape, NEVER)
        return cls(
            0,
            TwoSided(one, one),
            TwoSided(one, one),
            Anchors(one, one, one, one),
            Detector.test(shape),
            np.ones(shape),
            np.zeros(shape, dtype=bool),
            never,
            never,
            never,
            never,
            np.full(families, NEVER),
        )

    def judge_named(self) -> Bools:
        """By criterion: the anchors moved. Anchors of all criteria name the judge in each of them."""
        return np.asarray((self.anchors_since != NEVER) | (self.flips_since != NEVER)[..., np.newaxis])

    def bot_named(self) -> Bools:
        """By criterion: the raters' rate moved, or the judged rate did while the anchors stood still."""
        return np.asarray((self.human_since != NEVER) | (self.guard_since != NEVER))

    def unclear(self) -> Bools:
        """By criterion: the judged rate moved, and nothing is named yet."""
        return np.asarray((self.judged_since != NEVER) & ~self.judge_named() & ~self.bot_named())


def observe(
    watch: Watch,
    night: Night,
    *,
    baselines: Baselines,
    policy: Policy,
    looks_a_year: int,
    family: int | None = None,
) -> Watch:
    """Add a night to the watch.

    The judge is named when the anchors' evidence reaches the limit: nothing else moves them. The bot is named
    when the raters' rate does, or when three things hold after an alarm of the judged rate: the anchors gave
    no alarm, at least `policy.guard` of them were judged again, and they contradict the claim that the judge
    caused the shift, with evidence 1 / beta. Until then the alarm is unclear.

    Parameters
    ----------
    night : leading shape (..., criteria) of the watch.
    looks_a_year : nights a year that are judged. The audit sample counts 52 weeks.
    family : criteria watched in all; None: those of this watch.

    Returns
    -------
    Watch : an alarm stays until the watch is started again, with new baselines.

    Notes
    -----
    After Li (2026), arXiv 2606.15474, with flips against the anchors' own baseline in place of the gap, and
    the guard window ended by a test. The claim: if the judge moved a pass rate p by d, then it flips d / p of
    the True answers (d / (1 - p) of the False ones, upwards); at least `policy.claim` of that must show.
    """
    limit = np.log(policy.limit(family or watch.claimed.shape[-1]))
    judged = watch.judged.update(night.judged, baselines.judged, looks_a_year=looks_a_year)
    anchors = watch.anchors.update(night.anchors, baselines, looks_a_year=looks_a_year)
    seen = replace(watch, night=watch.night + 1, judged=judged, anchors=anchors)
    seen = replace(
        seen,
        anchors_since=_first(watch.anchors_since, anchors.log_evidence() >= limit, watch.night),
        flips_since=_first(watch.flips_since, anchors.all_evidence() >= limit, watch.night),
    )
    if night.human is not None and baselines.human is not None:
        seen = observe_audit(seen, night.human, baselines.human, limit=limit, night=watch.night)
    seen = _guarded(seen, night, policy)
    return _claimed(seen, judged.log_evidence() >= limit, baselines, policy)


def observe_audit(watch: Watch, human: Rates, band: Band, *, limit: float, night: int) -> Watch:
    """Add a week's audit sample, whose labels may arrive between nights.

    Parameters
    ----------
    limit : logarithm of the evidence that raises an alarm. night : number of the last night, from 0.
    """
    seen = watch.human.update(human, band, looks_a_year=WEEKS_A_YEAR)
    alarmed = seen.log_evidence() >= limit
    return replace(watch, human=seen, human_since=_first(watch.human_since, alarmed, night))


def _first(since: Nights, alarmed: Bools, night: int) -> Nights:
    return np.where((since == NEVER) & alarmed, night, since)


def _guarded(watch: Watch, night: Night, policy: Policy) -> Watch:
    """Test the claims of earlier nights' alarms with tonight's anchors."""
    falls = watch.falls[..., np.newaxis]
    down, up = night.anchors.to_false, night.anchors.to_true
    counts = np.where(falls, down.counts, up.counts)[..., ::-1]  # an anchor that keeps its answer counts 1
    tested = watch.guard.update(Sample(down.values, counts), watch.claimed, looks_a_year=None)
    guard = tested.where(watch.judged_since != NEVER, watch.guard)
    contradicted = (guard.log_evidence() >= -np.log(policy.beta)) & (guard.items() >= policy.guard)
    named = contradicted & ~watch.judge_named()
    return replace(watch, guard=guard, guard_since=_first(watch.guard_since, named, watch.night - 1))


def _claimed(watch: Watch, alarmed: Bools, baselines: Baselines, policy: Policy) -> Watch:
    """State the claim of each judged rate that gives its first alarm tonight."""
    new = (watch.judged_since == NEVER) & alarmed
    falls = watch.judged.falls()
    rate = baselines.judged.rate
    failing = 1 - rate
    lost = (watch.judged.lower.mean() - failing) / np.maximum(rate, 1e-9)
    won = (watch.judged.higher.mean() - rate) / np.maximum(failing, 1e-9)
    flips = np.where(falls, baselines.to_false.rate, baselines.to_true.rate)
    claim = flips + policy.claim * np.nan_to_num(np.where(falls, lost, won))
    return replace(
        watch,
        falls=np.where(new, falls, watch.falls),
        claimed=np.where(new, 1 - np.clip(claim, 0.0, MOST_CLAIMED), watch.claimed),
        judged_since=_first(watch.judged_since, alarmed, watch.night - 1),
    )


@dataclass(frozen=True)
class Alarm:
    """One alarm.

    Parameters
    ----------
    criterion : its index; None: all criteria together.
    night : on which it was raised, from 0. named : on which its cause was named; None while unclear.
    evidence : tonight's e-value, as a logarithm to base 10.
    """

    criterion: int | None
    cause: Cause
    stream: Stream
    change: Change
    night: int
    named: int | None
    evidence: float


def alarms(watch: Watch) -> tuple[Alarm, ...]:
    """List the alarms of one family, shape (), in the order of their nights."""
    found = [*_judged_alarms(watch), *_anchor_alarms(watch), *_audit_alarms(watch)]
    return tuple(sorted(found, key=lambda alarm: alarm.night))


def _base10(logs: Floats, index: int | None = None) -> float:
    return float(logs if index is None else logs[index]) / float(np.log(10))


def _judged_alarms(watch: Watch) -> list[Alarm]:
    """A judged rate's alarm: its cause is what named it first; the judge, if both on one night."""
    found = []
    for one in np.flatnonzero(watch.judged_since != NEVER).tolist():
        judge = [int(night) for night in (watch.anchors_since[one], watch.flips_since) if night != NEVER]
        bot = [int(night) for night in (watch.human_since[one], watch.guard_since[one]) if night != NEVER]
        named = [(night, Cause.JUDGE) for night in judge] + [(night, Cause.BOT) for night in bot]
        first, cause = min(named, key=lambda pair: pair[0]) if named else (None, Cause.UNCLEAR)
        night = int(watch.judged_since[one])
        change = Change.LOWER if watch.falls[one] else Change.HIGHER
        named_on = None if first is None else max(first, night)
        evidence = _base10(watch.judged.log_evidence(), one)
        found.append(Alarm(one, cause, Stream.JUDGED, change, night, named_on, evidence))
    return found


def _anchor_alarms(watch: Watch) -> list[Alarm]:
    kinds = (Change.STRICTER, Change.MORE_LENIENT, Change.LESS_CONSISTENT)
    found = []
    for one in np.flatnonzero(watch.anchors_since != NEVER).tolist():
        night, change = int(watch.anchors_since[one]), kinds[int(watch.anchors.changes()[one])]
        evidence = _base10(watch.anchors.log_evidence(), one)
        found.append(Alarm(one, Cause.JUDGE, Stream.ANCHORS, change, night, night, evidence))
    if watch.flips_since != NEVER:
        night, evidence = int(watch.flips_since), _base10(watch.anchors.all_evidence())
        found.append(Alarm(None, Cause.JUDGE, Stream.ANCHORS, Change.LESS_CONSISTENT, night, night, evidence))
    return found


def _audit_alarms(watch: Watch) -> list[Alarm]:
    found = []
    for one in np.flatnonzero(watch.human_since != NEVER).tolist():
        night = int(watch.human_since[one])
        change = Change.LOWER if watch.human.falls()[one] else Change.HIGHER
        evidence = _base10(watch.human.log_evidence(), one)
        found.append(Alarm(one, Cause.BOT, Stream.AUDIT, change, night, night, evidence))
    return found
