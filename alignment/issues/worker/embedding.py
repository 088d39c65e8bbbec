"""Embeddings of a week's rationales, asked through the gateway; each text is asked for once."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
from django.conf import settings

from alignment.issues.core.clusters import Meanings
from alignment.issues.core.phrases import text_to_compare
from alignment.models.issues import IssueSettings
from common.problems import InputProblem
from evaluation.core.hashing import text_hash
from evaluation.core.tokens import tokens_at_most
from evaluation.core.types import ModelAt, Setup, Vector
from evaluation.gateway.budget import budget_check
from evaluation.gateway.current import current_endpoint, endpoint_at
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.embeddings import TEXTS, Embeddings, UnitEmbedder, vectors_stored
from evaluation.gateway.endpoints import endpoint_name
from evaluation.gateway.prices import highest_cost
from evaluation.gateway.throttle import EndpointDown
from evaluation.gateway.writer import DatabaseThread
from evaluation.runs.worker.plan import EndpointChanged, plan_without_run
from evaluation.runs.worker.process_units import Group, Plan, gateway_open
from evaluation.runs.worker.single_calls import leased

log = logging.getLogger(__name__)

PATIENCE = 30.0
LOOKED_UP = 500


@dataclass(frozen=True, slots=True)
class WeekMeanings:
    """Embeddings of texts; without them `problem` says why, "" where no model is chosen."""

    meanings: Meanings | None = None
    model: str = ""
    problem: str = ""


def embedding_plan(row: IssueSettings) -> Plan:
    """Return what the gateway needs. Raises InputProblem or EmbeddedModelError for wrong settings."""
    endpoint = endpoint_at(row.endpoint) if row.endpoint else current_endpoint()
    groups = {0: Group((), Setup("direct", {}, embedding_model=row.embedding_model))}
    plan = plan_without_run(endpoint=endpoint, groups=groups, max_in_flight=settings.LACE_MAX_IN_FLIGHT)
    budget_check(budget=row.budget_usd, models=plan.models, prices=plan.prices)
    return plan


def week_meanings(rationales: Sequence[str], *, lease_id: int) -> WeekMeanings:
    """Return the embeddings of a week's rationales, stored ones first. Raises LeaseLost.

    Without all of them the week is compared by words alone: half of them would tear problems apart.
    """
    row = IssueSettings.current()
    if not row.embedding_model or not rationales:
        return WeekMeanings()
    texts = [text_to_compare(one) for one in rationales]
    digests = {text_hash(text): text for text in texts if text}
    try:
        plan = embedding_plan(row)
        found = _vectors(plan, row, digests, lease_id)
    except (EndpointDown, EndpointChanged, InputProblem, EmbeddedModelError) as trouble:
        return WeekMeanings(problem=" ".join(str(trouble).split())[:500])
    sizes = {vector.size for vector in found.values()}
    if len(found) < len(digests) or len(sizes) != 1:
        name = endpoint_name(plan.endpoint.id)
        missing = len(digests) - len(found)
        log.warning("%s gave no embeddings of %s for %s texts", name, row.embedding_model, missing)
        return WeekMeanings(
            problem=f"{name} gave no embeddings of {row.embedding_model} for {missing:,} texts"[:500]
        )
    none = np.zeros(sizes.pop(), dtype=np.float32)
    vectors = np.stack([found[text_hash(text)] if text else none for text in texts]).astype(np.float64)
    return WeekMeanings(
        Meanings(vectors, f"{plan.endpoint.id} {row.embedding_model}"), model=row.embedding_model
    )


def _vectors(plan: Plan, row: IssueSettings, digests: Mapping[str, str], lease_id: int) -> dict[str, Vector]:
    """Return the vectors by text hash: stored ones, and those that the endpoint gives now."""
    found: dict[str, Vector] = {}
    every = list(digests)
    look = partial(vectors_stored, endpoint=plan.endpoint.id, model=row.embedding_model)
    for start in range(0, len(every), LOOKED_UP):
        found |= look(digests=every[start : start + LOOKED_UP])
    missing = {digest: text for digest, text in digests.items() if digest not in found}
    if missing:
        _check_budget(plan, row, list(missing.values()))
        with DatabaseThread() as database:
            found |= asyncio.run(_ask(plan, missing, database, lease_id))
    return found


def _check_budget(plan: Plan, row: IssueSettings, texts: Sequence[str]) -> None:
    """Raise InputProblem if these texts could cost more than the budget."""
    if row.budget_usd is None:
        return
    cost = highest_cost(
        prices=plan.prices,
        model=ModelAt(plan.endpoint.id, row.embedding_model),
        prompt_tokens=round(sum(map(tokens_at_most, texts))),
        completion_tokens=0,
    )
    if (cost or Decimal(0)) > row.budget_usd:
        raise InputProblem(
            f"the embeddings of {len(texts):,} texts could cost more than the budget of ${row.budget_usd:.2f}"
        )


async def _ask(
    plan: Plan, texts: Mapping[str, str], database: DatabaseThread, lease_id: int
) -> dict[str, Vector]:
    async with gateway_open(plan, database, seconds=PATIENCE) as gateway:
        embeddings = Embeddings(gateway, plan.embedding_model)
        unit, items = UnitEmbedder(embeddings, None, None), list(texts.items())
        parts = [dict(items[start : start + TEXTS]) for start in range(0, len(items), TEXTS)]

        async def all_of_them() -> list[dict[str, Vector]]:
            return await asyncio.gather(*(embeddings.vectors(part, unit) for part in parts))

        results = await leased(all_of_them(), database, lease_id)
    return {digest: vector for one in results for digest, vector in one.items()}
