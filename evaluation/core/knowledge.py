"""Which knowledge a call gets."""

from collections.abc import Sequence

from .types import Article, Criterion


def group_articles(criteria: Sequence[Criterion]) -> tuple[Article, ...]:
    """Return the articles of a group (knowledge mode static), each once, ordered by key.

    Raises ValueError when two criteria bring different versions of one article: a judge pins one.
    """
    by_key: dict[str, Article] = {}
    for article in (article for criterion in criteria for article in criterion.articles):
        if by_key.setdefault(article.key, article) != article:
            raise ValueError(f"Article {article.key!r} comes in two versions in one group.")
    return tuple(by_key[key] for key in sorted(by_key))
