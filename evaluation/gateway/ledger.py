"""Model calls and their attempts in the database: asked once, every HTTP request on record."""

from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from evaluation.core.hashing import canonical, text_hash
from evaluation.core.types import Reply, ReplyState, Request
from evaluation.gateway.client import Outcome
from evaluation.models.runs import Attempt, ModelCall, TextBlock

STORED_STATES: dict[str, ReplyState] = {
    ModelCall.State.ANSWERED: "answered",
    ModelCall.State.REFUSED: "refused",
    ModelCall.State.CUT_OFF: "cut_off",
    ModelCall.State.TOO_LONG: "too_long",
}
LARGEST_COUNT = 2**31 - 1  # what PostgreSQL's integer holds


@dataclass(frozen=True, slots=True)
class CallUsed:
    """The handle a reply carries: which stored call it is and whether it was paid for before."""

    call_id: int
    reused: bool


@dataclass(frozen=True, slots=True)
class OpenedCall:
    """A call to be sent now (its attempt), answered already (reply), or on its way elsewhere (waiting)."""

    call_id: int
    attempt_id: int = 0
    reply: Reply | None = None
    waiting: bool = False


def request_settings(request: Request) -> dict[str, Any]:
    """What of a request changes its answer, apart from endpoint, model and messages."""
    settings = {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "top_p": request.top_p,
        "seed": request.seed,
        "schema": request.schema,
    }
    return {name: value for name, value in settings.items() if value is not None}


def call_key(request: Request, *, sample: int) -> str:
    """The content address: sha256 over endpoint id, model, settings, messages and sample index."""
    messages = [[message.role, message.text] for message in request.messages]
    parts = [request.endpoint, request.model, request_settings(request), messages, sample]
    return text_hash(canonical(parts))


def call_open(
    request: Request, *, key: str, sample: int, run_id: int | None, unit_id: int | None
) -> OpenedCall:
    """Find the answer to this question, or record that it is being asked (call, prompt parts, attempt)."""
    # Two that open it at the same moment take turns: the second sees the first's attempt, or its answer.
    locked = ModelCall.objects.select_for_update().filter(key=key)
    call = locked.first()
    if call is None:
        _call_create(request, key=key, sample=sample)
        call = locked.get()
    if call.state in STORED_STATES:
        return OpenedCall(call.pk, reply=stored_reply(call))
    _mark_lost(call.attempts.filter(Q(unit_id=unit_id)))  # cut short by a crash: the unit is ours alone now
    if _asked_elsewhere(call, unit_id=unit_id):
        return OpenedCall(call.pk, waiting=True)
    return OpenedCall(call.pk, attempt_id=_attempt_add(call, run_id=run_id, unit_id=unit_id))


def _asked_elsewhere(call: ModelCall, *, unit_id: int | None) -> bool:
    """Whether a live worker has this very question on its way for another unit; its answer will do."""
    asking = call.attempts.filter(ended_at__isnull=True, unit__lease__expires_at__gt=timezone.now())
    return asking.exclude(Q(unit_id=unit_id)).exists()


def attempt_begin(call_id: int, *, run_id: int | None, unit_id: int | None) -> int:
    """Record one more request of a call, before it leaves; returns its id."""
    call = ModelCall.objects.select_for_update().get(pk=call_id)
    return _attempt_add(call, run_id=run_id, unit_id=unit_id)


def _attempt_add(call: ModelCall, *, run_id: int | None, unit_id: int | None) -> int:
    """The next attempt of a call; whoever holds its row gives the number."""
    number = call.attempts.count() + 1
    return Attempt.objects.create(
        call=call, run_id=run_id, unit_id=unit_id, number=number, sent_at=timezone.now()
    ).pk


def storable(outcome: Outcome) -> Outcome:
    """The outcome without token counts that no column holds: a nonsense count is an unknown one."""
    return replace(
        outcome,
        prompt_tokens=_count(outcome.prompt_tokens),
        cached_tokens=_count(outcome.cached_tokens),
        completion_tokens=_count(outcome.completion_tokens),
    )


def attempt_end(attempt_id: int, outcome: Outcome, *, cost: Decimal | None) -> None:
    """Record what became of one request."""
    Attempt.objects.filter(pk=attempt_id).update(
        ended_at=timezone.now(),
        outcome=outcome.kind,
        status=outcome.status,
        request_id=(outcome.request_id or "")[:200],
        error=(outcome.error or "")[:300],
        prompt_tokens=outcome.prompt_tokens,
        completion_tokens=outcome.completion_tokens,
        cost_usd=cost,
    )


def call_end(
    call_id: int, attempt_id: int, outcome: Outcome, *, state: ReplyState, cost: Decimal | None
) -> None:
    """Record a call's last request and its outcome. An answer that another process stored first stays."""
    attempt_end(attempt_id, outcome, cost=cost)
    ModelCall.objects.filter(pk=call_id).exclude(state__in=STORED_STATES).update(
        state=state,
        error=(outcome.error or "")[:300] if state == "failed" else "",
        reply=outcome.text,
        finish_reason=(outcome.finish_reason or "")[:40],
        logprobs=[asdict(token) for token in outcome.logprobs] if outcome.logprobs else None,
        prompt_tokens=outcome.prompt_tokens,
        cached_tokens=outcome.cached_tokens,
        completion_tokens=outcome.completion_tokens,
        cost_usd=cost,
        latency_ms=outcome.latency_ms,
        answered_at=timezone.now(),
    )


def stored_reply(call: ModelCall) -> Reply:
    """The reply of an answered call, marked as reused."""
    return Reply(STORED_STATES[call.state], call.reply, call.error, CallUsed(call.pk, reused=True))


def _call_create(request: Request, *, key: str, sample: int) -> None:
    parts = [[message.role, [text_hash(part) for part in message.parts]] for message in request.messages]
    blocks = {text_hash(part): part for message in request.messages for part in message.parts}
    TextBlock.objects.bulk_create(
        [TextBlock(hash=digest, text=text) for digest, text in sorted(blocks.items())], ignore_conflicts=True
    )
    ModelCall.objects.get_or_create(
        key=key,
        defaults={
            "endpoint": request.endpoint,
            "model": request.model,
            "role": request.role,
            "settings": request_settings(request),
            "parts": parts,
            "sample": sample,
        },
    )


def _count(count: int | None) -> int | None:
    return None if count is None or count > LARGEST_COUNT else count


def attempts_mark_lost(*, unit_ids: list[int]) -> None:
    """Mark every request without an outcome of units taken over from a dead process."""
    _mark_lost(Attempt.objects.filter(unit_id__in=unit_ids))


def _mark_lost(attempts: QuerySet[Attempt]) -> None:
    """Those without an outcome may have been billed; nobody will ever know."""
    attempts.filter(ended_at__isnull=True).update(ended_at=timezone.now(), outcome=Attempt.Outcome.UNKNOWN)
