"""A chat is put together from its calls: each turn once, none lost, whatever history the calls repeat."""

import random

import pytest

from common.problems import FieldProblem
from labeling.ingest.core.conversation import Call, conversation_of
from labeling.ingest.core.messages import Turn, turns_of


def u(text: str) -> Turn:
    return Turn("user", text)


def a(text: str) -> Turn:
    return Turn("assistant", text)


def t(text: str) -> Turn:
    return Turn("tool", text)


def said(*calls: tuple[list[Turn], list[Turn]]) -> list[str]:
    """What a chat of calls, one after another, says."""
    made = [Call(tuple(given), tuple(out), n, n) for n, (given, out) in enumerate(calls)]
    return [message["content"] for message in conversation_of(made)]


def test_repeated_history_is_kept_once() -> None:
    calls = [([u("Hi")], [a("Hello")]), ([u("Hi"), a("Hello"), u("Where?")], [a("Here")])]
    assert said(*calls) == ["Hi", "Hello", "Where?", "Here"]


def test_calls_without_history_keep_equal_questions() -> None:
    assert said(([u("Hi")], [a("Hello")]), ([u("Hi")], [a("Again?")])) == ["Hi", "Hello", "Hi", "Again?"]


def test_a_call_without_an_answer_and_its_repetition_are_one_question() -> None:
    assert said(([u("Hi")], []), ([u("Hi")], [a("Hello")])) == ["Hi", "Hello"]


def test_a_history_that_is_cut_at_its_start_is_found_at_the_end_of_the_chat() -> None:
    first = ([u("q1")], [a("Sure?")])
    second = ([u("q1"), a("Sure?"), u("yes")], [a("Sure?")])
    third = ([a("Sure?"), u("yes")], [a("Done")])  # the customer says yes once more
    assert said(first, second, third) == ["q1", "Sure?", "yes", "Sure?", "yes", "Done"]


def test_tools_may_be_missing_or_shortened_in_later_histories() -> None:
    first = ([u("q1")], [t("find()")])
    second = ([u("q1"), t("find()"), t("a long result")], [a("a1")])
    without = ([u("q1"), a("a1"), u("q2")], [a("a2")])
    shortened = ([u("q1"), t("find()"), t("a long…"), a("a1"), u("q2")], [a("a2")])
    for third in (without, shortened):
        assert said(first, second, third) == ["q1", "find()", "a long result", "a1", "q2", "a2"]


def test_an_answer_that_was_generated_anew_is_kept_beside_the_first() -> None:
    calls = [([u("q1")], [a("a1")]), ([u("q1")], [a("a1b")]), ([u("q1"), a("a1b"), u("q2")], [a("a2")])]
    assert said(*calls) == ["q1", "a1", "a1b", "q2", "a2"]


def test_the_same_call_twice_changes_nothing() -> None:
    calls = [([u("q1")], [a("a1")]), ([u("q1"), a("a1"), u("q2")], [a("a2")])]
    assert said(*calls, calls[1]) == said(*calls)


def test_a_system_text_is_kept_once_and_a_new_one_where_it_changes() -> None:
    one, other = Turn("system", "Monday"), Turn("system", "Tuesday")
    calls = [([one, u("q1")], [a("a1")]), ([other, u("q1"), a("a1"), u("q2")], [a("a2")])]
    assert said(*calls, ([one, u("q1"), a("a1"), u("q2"), a("a2"), u("q3")], [])) == [
        *("Monday", "q1", "a1", "Tuesday", "q2", "a2", "q3"),
    ]


def test_json_of_tools_is_the_same_with_other_spaces() -> None:
    first = ([u("q")], [t('find({"n": 1})')])
    assert said(first, ([u("q"), t('find({"n":1})'), t("1")], [a("one")])) == [
        "q",
        'find({"n": 1})',
        "1",
        "one",
    ]


