"""Passages are found by the words of chat and question, within a budget, the same way everywhere."""

import subprocess
import sys
from dataclasses import replace

import pytest

from evaluation.core.types import Article, Chat, Criterion, Message, MessageRole, Passage
from evaluation.knowledge.core.articles import PASSAGE_TOKENS, passages_in, tokens_of
from evaluation.knowledge.core.retrieval import RETRIEVER, retrieve
from tests.factories.scripted_model import POLITE

TIPS = Article("tips", 2, "Tips", "# Tips\n\nA tip can be lowered until a day after delivery.")
CARDS = Article(
    "cards",
    1,
    "How shoppers pay",
    "# How shoppers pay\n\nShoppers pay with a company card.\n\n"
    "## Declined\n\nA declined card is released by us.",
)
WINE = Article("wine", 1, "Alcohol", "# Alcohol\n\nBottles of wine need an adult at the door.")
FACT = replace(POLITE, key="fact", question="Does the answer fit the shop?", articles=(CARDS, TIPS, WINE))


def chat(*said: str, roles: tuple[MessageRole, ...] = ("user", "assistant")) -> Chat:
    return Chat("h", tuple(Message(n, roles[n % 2 - 1], text) for n, text in enumerate(said, 1)))


def found(
    *said: str, criteria: tuple[Criterion, ...] = (FACT,), tokens: int = 1000
) -> dict[str, tuple[Passage, ...]]:
    return retrieve(chat=chat(*said), criteria=criteria, tokens=tokens)


def places(passages: tuple[Passage, ...]) -> list[tuple[str, int]]:
    return [(passage.article.key, passage.start) for passage in passages]


# ---------- passages ----------


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\n ",
        "One line.",
        "# Only\n\n## headings",
        "# A\ntext\n# B\n\n## C\nmore",
        "word " * 1000,
        "x" * 2000,
        "Über «alles» — 🥚 " * 200,
        "\n\n".join(f"Paragraph {n} " + "is long. " * 12 for n in range(20)),
    ],
)
def test_passages_hold_every_word_of_an_article_once_and_are_short(text: str) -> None:
    pieces = passages_in(text)
    assert "".join("".join(text[start:end] for start, end in pieces).split()) == "".join(text.split())
    assert all(0 < tokens_of(end - start) <= PASSAGE_TOKENS for start, end in pieces)
    assert pieces == sorted(pieces)


def test_a_heading_begins_a_passage_and_stays_with_its_text() -> None:
    text = "# Shop\n\n## Returns\n\nThirty days.\n\n## Refunds\n\nTo the card."
    assert [text[start:end] for start, end in passages_in(text)] == [
        "# Shop\n\n## Returns\n\nThirty days.",
        "## Refunds\n\nTo the card.",
    ]


def test_a_long_text_is_cut_between_paragraphs_rather_than_within_one() -> None:
    paragraphs = [f"{letter * 200}." for letter in "abcd"]
    text = "\n\n".join(paragraphs)
    assert [text[start:end] for start, end in passages_in(text)] == [
        "\n\n".join(paragraphs[:2]),
        "\n\n".join(paragraphs[2:]),
    ]


def test_a_long_paragraph_is_cut_behind_a_sentence() -> None:
    text = "This sentence stands here. " * 40
    assert all(text[start:end].endswith("here.") for start, end in passages_in(text))


# ---------- retrieval ----------


def test_the_passage_that_shares_the_rarest_words_with_the_chat_comes_first() -> None:
    passages = found("My card was declined!", "Is the card blocked?")["fact"]
    assert passages[0].text == "## Declined\n\nA declined card is released by us."
    assert passages[0].article is CARDS
    assert [passage.rank for passage in passages] == list(range(1, len(passages) + 1))
    assert [passage.score for passage in passages] == sorted((p.score for p in passages), reverse=True)


def test_a_passage_without_a_common_word_is_never_found() -> None:
    assert "wine" not in {key for key, _ in places(found("My card was declined!")["fact"])}
    assert found("Zebra?")["fact"] == ()
    assert found("It is what it is, and so are they.")["fact"] == ()  # function words are no hits


def test_the_words_of_a_criterions_question_are_looked_for_too() -> None:
    asked = replace(FACT, question="Was the tip handled well?")
    assert places(found("Zebra?", criteria=(asked,))["fact"]) == [("tips", 0)]


