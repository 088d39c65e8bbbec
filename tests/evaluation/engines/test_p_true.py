"""P(True) compares TRUE with FALSE at the answer's token, for any cut of the tokens."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.types import Reply, Request, TokenLogprob
from evaluation.engines.core.probability import p_true
from tests.factories.scripted_model import (
    CLEAR,
    POLITE,
    WRONG_FACT,
    Answering,
    Script,
    answered,
    judged,
    only,
)

PROSE = "The bot says that TRUE friends help.\n"
Ways = Sequence[tuple[str, float]]


def token(text: str, *ways: tuple[str, float]) -> TokenLogprob:
    """A token with the probabilities of its alternatives."""
    told = dict(ways)
    return TokenLogprob(text, math.log(told.get(text, 1.0)), tuple((w, math.log(p)) for w, p in ways if p))


def tokens(*last: TokenLogprob, block: str = "VERDICTS\npolite:") -> list[TokenLogprob]:
    return [token(PROSE), token(block), *last]


def probability(*last: TokenLogprob, value: bool = True) -> float | None:
    return p_true(tokens(*last), key="polite", value=value)


@pytest.mark.parametrize(
    ("ways", "value", "expected"),
    [
        ([(" TRUE", 0.9), (" FALSE", 0.1)], True, 0.9),
        ([(" FALSE", 0.8), (" TRUE", 0.2)], False, 0.2),
        ([(" TRUE", 0.6), (" true", 0.2), ("TRUE", 0.1), (" FALSE", 0.1)], True, 0.9),
        ([(" T", 0.7), (" F", 0.3)], True, 0.7),
        ([(" TRUE", 0.5), (" FALSE", 0.25), (" NOT", 0.25)], True, 2 / 3),
        ([(" TRUE", 0.5), (" MAYBE", 0.5)], True, 1.0),
    ],
)
def test_probability_is_that_of_true_against_false(ways: Ways, value: bool, expected: float) -> None:
    first = token(ways[0][0], *ways)
    rest = token("RUE" if ways[0][0] == " T" else "")
    assert probability(first, rest, value=value) == pytest.approx(expected)


def test_branches_before_the_answer_are_weighted_by_their_probability() -> None:
    space = token(" ", (" ", 0.6), (" FALSE", 0.4))
    answer = token("TRUE", ("TRUE", 0.9), ("FALSE", 0.1))
    assert probability(space, answer) == pytest.approx(0.54)


def test_an_unlikely_sampled_token_counts_though_it_is_not_among_the_best() -> None:
    drawn = TokenLogprob(" TRUE", math.log(0.02), ((" FALSE", math.log(0.9)), (" false", math.log(0.08))))
    assert probability(drawn) == pytest.approx(0.02)


@pytest.mark.parametrize(
    "last",
    [
        token(" TRUE"),
        token(" TRUE", (" TRUE", 1.0)),
        token(" MAYBE", (" MAYBE", 0.5), (" TRUE", 0.5)),
        token(" FALSE", (" FALSE", 0.5), (" TRUE", 0.5)),
        token(""),
    ],
)
def test_none_without_alternatives_or_if_the_tokens_spell_another_answer(last: TokenLogprob) -> None:
    assert probability(last) is None


def test_none_for_a_key_that_the_block_does_not_answer() -> None:
    last = token(" TRUE", (" TRUE", 0.5), (" FALSE", 0.5))
    assert p_true(tokens(last), key="wrong_fact", value=True) is None
    assert p_true([], key="polite", value=True) is None


def test_only_the_last_block_that_is_the_reviewers_own_counts() -> None:
    sure = token(" TRUE", (" TRUE", 0.9), (" FALSE", 0.1))
    quoted = [token('They wrote "VERDICTS\npolite:'), sure, token('".\n')]
    unsure = token(" TRUE", (" TRUE", 0.6), (" FALSE", 0.4))
    assert p_true([*quoted, *tokens(unsure)], key="polite", value=True) == pytest.approx(0.6)


@pytest.mark.parametrize("line", ["**polite**:", "- `polite`:", "1. polite :", "POLITE:", "pol\u200bite:"])
def test_decoration_of_the_line_does_not_matter(line: str) -> None:
    last = token(" **TRUE**", (" **TRUE**", 0.7), (" **FALSE**", 0.3))
    assert p_true(tokens(last, block=f"VERDICTS\n{line}"), key="polite", value=True) == pytest.approx(0.7)


TEXT = "Kind.\n\nVERDICTS\nwrong_fact: NOT_APPLICABLE\n- **polite**: TRUE.\nother: FALSE"
ANSWER = TEXT.index("TRUE")


@given(st.sets(st.integers(1, len(TEXT) - 1)), st.floats(0.01, 0.99))
def test_probability_does_not_depend_on_how_the_answer_is_cut(cuts: set[int], p: float) -> None:
    """The token in which the answer begins may hold what stands before it, and less or more than the word."""
    places = [0, *sorted(cuts), len(TEXT)]
    cut = []
    for start, end in pairwise(places):
        piece, at = TEXT[start:end], ANSWER - start
        if start <= ANSWER < end:
            cut.append(token(piece, (piece, p), (f"{piece[:at]}FALSE", 1 - p)))
        else:
            cut.append(token(piece))
    assert p_true(cut, key="polite", value=True) == pytest.approx(p)


NASTY = st.text(alphabet="VERDICTSpolite: TRUEFALSE\n*_\"'><\u200b\r|\x00", max_size=12)
TOKEN = st.builds(
    TokenLogprob,
    token=NASTY,
    logprob=st.floats(-50, 50),
    top=st.lists(st.tuples(NASTY, st.floats(-1e8, 1e8)), max_size=4).map(tuple),
)


@given(st.lists(TOKEN, max_size=20), st.booleans(), st.booleans())
def test_any_tokens_give_a_probability_or_none(found: list[TokenLogprob], value: bool, block: bool) -> None:
    given = [token("VERDICTS\npolite:"), *found] if block else found
    p = p_true(given, key="polite", value=value)
    assert p is None or 0 <= p <= 1


@given(st.lists(TOKEN, max_size=8))
def test_a_probability_needs_an_answer_that_the_tokens_spell(found: list[TokenLogprob]) -> None:
    answer = token(" TRUE", (" TRUE", 0.5), (" FALSE", 0.5))
    given = [token("VERDICTS\npolite:"), *found, answer]
    assert None in [p_true(given, key="polite", value=value) for value in (True, False)]


# in a verdict


def told(answer: str, p: float) -> Reply:
    """A reply that says `answer`, with what the endpoint tells of its tokens."""
    other = "FALSE" if answer == "TRUE" else "TRUE"
    last = token(f" {answer}", (f" {answer}", p), (f" {other}", 1 - p))
    return replace(answered(f"{PROSE}VERDICTS\npolite: {answer}"), logprobs=tuple(tokens(last)))


def test_verdict_carries_the_probability_of_the_pass_it_rests_on() -> None:
    direct = Script({"direct": [told("FALSE", 0.8)]})
    assert only(judged(direct, engine="direct").verdicts).p_true == pytest.approx(0.2)
    audit = Script({"direct": [told("TRUE", 0.9)], "reflector": [told("TRUE", 0.7)]})
    assert only(judged(audit, engine="reflection").verdicts).p_true == pytest.approx(0.7)
    debate = Script({"customer": [answered("c")], "support": [answered("s")], "judge": [told("TRUE", 0.6)]})
    assert only(judged(debate, engine="debate").verdicts).p_true == pytest.approx(0.6)


def test_verdict_of_the_formatter_has_no_probability() -> None:
    vague = replace(answered("It was rude."), logprobs=told("FALSE", 0.8).logprobs)
    model = Script({"direct": [vague], "formatter": [answered(CLEAR)]})
    verdict = only(judged(model, engine="direct").verdicts)
    assert (verdict.value, verdict.p_true) == (False, None)


def test_not_applicable_has_no_probability() -> None:
    last = token(" NOT", (" NOT", 0.8), (" TRUE", 0.2))
    spelled = (token("VERDICTS\nwrong_fact:"), last, token("_APPLICABLE"))
    reply = replace(answered("VERDICTS\nwrong_fact: NOT_APPLICABLE"), logprobs=spelled)
    verdict = only(judged(Script({"direct": [reply]}), engine="direct", criteria=[WRONG_FACT]).verdicts)
    assert (verdict.state, verdict.value, verdict.p_true) == ("read", None, None)


def test_samples_have_the_mean_probability_of_all_that_were_read() -> None:
    replies = [told("TRUE", 0.9), told("FALSE", 0.8), told("TRUE", 0.7), answered("VERDICTS\npolite: TRUE")]

    def answer(request: Request) -> Reply:
        return replies[request.sample]

    verdict = only(judged(Answering(answer), engine="direct", criteria=[POLITE], samples=4).verdicts)
    assert verdict.value is True
    assert verdict.p_true == pytest.approx((0.9 + 0.2 + 0.7) / 3)
