"""The model that engines use: stored answers first, then the endpoint, every request recorded."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

from evaluation.core.hashing import text_hash
from evaluation.core.prefixes import Prefixes
from evaluation.core.tokens import CHARS_A_TOKEN
from evaluation.core.types import ModelAt, Reply, ReplyState, Request
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.endpoints.services import model_learn
from evaluation.gateway.budget import (
    BudgetReached,
    OutstandingRequests,
    reserved_elsewhere,
    token_limit,
    worst_cost,
)
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.endpoints import Endpoint, endpoint_name
from evaluation.gateway.first_answers import FirstAnswers
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
from evaluation.gateway.refusals import lesson, redacted
from evaluation.gateway.replies import Outcome
from evaluation.gateway.retries import Decision, decide
from evaluation.gateway.simulated import SimulatedClient
from evaluation.gateway.throttle import EndpointDown, Throttle
from evaluation.gateway.writer import DatabaseThread
from evaluation.models.runs import error_in_words

# How often to look for an answer that another process requested.
ASKED_ELSEWHERE_SECONDS = 0.5
# The longest prompt_cache_key that OpenAI accepts.
CACHE_KEY_LENGTH = 64
TOP_LOGPROBS = 5
# How often a request is written anew after a refused parameter.
MOST_REWRITTEN = 8


@dataclass(slots=True)
class Gateway:
    """Shared by the units of a run: clients, database thread, throttles by model, and pending questions.

    `endpoint` and `client` are the judge's; `others` are the clients of endpoints (by id) that single roles
    use. `prepared` limits the recorded questions: those in flight, and a few that are committed and wait for
    a slot. `budget_usd` None is no limit. `profiles` say by model what it takes; they change as it is
    learned.
    """

    endpoint: Endpoint
    client: EndpointClient | SimulatedClient
    database: DatabaseThread
    throttles: Mapping[ModelAt, Throttle]
    prepared: asyncio.Semaphore
    prices: Mapping[ModelAt, Price]
    timeout: float
    budget_usd: Decimal | None = None
    reasoning_timeout: float = 0.0
    profiles: dict[ModelAt, ModelProfile] = field(default_factory=dict)
    others: Mapping[str, EndpointClient | SimulatedClient] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    first_answers: FirstAnswers = field(default_factory=FirstAnswers)
    asking: dict[str, asyncio.Future[Reply]] = field(default_factory=dict)
    prefixes: dict[ModelAt, Prefixes] = field(default_factory=dict)
    outstanding: OutstandingRequests = field(init=False)

    def __post_init__(self) -> None:
        self.outstanding = OutstandingRequests(self.budget_usd)

    def client_of(self, endpoint: str) -> EndpointClient | SimulatedClient:
        """Return the client of an endpoint (its id); a request never goes to another one."""
        return self.client if endpoint == self.endpoint.id else self.others[endpoint]

    def profile(self, at: ModelAt) -> ModelProfile:
        """Return what is known of a model now."""
        return self.profiles.get(at) or ModelProfile()

    def seconds(self, at: ModelAt) -> float:
        """Return how long to wait for a model's answer."""
        profile = self.profile(at)
        usual = max(self.timeout, self.reasoning_timeout) if profile.reasons else self.timeout
        return usual if profile.timeout is None else float(profile.timeout)

    async def learn(self, at: ModelAt, changes: Mapping[str, Any]) -> None:
        """Keep what an answer taught of a model, for this process and for later ones."""
        self.profiles[at] = self.profile(at).learn(changes)
        keep = partial(model_learn, endpoint=at.endpoint, model=at.model, changes=changes)
        await self.database.do(keep)


