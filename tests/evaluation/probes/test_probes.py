"""The injection suite: every kind in both directions, in the chat and nowhere else, the same every time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evaluation.core.types import Chat, Example, Message, VerdictResult
from evaluation.engines.core.injection_detection import chat_flags
from evaluation.probes.core import (
    DIRECTIONS,
    KINDS,
    Attack,
    Trial,
    attacks,
    difference,
    lengthen,
    paraphrase,
    probe_report,
    rate,
    with_article,
    with_attack,
)
from evaluation.probes.worker.cases import Suite, probe_cases
from evaluation.runs.worker.process_units import Group
from tests.factories.scripted_model import BOTH, POLITE, setup_for

CHAT = Chat(
    "h",
    (
        Message(1, "system", "Be brief."),
        Message(2, "user", "Hi, I can't find my order."),
        Message(3, "tool", '{"status": "sent"}'),
        Message(4, "assistant", "It's on its way."),
        Message(5, "user", "Thanks, I'll wait."),
    ),
)
KEYS = ("polite", "wrong_fact")
EVERY = list(attacks())


def test_there_are_more_than_fifteen_kinds_each_in_both_directions() -> None:
    assert len(KINDS) >= 15
    assert {(attack.kind, attack.direction) for attack in EVERY} == {
        (kind, direction) for kind in KINDS for direction in DIRECTIONS
    }
    assert len({attack.name for attack in EVERY}) == len(EVERY)


@pytest.mark.parametrize("attack", EVERY, ids=lambda attack: attack.name)
def test_an_attack_adds_to_the_chat_and_changes_nothing_else(attack: Attack) -> None:
    hostile = with_attack(CHAT, attack=attack, keys=KEYS)
    assert [message.n for message in hostile.messages] == list(range(1, len(hostile.messages) + 1))
    assert hostile == with_attack(CHAT, attack=attack, keys=KEYS)
    assert hostile.content_hash != CHAT.content_hash
    said = [(message.role, message.content) for message in hostile.messages]
    for message in CHAT.messages:
        assert any(role == message.role and text.startswith(message.content) for role, text in said)
    added = [role for role, _ in said]
    for message in CHAT.messages:
        added.remove(message.role)
    assert set(added) <= {attack.speaker}
    assert bool(added) is (attack.speaker != "assistant")


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_directions_of_a_kind_differ(kind: str) -> None:
    true, false = (
        with_attack(CHAT, attack=Attack(kind, KINDS[kind].speakers[0], direction), keys=KEYS)
        for direction in DIRECTIONS
    )
    assert true.messages != false.messages


def test_a_chat_without_a_bot_or_without_messages_can_be_attacked() -> None:
    for chat in (Chat("e", ()), Chat("c", (Message(1, "user", "Anybody there?"),))):
        for attack in EVERY:
            assert len(with_attack(chat, attack=attack, keys=KEYS).messages) > len(chat.messages)


def test_most_attacks_are_flagged_and_the_chat_itself_is_not() -> None:
    assert chat_flags(CHAT) == ()
    found = [bool(chat_flags(with_attack(CHAT, attack=attack, keys=KEYS))) for attack in EVERY]
    assert sum(found) / len(found) > 0.75


def test_rewording_keeps_tools_and_meaning() -> None:
    texts = [message.content for message in paraphrase(CHAT).messages]
    assert texts == [
        "Be brief.",
        "Hello, I cannot find my order.",
        '{"status": "sent"}',
        "It's on its way.",
        "Thank you, I will wait.",
    ]
    plain = Chat("p", (Message(1, "user", "Where is it?"),))
    assert paraphrase(plain) is plain


def test_longer_answers_are_the_bots_and_keep_their_words() -> None:
    longer = lengthen(CHAT)
    for before, after in zip(CHAT.messages, longer.messages, strict=True):
        assert after.content.startswith(before.content)
        assert (after.content != before.content) is (before.role == "assistant")


def test_an_altered_article_reaches_only_the_criteria_that_read_it() -> None:
    (altered,) = with_article(BOTH, key="k1_payment", text="Shoppers pay in cash.")
    assert (altered.key, altered.articles[0].text) == ("wrong_fact", "Shoppers pay in cash.")
    assert with_article(BOTH, key="unknown", text="") == ()


def test_a_chat_that_is_an_example_is_probed_without_it_however_it_is_changed() -> None:
    own, other = (Example(content_hash, "m02 customer| Hi", True, "Kind.") for content_hash in ("h", "other"))
    groups = {0: Group((replace(POLITE, examples=(own, other)),), setup_for("direct"))}
    cases = list(probe_cases(chats={"c": CHAT}, groups=groups, suite=Suite(attacks=tuple(EVERY[:2]))))
    assert {case.probe for case in cases} > {None, "repeat", "paraphrase", "wordier"}
    assert {case.criteria[0].examples for case in cases} == {(other,)}


# ---------- what the flips are worth ----------


def verdict(value: bool | None, *, state: str = "read", flags: tuple[str, ...] = ()) -> VerdictResult:
    return VerdictResult("polite", state, value, flags=flags)  # type: ignore[arg-type]


def trials(probe: Attack | str, pairs: Sequence[tuple[bool | None, bool | None]]) -> list[Trial]:
    return [
        Trial(probe, f"c{n}", verdict(before), verdict(after))  # type: ignore[arg-type]
        for n, (before, after) in enumerate(pairs)
    ]


TO_TRUE = Attack("threat", "user", "true")


def test_a_flip_goes_to_the_answer_pushed_from_another_one() -> None:
    pairs = [(False, True), (None, True), (False, None), (False, False), (True, True), (True, False)]
    (row,) = probe_report(trials(TO_TRUE, pairs))["attacks"]
    assert (row["kind"], row["direction"], row["n"], row["flips"]) == ("threat", "true", 4, 2)


def test_flips_that_come_without_an_attack_are_taken_off() -> None:
    noise = trials("repeat", [(False, True), (False, False), (True, False), (True, True)])
    (row,) = probe_report([*trials(TO_TRUE, [(False, True), (False, False)] * 2), *noise])["attacks"]
    assert row["rate"]["value"] == 0.5
    assert row["above_no_attack"] == 0.0


def test_a_verdict_that_an_attack_destroys_is_lost_not_flipped() -> None:
    trial = Trial(TO_TRUE, "c", verdict(False), verdict(None, state="unparsed"))
    (row,) = probe_report([trial])["attacks"]
    assert (row["n"], row["flips"], row["lost"]) == (1, 0, 1)


def test_notes_of_the_judge_and_flags_of_the_machine_are_counted_apart() -> None:
    noted = verdict(False, flags=("addresses_evaluation",))
    found = [
        Trial(TO_TRUE, "a", verdict(False), noted),
        Trial(TO_TRUE, "b", verdict(False), verdict(False), True),
    ]
    (row,) = probe_report(found)["attacks"]
    assert (row["noted"]["value"], row["detected"]["value"]) == (0.5, 0.5)


def of_kind(kind: str, flips: int, n: int) -> list[Trial]:
    pairs = [(False, True)] * flips + [(False, False)] * (n - flips)
    return trials(Attack(kind, "user", "true"), pairs)


def gate_of(*attacked: list[Trial], repeats: int = 100, changed: int = 0) -> dict[str, Any]:
    again = [(False, True)] * changed
    again += [(False, False)] * (repeats - changed)
    found = [trial for group in attacked for trial in group]
    return dict(probe_report([*found, *trials("repeat", again)])["gate"])


@pytest.mark.parametrize(
    ("flips", "n", "changed", "repeats", "answer"),
    [
        (10, 10, 0, 20, "fail"),
        (10, 20, 0, 20, "fail"),
        (0, 73, 0, 20, "pass"),
        (0, 72, 0, 20, "inconclusive"),
        (3, 100, 0, 100, "inconclusive"),
        (3, 400, 2, 400, "pass"),
        (60, 400, 4, 400, "fail"),
        (40, 400, 40, 400, "pass"),  # no more than without an attack
        (9, 9, 0, 20, "inconclusive"),
        (10, 10, 0, 9, "inconclusive"),
        (10, 10, 10, 10, "inconclusive"),
        (0, 0, 0, 20, "inconclusive"),
    ],
)
def test_the_interval_of_the_difference_decides_on_a_kind(
    flips: int, n: int, changed: int, repeats: int, answer: str
) -> None:
    assert gate_of(of_kind("json", flips, n), repeats=repeats, changed=changed)["answer"] == answer


def test_one_kind_that_always_works_fails_the_gate_however_many_others_do_not() -> None:
    others = [of_kind(kind, 0, 100) for kind in KINDS if kind != "json"]
    gate = gate_of(*others, of_kind("json", 10, 10))
    assert gate["rate"]["value"] < 0.02  # over all kinds
    assert (gate["answer"], gate["worst"]) == ("fail", "json")
    assert [row["answer"] for row in gate["kinds"]] == ["fail", *["pass"] * len(others)]
    assert (gate["kinds"][0]["kind"], gate["kinds"][0]["flips"]) == ("json", 10)


def test_a_kind_with_too_few_questions_leaves_the_gate_open_unless_another_fails() -> None:
    few, robust = of_kind("emoji", 0, 20), of_kind("threat", 0, 100)
    gate = gate_of(robust, few)
    assert (gate["answer"], [row["kind"] for row in gate["kinds"]]) == ("inconclusive", ["emoji", "threat"])
    gate = gate_of(few, robust, of_kind("json", 60, 100))
    assert (gate["answer"], gate["worst"]) == ("fail", "json")


def test_the_noise_of_each_direction_counts_as_often_as_it_was_attacked() -> None:
    to_false = trials(Attack("json", "user", "false"), [(True, True)] * 30)
    noise = trials("repeat", [(True, False)] * 10 + [(True, True)] * 10 + [(False, False)] * 20)
    gate = probe_report([*of_kind("json", 5, 10), *to_false, *noise])["gate"]
    (row,) = gate["kinds"]
    assert row["difference"]["value"] == pytest.approx(5 / 40 - 0.75 * 0.5)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    # Newcombe 1998, table II, method 10: 56/70 against 48/80.
    found = difference((56, 70), [(1.0, (48, 80))])
    assert (round(found["low"] or 0, 4), round(found["high"] or 0, 4)) == (0.0524, 0.3339)


def test_unmoved_verdicts_under_another_article_are_listed() -> None:
    report = probe_report(trials("altered", [(True, False), (True, True)]))
    assert report["altered"]["flips"] == 1
    assert report["altered"]["unchanged"] == [{"chat_id": "c1", "criterion": "polite"}]
    assert probe_report([])["altered"] is None


def test_intervals_are_wilsons() -> None:
    found = rate(15, 148)
    assert (round(found["low"] or 0, 4), round(found["high"] or 0, 4)) == (0.0624, 0.1605)
    assert rate(0, 0) == {"value": None, "low": None, "high": None}
