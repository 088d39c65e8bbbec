"""Rubric, prompts and knowledge as the files that their imports read."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from django.db.models import Max

from evaluation.models.prompts import ArticleVersion, CriterionArticle
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rubric.core.rubric import WORDS_FOR_RATERS
from labeling.transfer.queries.exports import filled

ROWS_AT_ONCE = 100


def rubric_document(chat_set: ChatSet) -> dict[str, Any]:
    """Return the set's rubric as `import_rubric` reads it, with retired criteria."""
    rows = list(
        Criterion.objects.filter(rubric=chat_set.rubric_id)
        .select_related("dimension")
        .order_by("position", "id")
    )
    texts = newest_versions(criteria=rows)
    dimensions = {row.dimension_id: row.dimension for row in rows}
    articles: dict[int, list[str]] = {}
    listed = CriterionArticle.objects.filter(criterion__in=rows).order_by("article__key")
    for criterion, key in listed.values_list("criterion_id", "article__key"):
        articles.setdefault(criterion, []).append(key)
    return {
        "name": chat_set.rubric.name,
        "dimensions": [
            {"key": one.key, "name": one.name}
            for one in sorted(dimensions.values(), key=lambda one: (one.position, one.pk))
        ],
        "criteria": [
            _criterion(row, texts[row.pk], articles.get(row.pk, [])) for row in rows if row.pk in texts
        ],
    }


def _criterion(row: Criterion, text: CriterionVersion, articles: list[str]) -> dict[str, Any]:
    # Without the field a context criterion reads every article, any other none.
    reads_all = row.articles == Criterion.Articles.ALL
    return {
        "key": row.key,
        "dimension": row.dimension.key,
        "tier": row.tier,
        "question": text.question,
        "definition": text.definition,
        "passes_when": text.passes_when,
        "allow_na": text.allow_na,
        "critical": row.critical,
        "evidence_on_fail": row.evidence_on_fail,
        "state": row.state,
        **({} if reads_all else {"knowledge": articles}),
        **filled(**{name: getattr(text, name) for name in WORDS_FOR_RATERS}),
    }


def article_files() -> Iterator[tuple[str, str]]:
    """Yield path and text of every article's newest version, by key."""
    newest = ArticleVersion.objects.values("article").annotate(last=Max("number"))
    numbers = dict(newest.values_list("article_id", "last"))
    rows = ArticleVersion.objects.select_related("article").order_by("article__key", "number")
    for row in rows.iterator(ROWS_AT_ONCE):
        if row.number == numbers[row.article_id]:
            yield f"{_inside(row.article.key)}.md", row.text


def _inside(key: str) -> str:
    """
    Return a path that stays in its folder.

    Examples
    --------
    >>> _inside("payment/cards"), _inside("../../etc/passwd")
    ('payment/cards', 'etc/passwd')
    """
    return str(PurePosixPath(*[part for part in PurePosixPath(key).parts if part not in ("/", "..")]))
