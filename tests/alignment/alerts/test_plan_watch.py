"""The stored watch of a plan: baselines are frozen once, and only another version starts them anew."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from alignment.alerts.core.attribution import Cause, Policy, Stream
from alignment.alerts.core.findings import Finding, findings, progress
from alignment.alerts.core.plan_watch import (
    ANSWER_NIGHTS,
    CriterionNight,
    PlanNight,
    Settings,
    Step,
    Stratum,
    add_audit,
    advance,
    night_version,
)

MONDAY = date(2026, 11, 2)
SETTINGS = Settings(policy=Policy(guard=100), family=2, nights=14)
CRITERIA = (1, 2)
ANCHORS = 40


def night(
    number: int,
    *,
    passed: int = 45,
    flipped: Iterable[int] = (),
    judge: str = "j1",
    bot: str = "b1",
    whole: str = "J",
) -> PlanNight:
    """50 judged chats and 40 anchors, 30 of which pass; the first criterion has these passes and flips."""
    turned = set(flipped)
    anchors = {chat: (chat < 30) != (chat in turned) for chat in range(ANCHORS)}
    quiet = {chat: chat < 30 for chat in range(ANCHORS)}
    one = CriterionNight(judge, bot, [Stratum(passed, 50, 2.0)], anchors)
    two = CriterionNight("k1", bot, [Stratum(45, 50, 2.0)], quiet)
    return PlanNight(MONDAY + timedelta(days=number), whole, {1: one, 2: two})


def after(*nights: PlanNight, state: Any = None) -> Step:
    step = Step(state or {})
    for each in nights:
        step = advance(json.loads(json.dumps(step.state)), each, SETTINGS)  # as a row stores it
    return step


@pytest.fixture(scope="module")
def baseline() -> Any:
    return after(*(night(number) for number in range(14))).state


def told(step: Step) -> list[tuple[int | None, Cause]]:
    return [(one.criterion, one.cause) for one in findings(step.state)]


def test_a_baseline_is_frozen_after_its_nights(baseline: Any) -> None:
    collecting = after(*(night(number) for number in range(13))).state["criteria"]["1"]
    assert progress(collecting, SETTINGS).judged == (13, 14)
    assert progress(collecting, SETTINGS).anchors == (13, 14)
    frozen = progress(baseline["criteria"]["1"], SETTINGS)
    assert (frozen.judged, frozen.anchors) == (None, None)
    assert frozen.rate is not None
    assert frozen.rate[0] == pytest.approx(0.9)
    assert (frozen.anchors_known, frozen.anchors_passing) == (40, 30)
    later = after(*(night(number, passed=44) for number in range(14, 20)), state=baseline)
    assert later.state["criteria"]["1"]["judged"]["band"] == baseline["criteria"]["1"]["judged"]["band"]


def test_the_baseline_answer_of_an_anchor_is_the_majority_of_seven_nights() -> None:
    nights = [night(number, flipped=[5] if number % 3 == 0 else []) for number in range(ANSWER_NIGHTS)]
    answers = after(*nights).state["criteria"]["1"]["anchors"]["answers"]
    assert answers["5"] == 1
    nights = [night(number, flipped=[5] if number % 3 else []) for number in range(ANSWER_NIGHTS)]
    assert after(*nights).state["criteria"]["1"]["anchors"]["answers"]["5"] == 0


def test_quiet_nights_raise_nothing(baseline: Any) -> None:
    assert told(after(*(night(number) for number in range(14, 60)), state=baseline)) == []


def test_a_stricter_judge_is_named_by_its_anchors(baseline: Any) -> None:
    step = after(*(night(n, passed=30, flipped=range(10)) for n in (14, 15, 16)), state=baseline)
    assert told(step) == [(None, Cause.JUDGE), (1, Cause.JUDGE)]  # half of all answers are its own
    found = findings(step.state)[1]
    assert {one.stream for one in found.signals} == {Stream.JUDGED, Stream.ANCHORS}
    judged = next(one for one in found.signals if one.stream is Stream.JUDGED)
    assert judged.before == pytest.approx(0.9)
    assert judged.nights == 3


def test_a_worse_bot_is_unclear_until_the_anchors_have_stood_still(baseline: Any) -> None:
    step = after(*(night(n, passed=25) for n in (14, 15)), state=baseline)
    assert told(step) == [(1, Cause.UNCLEAR)]
    step = after(*(night(n, passed=25) for n in range(16, 22)), state=step.state)
    assert told(step) == [(1, Cause.BOT)]


def test_flips_of_every_criterion_name_the_judge_of_all(baseline: Any) -> None:
    nights = []
    for number in range(14, 20):
        one = night(number, flipped=range(15, 30))
        both = {**one.criteria, 2: replace(one.criteria[2], anchors=one.criteria[1].anchors)}
        nights.append(replace(one, criteria=both))
    assert (None, Cause.JUDGE) in told(after(*nights, state=baseline))


def test_another_judge_starts_anew_what_the_judge_moves(baseline: Any) -> None:
    drifted = after(*(night(n, passed=30, flipped=range(10)) for n in (14, 15)), state=baseline)
    step = after(night(16, passed=30, flipped=range(10), judge="j2", whole="J2"), state=drifted.state)
    assert (step.judges, step.bots, step.judge) == (frozenset({1}), frozenset(), True)
    assert told(step) == []
    assert progress(step.state["criteria"]["1"], SETTINGS).judged == (1, 14)
    assert progress(step.state["criteria"]["2"], SETTINGS).judged is None  # its prompt is the same


def test_another_bot_leaves_the_anchors_alone(baseline: Any) -> None:
    drifted = after(*(night(n, passed=25) for n in (14, 15)), state=baseline)
    step = after(night(16, passed=25, bot="b2"), state=drifted.state)
    assert (step.judges, step.bots, step.judge) == (frozenset(), frozenset({1, 2}), False)
    assert told(step) == []
    now = progress(step.state["criteria"]["1"], SETTINGS)
    assert (now.judged, now.anchors) == ((1, 14), None)


def test_raters_labels_name_the_bot_after_seven_weeks_of_baseline(baseline: Any) -> None:
    state, week = baseline, MONDAY + timedelta(weeks=1)
    for number in range(7):
        state = add_audit(state, week + timedelta(weeks=number), {1: [Stratum(90, 100, 1.0)]}, SETTINGS)
    assert progress(state["criteria"]["1"], SETTINGS).audit is None
    for number in range(7, 10):
        state = add_audit(state, week + timedelta(weeks=number), {1: [Stratum(50, 100, 1.0)]}, SETTINGS)
    assert [(one.criterion, one.cause) for one in findings(state)] == [(1, Cause.BOT)]


def test_labels_from_before_the_version_do_not_count(baseline: Any) -> None:
    state = add_audit(baseline, MONDAY - timedelta(weeks=1), {1: [Stratum(90, 100, 1.0)]}, SETTINGS)
    assert progress(state["criteria"]["1"], SETTINGS).audit == (0, 7)


def test_a_judge_that_changes_after_the_bot_has_an_alert_of_its_own(baseline: Any) -> None:
    step = after(*(night(n, passed=25) for n in range(14, 22)), state=baseline)
    step = after(*(night(n, passed=20, flipped=range(15)) for n in range(22, 26)), state=step.state)
    assert set(told(step)) >= {(1, Cause.JUDGE), (1, Cause.BOT)}


def test_a_criterion_that_is_no_longer_asked_is_forgotten(baseline: Any) -> None:
    one = night(14)
    step = after(replace(one, criteria={2: one.criteria[2]}), state=baseline)
    assert list(step.state["criteria"]) == ["2"]


def test_nights_without_anchors_keep_an_alarm_unclear() -> None:
    def bare(number: int, passed: int) -> PlanNight:
        one = night(number, passed=passed)
        return replace(one, criteria={key: replace(row, anchors={}) for key, row in one.criteria.items()})

    nights = [bare(number, 45) for number in range(14)] + [bare(number, 25) for number in range(14, 40)]
    found: list[Finding] = findings(after(*nights).state)
    assert [one.cause for one in found] == [Cause.UNCLEAR]


def test_a_week_below_the_baseline_is_marked_when_it_is_over(baseline: Any) -> None:
    step = after(*(night(number, passed=38) for number in range(14, 21)), state=baseline)
    assert step.marks == ()
    step = after(night(21), state=step.state)
    marks = {mark.criterion: mark for mark in step.marks}
    assert (marks[1].week, marks[1].marked) == (MONDAY + timedelta(weeks=2), True)
    assert not marks[2].marked


def test_the_first_version_of_a_bot_is_the_most_frequent_one() -> None:
    assert night_version(None, {"": 3, "v2": 7}) == "v2"
    assert night_version("v1", {}) == "v1"
