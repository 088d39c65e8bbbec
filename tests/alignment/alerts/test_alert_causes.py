"""Alarms of planted changes name bot or judge; years without a change have next to none.

14 criteria; 500 chats judged a night; 120 anchors (80 True, 40 False by baseline) judged again every night,
of which 3% flip by chance; baselines of 28 nights; 175 audit labels a week; alpha .05 a year. Effects: a
silent model change flips 3% more answers of all criteria, both ways; a stricter prompt makes 8% of the True
answers of one criterion False; a bot drift costs 8 points of one human pass rate; a release of the bot is
another version, with or without such a drift.
"""

import numpy as np
import pytest

from alignment.alerts.core.attribution import (
    NEVER,
    Alarm,
    AnchorAnswers,
    Baselines,
    Cause,
    Change,
    Night,
    Policy,
    Rates,
    Stream,
    Watch,
    alarms,
    observe,
)
from alignment.alerts.core.baselines import Band
from alignment.alerts.core.detectors import NIGHTS_A_YEAR, Sample
from tests.factories.drifts import (
    Plant,
    Simulation,
    Verdicts,
    World,
    every,
    first_named,
    one,
    release_findings,
)

QUIET = 10  # nights before the change in quick runs
SILENT = Plant(QUIET, to_false=every(0.03), to_true=every(0.03))
STRICTER = Plant(QUIET, to_false=one(0.08))
BOT = Plant(QUIET, human=one(-0.08))


def named(plant: Plant, *, runs: int, nights: int, world: World | None = None, seed: int = 1) -> Verdicts:
    return first_named(Simulation(world or World(), plant, runs=runs, seed=seed).watched(nights))


def test_60_of_60_silent_model_changes_are_named_the_judges() -> None:
    found = named(SILENT, runs=60, nights=QUIET + 20)
    assert (found.judge.sum(), found.bot.sum()) == (60, 0)


def test_at_least_110_of_120_stricter_prompts_are_named_the_judges() -> None:
    found = named(STRICTER, runs=120, nights=QUIET + 30)
    assert found.judge.sum() >= 110
    assert found.bot.sum() == 0


def test_at_least_95_of_100_bot_drifts_are_named_the_bots() -> None:
    found = named(BOT, runs=100, nights=QUIET + 45)
    assert found.bot.sum() >= 95
    assert found.judge.sum() == 0


@pytest.mark.parametrize("effect", [0.5, 0.8])
def test_a_criterion_that_moves_far_is_no_change_of_all_criteria(effect: float) -> None:
    """It would end the certificates of all the others."""
    watch = Simulation(World(), Plant(QUIET, to_false=one(effect)), runs=40, seed=5).watched(QUIET + 30)
    assert (watch.flips_since == NEVER).all()
    assert (watch.anchors_since != NEVER).sum(axis=0).tolist() == [40 * (key == 5) for key in range(14)]


def test_a_silent_model_change_is_a_change_of_all_criteria() -> None:
    watch = Simulation(World(), SILENT, runs=60, seed=1).watched(QUIET + 20)
    assert (watch.flips_since != NEVER).sum() >= 58


@pytest.mark.heavy
def test_at_least_38_of_40_releases_that_cost_8_points_are_named_the_bots() -> None:
    found = release_findings(-0.08, runs=40, quiet=QUIET, nights=45, seed=21)
    assert sum([(one.criterion, one.cause) for one in run] == [(1, Cause.BOT)] for run in found) >= 38


@pytest.mark.heavy
def test_releases_that_change_nothing_raise_nothing() -> None:
    assert release_findings(0.0, runs=40, quiet=QUIET, nights=45, seed=22) == [[]] * 40


