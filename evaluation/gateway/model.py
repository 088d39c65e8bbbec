"""The model that engines use: stored answers first, then the endpoint, every request recorded."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from evaluation.core.hashing import text_hash
from evaluation.core.prefixes import Prefixes
from evaluation.core.tokens import CHARS_A_TOKEN
from evaluation.core.types import Reply, ReplyState, Request
from evaluation.gateway.budget import (
    BudgetReached,
    OutstandingRequests,
    reserved_elsewhere,
    worst_cost,
)
from evaluation.gateway.client import EndpointClient, Outcome
from evaluation.gateway.endpoints import OPENAI_BASE_URL, Endpoint
from evaluation.gateway.ledger import (
    STORED_STATES,
    Ask,
    CallUsed,
    Ended,
    Ledger,
    OpenedCall,
    call_key,
    storable,
)
from evaluation.gateway.prices import Price, cost
from evaluation.gateway.retries import Decision, decide
from evaluation.gateway.throttle import EndpointDown, Throttle
from evaluation.gateway.writer import DatabaseThread

# How often to look for an answer that another process requested.
ASKED_ELSEWHERE_SECONDS = 0.5
# The longest prompt_cache_key that OpenAI accepts.
CACHE_KEY_LENGTH = 64
TOP_LOGPROBS = 5


@dataclass(slots=True)
class Gateway:
    """Shared by the units of a run: client, database thread, throttles by model, and pending questions.

    `prepared` limits the recorded questions: those in flight, and a few that are committed and wait for a
    slot. `budget_usd` None is no limit.
    """

    endpoint: Endpoint
    client: EndpointClient
    database: DatabaseThread
    throttles: Mapping[str, Throttle]
    prepared: asyncio.Semaphore
    prices: Mapping[str, Price]
    timeout: float
    budget_usd: Decimal | None = None
    ledger: Ledger = field(default_factory=Ledger)
    asking: dict[str, asyncio.Future[Reply]] = field(default_factory=dict)
    prefixes: dict[str, Prefixes] = field(default_factory=dict)
    outstanding: OutstandingRequests = field(init=False)

    def __post_init__(self) -> None:
        self.outstanding = OutstandingRequests(self.budget_usd)


@dataclass(frozen=True, slots=True)
class GatewayModel:
    """The gateway as one unit sees it; implements evaluation.core.types.Model.

    Without run and unit its requests belong to none. `first_sample` is the index of the run's first sample;
    `cache_key` names requests that share a prompt's beginning.
    """

    gateway: Gateway
    run_id: int | None
    unit_id: int | None
    first_sample: int = 0
    cache_key: str = ""

    async def complete(self, request: Request) -> Reply:
        """Return the answer to a request; units that ask the same at once share one request.

        Raises EndpointDown if the endpoint cannot answer at all, and BudgetReached if the budget is spent. A
        bad reply is a Reply.
        """
        key = call_key(request, sample=self.first_sample + request.sample)
        if (pending := self.gateway.asking.get(key)) is not None:
            reply = await asyncio.shield(pending)
            return Reply(reply.state, reply.text, reply.error, _reused(reply.call), reply.logprobs)
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
        worst = None if gateway.budget_usd is None else worst_cost(request, gateway.prices)
        ask = Ask(request, key, self.first_sample + request.sample, self.run_id, self.unit_id, worst)
        while True:
            async with gateway.prepared:
                opened = await self.open(ask, gateway.ledger.open)
                if opened.reply is not None:
                    return opened.reply
                if not opened.waiting:
                    return await self._send(ask, opened)
            await asyncio.sleep(ASKED_ELSEWHERE_SECONDS)

    async def open(self, ask: Ask, how: Callable[[Sequence[Ask]], Sequence[OpenedCall]]) -> OpenedCall:
        """Record a request; without room in the budget, wait for this process's other requests to end."""
        outstanding = self.gateway.outstanding
        while True:
            outstanding.begin()
            opened = None
            try:
                opened = await self.gateway.database.add(how, ask)
            finally:
                if opened is None or not opened.attempt_id:
                    outstanding.end()
            if opened.attempt_id or not opened.to_send:
                return opened
            try:
                await outstanding.room()
            except BudgetReached:
                if not await self._reserved_elsewhere():
                    raise
                await asyncio.sleep(ASKED_ELSEWHERE_SECONDS)

    async def _reserved_elsewhere(self) -> bool:
        """Return whether another worker's requests may free money."""
        if self.run_id is None or self.unit_id is None:
            return False
        return await self.gateway.database.do(partial(reserved_elsewhere, self.run_id, self.unit_id))

    async def _send(self, ask: Ask, opened: OpenedCall) -> Reply:
        """Send attempts until one is final; each is committed before it leaves and again when it ends."""
        gateway, request, tried = self.gateway, ask.request, 1
        body = request_body(request, gateway.endpoint, cache_key=self.cache_key)
        characters, repeated = gateway.prefixes.setdefault(request.model, Prefixes()).add(request.messages)
        while True:
            outcome, state, decision = await self._attempt(ask, opened, body, characters, tried)
            if state is not None:
                # Engines recognise an empty answer by this prefix; a readable sentence follows.
                error = f"{outcome.kind}: {outcome.error}" if state == "failed" else outcome.error
                tokens = (outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens)
                counts = (*(count or 0 for count in tokens), characters, repeated)
                used = CallUsed(opened.call_id, False, *counts)
                return Reply(state, outcome.text, error, used, outcome.logprobs)
            await asyncio.sleep(decision.wait)
            opened, tried = await self.open(ask, gateway.ledger.again), tried + decision.counts

    async def _attempt(
        self, ask: Ask, opened: OpenedCall, body: dict[str, Any], characters: int, tried: int
    ) -> tuple[Outcome, ReplyState | None, Decision]:
        """Send one request in its slot; return the outcome, the call's state if final, and the decision."""
        gateway, throttle = self.gateway, self.gateway.throttles[ask.request.model]
        try:
            await throttle.enter(tokens=characters // CHARS_A_TOKEN + ask.request.max_tokens)
        except BaseException:
            gateway.database.add(gateway.ledger.withdraw, (ask, opened))
            gateway.outstanding.end()
            raise
        try:
            try:
                outcome = storable(await gateway.client.send(body, timeout=gateway.timeout))
                streak = throttle.seen(outcome, call=ask.key)
            finally:
                throttle.leave()  # the next request need not wait for the commit
            decision = decide(outcome=outcome, attempt=tried, seed=ask.key, streak=streak)
            state = reply_state(outcome) if decision.action in ("keep", "give_up") else None
            ended = Ended(ask, opened, outcome, state, self._cost(ask.request, outcome))
            await gateway.database.add(gateway.ledger.end, ended)
        finally:
            gateway.outstanding.end()
        if decision.action == "stop":
            raise EndpointDown(f"{gateway.endpoint.id}: {outcome.error}", lasting=True)
        return outcome, state, decision

    def _cost(self, request: Request, outcome: Outcome) -> Decimal | None:
        if not outcome.sent:
            return Decimal(0)
        return cost(
            prices=self.gateway.prices,
            model=request.model,
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            cached_tokens=outcome.cached_tokens,
        )


def reply_state(outcome: Outcome) -> ReplyState:
    """Return what an outcome means to an engine."""
    return STORED_STATES.get(outcome.kind, "failed")


def request_body(request: Request, endpoint: Endpoint, *, cache_key: str = "") -> dict[str, Any]:
    """Return the JSON of /chat/completions; unset settings are not sent.

    `cache_key` (judge and group) routes prompts with the same beginning to one cache; only OpenAI accepts it.
    """
    openai = endpoint.base_url.startswith(OPENAI_BASE_URL)
    # OpenAI's newer models reject max_tokens; other servers know only that name.
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.text} for message in request.messages],
        "max_completion_tokens" if openai else "max_tokens": request.max_tokens,
    }
    for name in ("temperature", "top_p", "seed", "reasoning_effort"):
        if (value := getattr(request, name)) is not None:
            body[name] = value
    if request.schema is not None:
        schema = {"name": "verdicts", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.logprobs:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    if openai and cache_key:
        body["prompt_cache_key"] = short_cache_key(cache_key)
    return body


def short_cache_key(cache_key: str) -> str:
    """Return a cache key of at most 64 characters.

    Examples
    --------
    >>> short_cache_key("judge:0")
    'judge:0'
    """
    return cache_key if len(cache_key) <= CACHE_KEY_LENGTH else text_hash(cache_key)


def _reused(handle: object) -> object:
    return CallUsed(handle.call_id, reused=True) if isinstance(handle, CallUsed) else handle


def _retrieve(future: asyncio.Future[Reply]) -> None:
    """Read the future's error, so that asyncio does not report it when no task waits for it."""
    if not future.cancelled():
        future.exception()
