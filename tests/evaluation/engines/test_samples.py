"""Several answers to one question: more than half of those that were read decide; a tie is no verdict."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.types import Engine, Reply, ReplyState, Request, VerdictResult, Votes
from tests.factories.scripted_model import BOTH, WRONG_FACT, Answering, answered, judged, only, verdicts

SAYS = {True: "TRUE", False: "FALSE", None: "NOT_APPLICABLE"}


def sampled(*replies: Reply, engine: Engine = "direct") -> VerdictResult:
    """The verdict of an engine whose samples get these replies in their last pass."""
    model = Answering(lambda request: replies[request.sample])
    result = judged(model, engine=engine, criteria=[WRONG_FACT], samples=len(replies))
    return only(result.verdicts)


def says(value: bool | None) -> Reply:
    return verdicts(wrong_fact=SAYS[value])


@pytest.mark.parametrize(
    ("answers", "value", "votes"),
    [
        ((True, True, False), True, Votes(2, 1, 0)),
        ((False, True, False), False, Votes(1, 2, 0)),
        ((None, None, True), None, Votes(1, 0, 2)),
        ((True, True, True), True, Votes(3, 0, 0)),
        ((False, None, False, True, False), False, Votes(1, 3, 1)),
    ],
)
def test_more_than_half_of_the_answers_decide(
    answers: tuple[bool | None, ...], value: bool | None, votes: Votes
) -> None:
    verdict = sampled(*map(says, answers))
    assert (verdict.state, verdict.value, verdict.votes) == ("read", value, votes)


@pytest.mark.parametrize("answers", [(True, False), (True, False, None), (True, True, False, None)])
def test_without_more_than_half_the_verdict_is_unparsed_and_never_guessed(
    answers: tuple[bool | None, ...],
) -> None:
    verdict = sampled(*map(says, answers))
    assert (verdict.state, verdict.value, verdict.flags) == ("unparsed", None, ("tied",))
    assert "no majority" in verdict.explanation
    assert verdict.votes is not None


def test_answers_that_cannot_be_read_have_no_vote() -> None:
    verdict = sampled(says(True), Reply("refused", ""), Reply("too_long", ""))
    assert (verdict.state, verdict.value, verdict.votes) == ("read", True, Votes(1, 0, 0))


def test_tie_that_a_failed_sample_could_break_is_failed_so_that_it_can_be_asked_again() -> None:
    verdict = sampled(says(True), says(False), Reply("failed", "", "timeout"))
    assert (verdict.state, verdict.value, verdict.flags) == ("failed", None, ("tied",))
    assert "1 without an answer" in verdict.explanation


def test_majority_that_failed_samples_could_overturn_is_failed_so_that_they_can_be_asked_again() -> None:
    failed = Reply("failed", "", "timeout")
    verdict = sampled(says(True), failed, failed)
    assert (verdict.state, verdict.value, verdict.votes) == ("failed", None, Votes(1, 0, 0))
    assert verdict.explanation == "The 3 answers have no majority: 1 × True, 2 without an answer (timeout)."
    assert sampled(says(True), says(True), failed).value is True


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("refused", "refused", "failed"), "refused"),
        (("failed", "refused", "failed"), "failed"),
        (("too_long", "failed", "refused"), "too_long"),
    ],
)
def test_without_any_answer_the_commonest_state_counts_and_of_equals_the_first(
    states: tuple[ReplyState, ...], state: ReplyState
) -> None:
    verdict = sampled(*(Reply(each, "", f"why {each}") for each in states))
    assert (verdict.state, verdict.value, verdict.votes) == (state, None, Votes(0, 0, 0))
    assert verdict.explanation == f"why {state}"


def test_rationale_is_that_of_the_first_sample_that_agrees_and_a_flag_names_it() -> None:
    replies = [
        answered(f"{why}\nVERDICTS\nwrong_fact: {answer}")
        for why, answer in [("It is right.", "FALSE"), ("It is wrong.", "TRUE"), ("Wrong again.", "TRUE")]
    ]
    verdict = sampled(*replies)
    assert (verdict.value, verdict.explanation, verdict.flags) == (True, "It is wrong.", ("from_sample:1",))


def test_criteria_of_a_group_are_settled_one_by_one() -> None:
    answers = [("TRUE", "TRUE"), ("TRUE", "FALSE"), ("FALSE", "FALSE")]

    def answer(request: Request) -> Reply:
        polite, wrong = answers[request.sample]
        return verdicts(polite=polite, wrong_fact=wrong)

    result = judged(Answering(answer), engine="direct", criteria=BOTH, samples=3)
    assert [(v.criterion, v.value, v.flags) for v in result.verdicts] == [
        ("polite", True, ("from_sample:0",)),
        ("wrong_fact", False, ("from_sample:1",)),
    ]


@pytest.mark.parametrize(
    ("engine", "calls"), [("direct", ["direct"]), ("reflection", ["direct", "reflector"])]
)
def test_every_sample_is_a_whole_pass_with_an_index_of_its_own(engine: Engine, calls: list[str]) -> None:
    model = Answering(lambda request: says(True))
    result = judged(model, engine=engine, criteria=[WRONG_FACT], samples=3)
    assert [(use.role, use.sample, use.step) for use in result.calls] == [
        (role, sample, 1) for sample in range(3) for role in calls
    ]
    assert {(request.role, request.sample) for request in model.requests} == {
        (role, sample) for role in calls for sample in range(3)
    }
    assert sorted(str(use.call) for use in result.calls) == [str(n + 1) for n in range(len(model.requests))]


def test_debate_argues_again_in_every_sample() -> None:
    model = Answering(lambda request: says(request.sample > 0))
    verdict = only(judged(model, engine="debate", criteria=[WRONG_FACT], samples=3).verdicts)
    assert [request.role for request in model.requests].count("customer") == 3
    assert (verdict.value, verdict.sided_with, verdict.votes) == (True, "customer", Votes(2, 1, 0))


def test_samples_are_asked_at_the_same_time() -> None:
    model = Answering(lambda request: says(True))
    judged(model, engine="reflection", criteria=[WRONG_FACT], samples=3)
    assert [request.role for request in model.requests][:3] == ["direct"] * 3


def test_one_sample_has_no_votes_and_no_flag() -> None:
    verdict = sampled(says(True))
    assert (verdict.votes, verdict.flags) == (None, ())


def test_reflection_keeps_the_first_verdict_of_the_deciding_sample() -> None:
    def answer(request: Request) -> Reply:
        return says(request.role == "direct" if request.sample == 1 else True)

    result = judged(Answering(answer), engine="reflection", criteria=[WRONG_FACT], samples=3)
    verdict = only(result.verdicts)
    assert (verdict.first_value, verdict.value, verdict.votes) == (True, True, Votes(2, 1, 0))


def test_sample_that_breaks_lets_the_others_end_first() -> None:
    """Their answers are paid for: a storing model has them when the group is asked again."""

    class Down(Exception):
        pass

    def answer(request: Request) -> Reply:
        if request.sample == 0:
            raise Down
        return says(True)

    model = Answering(answer)
    with pytest.raises(Down):
        judged(model, engine="reflection", criteria=[WRONG_FACT], samples=2)
    assert [request.role for request in model.requests if request.sample == 1] == ["direct", "reflector"]


@given(st.lists(st.sampled_from(["TRUE", "FALSE", "NOT_APPLICABLE", "MAYBE"]), min_size=2, max_size=9))
def test_a_majority_is_one_whatever_the_answers(words: list[str]) -> None:
    def answer(request: Request) -> Reply:
        return answered("") if request.role == "formatter" else verdicts(wrong_fact=words[request.sample])

    result = judged(Answering(answer), engine="direct", criteria=[WRONG_FACT], samples=len(words))
    verdict = only(result.verdicts)
    counts = {value: words.count(word) for value, word in SAYS.items()}
    read = sum(counts.values())
    assert verdict.votes == Votes(counts[True], counts[False], counts[None])
    if verdict.state == "read":
        assert 2 * counts[verdict.value] > read
    else:
        assert verdict.state == "unparsed"
        assert all(2 * count <= read for count in counts.values()) or not read


def test_samples_of_a_judge_differ_in_nothing_but_their_index() -> None:
    model = Answering(lambda request: says(True))
    judged(model, engine="direct", criteria=[WRONG_FACT], samples=3)
    assert len({replace(request, sample=0) for request in model.requests if request.schema is None}) == 1
