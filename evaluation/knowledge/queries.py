"""Knowledge articles of a criterion, and the passages retrieved for a unit, as the judge saw them."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from evaluation.models.prompts import ArticleVersion, CriterionArticle, KnowledgeArticle
from evaluation.models.runs import Passage
from labeling.models.rubric import Criterion


def article_titles() -> list[tuple[str, str]]:
    """Return key and newest title of every article; one query."""
    newest = ArticleVersion.objects.filter(article=OuterRef("pk")).order_by("-number").values("title")[:1]
    rows = KnowledgeArticle.objects.annotate(title=Subquery(newest)).order_by("key")
    return [(key, title or key) for key, title in rows.values_list("key", "title")]


def articles_of(criterion: Criterion) -> tuple[str, ...]:
    """Return the keys of the articles that a criterion lists."""
    rows = CriterionArticle.objects.filter(criterion=criterion).order_by("article__key")
    return tuple(rows.values_list("article__key", flat=True))


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage of an article version: text, place (code points), rank and score."""

    key: str
    version: int
    title: str
    text: str
    start: int
    end: int
    rank: int
    score: float


def passages_of(unit_ids: Collection[int]) -> dict[tuple[int, int], tuple[ShownPassage, ...]]:
    """Return passages by unit and criterion id, best first; pairs without passages are missing. One query."""
    rows = Passage.objects.filter(unit__in=unit_ids).select_related("article_version__article")
    by_place: dict[tuple[int, int], list[ShownPassage]] = {}
    for row in rows.order_by("unit", "criterion", "rank"):
        by_place.setdefault((row.unit_id, row.criterion_id), []).append(_shown(row))
    return {place: tuple(passages) for place, passages in by_place.items()}


def _shown(row: Passage) -> ShownPassage:
    version = row.article_version
    return ShownPassage(
        key=version.article.key,
        version=version.number,
        title=version.title,
        text=version.text[row.start : row.end],
        start=row.start,
        end=row.end,
        rank=row.rank,
        score=row.score,
    )
