"""Asks a model a question outside any run, with the same record, prices and throttle."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

from evaluation.core.types import Reply, Request, Sampling, Setup
from evaluation.endpoints.queries import model_profile
from evaluation.gateway.budget import prompt_tokens_at_most, token_limit, worst_cost
from evaluation.gateway.current import EndpointGone, endpoint_at, prices_at
from evaluation.gateway.ledger import STORED_STATES, call_key
from evaluation.gateway.model import GatewayModel
from evaluation.gateway.prices import price_sources
from evaluation.gateway.writer import DatabaseThread
from evaluation.models.runs import ModelCall
from evaluation.runs.worker.leases import LEASE, LeaseLost, lease_beat
from evaluation.runs.worker.plan import EndpointChanged, plan_without_run
from evaluation.runs.worker.process_units import Group, Plan, gateway_open

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QuestionEstimate:
    """The highest tokens and cost of a question; `answered`: its answer is stored, so that it costs nothing.

    `cost_usd` is None if the model's price is unknown.
    """

    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal | None
    answered: bool
    price_source: str = ""


def question_estimate(request: Request) -> QuestionEstimate:
    """Return the tokens and cost of a question; one query. Raises PriceFileError."""
    stored = ModelCall.objects.filter(key=question_key(request), state__in=STORED_STATES)
    profile = model_profile(endpoint=request.endpoint, model=request.model)
    prices = prices_at([request.at])
    return QuestionEstimate(
        prompt_tokens=prompt_tokens_at_most(request),
        completion_tokens=token_limit(request, profile),
        cost_usd=worst_cost(request, prices, profile=profile),
        answered=stored.exists(),
        price_source=", ".join(price_sources(prices=prices, models=[request.at])),
    )


def question_key(request: Request) -> str:
    """Return the address under which the answer is stored."""
    return call_key(request, sample=request.sample)


def question_ask(request: Request, *, lease_id: int, seconds: float) -> Reply:
    """Return the answer, from the store if possible; its handle is a CallUsed. The lease is renewed.

    Gives up after `seconds` without the endpoint. Raises EndpointDown, EndpointChanged, LeaseLost and what
    reading the settings raises.
    """
    plan = question_plan(request)
    with DatabaseThread() as database:
        return asyncio.run(_ask(plan, request, database, lease_id, seconds))


async def _ask(
    plan: Plan, request: Request, database: DatabaseThread, lease_id: int, seconds: float
) -> Reply:
    async with gateway_open(plan, database, seconds=seconds) as gateway:
        return await leased(GatewayModel(gateway, None, None).complete(request), database, lease_id)


async def leased(work: Coroutine[Any, Any, T], database: DatabaseThread, lease_id: int) -> T:
    """Await this work and renew the lease meanwhile. Raises LeaseLost, and what the work raises."""
    asking = asyncio.create_task(work)
    beating = asyncio.create_task(_beat(database, partial(lease_beat, lease_id), asking))
    try:
        return await asking
    except asyncio.CancelledError:
        if not beating.done():
            raise
        raise LeaseLost(f"lease {lease_id} ran out and was taken back") from None
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _beat(database: DatabaseThread, beat: Callable[[], None], asking: asyncio.Task[Any]) -> None:
    """Renew the lease; without it another process asks."""
    with contextlib.suppress(LeaseLost):
        while True:
            await asyncio.sleep(LEASE.total_seconds() / 4)
            await database.do(beat)
    asking.cancel()


def question_plan(request: Request, *, max_in_flight: int = 1) -> Plan:
    """Return what the gateway needs for a request and others to its model; a plan without units."""
    try:
        endpoint = endpoint_at(request.endpoint)
    except EndpointGone as gone:
        raise EndpointChanged(f"this request began elsewhere: {gone}") from gone
    sampling = Sampling(request.endpoint, request.model, request.temperature, request.max_tokens, 0)
    groups = {0: Group((), Setup("direct", {"direct": sampling}))}
    return plan_without_run(endpoint=endpoint, groups=groups, max_in_flight=max_in_flight)
