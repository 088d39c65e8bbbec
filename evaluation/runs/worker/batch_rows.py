"""Batches in the database: which request is in which file, and its outcome."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any, BinaryIO

from django.db import transaction
from django.db.models import Count, Max, Q
from django.utils import timezone

from evaluation.core.hashing import text_hash
from evaluation.core.types import ModelAt, PromptMessage, Reply, Request
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.endpoints.services import model_learn
from evaluation.gateway.batches import MOST_BYTES, MOST_REQUESTS, WINDOW, AnswerLine, request_line
from evaluation.gateway.budget import cost_without_answer, reserve, settle, worst_cost
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.ledger import STORED_STATES, CallUsed, request_settings, storable
from evaluation.gateway.model import MOST_REWRITTEN, request_body
from evaluation.gateway.prices import BATCH_SHARE, Price, cost
from evaluation.gateway.refusals import lesson
from evaluation.gateway.replies import Outcome
from evaluation.gateway.retries import attempts_allowed, decide
from evaluation.gateway.rows import Fields, rows_update
from evaluation.models.runs import Attempt, Batch, ModelCall, Run, TextBlock, error_in_words

CHUNK = 500
PENDING = (Batch.State.PREPARED, Batch.State.UPLOADED, Batch.State.SUBMITTED)
NO_ANSWER = "the endpoint's files do not tell of this request"
_ENDED = (
    *("ended_at", "outcome", "status", "request_id", "error"),
    *("prompt_tokens", "completion_tokens", "cost_usd"),
)
_ANSWERED = (
    *("state", "error", "reply", "thinking", "finish_reason", "logprobs", "prompt_tokens"),
    *("cached_tokens", "completion_tokens", "reasoning_tokens", "cost_usd", "answered_at"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question that a unit waits for."""

    request: Request
    key: str
    sample: int
    unit_id: int


@dataclass(slots=True)
class _File:
    """A batch that still accepts requests."""

    batch: Batch
    bytes: int = 0


@dataclass(slots=True)
class Files:
    """Records questions, each in a batch, within the endpoint's limits and the run's budget.

    `asked` counts recorded questions, `waiting` those that are pending elsewhere; `over_budget` means that a
    question did not fit. Recorded requests are sent, after a crash by the next process.
    """

    run: Run
    endpoint: Endpoint
    prices: dict[ModelAt, Price]
    profiles: Mapping[ModelAt, ModelProfile]
    asked: int = 0
    waiting: int = 0
    over_budget: bool = False
    _files: dict[str, _File] = field(default_factory=dict)

    @transaction.atomic
    def add(self, questions: Sequence[Question]) -> None:
        """Record these questions together. A question of several units is asked once."""
        if not questions:
            return
        calls, now = _calls_ensure(questions), timezone.now()
        fresh = self._fresh(questions, calls, now)
        fits = reserve(self.run.pk, [self._worst(one.request) for one in fresh])
        numbers = _numbers(calls)
        attempts = [
            Attempt(
                call=calls[one.key],
                run=self.run,
                unit_id=one.unit_id,
                batch=self._room(one),
                number=numbers.get(calls[one.key].pk, 0) + 1,
                sent_at=now,
                reserved_usd=self._worst(one.request),
            )
            for one in (one for one, fit in zip(fresh, fits, strict=True) if fit)
        ]
        Attempt.objects.bulk_create(attempts)
        Batch.objects.bulk_update({attempt.batch for attempt in attempts if attempt.batch}, ["requests"])
        self.over_budget = self.over_budget or not all(fits)
        self.asked += len(attempts)
        self.waiting += len(questions) - len(fresh)

    def _fresh(
        self, questions: Sequence[Question], calls: dict[str, ModelCall], now: datetime
    ) -> list[Question]:
        """Return the questions that are neither answered nor pending, each once."""
        taken = {call.pk for call in calls.values() if call.state in STORED_STATES} | _on_the_way(calls, now)
        fresh = {one.key: one for one in questions if calls[one.key].pk not in taken}
        return list(fresh.values())

    def _worst(self, request: Request) -> Decimal | None:
        """Return the highest possible cost; None without a budget, which reserves nothing."""
        if self.run.budget_usd is None:
            return None
        full = worst_cost(request, self.prices, profile=self._profile(request))
        return None if full is None else full * BATCH_SHARE

    def _profile(self, request: Request) -> ModelProfile:
        return self.profiles.get(request.at) or ModelProfile()

    def _room(self, one: Question) -> Batch:
        """Return the batch for this request: a file has one model and a size limit."""
        size = len(request_line(one.key, request_body(one.request, self._profile(one.request))))
        file = self._files.get(one.request.model)
        if file is None or file.batch.requests >= MOST_REQUESTS or file.bytes + size > MOST_BYTES:
            batch = Batch.objects.create(run=self.run, endpoint=self.endpoint.id)
            file = self._files[one.request.model] = _File(batch)
        file.bytes += size
        file.batch.requests += 1
        return file.batch


