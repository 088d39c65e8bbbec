"""Embeddings of texts: stored vectors first, then the endpoint; every request is recorded and charged."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from evaluation.core.hashing import text_hash
from evaluation.core.tokens import CHARS_A_TOKEN
from evaluation.core.types import ModelAt, PromptMessage, Request, Vector
from evaluation.gateway.budget import BudgetReached, worst_cost
from evaluation.gateway.ledger import Ask, Ended, OpenedCall, call_key, storable
from evaluation.gateway.model import ASKED_ELSEWHERE_SECONDS, Gateway, GatewayModel, reply_state
from evaluation.gateway.prices import cost
from evaluation.gateway.replies import Outcome, read_reply
from evaluation.gateway.retries import decide, is_lasting
from evaluation.gateway.throttle import EndpointDown
from evaluation.models.prompts import TextVector

PATH = "/embeddings"
ROLE = "embedding"  # of the recorded calls
# Texts of a request: their vectors of 3,072 numbers stay below the limit of a reply.
TEXTS = 16
ATTEMPTS = 2
# After this many failed requests in a row the process asks for no more embeddings.
MOST_FAILURES = 3
# Vectors in memory: a workspace's passages, some 30 MB at 1,536 numbers.
KNOWN_VECTORS = 5000
_STORED = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class Embedded(Outcome):
    """The outcome of an answered request: a vector of length 1 for each text, in order."""

    vectors: tuple[Vector, ...] = field(default=(), repr=False)


def read_embeddings(
    *, texts: int, status: int, headers: Mapping[str, str], content: bytes, secret: str = ""
) -> Outcome:
    """Return the outcome of a reply of /embeddings about this many texts, like `read_reply`. Never raises."""
    if not 200 <= status < 300:
        return read_reply(status=status, headers=headers, content=content, secret=secret)
    try:
        data = json.loads(content)
        rows = sorted(data["data"], key=lambda row: row["index"])
        vectors = tuple(_unit_vector(row["embedding"]) for row in rows)
        usage = data.get("usage") or {}
        if len(vectors) != texts or len({vector.size for vector in vectors}) != 1:
            raise ValueError("not one vector of one length for each text")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Outcome("not_json", status, error=f"HTTP {status}: the reply holds no usable embeddings")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    known = tokens if type(tokens) is int and 0 <= tokens < 2**63 else None
    return Embedded("answered", status, prompt_tokens=known, completion_tokens=0, vectors=vectors)


def vectors_stored(*, endpoint: str, model: str, digests: Sequence[str]) -> dict[str, Vector]:
    """Return the stored vectors of texts by content hash; unknown ones are missing. One query."""
    rows = TextVector.objects.filter(endpoint=endpoint, model=model, content_hash__in=digests)
    return {
        digest: np.frombuffer(bytes(vector), dtype=_STORED)
        for digest, vector in rows.values_list("content_hash", "vector")
    }


class Embeddings:
    """The vectors of one model for the units of a process: each text is asked for once."""

    def __init__(self, gateway: Gateway, model: str) -> None:
        self._gateway, self._model = gateway, model
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._asking: dict[str, asyncio.Future[Vector | None]] = {}
        self._failures = 0

    async def vectors(self, texts: Mapping[str, str], unit: "UnitEmbedder") -> dict[str, Vector]:
        """Return the vectors of texts (by content hash); those that the endpoint did not give are missing."""
        found = {digest: self._known[digest] for digest in texts if digest in self._known}
        for digest in found:
            self._known.move_to_end(digest)  # those unused for longest are dropped first
        others = {digest: self._asking[digest] for digest in texts if digest in self._asking}
        mine = {d: text for d, text in texts.items() if d not in found and d not in others}
        if mine:
            found |= await self._find(mine, unit)
        for digest, future in others.items():
            if (vector := await asyncio.shield(future)) is not None:
                found[digest] = vector
        return found

    async def _find(self, texts: Mapping[str, str], unit: "UnitEmbedder") -> dict[str, Vector]:
        """Look texts up in the database, then ask the endpoint; other units wait for the result."""
        loop = asyncio.get_running_loop()
        futures = {digest: loop.create_future() for digest in texts}
        self._asking |= futures
        found: dict[str, Vector] = {}
        try:
            found |= await self._stored(list(texts))
            missing = [digest for digest in texts if digest not in found]
            for start in range(0, len(missing), TEXTS):
                digests = missing[start : start + TEXTS]
                asked = await self._ask({digest: texts[digest] for digest in digests}, unit)
                found |= asked
                if len(asked) < len(digests):
                    break  # the unit cannot rank by vectors, so further ones would be paid for nothing
        finally:
            for digest, future in futures.items():
                del self._asking[digest]
                future.set_result(found.get(digest))
            self._remember(found)
        return found

    async def _stored(self, digests: Sequence[str]) -> dict[str, Vector]:
        endpoint = self._gateway.endpoint.id
        look = partial(vectors_stored, endpoint=endpoint, model=self._model, digests=digests)
        return await self._gateway.database.do(look)

    def _remember(self, vectors: Mapping[str, Vector]) -> None:
        self._known |= vectors
        while len(self._known) > KNOWN_VECTORS:
            self._known.popitem(last=False)

    async def _ask(self, texts: Mapping[str, str], unit: "UnitEmbedder") -> dict[str, Vector]:
        """Ask the endpoint; no vector if it fails, if the budget is spent or after earlier failures."""
        if self._failures >= MOST_FAILURES:
            return {}
        try:
            outcome = await self._request(texts, unit)
        except (EndpointDown, BudgetReached):
            return {}
        if outcome is None:
            return await self._stored(list(texts))
        if outcome.kind == "too_big" and len(texts) > 1:
            pairs = list(texts.items())
            half = len(pairs) // 2
            first = await self._ask(dict(pairs[:half]), unit)
            return first | await self._ask(dict(pairs[half:]), unit) if first else {}
        if isinstance(outcome, Embedded):
            self._failures = 0
            return dict(zip(texts, outcome.vectors, strict=True))
        self._failures = MOST_FAILURES if is_lasting(outcome) else self._failures + 1
        return {}

    async def _request(self, texts: Mapping[str, str], unit: "UnitEmbedder") -> Outcome | None:
        """Send a request, once more if that may help; None if another process sent it meanwhile."""
        gateway, ask = self._gateway, self._question(texts, unit)
        model = GatewayModel(gateway, unit.run_id, unit.unit_id)
        opened, waited = await model.open(ask, gateway.ledger.open), False
        while opened.waiting:
            await asyncio.sleep(ASKED_ELSEWHERE_SECONDS)
            opened, waited = await model.open(ask, gateway.ledger.open), True
        if opened.reply is not None and waited:
            return None
        if opened.reply is not None:  # answered before, but its vectors were deleted
            opened = await model.open(ask, gateway.ledger.again)
        attempt = 1
        while True:
            outcome, wait = await self._attempt(ask, opened, texts, attempt)
            if wait is None:
                return outcome
            await asyncio.sleep(wait)
            opened, attempt = await model.open(ask, gateway.ledger.again), attempt + 1

    async def _attempt(
        self, ask: Ask, opened: OpenedCall, texts: Mapping[str, str], attempt: int
    ) -> tuple[Outcome, float | None]:
        """Send one request in its slot; return its outcome, and the seconds to wait before the next one."""
        gateway, throttle = (
            self._gateway,
            self._gateway.throttles[ModelAt(self._gateway.endpoint.id, self._model)],
        )
        try:
            await throttle.enter(tokens=sum(map(len, texts.values())) // CHARS_A_TOKEN)
        except BaseException:
            gateway.database.add(gateway.ledger.withdraw, (ask, opened))
            gateway.outstanding.end()
            raise
        try:
            try:
                outcome = storable(await self._send(texts))
            finally:
                throttle.leave()
            decision = decide(outcome=outcome, attempt=attempt, seed=ask.key)
            again = decision.action == "again" and attempt < ATTEMPTS
            ended = Ended(ask, opened, outcome, None if again else reply_state(outcome), self._cost(outcome))
            await gateway.database.do(partial(self._end, ended, texts))
        finally:
            gateway.outstanding.end()
        return outcome, decision.wait if again else None

    async def _send(self, texts: Mapping[str, str]) -> Outcome:
        body: dict[str, Any] = {"model": self._model, "input": list(texts.values())}
        read = partial(read_embeddings, texts=len(texts))
        return await self._gateway.client.send(body, timeout=self._gateway.timeout, path=PATH, read=read)

    def _end(self, ended: Ended, texts: Mapping[str, str]) -> None:
        """Record the outcome together with its vectors."""
        self._gateway.ledger.end([ended])
        if isinstance(ended.outcome, Embedded):
            pairs = zip(texts, ended.outcome.vectors, strict=True)
            TextVector.objects.bulk_create(
                [
                    TextVector(
                        endpoint=self._gateway.endpoint.id,
                        model=self._model,
                        content_hash=digest,
                        vector=vector.astype(_STORED).tobytes(),
                    )
                    for digest, vector in pairs
                ],
                ignore_conflicts=True,
            )

    def _question(self, texts: Mapping[str, str], unit: "UnitEmbedder") -> Ask:
        request = Request(
            role=ROLE,
            step=1,
            messages=(PromptMessage("user", tuple(texts.values())),),
            model=self._model,
            temperature=None,
            max_tokens=0,
            top_p=None,
            seed=None,
            endpoint=self._gateway.endpoint.id,
        )
        worst = None if self._gateway.budget_usd is None else worst_cost(request, self._gateway.prices)
        return Ask(request, call_key(request, sample=0), 0, unit.run_id, unit.unit_id, worst)

    def _cost(self, outcome: Outcome) -> Decimal | None:
        if not outcome.sent:
            return Decimal(0)
        return cost(
            prices=self._gateway.prices,
            model=ModelAt(self._gateway.endpoint.id, self._model),
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            cached_tokens=None,
        )


@dataclass(frozen=True, slots=True)
class UnitEmbedder:
    """The embeddings as one unit sees them; implements evaluation.core.types.Embedder."""

    embeddings: Embeddings
    run_id: int | None
    unit_id: int | None

    async def embed(self, texts: Sequence[str]) -> dict[str, Vector] | None:
        """Return a vector of length 1 for each text; None if the endpoint did not give all of them."""
        digests = {text: text_hash(text) for text in texts}
        vectors = await self.embeddings.vectors({digest: text for text, digest in digests.items()}, self)
        return by_text(digests, vectors)


def by_text(digests: Mapping[str, str], vectors: Mapping[str, Vector]) -> dict[str, Vector] | None:
    """Return vectors by text instead of content hash; None if one is missing or they differ in length."""
    if any(digest not in vectors for digest in digests.values()):
        return None
    found = {text: vectors[digest] for text, digest in digests.items()}
    return found if len({vector.size for vector in found.values()}) <= 1 else None


def _unit_vector(numbers: Any) -> Vector:
    """Return the vector with length 1; raises ValueError for anything but finite numbers, not all zero."""
    vector = np.asarray(numbers, dtype=np.float64)
    length = float(np.linalg.norm(vector)) if vector.ndim == 1 else 0.0
    if not 0 < length < np.inf:
        raise ValueError("not a vector")
    unit: Vector = (vector / length).astype(np.float32)
    return unit
