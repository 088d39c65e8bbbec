"""The stored watch of a plan: baselines are frozen once, and only another judge starts them anew."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from alignment.alerts.core.attribution import Cause, Policy, Stream
from alignment.alerts.core.findings import Finding, findings, progress, settled
from alignment.alerts.core.plan_watch import (
    ANSWER_NIGHTS,
    CriterionNight,
    PlanNight,
    Settings,
    Step,
    Stratum,
    accept,
    add_audit,
    advance,
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
    bot: str = "5.1",
    question: str = "q1",
    whole: str = "J",
) -> PlanNight:
    """50 judged chats and 40 anchors, 30 of which pass; the first criterion has these passes and flips."""
    turned = set(flipped)
    anchors = {chat: (chat < 30) != (chat in turned) for chat in range(ANCHORS)}
    quiet = {chat: chat < 30 for chat in range(ANCHORS)}
    one = CriterionNight(judge, question, [Stratum(passed, 50, 2.0)], anchors)
    two = CriterionNight("k1", "q2", [Stratum(45, 50, 2.0)], quiet)
    return PlanNight(MONDAY + timedelta(days=number), whole, {1: one, 2: two}, {bot: 100})


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
    assert told(step) == [(1, Cause.JUDGE)]
    (found,) = findings(step.state)
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


def test_a_criterion_that_moves_far_is_no_change_of_all(baseline: Any) -> None:
    step = after(*(night(n, flipped=range(40)) for n in range(14, 24)), state=baseline)
    assert told(step) == [(1, Cause.JUDGE)]
    assert step.state["flips"]["alarmed"] is False


def test_another_judge_starts_anew_what_the_judge_moves(baseline: Any) -> None:
    drifted = after(*(night(n, passed=30, flipped=range(10)) for n in (14, 15)), state=baseline)
    step = after(night(16, passed=30, flipped=range(10), judge="j2", whole="J2"), state=drifted.state)
    assert (step.judges, step.questions, step.judge) == (frozenset({1}), frozenset(), True)
    assert told(step) == []
    assert progress(step.state["criteria"]["1"], SETTINGS).judged == (1, 14)
    assert progress(step.state["criteria"]["2"], SETTINGS).judged is None  # its prompt is the same


def test_another_bot_goes_on_with_the_baseline_and_the_evidence(baseline: Any) -> None:
    step = after(*(night(n, passed=25) for n in (14, 15)), state=baseline)
    step = after(*(night(n, passed=25, bot="5.2") for n in range(16, 22)), state=step.state)
    assert told(step) == [(1, Cause.BOT)]
    (signal,) = findings(step.state)[0].signals
    assert signal.before == pytest.approx(0.9)
    assert signal.nights == 8


def test_a_release_that_breaks_a_criterion_is_named_with_its_night(baseline: Any) -> None:
    step = after(night(14, passed=25, bot="5.2"), state=baseline)
    assert step.live == ("5.2",)
    step = after(*(night(n, passed=25, bot="5.2") for n in range(15, 22)), state=step.state)
    assert (step.live, told(step)) == ((), [(1, Cause.BOT)])


def test_releases_while_the_baseline_is_collected_are_a_part_of_it() -> None:
    """A shop that releases every few days has a baseline, too; it is as wide as its releases differ."""
    rates = [45, 45, 45, 41, 41, 41, 45, 45, 45, 41, 41, 41, 45, 45]
    nights = [night(n, passed=passed, bot=f"5.{n // 3}") for n, passed in enumerate(rates)]
    mixed = after(*nights).state
    rate, low, high = progress(mixed["criteria"]["1"], SETTINGS).rate or (0.0, 0.0, 0.0)
    assert low < 41 / 50 < rate < 45 / 50 < high
    assert told(after(*(night(n, passed=41, bot="5.9") for n in range(14, 60)), state=mixed)) == []


def test_a_rate_that_is_back_in_its_range_for_seven_nights_ends_its_alarm(baseline: Any) -> None:
    broken = after(*(night(n, passed=25, bot="5.2") for n in range(14, 22)), state=baseline)
    fixed = after(*(night(n, bot="5.3") for n in range(22, 28)), state=broken.state)
    assert told(fixed) == [(1, Cause.BOT)]
    assert settled(broken.state, fixed.state) == frozenset()
    step = after(night(28, bot="5.3"), state=fixed.state)
    assert told(step) == []
    assert settled(fixed.state, step.state) == {1}
    assert progress(step.state["criteria"]["1"], SETTINGS).judged is None  # the baseline stays
    again = after(*(night(n, passed=25, bot="5.4") for n in range(29, 36)), state=step.state)
    assert told(again) == [(1, Cause.BOT)]


def test_another_text_of_the_criterion_starts_everything_anew(baseline: Any) -> None:
    step = after(night(14, question="q9"), state=baseline)
    assert (step.questions, step.judges) == (frozenset({1}), frozenset())
    now = progress(step.state["criteria"]["1"], SETTINGS)
    assert (now.judged, now.anchors) == ((1, 14), (1, 14))
    assert step.state["criteria"]["1"]["audit"]["since"] == (MONDAY + timedelta(days=14)).isoformat()


@pytest.mark.parametrize(("of_judge", "anchors"), [(False, None), (True, (0, 14))])
def test_an_accepted_rate_is_the_baseline_of_the_next_nights(
    baseline: Any, of_judge: bool, anchors: Any
) -> None:
    step = after(*(night(n, passed=25) for n in range(14, 22)), state=baseline)
    state = accept(step.state, criterion=1, of_judge=of_judge, day=MONDAY)
    assert findings(state) == []
    now = progress(state["criteria"]["1"], SETTINGS)
    assert (now.judged, now.anchors) == ((0, 14), anchors)
    assert progress(state["criteria"]["2"], SETTINGS).judged is None
    later = after(*(night(n, passed=25) for n in range(22, 60)), state=state)
    assert told(later) == []
    assert (progress(later.state["criteria"]["1"], SETTINGS).rate or (0.0,))[0] == pytest.approx(0.5)


def test_a_judge_that_is_accepted_as_a_whole_has_new_baselines_of_all_criteria(baseline: Any) -> None:
    state = accept(baseline, criterion=None, of_judge=True, day=MONDAY)
    assert [progress(own, SETTINGS).anchors for own in state["criteria"].values()] == [(0, 14)] * 2
    assert (state["flips"]["band"], state["flips"]["alarmed"]) == (None, False)


def test_a_state_stored_before_this_version_goes_on(baseline: Any) -> None:
    old = json.loads(json.dumps(baseline)) | {"version": "5.1"}
    old.pop("live")
    old["flips"].pop("apart")
    for own in old["criteria"].values():
        own.pop("question")
        own["bot"] = "5.1 0 7"
    step = after(night(14), state=old)
    assert (step.judges, step.questions, step.live, told(step)) == (frozenset(), frozenset(), (), [])
    assert progress(step.state["criteria"]["1"], SETTINGS).judged is None


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
