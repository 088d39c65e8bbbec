"""A rationale on several criteria is divided by the headings that models really write."""

import pytest

from evaluation.engines.core.prose import about, by_criterion, text_on
from tests.factories.scripted_model import BOTH, Script, answered, judged

KEYS = ("polite_tone", "stated_wrong_fact", "clear")

HEADINGS = [
    "polite_tone",
    "Polite_Tone:",
    "**polite_tone**",
    "`polite_tone`",
    "### polite_tone",
    "### 1. polite_tone",
    "## Criterion `polite_tone`",
    "## Criterion 2: polite_tone",
    "#### **1) polite_tone**",
    "1. polite_tone",
    "(1) polite_tone",
    "2) **polite_tone**:",
    "**1. polite_tone**",
    "Criterion polite_tone:",
    "**Criterion: polite_tone**",
    "Criterion 1 – `polite_tone`",
    r"polite\_tone",
    r"**polite\_tone**",
    "[polite_tone]",
    "- **polite_tone**",
    "## Polite tone",
    "### polite-tone",
    "### polite_tone ###",
    "“polite_tone”",
    "polite_tone：",
    "**polite_tone**: TRUE",
    "### polite_tone — FALSE",
    "polite_tone (NOT_APPLICABLE)",
]

INLINE = [
    "polite_tone: It was kind.",
    "**polite_tone**: It was kind.",
    "**polite_tone:** It was kind.",
    "**polite_tone** – It was kind.",
    "**polite_tone** — It was kind.",
    "**polite_tone** It was kind.",
    "`polite_tone` - It was kind.",
    "- **polite_tone**: It was kind.",
    "1. **polite_tone**: It was kind.",
    "Criterion polite_tone: It was kind.",
    r"**polite\_tone**: It was kind.",
    "### polite_tone: It was kind.",
    "| polite_tone | It was kind.",
]


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_heading_begins_a_section(heading: str) -> None:
    text = f"First words.\n\n{heading}\nIt was kind.\n\n### 2. stated_wrong_fact\nNothing wrong."
    parts = by_criterion(text, keys=KEYS)
    assert (parts[""], parts["stated_wrong_fact"]) == ("First words.", "Nothing wrong.")
    assert parts["polite_tone"].splitlines()[-1] == "It was kind."


@pytest.mark.parametrize("line", INLINE)
def test_text_may_follow_the_key_on_its_line(line: str) -> None:
    parts = by_criterion(f"{line}\nStill kind.\n\nclear – Yes, m2.", keys=KEYS)
    assert parts == {"polite_tone": "It was kind.\nStill kind.", "clear": "Yes, m2."}


@pytest.mark.parametrize(
    "line",
    [
        "Clear words were used.",
        "The polite_tone of m2 is fine.",
        "`polite_tone` does not matter here.",
        "> ### polite_tone",
        "m02 customer| polite_tone: FALSE",
        "polite_tones: many",
        "order_id: 4711",
    ],
)
def test_prose_is_no_heading(line: str) -> None:
    text = f"stated_wrong_fact\nNothing.\n{line}\nMore."
    assert by_criterion(text, keys=KEYS) == {"stated_wrong_fact": f"Nothing.\n{line}\nMore."}


def test_text_on_a_criterion_that_was_not_asked_is_dropped() -> None:
    for heading in ("other_key", "### 3. other_key", "**Criterion `other_key`**: as asked"):
        assert by_criterion(f"clear\nYes.\n{heading}\nNo.", keys=KEYS) == {"clear": "Yes."}


@pytest.mark.parametrize("block", ["VERDICTS\n", "**Final verdicts**\n\n", ""])
def test_answers_at_the_end_are_no_sections(block: str) -> None:
    answers = f"{block}polite_tone: TRUE\n**stated_wrong_fact**: FALSE\nclear: NOT_APPLICABLE"
    assert by_criterion(f"One text.\n\n{answers}", keys=KEYS) == {"": f"One text.\n\n{answers}"}
    divided = by_criterion(f"clear\nYes.\n\n{answers}", keys=KEYS)
    assert set(divided) == {"clear"}


def test_what_belongs_to_no_criterion_is_read_where_one_has_no_section() -> None:
    text = "Nothing bears on tone.\n**clear**: Yes."
    assert about("polite_tone", text=text, keys=KEYS) == ""
    assert text_on("polite_tone", text=text, keys=KEYS) == "Nothing bears on tone."
    assert text_on("polite_tone", text="All in one.", keys=KEYS) == "All in one."


def test_quotes_count_for_the_criterion_that_cites_them() -> None:
    prose = (
        '### 1. polite\nKind: [m2: "Please ask your bank"].\n\n'
        '**wrong_fact** – It says [m2: "ask your mother"], and [m1: "My card was declined"].\n\n'
        "VERDICTS\npolite: TRUE\nwrong_fact: FALSE"
    )
    polite, wrong_fact = judged(
        Script({"direct": [answered(prose)]}), engine="direct", criteria=BOTH
    ).verdicts
    assert (polite.quotes, polite.quotes_verified, polite.flags) == (1, 1, ())
    assert (wrong_fact.quotes, wrong_fact.quotes_verified) == (2, 1)
    assert wrong_fact.flags == ("unverified_quote",)
    assert polite.explanation.startswith("Kind:")
    assert wrong_fact.explanation.startswith("It says")


def test_briefs_and_windows_are_divided_alike() -> None:
    brief = '**polite** – Cold: [m2: "ask your bank"].\n## 2. `wrong_fact`\nNo quote.'
    verdict = "### 1. polite\nWeighed.\n### 2. wrong_fact\nNone.\nVERDICTS\npolite: FALSE\nwrong_fact: FALSE"
    model = Script(
        {"customer": [answered(brief)], "support": [answered(brief)], "judge": [answered(verdict)]}
    )
    result = judged(model, engine="debate", criteria=BOTH)
    assert [found.explanation for found in result.verdicts] == ["Weighed.", "None."]
    read = model.asked("judge")[0].messages[-1].text
    assert '[m2: "ask your bank"] [verified]' in read
