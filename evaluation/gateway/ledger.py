"""Model calls and their attempts in the database: each question asked once, every HTTP request recorded."""

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from evaluation.core.hashing import canonical, part_hash
from evaluation.core.thinking import part_thinking
from evaluation.core.types import PromptMessage, Reply, ReplyState, Request, TokenLogprob
from evaluation.gateway.budget import cost_without_answer, reserve, settle
from evaluation.gateway.replies import Outcome
from evaluation.gateway.rows import Row, rows_insert, rows_update
from evaluation.models.runs import Attempt, ModelCall, TextBlock

STORED_STATES: dict[str, ReplyState] = {
    ModelCall.State.ANSWERED: "answered",
    ModelCall.State.REFUSED: "refused",
    ModelCall.State.CUT_OFF: "cut_off",
    ModelCall.State.TOO_LONG: "too_long",
}
LARGEST_COUNT = 2**31 - 1  # PostgreSQL's integer limit
# Shared prompt parts that are known to be in the database.
KNOWN_BLOCKS = 4096

_CALL_NEW = (
    *("key", "endpoint", "model", "role", "settings", "parts", "sample"),
    *("state", "error", "reply", "finish_reason"),
)
_CALL_END = (
    *("state", "error", "reply", "thinking", "finish_reason", "logprobs", "prompt_tokens", "cached_tokens"),
    *("completion_tokens", "reasoning_tokens", "cost_usd", "latency_ms", "answered_at"),
)
_ATTEMPT_NEW = (
    *("call", "run", "unit", "number", "sent_at", "reserved_usd"),
    *("outcome", "request_id", "error"),
)
_ATTEMPT_END = (
    *("ended_at", "outcome", "status", "request_id", "error"),
    *("prompt_tokens", "completion_tokens", "cost_usd"),
)


@dataclass(frozen=True, slots=True)
class CallUsed:
    """The handle of a reply: which stored call it is, and whether it was reused.

    For a prompt that was sent: its tokens, its characters, and how many of these repeat an earlier prompt's
    beginning.
    """

    call_id: int
    reused: bool
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    prompt_chars: int = 0
    repeated_chars: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of a unit, or of no run, with its worst-case cost if the run has a budget."""

    request: Request
    key: str
    sample: int
    run_id: int | None = None
    unit_id: int | None = None
    worst_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class OpenedCall:
    """A call and the attempt that may leave now (0: none).

    Without an attempt it is answered already (reply), pending elsewhere (waiting), or exceeds the budget.
    """

    call_id: int
    attempt_id: int = 0
    reply: Reply | None = None
    waiting: bool = False

    @property
    def to_send(self) -> bool:
        """Return whether it is neither answered nor pending."""
        return self.reply is None and not self.waiting


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a request; `state` is the call's, None if another request follows."""

    ask: Ask
    opened: OpenedCall
    outcome: Outcome
    state: ReplyState | None
    cost: Decimal | None


