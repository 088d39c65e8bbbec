"""Prompt versions of criteria: shipped, generated, and champions."""

from collections.abc import Collection
from pathlib import Path

from django.db import transaction

from common.problems import InputProblem
from evaluation.core.hashing import text_hash
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.models.runs import Verdict
from evaluation.prompts.core import sections
from evaluation.prompts.core.definition import changed_texts, generated_text
from evaluation.prompts.queries.definitions import definition_of
from evaluation.prompts.queries.versions import champions, newest_versions, next_number
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Tier
from labeling.people.services.audit import audit

SHIPPED = Path(__file__).resolve().parent.parent / "shipped"
RUBRIC_ORIGINS = (PromptVersion.Origin.SHIPPED, PromptVersion.Origin.GENERATED)


def champions_ensure(*, criteria: Collection[Criterion], by: User | None) -> dict[int, PromptVersion]:
    """Return the champion prompt of each criterion by id; `by` is the acting user, None for a command.

    A criterion without a version gets version 1, shipped or generated. When the criterion's text changes, a
    generated champion, and a shipped one that asks another question, gets a successor. It becomes the
    champion only while the criterion has neither labels nor verdicts; later it is a draft for the regression
    test. An author's version stays.
    """
    prompts, versions = champions(criteria=criteria), newest_versions(criteria=criteria)
    for criterion in criteria:
        champion, version = prompts.get(criterion.pk), versions[criterion.pk]
        if champion is None or not _serves(champion, version):
            prompts[criterion.pk] = _version_add(criterion, version, champion, by)
    return prompts


def is_measured(criterion: Criterion) -> bool:
    """Return whether the criterion has labels or verdicts: then its champion changes by a release only."""
    return criterion.labels_seq > 0 or Verdict.objects.filter(criterion=criterion).exists()


@transaction.atomic
def prompt_promote(
    *, version: PromptVersion, reason: str, by: User | None = None, overridden: bool = True
) -> Promotion:
    """Make a version the champion; `overridden` means that it passed no gate.

    The current champion keeps its promotion. Raises InputProblem without a reason.
    """
    if not reason.strip():
        raise InputProblem("a promotion needs a reason")
    criterion = Criterion.objects.select_for_update(no_key=True).get(pk=version.criterion_id)
    newest = Promotion.objects.filter(criterion=criterion).select_related("version").order_by("-id").first()
    if newest is not None and newest.version_id == version.pk:
        return newest
    before = None if newest is None else newest.version
    return _promotion(version=version, before=before, reason=reason, by=by, overridden=overridden)


def prompt_confirm(*, version: PromptVersion, champion: PromptVersion, by: User | None) -> Promotion:
    """Make a version with the champion's content the champion; it counts as tested if the champion does."""
    last = Promotion.objects.filter(version=champion).latest("id")
    reason = version.reason.strip() or "The same text, read again"
    return prompt_promote(version=version, reason=reason, by=by, overridden=last.overridden)


def _promotion(
    *, version: PromptVersion, before: PromptVersion | None, reason: str, by: User | None, overridden: bool
) -> Promotion:
    """Store a promotion and log the change of the champion."""
    audit(
        actor=by,
        verb="champion changed",
        obj=version.criterion,
        criterion=version.criterion.key,
        champion={"old": before and before.number, "new": version.number},
        reason=reason,
        overridden=overridden,
    )
    return Promotion.objects.create(
        criterion=version.criterion, version=version, reason=reason, by=by, overridden=overridden
    )


def _serves(prompt: PromptVersion, version: CriterionVersion) -> bool:
    if prompt.origin == PromptVersion.Origin.GENERATED and prompt.written_for is not None:
        return not changed_texts(definition_of(prompt.written_for), definition_of(version))
    return prompt.origin != PromptVersion.Origin.SHIPPED or _asks(prompt.text, version.question)


@transaction.atomic
def _version_add(
    criterion: Criterion, version: CriterionVersion, before: PromptVersion | None, by: User | None
) -> PromptVersion:
    """Add the rubric's own text once, and return the champion: the new version if it may become it."""
    locked = Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    now = champions(criteria=[criterion]).get(criterion.pk)
    if now is not None and now != before:
        return now
    prompts = PromptVersion.objects.filter(criterion=criterion)
    known = prompts.filter(written_for=version, origin__in=RUBRIC_ORIGINS).first()
    prompt = known or _own_version(criterion, version, first=now is None)
    if now is not None and is_measured(locked):
        return now
    if now != prompt:
        _promotion(version=prompt, before=now, reason=prompt.reason, by=by, overridden=False)
    return prompt


def _own_version(criterion: Criterion, version: CriterionVersion, *, first: bool) -> PromptVersion:
    """Create the shipped prompt if it asks this question, else one from the raters' texts."""
    shipped = SHIPPED / f"{criterion.key}.md"
    text = shipped.read_text(encoding="utf-8") if shipped.is_file() else ""
    if text and _asks(text, version.question):
        origin = PromptVersion.Origin.SHIPPED
    else:
        origin, text = PromptVersion.Origin.GENERATED, generated_prompt(criterion, version)
    return PromptVersion.objects.create(
        criterion=criterion,
        number=next_number(criterion),
        text=text,
        content_hash=text_hash(text),
        origin=origin,
        reason="First version" if first else f"Version {version.number} of the criterion's text",
        written_for=version,
    )


def generated_prompt(criterion: Criterion, version: CriterionVersion) -> str:
    """Return a CO-STAR prompt from the raters' own words."""
    return generated_text(definition_of(version), knowledge=criterion.tier == Tier.CONTEXT)


def _asks(text: str, question: str) -> bool:
    """Return whether a shipped prompt asks this question; it fits no other one."""
    return sections(text).get("objective", "").lstrip().startswith(question)