def _calls_ensure(questions: Sequence[Question]) -> dict[str, ModelCall]:
    """Return the questions' rows by key, created if missing, locked until the transaction ends."""
    blocks: dict[str, str] = {}
    calls: dict[str, ModelCall] = {}
    for one in questions:
        parts = []
        for message in one.request.messages:
            digests = [text_hash(part) for part in message.parts]
            blocks.update(zip(digests, message.parts, strict=True))
            parts.append([message.role, digests])
        calls[one.key] = ModelCall(
            key=one.key,
            endpoint=one.request.endpoint,
            model=one.request.model,
            role=one.request.role,
            settings=request_settings(one.request),
            parts=parts,
            sample=one.sample,
        )
    texts = [TextBlock(hash=digest, text=blocks[digest]) for digest in sorted(blocks)]
    TextBlock.objects.bulk_create(texts, ignore_conflicts=True, batch_size=CHUNK)
    ordered = [calls[key] for key in sorted(calls)]
    ModelCall.objects.bulk_create(ordered, ignore_conflicts=True, batch_size=CHUNK)
    locked = ModelCall.objects.select_for_update().filter(key__in=calls).order_by("key")
    return {call.key: call for call in locked}


def _on_the_way(calls: dict[str, ModelCall], now: datetime) -> set[int]:
    """Return calls that a live worker or a batch is asking; their answers can be reused."""
    open_attempts = Attempt.objects.filter(call__in=calls.values(), ended_at=None)
    alive = Q(unit__lease__expires_at__gt=now) | Q(batch__state__in=PENDING, sent_at__gt=now - WINDOW)
    return set(open_attempts.filter(alive).values_list("call_id", flat=True))


def _numbers(calls: dict[str, ModelCall]) -> dict[int, int]:
    rows = Attempt.objects.filter(call__in=calls.values()).values("call").order_by()
    return dict(rows.annotate(last=Max("number")).values_list("call", "last"))


def batch_file_write(batch: Batch, file: BinaryIO, profiles: Mapping[ModelAt, ModelProfile]) -> None:
    """Write the file of a batch's requests from the record: the same before and after a crash."""
    attempts = batch.attempts.filter(ended_at=None).order_by("id").select_related("call")
    for chunk in _chunks(attempts.iterator(chunk_size=CHUNK)):
        calls = [attempt.call for attempt in chunk]
        digests = {digest for call in calls for _, row in call.parts for digest in row}
        texts = {digest: block.text for digest, block in TextBlock.objects.in_bulk(digests).items()}
        for call in calls:
            profile = profiles.get(ModelAt(call.endpoint, call.model)) or ModelProfile()
            file.write(request_line(call.key, request_body(_request(call, texts), profile)))


