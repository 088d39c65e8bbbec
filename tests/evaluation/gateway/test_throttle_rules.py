"""Reserved times and the circuit as plain arithmetic: who may leave when, and when nobody may."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.gateway.throttle import rules
from evaluation.gateway.throttle.rules import (
    FAILURES_TO_OPEN,
    REQUEST_BURST,
    Limits,
    News,
    State,
    admit,
    learn,
    reserve,
)

NO_LIMITS = Limits()


@pytest.fixture(autouse=True)
def whole_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round numbers; the share that is used has a test of its own."""
    monkeypatch.setattr(rules, "USED_SHARE", 1.0)


NOW = 1000.0


def news(state: State, now: float, *, limits: Limits = NO_LIMITS, **what: Any) -> State:
    return learn(state, now, News(**what), limits=limits, probe_every=10.0)


def most_within(times: list[float], seconds: float) -> int:
    """The most of these times in any window of so many seconds."""
    return max(sum(start <= time < start + seconds for time in times) for start in times)


@given(
    per_minute=st.integers(60, 6000),
    asked=st.lists(st.tuples(st.floats(0, 2), st.integers(1, 40)), min_size=1, max_size=60),
)
def test_no_ten_seconds_hold_over_a_tenth_more_than_the_limit(per_minute: int, asked) -> None:
    state, now, left = State(), NOW, []
    for pause, count in asked:
        now += pause
        step = reserve(state, now, tokens=[1] * count, limits=Limits(per_minute))
        state = step.state
        left += [max(now, time) for time in step.result]
    assert most_within(left, 10.0) <= 1.1 * per_minute / 6


def test_a_fiftieth_of_a_limit_is_left_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert Limits(requests_per_minute=60, tokens_per_minute=6000).request_pace == pytest.approx(1 / 0.98)
    assert Limits(tokens_per_minute=6000).token_pace == pytest.approx(0.01 / 0.98)
    assert Limits().request_pace == 0


def test_a_busy_worker_loses_no_time_and_an_idle_one_saves_none_up() -> None:
    limits = Limits(requests_per_minute=600)
    busy = reserve(State(), NOW, tokens=[1] * 100, limits=limits)
    assert busy.result[-1] == pytest.approx(NOW - REQUEST_BURST + 99 * 0.1)
    later = reserve(busy.state, NOW + 5.0, tokens=[1], limits=limits)
    assert later.result[0] == pytest.approx(NOW - REQUEST_BURST + 100 * 0.1)
    idle = reserve(busy.state, NOW + 3600.0, tokens=[1] * 3, limits=limits)
    assert idle.result[2] == pytest.approx(NOW + 3600.0 + 0.1)


def test_tokens_are_reserved_by_estimate_and_corrected_by_what_was_used() -> None:
    limits = Limits(tokens_per_minute=6000)
    first = reserve(State(), NOW, tokens=[500, 500], limits=limits)
    assert first.result == pytest.approx((NOW - 0.1, NOW + 4.0))
    corrected = news(first.state, NOW, limits=limits, tokens=-800)
    # In the order they asked: not before the one that was reserved last.
    assert reserve(corrected, NOW, tokens=[500, 1], limits=limits).result == pytest.approx(
        (NOW + 4.0, NOW + 6.0)
    )


def test_both_limits_hold_at_once() -> None:
    limits = Limits(requests_per_minute=60, tokens_per_minute=6000)
    times = reserve(State(), NOW, tokens=[1000, 10, 10], limits=limits).result
    assert times == pytest.approx((NOW - 0.1, NOW + 9.0, NOW + 10.0))


def test_after_a_pause_requests_leave_at_the_limit_and_not_all_together() -> None:
    limits = Limits(requests_per_minute=60)
    paused = news(State(), NOW, limits=limits, pause=30.0)
    times = reserve(paused, NOW, tokens=[1] * 3, limits=limits).result
    assert times == (NOW + 30, NOW + 31, NOW + 32)


def test_the_longest_pause_counts_and_a_shorter_one_does_not_end_it() -> None:
    paused = news(news(State(), NOW, pause=30.0), NOW + 1, pause=2.0)
    assert paused.not_before == NOW + 30


def test_the_circuit_opens_after_five_failures_in_a_row_whoever_saw_them() -> None:
    four = news(State(), NOW, failures=FAILURES_TO_OPEN - 1)
    assert four.opened_at is None
    assert news(four, NOW + 1, failures=1).opened_at == NOW + 1
    assert news(four, NOW + 1, answered=True, failures=1).opened_at is None


def test_an_open_circuit_lets_one_request_through_in_ten_seconds() -> None:
    state = news(State(), NOW, failures=FAILURES_TO_OPEN)
    probes = []
    for second in range(60):
        step = admit(
            state, NOW + second, news=News(failures=1), tokens=[1, 1], limits=NO_LIMITS, probe_every=10
        )
        state = step.state
        probes += [second for time in step.result if time is not None]
    assert probes == [10, 20, 30, 40, 50]


def test_the_first_answer_closes_the_circuit() -> None:
    opened = news(State(), NOW, failures=FAILURES_TO_OPEN)
    step = admit(opened, NOW + 10, news=News(answered=True), tokens=[1] * 3, limits=NO_LIMITS, probe_every=10)
    assert None not in step.result
    assert (step.state.opened_at, step.state.failures) == (None, 0)


def test_without_limits_and_news_the_state_stays_as_it_is() -> None:
    state = State(requests_due=5.0, failures=2)
    step = admit(state, NOW, news=News(), tokens=[1, 1], limits=NO_LIMITS, probe_every=10)
    assert step.state == state
    assert all(time is not None and time <= NOW for time in step.result)


def test_news_add_up_in_order() -> None:
    assert News(failures=3).then(News(failures=2)).failures == 5
    both = News(failures=3, pause=5.0, tokens=7).then(News(answered=True, failures=1, pause=2.0, tokens=-9))
    assert both == News(answered=True, failures=1, pause=5.0, tokens=-2)
