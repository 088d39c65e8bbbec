"""The shipped criterion prompts keep the rules for a prompt's text and match the default rubric."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROMPTS = ROOT / "evaluation" / "prompts" / "shipped"
RUBRIC = ROOT / "labeling" / "rubric" / "default_rubric.json"

HEADINGS = ["Context", "Objective", "Style", "Tone", "Audience", "Response"]
SLOT = "{{knowledge}}"
REFERS_TO_KNOWLEDGE = ("exposed_sensitive_data", "reasked_known_information")  # simple, by listed articles
FORBIDDEN = [
    *("verdicts", "json", "true/false"),  # the answer's form belongs to the engine
    *("step by step", "step-by-step", "chain of thought", "think carefully", "let's think"),
    *("be strict", "be lenient", "be generous", "be harsh", "threshold", "when in doubt", "are you sure"),
    *("you are a", "act as", "pretend", "imagine", "your role"),  # no role play
    *("basketwren", "shopper"),  # written for any support chatbot, not for the demo shop
]


def _criteria() -> list[dict[str, Any]]:
    criteria: list[dict[str, Any]] = json.loads(RUBRIC.read_text(encoding="utf-8"))["criteria"]
    return criteria


CRITERIA = {criterion["key"]: criterion for criterion in _criteria()}
each_criterion = pytest.mark.parametrize("key", sorted(CRITERIA))


def _text(key: str) -> str:
    return (PROMPTS / f"{key}.md").read_text(encoding="utf-8")


def _sections(text: str) -> list[tuple[str, str]]:
    """Heading and body of each part; what stands before the first heading gets the heading ""."""
    parts = re.split(r"^#{1,6} +(.*)$", text, flags=re.MULTILINE)
    pairs = [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]
    return [(heading, body.strip()) for heading, body in pairs if heading or body.strip()]


def _section(key: str, heading: str) -> str:
    return dict(_sections(_text(key)))[heading]


def test_every_default_criterion_has_a_prompt_and_every_prompt_a_criterion() -> None:
    assert {path.stem for path in PROMPTS.glob("*.md")} == set(CRITERIA)


@each_criterion
def test_headings_are_the_six_in_order_at_the_top_level(key: str) -> None:
    assert re.findall(r"^#.*$", _text(key), flags=re.MULTILINE) == [f"# {heading}" for heading in HEADINGS]
    assert [heading for heading, _ in _sections(_text(key))] == HEADINGS


@each_criterion
def test_no_section_is_empty(key: str) -> None:
    empty = [heading for heading, body in _sections(_text(key)) if not body.replace(SLOT, "").strip()]
    assert empty == []


@each_criterion
def test_objective_opens_with_the_question_word_for_word(key: str) -> None:
    assert _section(key, "Objective").splitlines()[0] == CRITERIA[key]["question"]


@each_criterion
def test_the_criterion_s_question_is_the_only_one_asked(key: str) -> None:
    assert _text(key).count("?") == 1


@each_criterion
def test_knowledge_slot_is_alone_in_the_context_of_prompts_that_refer_to_knowledge(key: str) -> None:
    expected = 1 if CRITERIA[key]["tier"] == "context" or key in REFERS_TO_KNOWLEDGE else 0
    assert _text(key).count(SLOT) == expected
    assert _section(key, "Context").splitlines().count(SLOT) == expected


@each_criterion
def test_context_criteria_name_the_knowledge_they_used(key: str) -> None:
    asks_for_key = "`knowledge: none`" in _section(key, "Response")
    assert asks_for_key == (CRITERIA[key]["tier"] == "context")


@each_criterion
def test_not_applicable_is_ruled_where_it_is_allowed_and_closed_where_it_is_not(key: str) -> None:
    objective = _section(key, "Objective").lower()
    assert ("not applicable" in objective) == CRITERIA[key]["allow_na"]
    assert ("every chat gets true or false" in " ".join(objective.split())) != CRITERIA[key]["allow_na"]


@each_criterion
@pytest.mark.parametrize("rule", ["True:", "False:", "Boundary:", "Silence"])
def test_objective_states_each_kind_of_decision_rule(key: str, rule: str) -> None:
    assert f"**{rule}" in _section(key, "Objective")


@each_criterion
def test_text_holds_nothing_that_belongs_to_the_engine_or_steers_the_answer(key: str) -> None:
    text = " ".join(_text(key).lower().split())
    assert [phrase for phrase in FORBIDDEN if phrase in text] == []


@each_criterion
def test_style_separates_the_criterion_from_at_least_one_neighbour(key: str) -> None:
    named = {other for other in CRITERIA if re.search(rf"\b{other}\b", _section(key, "Style"))}
    assert named
    assert key not in named


def test_the_parts_of_chat_efficiency_name_each_other() -> None:
    parts = {key for key, criterion in CRITERIA.items() if criterion["dimension"] == "chat_efficiency"}
    assert {"concise_replies", "caused_needless_turns"} <= parts  # conciseness and turn count
    for key in parts:
        assert {other for other in parts if other in _section(key, "Style")} == parts - {key}


@each_criterion
def test_response_asks_for_at_most_120_words_with_quoted_evidence(key: str) -> None:
    response = " ".join(_section(key, "Response").split())
    assert "at most 120 words" in response
    assert '[m7: "exact words"]' in response


@each_criterion
def test_length_stays_within_180_to_350_words(key: str) -> None:
    assert 180 <= len(_text(key).split()) <= 350


def test_no_two_prompts_share_their_style() -> None:
    styles = [_section(key, "Style") for key in CRITERIA]
    assert len(set(styles)) == len(styles)
