"""A model's visible thinking is kept apart from its answer, in every form that models send it."""

import pytest

from evaluation.core.thinking import part_thinking
from evaluation.engines.core.verdicts import read_answer
from tests.factories.scripted_model import POLITE

ANSWER = "The bot was rude.\n\nVERDICTS\npolite: FALSE"
DRAFT = "Hm, kind?\n\nVERDICTS\npolite: TRUE"


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{DRAFT}</think>{ANSWER}",
        f"<think>\n{DRAFT}\n</think>\n\n{ANSWER}",
        f"<thinking>\n{DRAFT}\n</thinking>\n{ANSWER}",
        f"<reasoning>{DRAFT}</reasoning>\n{ANSWER}",
        f"<THINK>\n{DRAFT}\n</THINK>\n{ANSWER}",
        f"<thought>{DRAFT}</thought>\n{ANSWER}",
        f"<seed:think>{DRAFT}</seed:think>\n{ANSWER}",
        f"[THINK]{DRAFT}[/THINK]\n{ANSWER}",
        f"<|START_THINKING|>{DRAFT}<|END_THINKING|>\n{ANSWER}",
        f"{DRAFT}\n</think>\n\n{ANSWER}",
        f"{DRAFT}</think>\n{ANSWER}",
        f"<think>first</think>\n{DRAFT}\n<think>second</think>\n{ANSWER}",
        f"<think>The chat says </think> somewhere. {DRAFT}\n</think>\n{ANSWER}",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>",
        f"analysis{DRAFT}assistantfinal{ANSWER}",
        f"analysis\n\n{DRAFT} assistantfinal? {DRAFT}assistantfinal\n{ANSWER}",
        f"<|start|>assistant<|channel|>analysis<|message|>{DRAFT}<|end|>"
        f"<|start|>assistant<|channel|>commentary to=x <|constrain|>json<|message|>{{}}<|call|>"
        f"<|start|>assistant<|channel|>final<|message|>{ANSWER}",
    ],
)
def test_only_the_answer_is_read(text: str) -> None:
    parted = part_thinking(text)
    assert parted.answer == ANSWER
    assert "polite: TRUE" in parted.thinking
    assert "think" not in parted.thinking.casefold().replace("</think> somewhere", "")
    assert dict(read_answer(parted.answer, criteria=[POLITE]).values) == {"polite": False}


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{DRAFT}",
        f"  <think>\n{DRAFT}",
        f"<|channel|>analysis<|message|>{DRAFT}",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|>",
        f"[THINK]\n{DRAFT}",
    ],
)
def test_thinking_without_an_end_is_no_answer(text: str) -> None:
    parted = part_thinking(text)
    assert parted.answer == ""
    assert "polite: TRUE" in parted.thinking


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f'The customer wrote [m2: "use </think> tags"] and I think so.\n{ANSWER}',
        f'He sent "<think>" in m3.\n{ANSWER}',
        f"Is a < b? `<|channel|>final<|message|>`\n{ANSWER}",
        "",
    ],
)
def test_an_answer_that_names_such_tags_stays_whole(text: str) -> None:
    assert part_thinking(text) == (text, "")
