"""Builds judges: today's champions and settings, fingerprinted."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast, get_args

from django.conf import settings
from django.db import transaction

from evaluation.core import types
from evaluation.core.choice import JudgeChoice
from evaluation.core.grouping import (
    ENGINE_ROLES,
    Groupable,
    ModelKind,
    default_sampling,
    group_criteria,
)
from evaluation.core.hashing import canonical, text_hash
from evaluation.core.prompts import FENCE_VERSION, FORMATTER_SCHEMA_VERSION, READER_VERSION, template_hash
from evaluation.gateway.embedded import EMBEDDED_MODEL
from evaluation.gateway.endpoints import Endpoint
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import ArticleVersion, KnowledgeSnapshot, PromptVersion, SnapshotItem
from evaluation.selectors.criteria import articles_of
from evaluation.selectors.prompts import newest_versions
from evaluation.services.prompts import champions_ensure
from labeling.models.rubric import Criterion, CriterionVersion

SCHEMA = 1
HOSTED_MODEL = "gpt-4.1-mini"
REASONING_MODELS = re.compile(r"^(o\d|gpt-5)")
TIER_ENGINES: dict[str, types.Engine] = {"simple": "direct", "context": "debate", "subjective": "direct"}


@dataclass(frozen=True, slots=True)
class _Ingredients:
    """The rows a judge is made of, by criterion id."""

    criteria: Sequence[Criterion]
    versions: dict[int, CriterionVersion]
    prompts: dict[int, PromptVersion]
    articles: dict[int, list[ArticleVersion]]


@transaction.atomic
def judge_ensure(*, choice: JudgeChoice, criteria: Sequence[Criterion], endpoint: Endpoint) -> Judge:
    """The judge that this choice amounts to today; the same ingredients give the same row."""
    ingredients = _Ingredients(
        criteria=criteria,
        versions=newest_versions(criteria=criteria),
        prompts=champions_ensure(criteria=criteria),
        articles=articles_of(list(criteria)) if choice.knowledge == "static" else {},
    )
    snapshot = _snapshot_ensure(ingredients)
    groups = _groups(choice, criteria)
    config = _config(choice, endpoint, groups, ingredients, snapshot)
    fingerprint = text_hash(canonical(config))
    judge, created = Judge.objects.get_or_create(
        fingerprint=fingerprint,
        defaults={
            "name": f"{choice.engine}, {config['model']}",
            "engine": choice.engine,
            "config": config,
            "snapshot": snapshot,
        },
    )
    if created:
        _prompts_create(judge, groups, ingredients)
    return judge


def model_names(*, choice: JudgeChoice, endpoint: Endpoint) -> tuple[str, str]:
    """The reasoning and the formatter model; the embedded endpoint has one model only."""
    if endpoint.embedded:
        return EMBEDDED_MODEL, EMBEDDED_MODEL
    reasoning = choice.model or settings.LACE_REASONING_MODEL or HOSTED_MODEL
    return reasoning, choice.formatter or settings.LACE_FORMATTER_MODEL or reasoning


def model_kind(*, model: str, endpoint: Endpoint) -> ModelKind:
    """Which family of settings a model takes."""
    if endpoint.embedded:
        return "embedded"
    return "reasoning" if REASONING_MODELS.match(model) else "standard"


def _groups(choice: JudgeChoice, criteria: Sequence[Criterion]) -> list[tuple[types.Engine, tuple[str, ...]]]:
    """Engine and criterion keys of each group, in order. `auto` never mixes engines in a group."""
    engines = {
        row.key: TIER_ENGINES[row.tier] if choice.engine == "auto" else choice.engine for row in criteria
    }
    found: list[tuple[types.Engine, tuple[str, ...]]] = []
    for engine in get_args(types.Engine):
        rows = [
            Groupable(row.key, row.dimension.key, cast("types.Tier", row.tier), row.critical)
            for row in criteria
            if engines[row.key] == engine
        ]
        found += [(engine, keys) for keys in group_criteria(rows, mode=choice.grouping)]
    return found


def _config(
    choice: JudgeChoice,
    endpoint: Endpoint,
    groups: list[tuple[types.Engine, tuple[str, ...]]],
    ingredients: _Ingredients,
    snapshot: KnowledgeSnapshot | None,
) -> dict[str, Any]:
    """Everything that reaches a model; what does not (concurrency, prices, set) stays out."""
    reasoning, formatter = model_names(choice=choice, endpoint=endpoint)
    by_key = {row.key: row for row in ingredients.criteria}
    return {
        "schema": SCHEMA,
        "engine": choice.engine,
        "endpoint": endpoint.id,
        "model": reasoning,
        "formatter": formatter,
        "roles": _roles({engine for engine, _ in groups}, endpoint, reasoning, formatter),
        "samples": 1,
        "groups": [
            {"engine": engine, "criteria": [_criterion_entry(by_key[key], ingredients) for key in keys]}
            for engine, keys in groups
        ],
        # A very small model reads short prompts best; with the chat first its criteria share that prefix.
        "size": "compact" if endpoint.embedded else "full",
        "layout": "chat_first" if endpoint.embedded else "criteria_first",
        "role_in": "user",
        "order_seed": 0,
        "templates": template_hash(),
        "fence": FENCE_VERSION,
        "reader": READER_VERSION,
        "formatter_schema": FORMATTER_SCHEMA_VERSION,
        "knowledge": {"mode": choice.knowledge, "snapshot": snapshot.content_hash if snapshot else ""},
    }


def _roles(engines: set[types.Engine], endpoint: Endpoint, reasoning: str, formatter: str) -> dict[str, Any]:
    roles = sorted({role for engine in engines for role in ENGINE_ROLES[engine]})
    models = {role: formatter if role == "formatter" else reasoning for role in roles}
    return {
        role: asdict(
            default_sampling(
                role=role, kind=model_kind(model=model, endpoint=endpoint), endpoint=endpoint.id, model=model
            )
        )
        for role, model in models.items()
    }


def _criterion_entry(row: Criterion, ingredients: _Ingredients) -> list[str]:
    version, prompt = ingredients.versions[row.pk], ingredients.prompts[row.pk]
    return [row.key, version.content_hash, prompt.content_hash, row.tier]


def _snapshot_ensure(ingredients: _Ingredients) -> KnowledgeSnapshot | None:
    """Pin the article versions that each criterion reads; None when nothing is read."""
    keys = {row.pk: row.key for row in ingredients.criteria}
    content = sorted(
        [keys[pk], version.article.key, version.number, version.content_hash]
        for pk, versions in ingredients.articles.items()
        for version in versions
    )
    if not content:
        return None
    digest = text_hash(canonical(content))
    snapshot, created = KnowledgeSnapshot.objects.get_or_create(content_hash=digest)
    if created:
        SnapshotItem.objects.bulk_create(
            SnapshotItem(snapshot=snapshot, criterion_id=pk, article_version=version)
            for pk, versions in ingredients.articles.items()
            for version in versions
        )
    return snapshot


def _prompts_create(
    judge: Judge, groups: list[tuple[types.Engine, tuple[str, ...]]], ingredients: _Ingredients
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
