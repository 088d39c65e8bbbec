"""Criteria with the prompts and knowledge that the judge uses."""

from evaluation.core.prompts.lint import Finding, lint_prompt
from evaluation.models.prompts import ArticleVersion, CriterionArticle
from evaluation.selectors.prompts import newest_versions
from labeling.models.rubric import Criterion


def prompt_findings(*, criterion: Criterion, text: str) -> tuple[Finding, ...]:
    """What the lint says of a text as this criterion's prompt."""
    return lint_prompt(
        text,
        question=newest_versions(criteria=[criterion])[criterion.pk].question,
        has_articles=bool(articles_of([criterion])[criterion.pk]),
    )


def articles_of(criteria: list[Criterion]) -> dict[int, list[ArticleVersion]]:
    """The newest version of each article that a criterion reads, by criterion id, ordered by key."""
    newest: dict[int, ArticleVersion] = {}
    for version in ArticleVersion.objects.select_related("article").order_by("number"):
        newest[version.article_id] = version
    every = sorted(newest.values(), key=lambda version: version.article.key)
    listed: dict[int, set[int]] = {}
    for link in CriterionArticle.objects.filter(criterion__in=criteria):
        listed.setdefault(link.criterion_id, set()).add(link.article_id)
    return {
        row.pk: [
            v
            for v in every
            if row.articles == Criterion.Articles.ALL or v.article_id in listed.get(row.pk, ())
        ]
        for row in criteria
    }
