"""Knowledge articles that a criterion needs; those with passages that match the rater's chat come first."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluation.core import types
from evaluation.knowledge.core.articles import passages_in
from evaluation.knowledge.core.retrieval import matching_articles, retrieve
from evaluation.models.prompts import ArticleVersion
from evaluation.prompts.queries.criteria import articles_of
from evaluation.runs.queries.chats import core_chat
from labeling.models.labels import Assignment
from labeling.models.rubric import Criterion
from labeling.rubric.queries.criteria import criteria_of, newest_version

RELEVANT_TOKENS = 480  # of the passages shown first, as estimated for prompts
MOST_FOUND = 30


@dataclass(frozen=True, slots=True)
class RelevantArticle:
    """An article with the passages that match the chat; `whole` if they are its whole text."""

    version: ArticleVersion
    passages: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Knowledge:
    """A criterion's articles: those with a passage for the chat, best first, and the others by title."""

    relevant: tuple[RelevantArticle, ...]
    others: tuple[ArticleVersion, ...]

    @property
    def total(self) -> int:
        """Number of articles."""
        return len(self.relevant) + len(self.others)


def asked_with_knowledge(*, assignment: Assignment, key: str) -> Criterion | None:
    """Return a criterion of the rater's chat; None if it is not asked there or the rater skipped the chat."""
    if assignment.state not in (Assignment.State.LEASED, Assignment.State.SUBMITTED):
        return None
    return next((row for row in criteria_of(assignment.job) if row.key == key), None)


def articles_for(criterion: Criterion) -> list[ArticleVersion]:
    """Return the articles that the criterion needs, in their versions in use, by title."""
    return sorted(articles_of([criterion])[criterion.pk], key=lambda row: (row.title.casefold(), row.pk))


def knowledge_for(*, assignment: Assignment, criterion: Criterion) -> Knowledge:
    """Return the criterion's articles; the ones that match the chat come first. Reads no verdict."""
    rows = {row.article.key: row for row in articles_for(criterion)}
    places: dict[str, list[types.Passage]] = {}
    for passage in _passages(assignment, criterion, rows.values()):
        places.setdefault(passage.article.key, []).append(passage)
    relevant = tuple(_relevant(rows[key], found) for key, found in places.items())
    return Knowledge(relevant, tuple(row for key, row in rows.items() if key not in places))


def article_for(*, criterion: Criterion, key: str, number: int | None) -> ArticleVersion | None:
    """Return a version of one of the criterion's articles, by default the one in use."""
    row = next((row for row in articles_for(criterion) if row.article.key == key), None)
    if row is None or number is None:
        return row
    return ArticleVersion.objects.select_related("article").filter(article=row.article, number=number).first()


def articles_matching(*, criterion: Criterion, words: str) -> list[ArticleVersion]:
    """Return the criterion's articles with these words, best first."""
    rows = {row.article.key: row for row in articles_for(criterion)}
    found = matching_articles(articles=_articles(rows.values()), words=words)
    return [rows[article.key] for article in found[:MOST_FOUND]]


def _passages(
    assignment: Assignment, criterion: Criterion, rows: Iterable[ArticleVersion]
) -> Sequence[types.Passage]:
    text = newest_version(criterion)
    asked = types.Criterion(
        key=criterion.key,
        question=text.question,
        definition=text.definition,
        tier="context",
        passes_when=text.passes_when,
        allow_na=text.allow_na,
        prompt="",
        articles=_articles(rows),
    )
    chat = core_chat(assignment.chat)
    return retrieve(chat=chat, criteria=[asked], tokens=RELEVANT_TOKENS)[criterion.key]


def _articles(rows: Iterable[ArticleVersion]) -> tuple[types.Article, ...]:
    return tuple(types.Article(row.article.key, row.number, row.title, row.text) for row in rows)


def text_below_title(row: ArticleVersion, text: str | None = None) -> str:
    """Return the article's text, or a passage of it, without a heading that repeats its title."""
    heading = rf"\s*#{{1,6}}[ \t]+{re.escape(row.title)}[ \t#]*(?:\n|$)"
    return re.sub(rf"\A{heading}", "", row.text if text is None else text)


def _relevant(row: ArticleVersion, found: Sequence[types.Passage]) -> RelevantArticle:
    places = sorted((passage.start, passage.end) for passage in found)
    if places == passages_in(row.text):
        return RelevantArticle(row, (text_below_title(row),), whole=True)
    passages = (text_below_title(row, row.text[start:end]) for start, end in places)
    return RelevantArticle(row, tuple(passages), whole=False)
