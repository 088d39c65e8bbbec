"""Which failures are worth another attempt, and how long to wait."""

from typing import get_args

import pytest

from evaluation.gateway.replies import Kind, Outcome
from evaluation.gateway.retries import (
    LONGEST_RETRY_AFTER,
    LONGEST_WAIT,
    MAX_REFUSED_ATTEMPTS,
    OUTAGE,
    Streak,
    decide,
    wait_before_next,
)


def actions(kind: Kind, *, status: int | None = None) -> list[str]:
    """What is decided after attempts 1 to 4 that all end like this, while other calls are answered."""
    outcome = Outcome(kind=kind, status=status)
    return [decide(outcome=outcome, attempt=n, seed="s").action for n in range(1, 5)]


@pytest.mark.parametrize("kind", ["answered", "refused", "cut_off", "too_long"])
def test_a_result_is_kept_and_never_asked_again(kind: Kind) -> None:
    assert actions(kind) == ["keep"] * 4


@pytest.mark.parametrize("kind", ["server_error", "connection"])
def test_what_was_not_billed_gets_four_attempts(kind: Kind) -> None:
    assert actions(kind) == ["again", "again", "again", "give_up"]


@pytest.mark.parametrize("kind", ["timeout", "not_json"])
def test_what_may_have_been_billed_gets_two_attempts(kind: Kind) -> None:
    assert actions(kind)[:2] == ["again", "give_up"]


@pytest.mark.parametrize("kind", ["too_big", "bad_request"])
def test_what_would_fail_again_is_given_up_at_once(kind: Kind) -> None:
    assert actions(kind)[0] == "give_up"


@pytest.mark.parametrize(("kind", "status"), [("auth", 401), ("redirect", 307), ("bad_request", 404)])
def test_what_fails_every_call_stops_the_run_at_once(kind: Kind, status: int) -> None:
    assert actions(kind, status=status)[0] == "stop"


def test_too_many_requests_at_once_are_asked_again_ten_times() -> None:
    outcome = Outcome(kind="rate_limited", status=429)
    decided = [decide(outcome=outcome, attempt=n, seed="s").action for n in range(1, 12)]
    assert decided.index("give_up") + 1 == MAX_REFUSED_ATTEMPTS


@pytest.mark.parametrize("kind", sorted(OUTAGE))
def test_where_more_than_two_calls_fail_the_attempt_is_not_held_against_the_call(kind: Kind) -> None:
    outcome = Outcome(kind=kind, status=None)
    for attempt in (1, 2, 3, 30):
        decision = decide(outcome=outcome, attempt=attempt, seed="s", streak=Streak(calls=3, own=1))
        assert (decision.action, decision.counts) == ("again", False)
    for calls in (1, 2):
        assert decide(outcome=outcome, attempt=1, seed="s", streak=Streak(calls=calls, own=1)).counts


def test_two_calls_that_alone_fail_are_given_up() -> None:
    outcome = Outcome(kind="server_error", status=500)
    assert decide(outcome=outcome, attempt=4, seed="s", streak=Streak(2, 4)).action == "give_up"


def test_an_endpoint_that_nobody_reaches_is_never_the_fault_of_a_call() -> None:
    outcome = Outcome(kind="connection", status=None)
    alone, others_answered = Streak(calls=1, own=4), Streak(calls=1, own=1)
    decision = decide(outcome=outcome, attempt=4, seed="s", streak=alone)
    assert (decision.action, decision.counts) == ("again", False)
    assert decide(outcome=outcome, attempt=4, seed="s", streak=others_answered).action == "give_up"


@pytest.mark.parametrize("kind", sorted(set(get_args(Kind)) - OUTAGE))
def test_no_kind_gets_an_eleventh_attempt(kind: Kind) -> None:
    outcome = Outcome(kind=kind, status=None)
    assert decide(outcome=outcome, attempt=10, seed="s", streak=Streak(99, 99)).action != "again"


def test_waits_double_with_jitter_up_to_a_limit() -> None:
    for attempt, longest in [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (100, LONGEST_WAIT)]:
        waits = [wait_before_next(attempt=attempt, seed=f"call {n}") for n in range(200)]
        assert longest / 2 <= min(waits) <= max(waits) <= longest
        assert max(waits) - min(waits) > longest * 0.4


def test_the_same_seed_waits_the_same_time() -> None:
    assert wait_before_next(attempt=2, seed="a") == wait_before_next(attempt=2, seed="a")
    assert wait_before_next(attempt=2, seed="a") != wait_before_next(attempt=2, seed="b")


@pytest.mark.parametrize("asked", [0.0, 7.0, LONGEST_RETRY_AFTER])
def test_retry_after_is_obeyed_within_a_second(asked: float) -> None:
    outcome = Outcome(kind="rate_limited", status=429, retry_after=asked)
    assert asked <= decide(outcome=outcome, attempt=1, seed="s").wait <= asked + 1


def test_an_hour_of_retry_after_is_cut_to_the_limit() -> None:
    assert wait_before_next(attempt=1, seed="s", retry_after=3600) <= LONGEST_RETRY_AFTER + 1
