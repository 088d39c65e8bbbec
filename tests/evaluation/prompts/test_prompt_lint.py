"""What the lint says of a prompt; every shipped prompt is clean."""

import json
from pathlib import Path

import pytest

from evaluation.prompts.core import sections
from evaluation.prompts.core.definition import Definition
from evaluation.prompts.core.lint import Level, lint_prompt

QUESTION = "Was the bot polite?"
CLEAN = f"""# Context
A shop.

# Objective
{QUESTION}

- **True:** it thanks.

# Style
Read every bot message.

# Tone
Impartial.

# Audience
The lead.

# Response
A rationale of at most 120 words.
"""
LONG = 400_000  # characters: what grows with their square does not end within the time of a test
ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "evaluation" / "prompts" / "shipped").glob("*.md"))
DEFAULT_RUBRIC = json.loads((ROOT / "labeling" / "rubric" / "default_rubric.json").read_text("utf-8"))
RUBRIC = {criterion["key"]: criterion for criterion in DEFAULT_RUBRIC["criteria"]}


def said(
    text: str, *, question: str = QUESTION, definition: str = "", has_articles: bool = False
) -> list[tuple[str, str, str]]:
    found = lint_prompt(text, asked=Definition(question, definition), has_articles=has_articles)
    return [(finding.level.value, finding.section, finding.message) for finding in found]


def test_a_clean_prompt_has_nothing_to_say() -> None:
    assert said(CLEAN) == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_prompts_are_clean(path: Path) -> None:
    text, asked = path.read_text("utf-8"), RUBRIC[path.stem]
    found = said(
        text,
        question=asked["question"],
        definition=asked["definition"],
        has_articles="{{knowledge}}" in text,
    )
    assert found == []


def test_a_prompt_without_the_words_of_the_definition_is_named() -> None:
    definition = (
        "True when every bot message stays courteous towards the customer, keeps to formal address and "
        "offers an apology after a mistake. False when one message mocks, insults or blames the customer."
    )
    (finding,) = said(CLEAN, definition=definition)
    assert finding[:2] == ("warning", "objective") and "few words of the definition" in finding[2]
    assert said(CLEAN.replace("it thanks.", definition), definition=definition) == []


@pytest.mark.parametrize("own", ["The knowledge decides.", "Name the article key."])
def test_a_prompt_that_refers_to_knowledge_needs_articles(own: str) -> None:
    text = CLEAN.replace("Impartial.", own)
    assert said(text) == [
        ("warning", "tone", "refers to knowledge, but the criterion reads no article: list its articles")
    ]
    assert said(text.replace("A shop.", "A shop.\n\n{{knowledge}}"), has_articles=True) == []


@pytest.mark.parametrize("own", ["No business knowledge is needed.", "It needs no knowledge."])
def test_a_prompt_may_say_that_it_needs_no_knowledge(own: str) -> None:
    assert said(CLEAN.replace("Impartial.", own)) == []


def test_a_rule_that_repeats_the_example_of_the_other_answer_is_named() -> None:
    asked = Definition(
        QUESTION,
        "",
        true_example="The bot thanks the customer for waiting.",
        false_example="The bot calls the customer careless.",
    )
    wrong = CLEAN.replace("it thanks.", "the bot calls the customer careless.")
    right = f"{CLEAN.replace('it thanks.', 'the bot thanks the customer for waiting.')}"
    assert [one.message for one in lint_prompt(wrong, asked=asked, has_articles=False)] == [
        "the rule for True repeats the raters' example of False"
    ]
    assert lint_prompt(right, asked=asked, has_articles=False) == ()


@pytest.mark.parametrize(
    ("old", "new", "level", "section", "message"),
    [
        ("# Tone\nImpartial.\n\n", "", "warning", "tone", "is missing or empty"),
        ("# Objective\n", "# Aim\n", "error", "objective", "is missing or empty"),
        (QUESTION, "Was it nice?", "warning", "objective", "does not ask the criterion's question"),
        ("120 words.", "120 words.\n\nVERDICTS\npolite: TRUE", "error", "response", "VERDICTS block"),
        ("120 words.", "120 words, as JSON.", "error", "response", "“JSON”: the engine requests prose"),
        ("Impartial.", "Just answer TRUE.", "warning", "tone", "“answer TRUE”"),
        ("A shop.", "A shop. {{chat}}", "error", "context", "{{chat}} is not a variable"),
        ("A shop.", "A shop.\n\n{{knowledge}}", "warning", "context", "reads no article"),
        ("Read every", "Think step by step. Read every", "warning", "style", "“step by step”"),
        ("Impartial.", "Be very strict.", "warning", "tone", "“Be very strict”"),
        ("The lead.", "ann@example.org", "warning", "audience", "an e-mail address"),
        ("The lead.", "<ann.b+c@mail.example.org>,", "warning", "audience", "an e-mail address"),
        ("120 words.", "120 words.\n\n> **VERDICTS:**\npolite: TRUE", "error", "response", "VERDICTS block"),
        ("A shop.", "A shop. {{ \tchat }}", "error", "context", "{{chat}} is not a variable"),
        ("The lead.", "Card 4111 1111 1111 1111", "warning", "audience", "a card or account number"),
        ("The lead.", "Call +49 30 1234567", "warning", "audience", "a telephone number"),
        ("# Context", "Hello.\n# Context", "warning", "", "before the first heading"),
        ("A shop.", "word " * 1000, "warning", "", "words: judges skip"),
    ],
)
def test_each_fault_is_named_with_its_section(
    old: str, new: str, level: str, section: str, message: str
) -> None:
    found = said(CLEAN.replace(old, new))
    assert [(a, b) for a, b, text in found if message in text] == [(level, section)]


def test_errors_come_first() -> None:
    found = lint_prompt("# Tone\nBe strict. {{x}}", asked=Definition(QUESTION, ""), has_articles=False)
    assert [finding.level for finding in found] == sorted(finding.level for finding in found)
    assert found[0].level is Level.ERROR


def test_a_criterion_with_articles_is_reminded_of_the_slot() -> None:
    assert [message for _, _, message in said(CLEAN, has_articles=True)] == [
        "has no line {{knowledge}}: article names are added at the end of the prompt"
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        "a" + "\n" * LONG + "b",
        "a." * LONG,
        "a@b." * LONG,
        "{{" + " " * LONG + "x",
        "{{" * LONG,
        "answer " + " " * LONG + "b",
        "1 " * 12 + "+1" + " " * LONG + "b",
        "> " * LONG + "b",
    ],
    ids=["empty lines", "dots", "ats", "open slot", "slots", "an answer", "a number", "quotes"],
)
def test_a_long_hostile_text_is_looked_through_like_any_other(hostile: str) -> None:
    found = said(CLEAN.replace("120 words.", hostile))
    assert [message for _, _, message in found if "words: judges skip" not in message] == []


def test_a_heading_with_much_space_behind_it_is_none() -> None:
    assert sections(f"# Tone{' ' * LONG}x") == {"": f"# Tone{' ' * LONG}x"}
    assert sections(f"# Tone{' ' * LONG}:  ## \nCalm.") == {"tone": "Calm."}
