"""A prompt edited section by section: nothing but the changed section changes, and nothing is lost."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.problems import FieldProblem
from evaluation.prompts.core import sections
from evaluation.prompts.core.costar import COSTAR, panes_of, with_panes

SHIPPED = sorted((Path(__file__).parents[3] / "evaluation" / "prompts" / "shipped").glob("*.md"))
WORDS = st.text("ab #`~\n\t.é\u2028", max_size=30).filter(
    lambda text: "```" not in text and "~~~" not in text
)


@st.composite
def six_sections(draw: st.DrawFn) -> str:
    """Some of the six sections in order, with whatever space around heading and words."""
    names = [name for name in COSTAR if draw(st.booleans())]
    space = st.text("\n ", max_size=3)
    parts = [
        f"{draw(st.sampled_from(['#', '##']))} {draw(st.sampled_from([name, name.capitalize()]))}\n"
        f"{draw(space)}{draw(WORDS)}{draw(space)}\n"
        for name in names
    ]
    whole = draw(st.text("\n", max_size=2)) + "".join(parts)
    return whole.rstrip("\n") if draw(st.booleans()) else whole


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_prompt_has_panes_and_comes_back_byte_for_byte(path: Path) -> None:
    text = path.read_text("utf-8")
    panes = panes_of(text)
    assert panes is not None
    assert {name: words for name, words in panes.items() if words} == sections(text)
    assert with_panes(text, panes) == text


@given(six_sections())
def test_sections_in_order_come_back_byte_for_byte(text: str) -> None:
    panes = panes_of(text)
    assert panes is not None
    assert with_panes(text, panes) == text


@given(six_sections(), st.fixed_dictionaries(dict.fromkeys(COSTAR, WORDS)))
def test_what_is_written_into_the_panes_is_what_the_text_then_says(text: str, panes: dict[str, str]) -> None:
    wanted = {name: words.strip() for name, words in panes.items()}
    written = with_panes(text, panes)
    assert panes_of(written) == wanted
    assert sections(written) == {name: words for name, words in wanted.items() if words}


def test_only_the_changed_section_changes() -> None:
    text = "## Context\n\nA shop.\n\n\n# objective:\nIs it so?\n# Response\nShort."
    panes = panes_of(text)
    assert panes is not None
    assert with_panes(text, panes | {"objective": "Is it?"}) == text.replace("Is it so?", "Is it?")


def test_a_new_section_is_in_its_place_with_a_heading() -> None:
    text = "# Context\nA shop.\n\n# Response\nShort.\n"
    written = with_panes(text, {"context": "A shop.", "tone": "Calm.", "response": "Short."})
    assert written == "# Context\nA shop.\n\n# Tone\nCalm.\n\n# Response\nShort.\n"
    assert with_panes("", {"tone": "Calm."}) == "# Tone\nCalm.\n"


def test_an_emptied_section_can_be_filled_again() -> None:
    text = "# Context\nA shop.\n\n# Tone\nCalm.\n\n# Response\nShort.\n"
    panes = panes_of(text)
    assert panes is not None
    emptied = with_panes(text, panes | {"tone": ""})
    assert with_panes(emptied, panes) == text


@pytest.mark.parametrize(
    "text",
    [
        "Hello.\n# Context\nA shop.\n",
        "# Context\nA shop.\n# Examples\nOne.\n",
        "# Tone\nCalm.\n# Context\nA shop.\n",
        "# Tone\nCalm.\n# Tone\nVery.\n",
        "# Tone\n```\nCalm.\n",
        "# Tone\r\nCalm.\r\n",
    ],
)
def test_a_text_that_panes_would_hide_or_move_has_none(text: str) -> None:
    assert panes_of(text) is None
    with pytest.raises(FieldProblem) as caught:
        with_panes(text, {"tone": "Calm."})
    assert caught.value.field == "sections"


def test_an_unknown_heading_is_a_part_of_its_section() -> None:
    panes = panes_of("# Context\nA shop.\n\n# Notes\nNone.\n")
    assert panes is not None
    assert panes["context"] == "A shop.\n\n# Notes\nNone."


@pytest.mark.parametrize(
    ("words", "fault"),
    [("So.\n# Tone\nCalm.", "“# Tone” starts another section"), ("```\nso", "a code block is not closed")],
)
def test_a_section_that_does_not_end_where_its_pane_does_is_refused(words: str, fault: str) -> None:
    with pytest.raises(FieldProblem, match=fault) as caught:
        with_panes("# Context\nA shop.\n", {"context": words})
    assert caught.value.field == "context"
