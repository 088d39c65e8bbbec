"""Knowledge articles for tests."""

from hashlib import sha256

from evaluation.models.prompts import ArticleVersion, CriterionArticle, KnowledgeArticle
from labeling.models.rubric import Criterion


def make_article(
    key: str, text: str, *, title: str = "", criterion: Criterion | None = None
) -> ArticleVersion:
    """A new version of an article; a criterion whose articles are listed reads it."""
    article, _ = KnowledgeArticle.objects.get_or_create(key=key)
    if criterion is not None:
        CriterionArticle.objects.get_or_create(criterion=criterion, article=article)
    return ArticleVersion.objects.create(
        article=article,
        number=article.versions.count() + 1,
        title=title or key.capitalize(),
        text=text,
        content_hash=sha256(text.encode()).hexdigest(),
    )