def test_quarters_without_a_change_have_no_alarm() -> None:
    """The bound allows 1.25% of them; the bands' slack leaves next to none."""
    found = named(Plant(10**6), runs=40, nights=NIGHTS_A_YEAR // 4)
    assert found.any_alarm.sum() == 0


@pytest.mark.heavy
@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_at_most_5_percent_of_years_without_a_change_have_an_alarm(spread: float) -> None:
    """Also where true rates differ from night to night by a standard deviation of 1 point."""
    found = named(Plant(10**6), runs=100, nights=NIGHTS_A_YEAR, world=World(spread=spread), seed=3)
    assert found.any_alarm.mean() <= 0.05


@pytest.mark.heavy
@pytest.mark.parametrize(("effect", "least"), [(0.06, 100), (0.08, 110), (0.10, 118)])
def test_stricter_prompts_by_effect(effect: float, least: int) -> None:
    found = named(Plant(60, to_false=one(effect)), runs=120, nights=60 + 60, seed=11)
    assert found.judge.sum() >= least
    assert found.bot.sum() <= 2


@pytest.mark.heavy
@pytest.mark.parametrize(("effect", "least"), [(-0.08, 95), (-0.10, 98), (0.10, 95)])
def test_bot_drifts_by_effect_also_with_uneven_nights(effect: float, least: int) -> None:
    world = World(spread=0.005)
    found = named(Plant(60, human=one(effect)), runs=100, nights=60 + 60, world=world, seed=12)
    assert found.bot.sum() >= least
    assert found.judge.sum() == 0


@pytest.mark.heavy
def test_a_judge_that_shows_60_percent_of_its_change_on_the_anchors_is_seldom_taken_for_the_bot() -> None:
    """Policy: a claim of half the shift is contradicted with error .05."""
    found = named(Plant(30, to_false=one(0.10), anchors=0.6), runs=120, nights=90, seed=13)
    assert found.bot.mean() <= 0.05
    assert found.judge.sum() >= 110


# ---- the rules, on nights without chance

CRITERIA = 2


def band(rate: float, low: float, high: float) -> Band:
    full = np.ones(CRITERIA)
    return Band(rate * full, low * full, high * full)


BASELINES = Baselines(
    band(0.90, 0.88, 0.92),
    band(0.02, 0.0, 0.04),
    band(0.02, 0.0, 0.04),
    band(0.02, 0.0, 0.04),
    band(0.02, 0.0, 0.04),
    band(0.90, 0.85, 0.95),
)


def night(
    *, passed: int = 450, down: int = 1, up: int = 1, anchors: int = 100, human: int | None = None
) -> Night:
    """A night in which the first criterion has these counts of 500 chats and 2 x `anchors` anchors."""
    n = np.full(CRITERIA, anchors)
    quiet = min(1, anchors)
    audit = None if human is None else Rates.of_counts([human, 180], [200, 200])
    return Night(
        Rates.of_counts([passed, 450], [500, 500]),
        AnchorAnswers(
            Sample.of_counts([min(down, anchors), quiet], n),
            Sample.of_counts([min(up, anchors), quiet], n),
            Sample.of_counts([min(down + up, 2 * anchors), 2 * quiet], 2 * n),
            Sample(np.array([0.0, 0.5]), np.array([[2.0 * anchors, 0.0]] * CRITERIA)),
        ),
        audit,
    )


def watch_of(*nights: Night) -> Watch:
    watch = Watch.start(CRITERIA)
    for each in nights:
        watch = observe(watch, each, baselines=BASELINES, policy=Policy(), looks_a_year=NIGHTS_A_YEAR)
    return watch


def only(watch: Watch) -> Alarm:
    (alarm,) = alarms(watch)
    return alarm


def test_nights_like_the_baseline_raise_nothing() -> None:
    assert alarms(watch_of(*[night(human=180)] * 50)) == ()


def test_a_sunken_judged_rate_is_unclear_at_first() -> None:
    watch = watch_of(*[night()] * 5, *[night(passed=390)] * 2)
    alarm = only(watch)
    assert (alarm.criterion, alarm.cause, alarm.stream) == (0, Cause.UNCLEAR, Stream.JUDGED)
    assert (alarm.change, alarm.night, alarm.named) == (Change.LOWER, 5, None)
    assert alarm.evidence >= np.log10(Policy().limit(CRITERIA))
    assert watch.unclear().tolist() == [True, False]


def test_the_bot_is_named_once_300_anchors_have_stood_still() -> None:
    watch = watch_of(*[night()] * 5, *[night(passed=390)] * 3)
    assert only(watch).cause is Cause.UNCLEAR
    alarm = only(watch_of(*[night()] * 5, *[night(passed=390)] * 10))
    assert (alarm.cause, alarm.night, alarm.named) == (Cause.BOT, 5, 8)


def test_a_raised_rate_is_held_against_the_anchors_that_were_false() -> None:
    """Many of those that were True flip, within their noise or not; only the False ones could raise it."""
    alarm = only(watch_of(*[night()] * 5, *[night(passed=495)] * 10))
    assert (alarm.cause, alarm.change) == (Cause.BOT, Change.HIGHER)


def test_without_anchors_it_stays_unclear() -> None:
    alarm = only(watch_of(*[night(passed=390, anchors=0, down=0, up=0)] * 100))
    assert (alarm.cause, alarm.named) == (Cause.UNCLEAR, None)


def test_anchors_that_move_name_the_judge_and_clear_up_the_judged_rates_alarm() -> None:
    found = alarms(watch_of(*[night()] * 5, *[night(passed=390, down=14)] * 6))
    assert {alarm.cause for alarm in found} == {Cause.JUDGE}
    assert {(alarm.stream, alarm.change) for alarm in found} == {
        (Stream.JUDGED, Change.LOWER),
        (Stream.ANCHORS, Change.STRICTER),
    }
    judged, anchors = sorted(found, key=lambda alarm: alarm.stream, reverse=True)
    assert judged.named == max(judged.night, anchors.night)


def test_anchors_that_move_end_no_other_criterion() -> None:
    watch = watch_of(*[night(up=14)] * 10)
    assert only(watch).change is Change.MORE_LENIENT
    assert watch.judge_named().tolist() == [True, False]


def test_flips_of_all_criteria_name_the_judge_in_each() -> None:
    quiet = night()
    noisy = Sample(np.array([0.0, 0.5]), np.array([[160.0, 40.0]] * CRITERIA))
    anchors = AnchorAnswers(quiet.anchors.to_false, quiet.anchors.to_true, quiet.anchors.flipped, noisy)
    watch = watch_of(*[Night(quiet.judged, anchors)] * 5)
    alarm = only(watch)
    assert (alarm.criterion, alarm.cause, alarm.change) == (None, Cause.JUDGE, Change.LESS_CONSISTENT)
    assert watch.judge_named().tolist() == [True, True]


def test_flips_that_one_criterion_explains_are_not_those_of_all() -> None:
    quiet = night()
    counts = np.array([[200.0, 0.0], [160.0, 40.0]])  # without the first criterion there are none
    flips = Sample(np.array([0.0, 0.5]), counts)
    anchors = AnchorAnswers(quiet.anchors.to_false, quiet.anchors.to_true, quiet.anchors.flipped, flips)
    assert alarms(watch_of(*[Night(quiet.judged, anchors)] * 5)) == ()


def test_the_raters_rate_names_the_bot_whatever_the_judge_says() -> None:
    watch = watch_of(*[night(human=140)] * 4)
    alarm = only(watch)
    assert (alarm.cause, alarm.stream, alarm.change) == (Cause.BOT, Stream.AUDIT, Change.LOWER)
    assert watch.bot_named().tolist() == [True, False]


def test_without_a_baseline_of_the_audit_its_labels_wait() -> None:
    without = Baselines(
        BASELINES.judged, BASELINES.to_false, BASELINES.to_true, BASELINES.flipped, BASELINES.flips
    )
    watch = Watch.start(CRITERIA)
    watch = observe(watch, night(human=0), baselines=without, policy=Policy(), looks_a_year=NIGHTS_A_YEAR)
    assert (watch.human_since == NEVER).all()


def test_the_family_pays_for_every_stream_of_every_criterion() -> None:
    policy = Policy()
    assert policy.members(14) == 3 * 14 + 1
    spent = policy.members(14) / policy.limit(14) + (5 * 14 + 1) * policy.band_alpha(14)
    assert spent == pytest.approx(policy.alpha)
