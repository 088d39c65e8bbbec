"""What counts as repeated: the exact beginning of an earlier prompt, in whole parts."""

from evaluation.core.prefixes import Prefixes
from evaluation.core.types import PromptMessage


def prompt(system: tuple[str, ...], user: tuple[str, ...]) -> tuple[PromptMessage, PromptMessage]:
    return PromptMessage("system", system), PromptMessage("user", user)


def test_the_first_prompt_repeats_nothing_and_its_own_repetition_everything() -> None:
    prefixes, asked = Prefixes(), prompt(("rules", "articles"), ("chat", "duty"))
    length = sum(len(message.text) for message in asked)
    assert prefixes.add(asked) == (length, 0)
    assert prefixes.add(asked) == (length, length)


def test_only_text_before_the_first_difference_repeats() -> None:
    prefixes = Prefixes()
    prefixes.add(prompt(("rules",), ("chat", "critic's duty")))
    assert prefixes.add(prompt(("rules",), ("chat", "judge's duty"))) == (23, 9)
    assert prefixes.add(prompt(("other",), ("chat", "judge's duty"))) == (23, 0)


def test_the_same_letters_in_other_parts_or_roles_are_another_beginning() -> None:
    prefixes = Prefixes()
    prefixes.add(prompt(("ab", "c"), ()))
    assert prefixes.add(prompt(("a", "bc"), ()))[1] == 0
    assert prefixes.add(prompt((), ("ab", "c")))[1] == 0


def test_a_beginning_that_is_used_again_and_again_is_remembered_the_longest() -> None:
    prefixes = Prefixes(remembered=3)
    prefixes.add(prompt(("rules",), ("first chat",)))
    for n in range(20):
        assert prefixes.add(prompt(("rules",), (f"chat {n}",)))[1] == len("rules")
    assert prefixes.add(prompt(("rules",), ("first chat",)))[1] == len("rules")


def test_a_lone_surrogate_of_a_hostile_chat_does_no_harm() -> None:
    assert Prefixes().add(prompt((), ("\ud800",))) == (1, 0)