def test_a_title_finds_every_passage_of_its_article() -> None:
    long = Article(
        "returns", 1, "Sending things back", "# Sending things back\n\n" + "Nothing of note. " * 60
    )
    passages = found("I am sending it back", criteria=(replace(FACT, articles=(long, WINE)),))["fact"]
    assert len(passages) == len(passages_in(long.text)) > 1


def test_only_customer_and_bot_are_listened_to() -> None:
    said = chat("wine", "bottles of wine", roles=("tool", "system"))
    assert retrieve(chat=said, criteria=(FACT,), tokens=1000)["fact"] == ()


def test_only_the_criterions_own_articles_are_searched() -> None:
    both = (FACT, replace(FACT, key="other", articles=(WINE,)), POLITE)
    passages = found("My card was declined, and my wine?", criteria=both)
    assert {key for key, _ in places(passages["fact"])} == {"cards", "wine"}
    assert {key for key, _ in places(passages["other"])} == {"wine"}
    assert passages["polite"] == ()


def test_the_budget_counts_a_passage_once_for_the_whole_group() -> None:
    one = found("My card was declined!")["fact"]
    budget = sum(tokens_of(passage.end - passage.start) for passage in one)
    two = (FACT, replace(FACT, key="other"))
    passages = found("My card was declined!", criteria=two, tokens=budget)
    assert places(passages["fact"]) == places(passages["other"]) == places(one)


def test_the_best_passages_fill_the_budget_and_one_that_is_too_long_is_passed_over() -> None:
    long = Article("long", 1, "Wine", "Wine, wine and wine" + " or something else" * 10)
    criterion = (replace(FACT, articles=(long, WINE)),)
    size = tokens_of(len(long.text))
    fitting = {
        tokens: [key for key, _ in places(found("else adult", criteria=criterion, tokens=tokens)["fact"])]
        for tokens in (1000, size, size - 1, 1)
    }
    assert fitting == {1000: ["long", "wine"], size: ["long"], size - 1: ["wine"], 1: []}


def test_a_passage_that_scores_far_below_the_best_is_left_out() -> None:
    filler = tuple(
        Article(f"a{n}", 1, f"Nothing {n}", "The delivery goes on as planned, whatever happens.")
        for n in range(20)
    )
    criterion = replace(FACT, articles=(*filler, CARDS))
    passages = found("Delivery: my card was declined, the shoppers pay company", criteria=(criterion,))[
        "fact"
    ]
    assert {key for key, _ in places(passages)} == {"cards"}


def test_equal_scores_go_by_article_key_and_place() -> None:
    twins = tuple(Article(key, 1, "Twin", "Wine here.") for key in ("b", "c", "a"))
    assert places(found("wine", criteria=(replace(FACT, articles=twins),))["fact"]) == [
        ("a", 0),
        ("b", 0),
        ("c", 0),
    ]


def test_saying_a_word_a_thousand_times_weighs_no_more_than_three_times() -> None:
    assert found("wine wine wine")["fact"] == found("wine " * 1000)["fact"]


def test_articles_without_a_word_find_nothing() -> None:
    empty = replace(FACT, articles=(Article("e", 1, "–", "# …\n\n!!!"),))
    assert found("anything", criteria=(empty,))["fact"] == ()


def test_scores_are_the_ones_that_judges_are_pinned_to() -> None:
    """A change here, of ours or of the library, is another retriever: raise RETRIEVER_VERSION."""
    passages = found("My card was declined!", "Add a tip for the delivery of wine.")["fact"]
    assert [(p.article.key, p.start, p.end, p.score) for p in passages] == [
        ("tips", 0, 56, 1.3471),
        ("cards", 55, 102, 0.9652),
        ("wine", 0, 53, 0.4816),
    ]
    assert RETRIEVER["version"] == 2


@pytest.mark.heavy
def test_retrieval_does_not_depend_on_the_process() -> None:
    module = "tests.evaluation.knowledge.test_retrieval"
    code = f"from {module} import *; print(found('My card was declined!', 'A tip? Wine?'))"
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1


def test_the_library_is_loaded_by_judges_that_retrieve_only() -> None:
    code = (
        "import sys; from evaluation.engines import core; from evaluation.knowledge.core import retrieval; "
        "print('bm25s' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