def _request(call: ModelCall, texts: Mapping[str, str] | None) -> Request:
    """Return a stored question as it was asked; its messages are empty without texts."""
    settings = call.settings
    parts = call.parts if texts is not None else []
    messages = (PromptMessage(role, tuple((texts or {})[digest] for digest in row)) for role, row in parts)
    return Request(
        role=call.role,
        step=1,
        messages=tuple(messages),
        model=call.model,
        temperature=settings.get("temperature"),
        max_tokens=settings["max_tokens"],
        top_p=settings.get("top_p"),
        seed=settings.get("seed"),
        endpoint=call.endpoint,
        schema=settings.get("schema"),
        reasoning_effort=settings.get("reasoning_effort"),
        logprobs=bool(settings.get("logprobs")),
        extra=settings.get("extra"),
    )


@dataclass(slots=True)
class Collector:
    """Stores the outcomes of a batch's requests.

    `given_up` holds, by key, calls without attempts left; `answered` counts results; `trouble` is an error
    that would affect every other call too.
    """

    batch: Batch
    prices: dict[ModelAt, Price]
    profiles: dict[ModelAt, ModelProfile]
    given_up: dict[str, Reply] = field(default_factory=dict)
    answered: int = 0
    trouble: str = ""
    _asked_with: dict[ModelAt, ModelProfile] = field(init=False)

    def __post_init__(self) -> None:
        self._asked_with = dict(self.profiles)

    def store(self, answers: Iterator[AnswerLine]) -> None:
        """Store every line, some hundred in a transaction; lines stored before a crash are skipped."""
        for chunk in _chunks(answers):
            self._store({one.key: one.outcome for one in chunk})

    @transaction.atomic
    def _store(self, outcomes: dict[str, Outcome | None]) -> None:
        attempts = list(self._open_attempts().filter(call__key__in=outcomes))
        tries, ended, calls, never = self._tries(attempts), [], [], []
        for attempt in attempts:
            outcome = outcomes[attempt.call.key]
            if outcome is None:
                never.append(attempt)
                continue
            outcome = storable(outcome)
            self._end(attempt, outcome)
            ended.append(attempt)
            if self._settle_call(attempt, outcome, tries[attempt.call_id]):
                calls.append(attempt.call)
        _update(Attempt, _ENDED, ended)
        _update(ModelCall, _ANSWERED, calls)
        settle(_paid(ended))
        attempts_never_asked(never, "the batch ended before it was asked")

    def end(self, *, complete: bool) -> None:
        """End requests without a line: never asked, or of unknown outcome in a `complete` batch."""
        while self._end_some(complete=complete):
            pass

    @transaction.atomic
    def _end_some(self, *, complete: bool) -> int:
        left = list(self._open_attempts()[:CHUNK])
        if complete:
            self._lost(left)
        else:
            attempts_never_asked(left, "the batch ended before it was asked")
        return len(left)

    def _lost(self, attempts: list[Attempt]) -> None:
        tries, now = self._tries(attempts), timezone.now()
        for attempt in attempts:
            attempt.ended_at, attempt.outcome, attempt.error = now, Attempt.Outcome.UNKNOWN.value, NO_ANSWER
            if tries[attempt.call_id] >= attempts_allowed("timeout"):
                self._give_up(attempt, NO_ANSWER)
        _update(Attempt, ("ended_at", "outcome", "error"), attempts)

    def _open_attempts(self) -> Any:
        rows = Attempt.objects.select_for_update(of=("self",)).select_related("call")
        return rows.filter(batch=self.batch, ended_at=None).order_by("id")

    def _tries(self, attempts: list[Attempt]) -> dict[int, int]:
        """Return the number of this run's requests per call, these included, without those never asked."""
        calls = [attempt.call_id for attempt in attempts]
        rows = Attempt.objects.filter(run=self.batch.run_id, call__in=calls, batch__isnull=False)
        counted = rows.exclude(outcome=Attempt.Outcome.CANCELLED).values("call").order_by()
        return dict(counted.annotate(n=Count("id")).values_list("call", "n"))

    def _end(self, attempt: Attempt, outcome: Outcome) -> None:
        attempt.ended_at, attempt.outcome = timezone.now(), outcome.kind
        attempt.status, attempt.error = outcome.status, outcome.error[:300]
        attempt.request_id = (outcome.request_id or "")[:200]
        attempt.prompt_tokens = outcome.prompt_tokens
        attempt.completion_tokens = outcome.completion_tokens
        full = cost(
            prices=self.prices,
            model=ModelAt(attempt.call.endpoint, attempt.call.model),
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            cached_tokens=outcome.cached_tokens,
        )
        attempt.cost_usd = None if full is None else full * BATCH_SHARE

    def _settle_call(self, attempt: Attempt, outcome: Outcome, tries: int) -> bool:
        """Store a call's answer, or give the call up; False if it is asked again or had an answer."""
        call = attempt.call
        if tries < MOST_REWRITTEN and self._learned(call, outcome):
            return False
        decision = decide(outcome=outcome, attempt=tries, seed=call.key)
        if decision.action == "stop":
            self.trouble = f"{self.batch.endpoint}: {outcome.error}"
        if decision.action == "give_up":
            self._give_up(attempt, error_in_words(f"{outcome.kind}: {outcome.error}"))
        if decision.action != "keep" or call.state in STORED_STATES:
            return False
        self.answered += 1
        call.state, call.error, call.reply = outcome.kind, "", outcome.text
        call.thinking, call.reasoning_tokens = outcome.thinking, outcome.reasoning_tokens
        call.finish_reason = (outcome.finish_reason or "")[:40]
        call.logprobs = _logprobs_json(outcome)
        call.prompt_tokens, call.cached_tokens = outcome.prompt_tokens, outcome.cached_tokens
        call.completion_tokens, call.cost_usd = outcome.completion_tokens, attempt.cost_usd
        call.answered_at = attempt.ended_at
        return True

    def _learned(self, call: ModelCall, outcome: Outcome) -> bool:
        """Learn what the model refused; return whether the next wave asks anew."""
        if outcome.kind not in ("bad_request", "too_long"):
            return False
        at = ModelAt(call.endpoint, call.model)
        asked_with = self._asked_with.get(at) or ModelProfile()
        if self.profiles.get(at, asked_with) == asked_with:
            body = request_body(_request(call, None), asked_with)
            changes = lesson(outcome.refusal, body=body, profile=asked_with)
            if not changes:
                return False
            self.profiles[at] = asked_with.learn(changes)
            model_learn(endpoint=call.endpoint, model=call.model, changes=changes)
        return True

    def _give_up(self, attempt: Attempt, error: str) -> None:
        call = attempt.call
        self.given_up[call.key] = Reply("failed", "", error, CallUsed(call.pk, reused=False))
        unanswered = ModelCall.objects.filter(pk=call.pk).exclude(state__in=STORED_STATES)
        unanswered.update(state=ModelCall.State.FAILED, error=error[:300])


