"""The model that engines talk to: stored answers first, then the endpoint, every request on record."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from evaluation.core.types import Reply, ReplyState, Request
from evaluation.gateway.client import EndpointClient, Outcome
from evaluation.gateway.endpoints import OPENAI_BASE_URL, Endpoint
from evaluation.gateway.ledger import (
    STORED_STATES,
    CallUsed,
    OpenedCall,
    attempt_begin,
    attempt_end,
    call_end,
    call_key,
    call_open,
    storable,
)
from evaluation.gateway.prices import Price, cost
from evaluation.gateway.retries import decide
from evaluation.gateway.throttle import EndpointDown
from evaluation.gateway.writer import DatabaseThread

# How often to look for an answer that another process is waiting for.
ASKED_ELSEWHERE_SECONDS = 0.5


@dataclass(slots=True)
class Gateway:
    """What the units of a run share: one client, one database thread, one bound on calls in flight."""

    endpoint: Endpoint
    client: EndpointClient
    database: DatabaseThread
    slots: asyncio.Semaphore
    prices: Mapping[str, Price]
    timeout: float
    asking: dict[str, asyncio.Future[Reply]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GatewayModel:
    """The gateway as one unit sees it; an implementation of evaluation.core.types.Model."""

    gateway: Gateway
    run_id: int | None
    unit_id: int | None
    sample: int

    async def complete(self, request: Request) -> Reply:
        """The answer to this request, asked at most once however many units ask it.

        Raises EndpointDown when the endpoint cannot answer anybody; a bad reply is a Reply.
        """
        key = call_key(request, sample=self.sample)
        if (asked := self.gateway.asking.get(key)) is not None:
            reply = await asyncio.shield(asked)
            handle = reply.call
            return Reply(reply.state, reply.text, reply.error, _reused(handle))
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve)
        self.gateway.asking[key] = future
        try:
            reply = await self._ask(request, key)
        except BaseException as error:
            future.set_exception(error if isinstance(error, Exception) else EndpointDown("interrupted"))
            raise
        finally:
            del self.gateway.asking[key]
        future.set_result(reply)
        return reply

    async def _ask(self, request: Request, key: str) -> Reply:
        gateway = self.gateway
        ours = {"run_id": self.run_id, "unit_id": self.unit_id}
        async with gateway.slots:
            find = partial(call_open, request, key=key, sample=self.sample, **ours)
            while (opened := await gateway.database.do(find)).waiting:
                await asyncio.sleep(ASKED_ELSEWHERE_SECONDS)
            if opened.reply is not None:
                return opened.reply
            outcome = await self._send(request, key, opened)
        state = reply_state(outcome)
        # Engines know an empty answer by its name; a sentence for people follows.
        error = f"{outcome.kind}: {outcome.error}" if state == "failed" else outcome.error
        return Reply(state, outcome.text, error, CallUsed(opened.call_id, reused=False))

    async def _send(self, request: Request, key: str, opened: OpenedCall) -> Outcome:
        """Attempts until one is final; each is committed before it leaves and again when it ends."""
        gateway, attempt_id, tried = self.gateway, opened.attempt_id, 1
        body = request_body(request, gateway.endpoint)
        while True:
            outcome = storable(await gateway.client.send(body, timeout=gateway.timeout))
            price = self._cost(request, outcome)
            decision = decide(outcome=outcome, attempt=tried, seed=key)
            if decision.action in ("keep", "give_up"):
                state = reply_state(outcome)
                store = partial(call_end, opened.call_id, attempt_id, outcome, state=state, cost=price)
                await gateway.database.do(store)
                return outcome
            await gateway.database.do(partial(attempt_end, attempt_id, outcome, cost=price))
            if decision.action == "stop":
                raise EndpointDown(f"{gateway.endpoint.id}: {outcome.error}")
            await asyncio.sleep(decision.wait)
            again = partial(attempt_begin, opened.call_id, run_id=self.run_id, unit_id=self.unit_id)
            attempt_id, tried = await gateway.database.do(again), tried + 1

    def _cost(self, request: Request, outcome: Outcome) -> Decimal | None:
        return cost(
            prices=self.gateway.prices,
            model=request.model,
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            cached_tokens=outcome.cached_tokens,
        )


def reply_state(outcome: Outcome) -> ReplyState:
    """What an outcome is to an engine."""
    return STORED_STATES.get(outcome.kind, "failed")


def request_body(request: Request, endpoint: Endpoint) -> dict[str, Any]:
    """The JSON of /chat/completions; only what is set is sent."""
    # OpenAI refuses max_tokens on its newer models; other servers know only that name.
    limit = "max_completion_tokens" if endpoint.base_url.startswith(OPENAI_BASE_URL) else "max_tokens"
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.text} for message in request.messages],
        limit: request.max_tokens,
    }
    for name in ("temperature", "top_p", "seed"):
        if (value := getattr(request, name)) is not None:
            body[name] = value
    if request.schema is not None:
        schema = {"name": "verdicts", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def _reused(handle: object) -> object:
    return CallUsed(handle.call_id, reused=True) if isinstance(handle, CallUsed) else handle


def _retrieve(future: asyncio.Future[Reply]) -> None:
    """Nobody may be waiting for a failed question; asyncio would complain that its error was never seen."""
    if not future.cancelled():
        future.exception()