@dataclass(frozen=True, slots=True)
class GatewayModel:
    """The gateway as one unit sees it; implements evaluation.core.types.Model.

    Without run and unit its requests belong to none. `first_sample` is the index of the run's first sample;
    `cache_key` names requests that share a prompt's beginning. `run_began`: units of the run were judged.
    """

    gateway: Gateway
    run_id: int | None
    unit_id: int | None
    first_sample: int = 0
    cache_key: str = ""
    chat_id: int | None = None
    run_began: bool = False

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
        sample = self.first_sample + request.sample
        ask = self._priced(Ask(request, key, sample, self.run_id, self.unit_id))
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

    def _priced(self, ask: Ask) -> Ask:
        """Return the question with its highest cost as it is sent now, if the run has a budget."""
        gateway = self.gateway
        if gateway.budget_usd is None:
            return ask
        profile = gateway.profile(ask.request.at)
        return replace(ask, worst_usd=worst_cost(ask.request, gateway.prices, profile=profile))

    async def _send(self, ask: Ask, opened: OpenedCall) -> Reply:
        """Send attempts until one is final; each is committed before it leaves and again when it ends."""
        gateway, request, tried, rewritten = self.gateway, ask.request, 1, 0
        characters, repeated = gateway.prefixes.setdefault(request.at, Prefixes()).add(request.messages)
        kind, answered = {"model": request.model, "role": request.role}, False
        gateway.first_answers.begin(**kind)
        try:
            while True:
                rewrites = rewritten < MOST_REWRITTEN
                ended = await self._attempt(ask, opened, characters, tried, rewrites=rewrites)
                outcome, state, decision = ended
                answered = answered or outcome.status == 200
                if state is not None:
                    # Engines recognise an empty answer by its outcome's words.
                    coded = f"{outcome.kind}: {outcome.error}"
                    error = error_in_words(coded) if state == "failed" else outcome.error
                    tokens = (outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens)
                    counts = (*(count or 0 for count in tokens), characters, repeated)
                    used = CallUsed(opened.call_id, False, *counts)
                    return Reply(state, outcome.text, error, used, outcome.logprobs)
                await asyncio.sleep(decision.wait)
                rewritten, ask = rewritten + (decision.action == "rewrite"), self._priced(ask)
                opened, tried = await self.open(ask, gateway.ledger.again), tried + decision.counts
        finally:
            gateway.first_answers.end(**kind, answered=answered)

    async def _attempt(
        self, ask: Ask, opened: OpenedCall, characters: int, tried: int, *, rewrites: bool
    ) -> tuple[Outcome, ReplyState | None, Decision]:
        """Send one request in its slot; return the outcome, the call's state if final, and the decision."""
        gateway, at = self.gateway, ask.request.at
        throttle, client = gateway.throttles[at], gateway.client_of(at.endpoint)
        try:
            await throttle.enter(tokens=characters // CHARS_A_TOKEN + ask.request.max_tokens)
        except BaseException:
            gateway.database.add(gateway.ledger.withdraw, (ask, opened))
            gateway.outstanding.end()
            raise
        try:
            try:
                profile = gateway.profile(at)
                body = request_body(ask.request, profile, cache_key=self.cache_key)
                outcome = storable(await client.send(body, timeout=gateway.seconds(at)))
                streak = throttle.seen(outcome, call=ask.key)
            finally:
                throttle.leave()  # the next request need not wait for the commit
            outcome = _with_words(outcome, ask.request, secret=client.endpoint.api_key)
            if rewrites and await self._learned(outcome, body, profile, at):
                decision = Decision("rewrite", counts=False)
            else:
                decision = decide(outcome=outcome, attempt=tried, seed=ask.key, streak=streak)
            state = reply_state(outcome) if decision.action in ("keep", "give_up") else None
            if decision.action == "give_up" and await self._rejects_all(outcome, ask.request):
                state, decision = None, Decision("stop")
            ended = Ended(ask, opened, outcome, state, self._cost(ask.request, outcome))
            await gateway.database.add(gateway.ledger.end, ended)
        finally:
            gateway.outstanding.end()
        if decision.action == "stop":
            raise EndpointDown(f"{endpoint_name(at.endpoint)}: {outcome.error}", lasting=True)
        return outcome, state, decision

    async def _rejects_all(self, outcome: Outcome, request: Request) -> bool:
        """Return whether the endpoint rejects every request of the run like this one."""
        if outcome.kind != "bad_request" or self.run_began:
            return False
        first = self.gateway.first_answers
        return await first.rejects_all(model=request.model, role=request.role, chat_id=self.chat_id)

    async def _learned(
        self, outcome: Outcome, body: Mapping[str, Any], profile: ModelProfile, at: ModelAt
    ) -> bool:
        """Learn from an outcome; return whether the same question is to be written anew."""
        gateway = self.gateway
        if outcome.kind in ("bad_request", "too_long"):
            if gateway.profile(at) != profile:
                return True  # another request learned meanwhile
            changes = lesson(outcome.refusal, body=body, profile=profile)
            if not changes:
                return False
            await gateway.learn(at, changes)
            # A prompt that is too long by itself is refused again, in the endpoint's own words.
            return outcome.kind == "bad_request" or outcome.refusal.context is not None
        thinks = bool(outcome.reasoning_tokens or outcome.thinking)
        if gateway.profile(at).reasons is None and (
            thinks or (outcome.kind == "cut_off" and not outcome.text.strip())
        ):
            await gateway.learn(at, {"reasons": True})
        return False

    def _cost(self, request: Request, outcome: Outcome) -> Decimal | None:
        if not outcome.sent:
            return Decimal(0)
        return cost(
            prices=self.gateway.prices,
            model=request.at,
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            cached_tokens=outcome.cached_tokens,
        )


def reply_state(outcome: Outcome) -> ReplyState:
    """Return what an outcome means to an engine."""
    return STORED_STATES.get(outcome.kind, "failed")


def _with_words(outcome: Outcome, request: Request, *, secret: str) -> Outcome:
    """Return a rejection with the endpoint's words in its error, without the key and the prompt."""
    if outcome.kind != "bad_request" or not outcome.message:
        return outcome
    prompt = "\n".join(message.text for message in request.messages)
    named = f"{outcome.refusal.parameter}: " if outcome.refusal.parameter else ""
    words = redacted(outcome.message, prompt=prompt, secret=secret)
    return replace(outcome, error=f"{outcome.error}: {named}{words}")


def request_body(request: Request, profile: ModelProfile, *, cache_key: str = "") -> dict[str, Any]:
    """Return the JSON of /chat/completions as this model takes it; unset settings are not sent.

    `cache_key` (the judge) routes prompts with the same beginning to one cache.
    """
    body: dict[str, Any] = {
        "model": request.model,
        "messages": _messages(request, marked=profile.cache_control),
        profile.token_limit: token_limit(request, profile),
    }
    taken = {
        "temperature": profile.temperature,
        "top_p": profile.top_p,
        "seed": profile.seed,
        "reasoning_effort": profile.effort,
    }
    for name, takes in taken.items():
        if (value := getattr(request, name)) is not None and takes is not False:
            body[name] = profile.nearest_effort(value) if name == "reasoning_effort" else value
    if request.schema is not None and profile.schema == "json_schema":
        schema = {"name": "verdicts", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.schema is not None and profile.schema == "json_object":
        body["response_format"] = {"type": "json_object"}
    if request.logprobs and profile.logprobs is not False:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    if profile.cache_key and cache_key:
        body["prompt_cache_key"] = short_cache_key(cache_key)
    return body | dict(request.extra or {})


def _messages(request: Request, *, marked: bool) -> list[dict[str, Any]]:
    """Return the messages; if `marked`, their parts, with a mark behind those that other calls share."""
    if not marked:
        return [{"role": message.role, "content": message.text} for message in request.messages]
    rows: list[dict[str, Any]] = []
    for message in request.messages:
        *shared, own = message.parts
        texts = ["\n\n".join(shared) + "\n\n", own] if shared else [own]
        content: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
        if shared or message.role == "system":
            content[0]["cache_control"] = {"type": "ephemeral"}
        rows.append({"role": message.role, "content": content})
    return rows


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