def attempts_never_asked(attempts: Sequence[Attempt], why: str) -> None:
    """End requests that no model received: they cost nothing."""
    now = timezone.now()
    for attempt in attempts:
        attempt.ended_at, attempt.outcome = now, Attempt.Outcome.CANCELLED.value
        attempt.error, attempt.cost_usd = why, Decimal(0)
    _update(Attempt, ("ended_at", "outcome", "error", "cost_usd"), attempts)
    settle(_paid(attempts))


def _update(model: type[Attempt] | type[ModelCall], fields: Fields, rows: Sequence[Any]) -> None:
    """Write these fields of changed rows."""
    rows_update(model, fields, [(*(getattr(row, name) for name in fields), row.pk) for row in rows])


def _paid(attempts: Sequence[Attempt]) -> Iterator[tuple[int, Decimal | None, Decimal | None]]:
    """Yield run, reservation and cost of each; a request that no model worked on costs nothing."""
    for attempt in attempts:
        paid = attempt.cost_usd
        if paid is None:
            paid = cost_without_answer(attempt.outcome, attempt.status)
        yield attempt.run_id or 0, attempt.reserved_usd, paid


def _logprobs_json(outcome: Outcome) -> list[dict[str, Any]] | None:
    if not outcome.logprobs:
        return None
    return [asdict(token) for token in outcome.logprobs]


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
