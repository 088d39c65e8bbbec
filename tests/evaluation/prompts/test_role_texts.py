"""The roles' texts: one word limit, no rule that contradicts a role, marks explained, no answer preferred."""

import re
from dataclasses import replace
from typing import get_args

import pytest

from evaluation.core.types import Criterion, Role, Size
from evaluation.engines.core.quotes import find_quotes
from evaluation.engines.core.roles import ADVOCATES, ROLES, JudgeRole
from evaluation.engines.core.verdicts import read_answer
from evaluation.prompts.core import brief_parts, draft_parts
from evaluation.prompts.core.definition import Definition, generated_text
from evaluation.prompts.core.parts import keys_part
from evaluation.prompts.core.texts import texts
from tests.factories.built_prompts import REASONING, build
from tests.factories.scripted_model import BOTH, CHAT, POLITE, SECRET, Script, answered, judged

VERDICTS: list[Role] = [role.key for role in ROLES if role.output == "verdicts"]
ADVOCATED = [role.key for role in ADVOCATES]
LABELS = ("Evidence:", "Against:", "Rule:", "Conclusion:")
KEYED = [replace(POLITE, key=f"key_{letter}") for letter in "abcdefghij"]


def plain(text: str) -> str:
    return " ".join(text.split())


def form(criteria: tuple[Criterion, ...], size: Size = "full") -> str:
    return keys_part(criteria, argues=None, size=size)


@pytest.mark.parametrize("role", REASONING)
def test_every_role_has_the_word_limit_of_a_criterions_response(role: Role) -> None:
    generated = generated_text(Definition("Is it so?", "So when so."), knowledge=False)
    of_role, of_criterion = (
        re.findall(r"at most (\d+) words", text) for text in (texts("full")[role], generated)
    )
    assert of_role == of_criterion == ["120"]


@pytest.mark.parametrize("role", REASONING)
def test_only_advocates_set_tone_and_response_aside(role: Role) -> None:
    says_so = "set each criterion's Tone and Response sections aside" in plain(texts("full")[role])
    assert says_so == (role in ADVOCATED)


def test_the_judge_looks_itself_where_a_quote_is_missing() -> None:
    duty = plain(texts("full")["judge"])
    assert "`[not in m7]`: look yourself. Weigh the point if m7 says it in substance" in duty
    assert "This proves the words, not the point." in duty
    assert "before weighing" not in duty


def test_the_judge_knows_every_mark_that_a_machine_sets() -> None:
    quotes = '[m1: "my card was declined"] [m1: "my card got declined"] [m1: "eggs"] [m1: "rude words"]'
    marks = {quote.mark.replace("m1", "m7") for quote in find_quotes(text=quotes, chat=CHAT)}
    assert len(marks) == 4
    assert all(f"`{mark}`" in texts("full")["judge"] for mark in marks)


@pytest.mark.parametrize("size", get_args(Size))
@pytest.mark.parametrize("advocate", ADVOCATES, ids=lambda role: role.key)
def test_the_mark_of_a_briefs_lines_is_explained(advocate: JudgeRole, size: Size) -> None:
    role, mark = advocate.key, advocate.mark
    intro, block = brief_parts(role=role, mark=mark, brief="Kind.", size=size, fence_secret=SECRET)
    assert f"{mark}| Kind." in block
    assert f"`{mark}|`" in intro


@pytest.mark.parametrize("size", get_args(Size))
def test_the_mark_of_a_drafts_lines_is_explained(size: Size) -> None:
    intro, block = draft_parts(draft="Kind.", size=size, fence_secret=SECRET)
    assert "draft| Kind." in block
    assert "`draft|`" in intro


@pytest.mark.parametrize("role", ["direct", "judge"])
def test_doubt_is_decided_by_the_criterions_silence_rule(role: Role) -> None:
    assert "If still unsure, use the criterion's *Silence* rule." in texts("full")[role]


def test_direct_writes_four_labelled_parts_before_the_block() -> None:
    lines = texts("full")["direct"].split("\n")
    starts = [line.split(" ")[0] for line in lines if line.startswith(LABELS)]
    assert tuple(starts) == LABELS
    assert lines[-1].endswith("Then write the VERDICTS block.")


def test_an_answer_in_labelled_parts_is_read_and_divided_by_criterion() -> None:
    parts = {
        key: f'Evidence: [m2: "{words}"]\nAgainst: none.\nRule: the definition.\nConclusion: {answer}.'
        for key, words, answer in (
            ("polite", "please ask your bank", "yes"),
            ("wrong_fact", "your bank", "no"),
        )
    }
    text = "\n\n".join(f"{key}\n{prose}" for key, prose in parts.items())
    script = Script({"direct": [answered(f"{text}\n\nVERDICTS\npolite: TRUE\nwrong_fact: FALSE")]})
    polite, wrong = judged(script, engine="direct", criteria=BOTH).verdicts
    assert (polite.value, polite.read_by, polite.explanation) == (True, "rules", parts["polite"])
    assert (wrong.value, wrong.read_by, wrong.explanation) == (False, "rules", parts["wrong_fact"])
    assert (polite.quotes_verified, wrong.quotes_verified) == (1, 1)


@pytest.mark.parametrize("role", VERDICTS)
def test_the_form_has_the_groups_real_keys_and_no_others(role: Role) -> None:
    _, user = build(role)
    block = user.text.split("\nVERDICTS\n")[1].split("\n\n")[0]
    assert {line.split(":")[0] for line in block.split("\n")} == {"polite", "wrong_fact"}
    assert "_key:" not in "".join(texts("full").values())


def test_neither_answer_is_named_first() -> None:
    lines = form(tuple(KEYED)).split("VERDICTS\n")[1].split("\n")
    first = [line.split(": ")[1].split(" ")[0] for line in lines]
    assert 3 <= first.count("TRUE") <= 7
    assert set(first) == {"TRUE", "FALSE"}


@pytest.mark.parametrize("size", get_args(Size))
def test_a_key_has_one_order_of_answers_wherever_it_is_asked(size: Size) -> None:
    together = form(tuple(KEYED), size)
    for criterion in KEYED:
        alone = form((criterion,), size)
        assert alone.split("\n")[-1].removesuffix(".").split("write VERDICTS and ")[-1] in together
        word = re.search(r": (TRUE|FALSE)", alone)
        assert word is not None
        assert f"Allowed answers: {word[1]} or" in build(criteria=(criterion,))[0].text


@pytest.mark.parametrize("allow_na", [True, False])
def test_the_form_itself_is_no_verdict(allow_na: bool) -> None:
    criteria = tuple(replace(row, allow_na=allow_na) for row in (*BOTH, *KEYED))
    copied = form(criteria)
    whole_prompt = "\n\n".join(message.text for message in build(criteria=criteria))
    for text in (copied, f"Kind words.\n\n{copied}", f"```\n{copied}\n```", whole_prompt):
        assert not read_answer(text, criteria=criteria).values
    for one in criteria:
        assert not read_answer(form((one,)), criteria=[one]).values


def test_a_verdict_behind_a_copied_form_is_read() -> None:
    text = f"{form(BOTH)}\n\npolite\nKind words.\n\nVERDICTS\npolite: TRUE\nwrong_fact: FALSE"
    assert dict(read_answer(text, criteria=BOTH).values) == {"polite": True, "wrong_fact": False}
