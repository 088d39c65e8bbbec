"""Invented years of judged production: chats, anchors and audits, with a planted change of bot or judge."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from alignment.alerts.core.attribution import (
    NEVER,
    AnchorAnswers,
    Baselines,
    Night,
    Policy,
    Rates,
    Watch,
    observe,
)
from alignment.alerts.core.baselines import flip_band, mean_flip_band, night_band
from alignment.alerts.core.detectors import NIGHTS_A_YEAR, Floats, Sample
from alignment.alerts.core.findings import Finding, findings
from alignment.alerts.core.plan_watch import CriterionNight, PlanNight, Settings, Stratum, advance

CRITERIA = 14
BASELINE_NIGHTS = 28
TRUE_ANCHORS, FALSE_ANCHORS = 80, 40
JUDGE_TPR, JUDGE_TNR = 0.95, 0.85


@dataclass(frozen=True)
class Plant:
    """What changes on night `night`.

    human : change of the raters' pass rate by criterion, shape (14,). to_false, to_true : share of the
    judge's True answers that become False, and of its False answers that become True, by criterion. anchors :
    how much of that the anchors show.
    """

    night: int = 30
    human: Floats = field(default_factory=lambda: np.zeros(CRITERIA))
    to_false: Floats = field(default_factory=lambda: np.zeros(CRITERIA))
    to_true: Floats = field(default_factory=lambda: np.zeros(CRITERIA))
    anchors: float = 1.0


def one(effect: float, criterion: int = 5) -> Floats:
    """An effect on one criterion."""
    return np.where(np.arange(CRITERIA) == criterion, effect, 0.0)


def every(effect: float) -> Floats:
    """The same effect on all criteria."""
    return np.full(CRITERIA, effect)


@dataclass(frozen=True)
class World:
    """Settings: chats judged a night, flips of a judge asked twice, sd of true rates between nights."""

    chats: int = 500
    noise: float = 0.03
    spread: float = 0.0
    audit_share: float = 0.05
    rates: Floats = field(default_factory=lambda: np.linspace(0.75, 0.97, CRITERIA))


class Simulation:
    """Runs side by side: baseline nights, then `nights` watched ones."""

    def __init__(self, world: World, plant: Plant, *, runs: int, seed: int, policy: Policy | None = None):
        self.world, self.plant, self.runs = world, plant, runs
        self.policy = policy or Policy()
        self.draw = np.random.default_rng(seed)
        anchors = TRUE_ANCHORS + FALSE_ANCHORS
        # Some chats are hard, and an anchor that flips once flips often.
        hard = self.draw.gamma(2.0, 0.5, (runs, anchors, 1))
        single = self.draw.gamma(0.5, 2.0, (runs, anchors, CRITERIA))
        propensity = np.minimum(world.noise * hard * single, 0.5)
        order = self.draw.random((runs, anchors, CRITERIA)).argsort(axis=1)
        self.was_true = order < TRUE_ANCHORS
        self.chances = propensity.astype(np.float32)
        shown = np.where(self.was_true, plant.to_false, plant.to_true) * plant.anchors
        self.changed = (propensity + shown * (1 - propensity)).astype(np.float32)
        self.baselines = self._baselines()

    def anchors(self, night: int) -> AnchorAnswers:
        chances = self.changed if night >= self.plant.night else self.chances
        flips = self.draw.random(chances.shape, dtype=np.float32) < chances
        down, all_ = (flips & self.was_true).sum(axis=1), flips.sum(axis=1)
        # Criteria that flipped without each criterion: by run, anchor and criterion.
        others = flips.sum(axis=2)[..., np.newaxis] - flips
        return AnchorAnswers(
            Sample.of_counts(down, np.full(down.shape, TRUE_ANCHORS)),
            Sample.of_counts(all_ - down, np.full(down.shape, FALSE_ANCHORS)),
            Sample.of_counts(all_, np.full(down.shape, TRUE_ANCHORS + FALSE_ANCHORS)),
            shares_of(others),
        )

    def human_rates(self, night: int) -> Floats:
        shift = self.plant.human if night >= self.plant.night else np.zeros(CRITERIA)
        daily = self.draw.normal(0.0, self.world.spread, (self.runs, CRITERIA))
        return np.clip(self.world.rates + shift + daily, 0.0, 1.0)

    def judged(self, night: int) -> Rates:
        human = self.human_rates(night)
        rate = human * JUDGE_TPR + (1 - human) * (1 - JUDGE_TNR)
        if night >= self.plant.night:
            rate = rate * (1 - self.plant.to_false) + (1 - rate) * self.plant.to_true
        passed = self.draw.binomial(self.world.chats, rate)
        return Rates.of_counts(passed, np.full(passed.shape, self.world.chats))

    def audited(self, night: int) -> Rates:
        labels = round(7 * self.world.chats * self.world.audit_share)
        return Rates.of_counts(
            self.draw.binomial(labels, self.human_rates(night)), np.full((self.runs, CRITERIA), labels)
        )

    def _baselines(self) -> Baselines:
        alpha = self.policy.band_alpha(CRITERIA)
        nights = [self.anchors(-1) for _ in range(BASELINE_NIGHTS)]

        def flips(name: str):
            samples = [getattr(one, name) for one in nights]
            return flip_band(sum(s.total() for s in samples), sum(s.n() for s in samples), alpha=alpha)

        return Baselines(
            night_band([self.judged(-1).passed for _ in range(BASELINE_NIGHTS)], alpha=alpha),
            flips("to_false"),
            flips("to_true"),
            flips("flipped"),
            mean_flip_band([night.flips for night in nights], alpha=alpha),
            night_band([self.audited(-1).passed for _ in range(7)], alpha=alpha),
        )

    def watched(self, nights: int) -> Watch:
        """The watch after so many nights."""
        watch = Watch.start(CRITERIA, families=(self.runs,))
        for night in range(nights):
            audit = self.audited(night) if night % 7 == 6 else None
            watch = observe(
                watch,
                Night(self.judged(night), self.anchors(night), audit),
                baselines=self.baselines,
                policy=self.policy,
                looks_a_year=NIGHTS_A_YEAR,
            )
        return watch


def shares_of(flipped: NDArray[np.int64]) -> Sample:
    """Shares of the other criteria, from how many flipped by run, anchor and criterion."""
    runs, _, columns = flipped.shape
    width = CRITERIA + 1
    place = np.arange(runs)[:, np.newaxis, np.newaxis] * columns + np.arange(columns)
    counts = np.bincount((place * width + flipped).ravel(), minlength=runs * columns * width)
    return Sample(np.arange(width) / (CRITERIA - 1), counts.reshape(runs, columns, width).astype(np.float64))


@dataclass(frozen=True)
class Verdicts:
    """By run: what is named first, and on which night; -1 where nothing is.

    judge, bot : named first (the judge, if both on one night). any_alarm : of whatever stream.
    """

    judge: NDArray[np.bool_]
    bot: NDArray[np.bool_]
    any_alarm: NDArray[np.bool_]
    judged_night: NDArray[np.int64]
    named_night: NDArray[np.int64]


def first_named(watch: Watch) -> Verdicts:
    """What each run names first over all criteria."""
    judge = _earliest(np.concatenate([watch.anchors_since, watch.flips_since[..., np.newaxis]], axis=-1))
    bot = _earliest(np.concatenate([watch.human_since, watch.guard_since], axis=-1))
    judged = _earliest(watch.judged_since)
    late = np.iinfo(np.int64).max
    judge_first = (judge <= bot) & (judge < late)
    named = np.minimum(judge, bot)
    alarmed = np.minimum(named, judged) < late
    return Verdicts(
        judge_first,
        (bot < judge),
        alarmed,
        np.where(judged < late, judged, NEVER),
        np.where(named < late, named, NEVER),
    )


def _earliest(nights: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.where(nights == NEVER, np.iinfo(np.int64).max, nights).min(axis=-1))


# ---- a release of the bot, through the stored watch of a plan

OLD, NEW = "5.1", "5.2"
# Human pass rates of the criteria 1 and 2 of the plan; the release moves that of the first.
RELEASE_RATES = np.array([0.87, 0.92])


def released_nights(
    effect: float, *, world: World, quiet: int, nights: int, draw: np.random.Generator
) -> Iterator[PlanNight]:
    """Nights of the baseline and `quiet` more with the old version, then `nights` with the new one."""
    for number in range(BASELINE_NIGHTS + quiet + nights):
        new = number >= BASELINE_NIGHTS + quiet
        human = RELEASE_RATES + np.array([effect * new, 0.0])
        passed = draw.binomial(world.chats, human * JUDGE_TPR + (1 - human) * (1 - JUDGE_TNR))
        flips = draw.random((2, TRUE_ANCHORS + FALSE_ANCHORS)) < world.noise
        criteria = {
            place + 1: CriterionNight(
                "judge",
                "text",
                [Stratum(int(passed[place]), world.chats, 1.0)],
                {chat: (chat < TRUE_ANCHORS) != bool(flip) for chat, flip in enumerate(flips[place])},
            )
            for place in range(2)
        }
        day = date(2026, 1, 5) + timedelta(days=number)
        yield PlanNight(day, "judge", criteria, {NEW if new else OLD: world.chats})


def release_findings(effect: float, *, runs: int, quiet: int, nights: int, seed: int) -> list[list[Finding]]:
    """What stands at the end of each run, of a family of 14 criteria."""
    draw, settings = np.random.default_rng(seed), Settings(family=CRITERIA, nights=BASELINE_NIGHTS)
    found = []
    for _ in range(runs):
        state: dict[str, object] = {}
        live: list[str] = []
        for night in released_nights(effect, world=World(), quiet=quiet, nights=nights, draw=draw):
            step = advance(state, night, settings)
            state, live = step.state, [*live, *step.live]
        assert live == [NEW]
        found.append(findings(state))
    return found
