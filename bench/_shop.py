"""A shop's articles and 60 questions of its customers in their own words; each names the passage it needs."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.core.types import Article, Chat, Criterion, Message, Passage
from evaluation.knowledge.core.retrieval import retrieve

FOLDER = Path(__file__).resolve().parent / "shop"
# The default rubric's stated_wrong_fact; its words are looked for beside the customer's.
QUESTION = (
    "Did the bot state or promise something that the knowledge or the chat's own records show to be wrong?"
)
ALL_PASSAGES = 1_000_000  # tokens: the budget leaves no passage out


@dataclass(frozen=True, slots=True)
class Need:
    """A customer's question, and the article and heading of the passage that answers it."""

    question: str
    article: str
    section: str

    def met_by(self, passage: Passage) -> bool:
        """Return whether this is the passage."""
        return passage.article.title == self.article and f"## {self.section}\n" in passage.text


def shop_articles() -> tuple[Article, ...]:
    """Return the articles, a first-level heading each."""
    texts = re.split(r"^(?=# )", (FOLDER / "articles.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    titles = [text.partition("\n")[0].removeprefix("# ") for text in texts[1:]]
    return tuple(
        Article(f"shop_{n:02}", 1, title, text)
        for n, (title, text) in enumerate(zip(titles, texts[1:], strict=True))
    )


def shop_needs() -> tuple[Need, ...]:
    """Return the questions."""
    lines = (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Need(**json.loads(line)) for line in lines)


def places(needs: Sequence[Need], articles: tuple[Article, ...]) -> list[int | None]:
    """Return the place, from 1, at which each needed passage is found; None if it is not found."""
    criterion = Criterion("fact", QUESTION, "", "context", False, True, "", articles)
    return [_place(need, criterion) for need in needs]


def recall(found: Sequence[int | None], *, at: int) -> float:
    """Return the share of places up to `at`, 0 to 1.

    Examples
    --------
    >>> recall([1, 6, None, 2], at=5)
    0.5
    """
    return sum(1 for place in found if place and place <= at) / len(found)


def _place(need: Need, criterion: Criterion) -> int | None:
    chat = Chat("shop", (Message(1, "user", need.question),))
    passages = retrieve(chat=chat, criteria=[criterion], tokens=ALL_PASSAGES)[criterion.key]
    return next((passage.rank for passage in passages if need.met_by(passage)), None)
