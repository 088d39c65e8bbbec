"""Runs a model test: every role on the twelve chats, through the gateway, recorded like any other call."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from evaluation.core.types import Chat, Engine, Reply, Request, Role, Sampling, Setup, Size
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.endpoints.queries import model_profile
from evaluation.engines.core import judge_group
from evaluation.engines.core.roles import ROLES
from evaluation.engines.core.session import Session
from evaluation.engines.core.verdicts import read_formatter
from evaluation.gateway.current import endpoint_at
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.ledger import CallUsed
from evaluation.gateway.model import GatewayModel
from evaluation.gateway.writer import DatabaseThread
from evaluation.judges.core.sampling_defaults import default_sampling
from evaluation.model_tests.chats import CHATS, CRITERION, RATIONALES, KnownChat
from evaluation.model_tests.checks import CallRecord, Judged, Observed
from evaluation.models.runs import ModelCall
from evaluation.runs.worker.plan import plan_without_run
from evaluation.runs.worker.process_units import Group, Plan, gateway_open

# Reflection asks the first pass as well, so that these two ask every role.
ENGINES: tuple[Engine, ...] = ("reflection", "debate")
STEPS = len(ENGINES) * len(CHATS) + len(RATIONALES)


@dataclass(slots=True)
class _Recorder:
    """A Model that remembers its calls."""

    model: GatewayModel
    calls: dict[int, None] = field(default_factory=dict)

    async def complete(self, request: Request) -> Reply:
        reply = await self.model.complete(request)
        if isinstance(reply.call, CallUsed):
            self.calls[reply.call.call_id] = None
        return reply


def model_ask(*, endpoint: str, model: str, number: int, on_step: Callable[[], None]) -> Observed:
    """Ask a model of an endpoint (its id) everything; test `number` shares no answer with others.

    `on_step` is called after each of the STEPS, in the database's thread. What it raises ends the test: calls
    in flight are awaited, no other is sent.
    Raises EndpointDown, EndpointGone, EmbeddedModelError and what reading the settings raises.
    """
    before = model_profile(endpoint=endpoint, model=model)
    plan = _plan(endpoint_at(endpoint), model, before)
    with DatabaseThread() as database:
        calls, judged, right = asyncio.run(_together(plan, database, number, on_step))
    after = model_profile(endpoint=endpoint, model=model)
    return Observed(_records(calls), judged, (right, len(RATIONALES)), before, after)


async def _together(
    plan: Plan, database: DatabaseThread, number: int, on_step: Callable[[], None]
) -> tuple[list[int], list[Judged], int]:
    async with gateway_open(plan, database) as gateway:
        recorder = _Recorder(GatewayModel(gateway, None, None, number, f"model-test:{number}"))
        slots = asyncio.Semaphore(plan.max_in_flight)
        stopped: list[Exception] = []

        async def stepped() -> None:
            try:
                await database.do(on_step)
            except Exception as error:
                stopped.append(error)
                raise

        async def judged(engine: Engine, chat: KnownChat) -> Judged:
            async with slots:
                _go_on(stopped)
                result = await judge_group(
                    chat=chat.chat,
                    criteria=(CRITERION,),
                    setup=replace(plan.groups[0].setup, engine=engine),
                    model=recorder,
                    fence_secret=plan.fence_secret,
                )
            await stepped()
            return Judged(engine, chat, result.verdicts[0])

        async def copied(rationale: str, truth: bool) -> bool:
            async with slots:
                _go_on(stopped)
                found = await _formatted(plan, recorder, rationale)
            await stepped()
            return found is truth

        verdicts = await _gathered(judged(engine, chat) for engine in ENGINES for chat in CHATS)
        copies = await _gathered(copied(*one) for one in RATIONALES)
    return list(recorder.calls), verdicts, sum(copies)


def _go_on(stopped: list[Exception]) -> None:
    """Raise what stopped the test, so that nothing more is asked."""
    if stopped:
        raise stopped[0]


async def _gathered(tasks: Any) -> list[Any]:
    """Await all; the first error is raised once the others have ended."""
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return list(results)


async def _formatted(plan: Plan, model: _Recorder, rationale: str) -> bool | None:
    """Return the formatter's copy of a rationale's conclusion, None if it cannot be read."""
    session = Session(Chat("", ()), (CRITERION,), plan.groups[0].setup, model, plan.fence_secret)
    reply = await session.format(rationale, (CRITERION,))
    copy = read_formatter(reply.text, criteria=(CRITERION,)).get(CRITERION.key)
    return copy.value if copy else None


def _plan(endpoint: Endpoint, model: str, profile: ModelProfile) -> Plan:
    roles: dict[Role, Sampling] = {
        role.key: default_sampling(
            role=role.key, profile=profile, endpoint=endpoint.id, model=model, logprobs=True
        )
        for role in ROLES
    }
    size: Size = "compact" if endpoint.embedded else "full"
    groups = {0: Group((CRITERION,), Setup("reflection", roles, size=size, knowledge="none"))}
    return plan_without_run(endpoint=endpoint, groups=groups, max_in_flight=settings.LACE_MAX_IN_FLIGHT)


def _records(ids: list[int]) -> list[CallRecord]:
    return [
        CallRecord(
            role=call.role,
            state=call.state,
            reply=call.reply,
            thinking=call.thinking,
            error=call.error,
            prompt_tokens=call.prompt_tokens,
            cached_tokens=call.cached_tokens,
            completion_tokens=call.completion_tokens,
            reasoning_tokens=call.reasoning_tokens,
            latency_ms=call.latency_ms,
            logprobs=bool(call.logprobs),
            cost_usd=call.cost_usd,
        )
        for call in ModelCall.objects.filter(pk__in=ids).order_by("id")
    ]
