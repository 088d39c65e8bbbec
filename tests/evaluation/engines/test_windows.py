"""A chat too long for one call is judged in windows of whole messages, by a rule that the verdict states."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.transcript_fencing import render_message
from evaluation.core.types import (
    Chat,
    Engine,
    GroupResult,
    Message,
    Reply,
    Request,
    VerdictResult,
    WindowRule,
    Windows,
)
from evaluation.engines.core.windows import split_into_windows
from tests.factories.scripted_model import (
    POLITE,
    WRONG_FACT,
    Answering,
    answered,
    judged,
    only,
    verdicts,
)

NINE = Chat("long", tuple(Message(n, "user", f"message {n}") for n in range(1, 10)))
TRUE, FALSE, NA = (verdicts(wrong_fact=word) for word in ("TRUE", "FALSE", "NOT_APPLICABLE"))
FAILED, REFUSED, TOO_LONG = (
    Reply("failed", "", "timeout"),
    Reply("refused", "", "no"),
    Reply("too_long", "", "context"),
)


def tokens_of(count: int) -> int:
    """Room for so many of the messages of NINE."""
    return count * (len(render_message(NINE.messages[0])) + 1) // 4 + 1


def in_windows(
    *replies: Reply, rule: WindowRule = "any_fails", engine: Engine = "direct", samples: int = 1
) -> GroupResult:
    """NINE in three windows (messages 1 to 4, 4 to 7, 7 to 9), each answered by its reply."""
    model = Answering(lambda request: replies[request.window])
    windows = Windows(tokens=tokens_of(4), overlap=1, rule=rule)
    return judged(model, engine=engine, criteria=[WRONG_FACT], chat=NINE, windows=windows, samples=samples)


def verdict_of(*replies: Reply, rule: WindowRule = "any_fails") -> VerdictResult:
    return only(in_windows(*replies, rule=rule).verdicts)


def size_of(part: Chat) -> int:
    """Characters of a window as a prompt shows it."""
    return sum(len(render_message(message)) + 1 for message in part.messages)


# cutting


def test_chat_that_fits_is_judged_whole() -> None:
    windows = Windows(tokens=tokens_of(9), overlap=1)
    model = Answering(lambda request: FALSE)
    verdict = only(judged(model, engine="direct", criteria=[WRONG_FACT], chat=NINE, windows=windows).verdicts)
    assert (verdict.value, verdict.flags, len(model.requests)) == (False, (), 1)
    whole = Answering(lambda request: FALSE)
    judged(whole, engine="direct", criteria=[WRONG_FACT], chat=NINE)
    assert model.requests == whole.requests


def test_windows_are_whole_messages_with_their_numbers_and_overlap() -> None:
    parts = split_into_windows(NINE, Windows(tokens=tokens_of(4), overlap=2))
    assert [[m.n for m in part.messages] for part in parts] == [
        [1, 2, 3, 4],
        [3, 4, 5, 6],
        [5, 6, 7, 8],
        [7, 8, 9],
    ]


def test_message_longer_than_a_window_is_a_window_of_its_own_and_never_shortened() -> None:
    long = Message(3, "user", "x" * 4000)
    chat = replace(NINE, messages=(*NINE.messages[:2], long, *NINE.messages[3:5]))
    parts = split_into_windows(chat, Windows(tokens=tokens_of(3), overlap=1))
    assert [[m.n for m in part.messages] for part in parts] == [[1, 2], [3], [4, 5]]
    assert parts[1].messages == (long,)


@given(st.lists(st.integers(0, 400), max_size=40), st.integers(1, 300), st.integers(0, 50))
def test_every_message_is_in_a_window_and_every_window_fits_or_is_one_message(
    lengths: list[int], tokens: int, overlap: int
) -> None:
    messages = tuple(Message(n, "assistant", "x" * length) for n, length in enumerate(lengths, 1))
    chat = Chat("h", messages)
    parts = split_into_windows(chat, Windows(tokens=tokens, overlap=overlap))
    if len(parts) == 1:
        assert parts == (chat,)
        return
    assert {m for part in parts for m in part.messages} == set(messages)
    assert all(size_of(part) <= 4 * tokens or len(part.messages) == 1 for part in parts)
    for earlier, later in pairwise(parts):
        assert later.messages[-1].n > earlier.messages[-1].n
        assert later.messages[0].n <= earlier.messages[-1].n + 1
        assert earlier.messages[-1].n - later.messages[0].n + 1 <= overlap
    for part in parts:
        numbers = [m.n for m in part.messages]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_each_window_is_asked_about_its_own_messages_and_named_as_a_part() -> None:
    model = Answering(lambda request: FALSE)
    windows = Windows(tokens=tokens_of(4), overlap=1)
    result = judged(model, engine="direct", criteria=[WRONG_FACT], chat=NINE, windows=windows)
    texts = [request.messages[1].text for request in model.requests]
    assert ["message 1\n" in text for text in texts] == [True, False, False]
    assert ["m04 customer| message 4\n" in text for text in texts] == [True, True, False]
    assert ["m09 customer| message 9\n" in text for text in texts] == [False, False, True]
    assert "part 2 of 3, its messages m4 to m7 of m9" in texts[1]
    assert [request.window for request in model.requests] == [0, 1, 2]
    assert [(use.role, use.step, use.window) for use in result.calls] == [
        ("direct", 1, window) for window in range(3)
    ]


def test_without_the_setting_a_chat_that_is_too_long_has_no_verdict() -> None:
    model = Answering(lambda request: TOO_LONG)
    verdict = only(judged(model, engine="direct", chat=NINE).verdicts)
    assert (verdict.state, verdict.value, len(model.requests)) == ("too_long", None, 1)


# any_fails: "Did the bot state a wrong fact?" fails when True


@pytest.mark.parametrize(
    ("replies", "value", "window"),
    [
        ((FALSE, TRUE, FALSE), True, 1),
        ((TRUE, FALSE, TRUE), True, 0),
        ((FALSE, FALSE, FALSE), False, 0),
        ((NA, FALSE, NA), False, 1),
        ((NA, NA, NA), None, 0),
        ((NA, NA, TRUE), True, 2),
        ((REFUSED, TRUE, FAILED), True, 1),
    ],
)
def test_failing_answer_in_any_window_decides(
    replies: tuple[Reply, ...], value: bool | None, window: int
) -> None:
    verdict = verdict_of(*replies)
    assert (verdict.state, verdict.value) == ("read", value)
    assert verdict.flags == ("windows:3", f"from_window:{window}")
    assert "the failing answer in any window decides" in verdict.explanation


def test_what_fails_is_the_criterions_own_failing_answer() -> None:
    replies = [verdicts(polite="TRUE"), verdicts(polite="FALSE"), verdicts(polite="TRUE")]
    model = Answering(lambda request: replies[request.window])
    windows = Windows(tokens=tokens_of(4), overlap=1)
    verdict = only(judged(model, engine="direct", criteria=[POLITE], chat=NINE, windows=windows).verdicts)
    assert (verdict.value, verdict.flags[1]) == (False, "from_window:1")


@pytest.mark.parametrize(
    ("replies", "state", "window"),
    [
        ((FALSE, REFUSED, FALSE), "refused", 1),
        ((NA, TOO_LONG, NA), "too_long", 1),
        ((TOO_LONG, FALSE, FAILED), "failed", 2),
    ],
)
def test_window_without_a_verdict_leaves_the_whole_without_one_unless_another_fails(
    replies: tuple[Reply, ...], state: str, window: int
) -> None:
    verdict = verdict_of(*replies)
    assert (verdict.state, verdict.value) == (state, None)
    assert verdict.flags == ("windows:3", f"from_window:{window}")
    assert f"no verdict on window {window + 1}" in verdict.explanation


def test_single_message_that_no_call_can_hold_is_too_long_for_the_whole_chat() -> None:
    long = Message(3, "user", "x" * 4000)
    chat = replace(NINE, messages=(*NINE.messages[:2], long, *NINE.messages[3:]))

    def answer(request: Request) -> Reply:
        return TOO_LONG if "x" * 4000 in request.messages[1].text else verdicts(polite="TRUE")

    windows = Windows(tokens=tokens_of(4), overlap=0)
    verdict = only(judged(Answering(answer), engine="direct", chat=chat, windows=windows).verdicts)
    assert (verdict.state, verdict.value) == ("too_long", None)


# last_decides


@pytest.mark.parametrize(
    ("replies", "value", "window"),
    [
        ((TRUE, FALSE, TRUE), True, 2),
        ((TRUE, TRUE, FALSE), False, 2),
        ((TRUE, FALSE, NA), False, 1),
        ((TRUE, NA, NA), True, 0),
        ((NA, NA, NA), None, 0),
        ((FAILED, REFUSED, TRUE), True, 2),
    ],
)
def test_last_window_in_which_the_criterion_applies_decides(
    replies: tuple[Reply, ...], value: bool | None, window: int
) -> None:
    verdict = verdict_of(*replies, rule="last_decides")
    assert (verdict.state, verdict.value) == ("read", value)
    assert verdict.flags == ("windows:3", f"from_window:{window}")
    assert "the last window in which the criterion applies decides" in verdict.explanation


def test_last_window_without_a_verdict_could_have_decided() -> None:
    verdict = verdict_of(FALSE, REFUSED, NA, rule="last_decides")
    assert (verdict.state, verdict.value, verdict.flags[1]) == ("refused", None, "from_window:1")


# with the engines and with samples


def test_explanation_holds_the_rule_and_the_deciding_windows_own_reason() -> None:
    wrong = answered("The price is wrong.\nVERDICTS\nwrong_fact: TRUE")
    verdict = verdict_of(FALSE, wrong, FALSE)
    assert verdict.explanation == (
        "Judged in 3 overlapping windows; the failing answer in any window decides: decided by window 2, "
        "messages 4 to 7. The price is wrong."
    )


def test_reflections_first_verdict_is_joined_by_the_same_rule() -> None:
    def answer(request: Request) -> Reply:
        return TRUE if (request.role, request.window) == ("direct", 1) else FALSE

    windows = Windows(tokens=tokens_of(4), overlap=1)
    result = judged(Answering(answer), engine="reflection", criteria=[WRONG_FACT], chat=NINE, windows=windows)
    verdict = only(result.verdicts)
    assert (verdict.first_state, verdict.first_value, verdict.value) == ("read", True, False)


def test_samples_vote_on_whole_chats_not_on_windows() -> None:
    """Each sample finds another window failing: all agree that the chat fails."""

    def answer(request: Request) -> Reply:
        return TRUE if request.window == request.sample else FALSE

    windows = Windows(tokens=tokens_of(4), overlap=1)
    result = judged(
        Answering(answer), engine="direct", criteria=[WRONG_FACT], chat=NINE, windows=windows, samples=3
    )
    verdict = only(result.verdicts)
    assert verdict.votes is not None
    assert (verdict.value, verdict.votes.true) == (True, 3)
    assert verdict.flags == ("from_sample:0", "windows:3", "from_window:0")
    assert [(use.sample, use.window) for use in result.calls] == [
        (sample, window) for sample in range(3) for window in range(3)
    ]