def request_settings(request: Request) -> dict[str, Any]:
    """Return the settings that affect the answer, apart from endpoint, model and messages.

    Unset ones are missing.
    """
    settings = {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "top_p": request.top_p,
        "seed": request.seed,
        "schema": request.schema,
        "reasoning_effort": request.reasoning_effort,
        "logprobs": request.logprobs or None,
        "extra": dict(request.extra) if request.extra else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def call_key(request: Request, *, sample: int) -> str:
    """Return the content address: SHA-256 over endpoint id, model, settings, messages and sample index."""
    first, *others = request.messages
    settings = canonical(request_settings(request))
    key = _key_begun(request.endpoint, request.model, settings, first).copy()
    later = "".join(f",{canonical([message.role, message.text])}" for message in others)
    key.update(f"{later}],{sample}]".encode())
    return key.hexdigest()


@lru_cache(maxsize=64)  # the system message is the same for every chat
def _key_begun(endpoint: str, model: str, settings: str, first: PromptMessage) -> "hashlib._Hash":
    """Return the hash of a key's JSON up to and including the first message; copy it to go on."""
    message = canonical([first.role, first.text])
    return hashlib.sha256(f"[{canonical(endpoint)},{canonical(model)},{settings},[{message}".encode())


class Ledger:
    """Bulk functions for the database thread: many questions, attempts and outcomes at a time."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[str, None] = OrderedDict()

    def open(self, asks: Sequence[Ask]) -> list[OpenedCall]:
        """Find the answers to these questions, or record calls, parts and attempts before they leave.

        An answer that is stored is final: it is read without a lock, and nothing is written for it.
        """
        stored = _stored({ask.key for ask in asks})
        others = iter(self._open_others([ask for ask in asks if ask.key not in stored]))
        return [stored.get(ask.key) or next(others) for ask in asks]

    def _open_others(self, asks: Sequence[Ask]) -> list[OpenedCall]:
        if not asks:
            return []
        first = {ask.key: ask for ask in reversed(asks)}
        ids = self._create(list(first.values()))
        # Processes that open the same call take turns: the second sees the first's attempt or answer.
        older = _locked([key for key in first if key not in ids])
        ids |= {key: call.pk for key, call in older.items()}
        replies = _replies(older.values())
        earlier = _Earlier([call.pk for call in older.values() if call.pk not in replies])
        opened = []
        for ask in asks:
            pk = ids[ask.key]
            # If a question occurs twice at once, one of them waits.
            waiting = ask is not first[ask.key] or earlier.asked_elsewhere(pk, unit_id=ask.unit_id)
            opened.append(OpenedCall(pk, reply=replies.get(pk), waiting=waiting and pk not in replies))
        return _attempts_add(asks, opened, earlier)

    def again(self, asks: Sequence[Ask]) -> list[OpenedCall]:
        """Record one more request of each call, before it leaves."""
        calls = _locked([ask.key for ask in asks])
        earlier = _Earlier([call.pk for call in calls.values()])
        return _attempts_add(asks, [OpenedCall(calls[ask.key].pk) for ask in asks], earlier)

    def end(self, ended: Sequence[Ended]) -> list[None]:
        """Record the outcomes of requests and calls. An answer that another process stored first stays."""
        now = timezone.now()
        rows_update(Attempt, _ATTEMPT_END, [_attempt_row(one, now) for one in ended])
        final = sorted((one for one in ended if one.state), key=lambda one: one.ask.key)
        rows_update(ModelCall, _CALL_END, [_call_row(one, now) for one in final], unless=tuple(STORED_STATES))
        settle((one.ask.run_id, one.ask.worst_usd, _paid(one)) for one in ended)
        return [None] * len(ended)

    def withdraw(self, taken_back: Sequence[tuple[Ask, OpenedCall]]) -> list[None]:
        """Delete attempts whose request never left."""
        Attempt.objects.filter(pk__in=[opened.attempt_id for _, opened in taken_back]).delete()
        settle((ask.run_id, ask.worst_usd, Decimal(0)) for ask, _ in taken_back)
        return [None] * len(taken_back)

    def _create(self, asks: list[Ask]) -> dict[str, int]:
        """Add calls and the parts of their prompts; return the ids of the new calls by key.

        They stay locked until the transaction ends.
        """
        blocks: dict[str, str] = {}
        rows = [_new_call(ask, blocks) for ask in sorted(asks, key=lambda ask: ask.key)]
        fresh = sorted(digest for digest in blocks if digest not in self._blocks)
        rows_insert(
            TextBlock, ("hash", "text"), [(digest, blocks[digest]) for digest in fresh], new_only=True
        )
        transaction.on_commit(lambda: self._remember(blocks))
        return dict(rows_insert(ModelCall, _CALL_NEW, rows, new_only=True, returning=("key", "id")))

    def _remember(self, digests: Iterable[str]) -> None:
        """Remember committed blocks; those unused for longest are dropped first."""
        for digest in digests:
            self._blocks[digest] = None
            self._blocks.move_to_end(digest)
        while len(self._blocks) > KNOWN_BLOCKS:
            self._blocks.popitem(last=False)


class _Earlier:
    """The earlier attempts of some calls; the caller must hold the calls' rows."""

    def __init__(self, call_ids: list[int]) -> None:
        self._now = timezone.now()
        self._numbers: dict[int, int] = {}
        self._open: dict[int, list[tuple[int, int | None, datetime | None]]] = {}
        columns = ("call_id", "id", "number", "unit_id", "ended_at", "unit__lease__expires_at")
        rows = Attempt.objects.filter(call__in=call_ids).values_list(*columns) if call_ids else ()
        for call, pk, number, unit, ended, expires in rows:
            # Not their count: an attempt that never left may have been deleted.
            self._numbers[call] = max(self._numbers.get(call, 0), number)
            if ended is None:
                self._open.setdefault(call, []).append((pk, unit, expires))

    def asked_elsewhere(self, call_id: int, *, unit_id: int | None) -> bool:
        """Return whether a live worker is asking this question for another unit; its answer can be reused."""
        attempts = self._open.get(call_id, ())
        # Interrupted by a crash: the unit belongs to this process now.
        if lost := [pk for pk, unit, _ in attempts if unit == unit_id]:
            _mark_lost(Attempt.objects.filter(pk__in=lost))
        return any(unit != unit_id and expires and expires > self._now for _, unit, expires in attempts)

    def next_number(self, call_id: int) -> int:
        """Return the number of the call's next attempt."""
        self._numbers[call_id] = self._numbers.get(call_id, 0) + 1
        return self._numbers[call_id]


def storable(outcome: Outcome) -> Outcome:
    """Return the outcome without token counts that exceed the column; such a count is unknown."""
    counts = (
        *(outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens),
        outcome.reasoning_tokens,
    )
    if all(count is None or count <= LARGEST_COUNT for count in counts):
        return outcome
    return replace(
        outcome,
        prompt_tokens=_count(outcome.prompt_tokens),
        cached_tokens=_count(outcome.cached_tokens),
        completion_tokens=_count(outcome.completion_tokens),
        reasoning_tokens=_count(outcome.reasoning_tokens),
    )


def stored_reply(call: ModelCall) -> Reply:
    """Return the reply of an answered call, marked as reused."""
    logprobs = tuple(_token(token) for token in call.logprobs) if call.logprobs else None
    answer = part_thinking(call.reply).answer  # of calls stored before thinking was
    used = CallUsed(call.pk, reused=True)
    return Reply(STORED_STATES[call.state], answer, call.error, used, logprobs=logprobs)


def attempts_mark_lost(*, unit_ids: Sequence[int] = (), ids: Sequence[int] = ()) -> None:
    """Mark open requests as lost: these, and those of units taken over from a dead process."""
    _mark_lost(Attempt.objects.filter(Q(unit_id__in=unit_ids) | Q(pk__in=ids)))


def _mark_lost(attempts: QuerySet[Attempt]) -> None:
    """Mark attempts without an outcome: they may have been billed. Those of a batch outlive the process."""
    attempts.filter(ended_at__isnull=True, batch__isnull=True).update(
        ended_at=timezone.now(), outcome=Attempt.Outcome.UNKNOWN
    )


class _Locked(NamedTuple):
    """A locked call; a model instance for each would cost more than the rest of the query."""

    pk: int
    state: str


def _locked(keys: list[str]) -> dict[str, _Locked]:
    """Return calls by key, locked until the transaction ends; in one order, to avoid deadlocks."""
    if not keys:
        return {}
    rows = ModelCall.objects.select_for_update().filter(key__in=keys).order_by("key")
    return {key: _Locked(pk, state) for key, pk, state in rows.values_list("key", "pk", "state")}


def _stored(keys: Collection[str]) -> dict[str, OpenedCall]:
    """Return the calls of these keys that are answered, by key."""
    rows = ModelCall.objects.filter(key__in=keys, state__in=STORED_STATES)
    calls = rows.only("key", "state", "reply", "error", "logprobs")
    return {call.key: OpenedCall(call.pk, reply=stored_reply(call)) for call in calls}


def _replies(calls: Iterable[_Locked]) -> dict[int, Reply]:
    """Return the stored replies by call id."""
    stored = [call.pk for call in calls if call.state in STORED_STATES]
    rows = ModelCall.objects.filter(pk__in=stored).only("state", "reply", "error", "logprobs")
    return {call.pk: stored_reply(call) for call in rows} if stored else {}


def _new_call(ask: Ask, blocks: dict[str, str]) -> Row:
    """Return a question's row; the parts of its prompt are added to `blocks` by hash."""
    request, parts = ask.request, []
    for message in request.messages:
        digests = [part_hash(part) for part in message.parts]
        blocks.update(zip(digests, message.parts, strict=True))
        parts.append([message.role, digests])
    settings = request_settings(request)
    question = (ask.key, request.endpoint, request.model, request.role, settings, parts, ask.sample)
    return (*question, ModelCall.State.CLAIMED.value, "", "", "")


def _attempts_add(asks: Sequence[Ask], calls: Sequence[OpenedCall], earlier: _Earlier) -> list[OpenedCall]:
    """Add the next attempt of each call to send, as far as the budget allows, in the same order."""
    now = timezone.now()
    worst = [ask.worst_usd if opened.to_send else None for ask, opened in zip(asks, calls, strict=True)]
    fitting = reserve(asks[0].run_id, worst)
    rows = []
    for ask, opened, fits in zip(asks, calls, fitting, strict=True):
        if opened.to_send and fits:
            number = earlier.next_number(opened.call_id)
            sent = (opened.call_id, ask.run_id, ask.unit_id, number, now, ask.worst_usd)
            rows.append((*sent, Attempt.Outcome.SENT.value, "", ""))
    if not rows:
        return list(calls)
    ids = dict(rows_insert(Attempt, _ATTEMPT_NEW, rows, returning=("call", "id")))
    return [
        replace(opened, attempt_id=ids.get(opened.call_id, 0)) if opened.to_send else opened
        for opened in calls
    ]


def _attempt_row(one: Ended, now: datetime) -> Row:
    outcome = one.outcome
    result = (outcome.kind, outcome.status, (outcome.request_id or "")[:200], (outcome.error or "")[:300])
    return (now, *result, outcome.prompt_tokens, outcome.completion_tokens, one.cost, one.opened.attempt_id)


def _call_row(one: Ended, now: datetime) -> Row:
    outcome = one.outcome
    error = (outcome.error or "")[:300] if one.state == "failed" else ""
    logprobs = [asdict(token) for token in outcome.logprobs] if outcome.logprobs else None
    texts = (outcome.text, outcome.thinking, (outcome.finish_reason or "")[:40])
    tokens = (
        outcome.prompt_tokens,
        outcome.cached_tokens,
        outcome.completion_tokens,
        outcome.reasoning_tokens,
    )
    return (
        one.state,
        error,
        *texts,
        logprobs,
        *tokens,
        one.cost,
        outcome.latency_ms,
        now,
        one.opened.call_id,
    )


def _paid(one: Ended) -> Decimal | None:
    """Return the cost of a request; None if it is unknown."""
    return cost_without_answer(one.outcome.kind, one.outcome.status) if one.cost is None else one.cost


def _token(stored: dict[str, Any]) -> TokenLogprob:
    top = tuple((token, logprob) for token, logprob in stored["top"])
    return TokenLogprob(stored["token"], stored["logprob"], top)


def _count(count: int | None) -> int | None:
    return None if count is None or count > LARGEST_COUNT else count