@pytest.mark.parametrize("form", ["whole", "window", "without tools", "new turns alone"])
def test_any_dialogue_comes_back_whole_from_its_calls_in_any_order(form: str) -> None:
    for seed in range(200):
        dice = random.Random(f"{form} {seed}")
        truth: list[Turn] = []
        new: list[Turn] = []
        calls, clock = [], 0
        for turn in range(dice.randint(2, 8)):
            # A question that repeats word for word is told apart by the history alone.
            question = dice.choice(["yes", "no", f"q{turn}"]) if truth else f"q{turn}"
            truth, new = [*truth, u(question)], [u(question)]
            for _ in range(dice.randint(0, 2)):
                step = f"find({turn}, {dice.random()})"
                calls.append(Call(_given(truth, new, form), (t(step),), clock, clock + 1))
                truth, new = [*truth, t(step), t(f"result of {step}")], [t(f"result of {step}")]
                clock += 2
            answer = a(dice.choice(["Sure?", f"a{turn}"]))
            calls.append(Call(_given(truth, new, form), (answer,), clock, clock + 1))
            truth, clock = [*truth, answer], clock + 2
        dice.shuffle(calls)
        messages = conversation_of(calls)
        assert [(one["role"], one["content"]) for one in messages] == [(x.role, x.content) for x in truth], (
            seed
        )


def _given(truth: list[Turn], new: list[Turn], form: str) -> tuple[Turn, ...]:
    if form == "new turns alone":
        return tuple(new)
    last = max(n for n, turn in enumerate(truth) if turn.role == "user")
    if form == "without tools":
        return (*(turn for turn in truth[:last] if turn.role != "tool"), *truth[last:])
    if form == "window":
        return tuple(truth[max(last - 7, 0) :])
    return tuple(truth)


@pytest.mark.parametrize(
    ("payload", "turns"),
    [
        ("Hi", [u("Hi")]),
        ('{"messages":[{"role":"user","content":"Hi"}]}', [u("Hi")]),
        ('{"intent": "refund"}', [u('{"intent": "refund"}')]),  # JSON that is no message is what was said
        ("{not json", [u("{not json")]),
        ({"question": "Hi", "k": 3}, [u("Hi")]),
        ({"args": [], "kwargs": {"text": "Hi"}}, [u("Hi")]),
        ([[{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]], [u("Hi"), a("Hello")]),
        ({"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "Hi"}}, [u("Hi")]),
        ({"choices": [{"message": {"role": "assistant", "content": "A"}}, {"message": {}}]}, [a("A")]),
        (
            [{"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url"}]}],
            [u("See\n[image]")],
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "A"}, {"type": "tool_use", "name": "f"}],
                }
            ],
            [a("A"), t("f()")],
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": [{"type": "text", "text": "7"}]}],
                }
            ],
            [t("7")],
        ),
        ([{"role": "user", "parts": [{"text": "Hi"}]}], [u("Hi")]),
        (
            [{"role": "user", "parts": [{"type": "blob", "modality": "audio", "content": "aGk="}]}],
            [u("[audio]")],
        ),
        ([{"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm"}]}], []),
        (None, []),
        ("", []),
    ],
)
def test_the_forms_of_payloads(payload: object, turns: list[Turn]) -> None:
    assert turns_of(payload, "input", speaker="user") == turns


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (7, "input: holds no messages: expected text, messages or an object, not 7"),
        ([{"role": "wizard", "content": "Hi"}], "input[0].role: unknown role 'wizard'"),
        ([{"role": "user", "parts": [7]}], "input[0].parts[0]: must be an object, not 7"),
        ([{"role": "user", "parts": [{"type": "text"}]}], "input[0].parts[0]: must have a type and its text"),
        ({"messages": ["Hi", True]}, "input.messages[1]: holds no messages"),
    ],
)
def test_a_payload_that_is_none_is_named_by_its_path(payload: object, problem: str) -> None:
    with pytest.raises(FieldProblem) as caught:
        turns_of(payload, "input", speaker="user")
    assert str(caught.value).startswith(problem)
