"""What an endpoint says about its limits is read where it makes sense, and never trusted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.gateway.rate_limit_headers import LONGEST_RESET, Allowance, duration, read_allowance
from evaluation.gateway.replies import read_reply

GOOD = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()
HEADERS = {
    "X-RateLimit-Remaining-Requests": "0",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-reset-tokens": "6m0s",
    "x-request-id": "req_1",
}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("6m0s", 360.0), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("7.66s", 7.66), ("20", 20.0)],
)
def test_durations_of_every_spelling_are_read(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "soon", "-1s", "1 s", "s", "1x", "nan", "inf", "1e30", "99999999d", "1s" * 40, None]
)
def test_nonsense_durations_are_ignored(text: str | None) -> None:
    assert duration(text) is None


@given(st.text(max_size=40))
def test_no_text_becomes_an_endless_or_negative_wait(text: str) -> None:
    seconds = duration(text)
    assert seconds is None or 0 <= seconds <= LONGEST_RESET


@pytest.mark.parametrize("status", [200, 429, 500])
def test_answers_and_refusals_carry_what_is_left(status: int) -> None:
    content = GOOD if status == 200 else b"{}"
    outcome = read_reply(status=status, headers=HEADERS, content=content)
    assert outcome.allowance == Allowance(0, 149984, 1.0, 360.0)


def test_an_endpoint_that_says_nothing_has_no_allowance() -> None:
    assert read_reply(status=200, headers={"x-request-id": "r"}, content=GOOD).allowance is None


def test_counts_that_are_none_are_unknown() -> None:
    headers = {"x-ratelimit-remaining-requests": "many", "x-ratelimit-remaining-tokens": "-3"}
    assert read_allowance(headers) == Allowance()
    assert Allowance().pause(tokens=1000) == 0


def test_the_pause_lasts_until_a_request_of_that_size_has_a_chance() -> None:
    allowance = Allowance(requests_left=1, tokens_left=500, requests_reset=2.0, tokens_reset=30.0)
    assert allowance.pause(tokens=400) == 0
    assert allowance.pause(tokens=501) == 30.0
    assert Allowance(requests_left=0, requests_reset=2.0).pause(tokens=1) == 2.0
    assert Allowance(requests_left=0).pause(tokens=1) == 0
