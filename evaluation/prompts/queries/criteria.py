"""Criteria with the prompts and knowledge that the judge uses."""

from collections.abc import Mapping

from evaluation.models.prompts import ArticleVersion, CriterionArticle
from evaluation.prompts.core.costar import sections
from evaluation.prompts.core.leaks import shorten
from evaluation.prompts.core.lint import Finding, Level, lint_prompt
from evaluation.prompts.queries.definitions import definition_of
from evaluation.prompts.queries.leaks import leaks
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.rubric import Criterion


def prompt_findings(*, criterion: Criterion, text: str) -> tuple[Finding, ...]:
    """Return the problems of a text as this criterion's prompt, errors first."""
    return (*text_findings(criterion=criterion, text=text), *leak_findings(sections(text)))


def text_findings(*, criterion: Criterion, text: str) -> tuple[Finding, ...]:
    """Return the same without reading any chat."""
    return lint_prompt(
        text,
        asked=definition_of(newest_versions(criteria=[criterion])[criterion.pk]),
        has_articles=bool(articles_of([criterion])[criterion.pk]),
    )


def leak_findings(texts: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the passages of these texts, by section, that also occur in measured chats."""
    where = "occurs word for word in a dev or holdout chat"
    return tuple(
        Finding(Level.WARNING, name, f"“{shorten(passage)}” {where}") for name, passage in leaks(texts)
    )


def articles_of(criteria: list[Criterion]) -> dict[int, list[ArticleVersion]]:
    """Return the latest version of each article that a criterion reads, by criterion id, ordered by key."""
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
