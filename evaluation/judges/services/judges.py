"""Creates judges from today's champions and settings, with a fingerprint."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import transaction

from evaluation.core import types
from evaluation.core.hashing import canonical, text_hash
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.sampling_defaults import sent_differences
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import (
    Ingredients,
    groups_of,
    judge_config,
    role_profiles,
    snapshot_hash,
)
from evaluation.models.judges import Judge, JudgeProfile, JudgePrompt
from evaluation.models.prompts import (
    KnowledgeSnapshot,
    PromptVersion,
    SnapshotItem,
)
from evaluation.prompts.queries.criteria import articles_of
from evaluation.prompts.queries.examples import examples_of
from evaluation.prompts.queries.versions import newest_versions
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.people import User
from labeling.models.rubric import Criterion


@transaction.atomic
def judge_ensure(
    *,
    choice: JudgeSpec,
    criteria: Sequence[Criterion],
    endpoint: Endpoint,
    profile: JudgeProfile | None = None,
    prompts: Collection[PromptVersion] = (),
    by: User | None,
) -> Judge:
    """Return today's judge for a recipe; the same ingredients give the same row.

    `prompts` replace their criteria's champions. A judge keeps its first profile. `by` is the acting user.
    """
    chosen = champions_ensure(criteria=criteria, by=by) | {row.criterion_id: row for row in prompts}
    ingredients = Ingredients(
        criteria=criteria,
        versions=newest_versions(criteria=criteria),
        prompts=chosen,
        examples=examples_of([prompt.pk for prompt in chosen.values()]),
        articles={} if choice.knowledge == "none" else articles_of(list(criteria)),
    )
    snapshot = _snapshot_ensure(ingredients)
    groups = groups_of(choice=choice, endpoint=endpoint, criteria=criteria)
    profiles = role_profiles(choice=choice, endpoint=endpoint)
    config = judge_config(choice, endpoint, groups, ingredients, snapshot, profiles)
    fingerprint = text_hash(canonical(config))
    judge, created = Judge.objects.get_or_create(
        fingerprint=fingerprint,
        defaults={
            "name": _name(config)[:200],
            "engine": choice.engine,
            "config": config,
            "snapshot": snapshot,
        },
    )
    if created:
        _prompts_create(judge, groups, ingredients)
    if profile is not None and judge.profile_id is None:
        judge.profile = profile
        judge.save(update_fields=["profile"])
    return judge


def _name(config: Mapping[str, Any]) -> str:
    samples = f" × {config['samples']}" if config["samples"] > 1 else ""
    return f"{config['engine']}{samples}, {config['model']}"


def _snapshot_ensure(ingredients: Ingredients) -> KnowledgeSnapshot | None:
    """Pin the article versions that each criterion reads; None if none are read."""
    if not (digest := snapshot_hash(ingredients)):
        return None
    snapshot, created = KnowledgeSnapshot.objects.get_or_create(content_hash=digest)
    if created:
        SnapshotItem.objects.bulk_create(
            SnapshotItem(snapshot=snapshot, criterion_id=pk, article_version=version)
            for pk, versions in ingredients.articles.items()
            for version in versions
        )
    return snapshot


def _prompts_create(
    judge: Judge, groups: list[tuple[types.Engine, tuple[str, ...]]], ingredients: Ingredients
) -> None:
    by_key = {row.key: row for row in ingredients.criteria}
    JudgePrompt.objects.bulk_create(
        JudgePrompt(
            judge=judge,
            criterion=by_key[key],
            criterion_version=ingredients.versions[by_key[key].pk],
            prompt_version=ingredients.prompts[by_key[key].pk],
            group=number,
        )
        for number, (_, keys) in enumerate(groups)
        for key in keys
    )


def judge_sent(judge: Judge, profiles: Mapping[types.ModelAt, ModelProfile]) -> None:
    """Record where a judge's requests differ from its configuration, by model and parameter."""
    sent: dict[str, Any] = {}
    for endpoint in {at.endpoint for at in profiles}:
        own = {at.model: profile for at, profile in profiles.items() if at.endpoint == endpoint}
        roles = {
            role: settings
            for role, settings in judge.config.get("roles", {}).items()
            if settings.get("endpoint", endpoint) == endpoint
        }
        for model, changed in sent_differences(roles, own).items():
            sent[model] = sent.get(model, {}) | changed
    if sent != judge.sent:
        judge.sent = sent
        judge.save(update_fields=["sent"])
