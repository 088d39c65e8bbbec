"""Asks for the suggestions that wait: under a lease, once, and whoever takes over asks the very same."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.core import Drafted, Unreadable, read_answer
from common.problems import InputProblem
from common.queue import enqueue_row
from evaluation.core.types import PromptMessage, Reply, Request
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.ledger import CallUsed, attempts_mark_lost
from evaluation.gateway.throttle import EndpointDown
from evaluation.models.runs import Attempt, ModelCall, WorkerLease
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost, is_dead, lease_begin, lease_end
from evaluation.runs.worker.single_calls import question_ask, question_key

log = logging.getLogger(__name__)

# How long to wait for an endpoint that does not answer, before others get the worker.
PATIENCE = 45.0
# A ring that nobody has answered for so long may be lost; so long, too, an endpoint in trouble gets a rest.
RING_AGAIN = timedelta(seconds=30)
POISON = f"the worker process died {MOST_TRIES} times while it asked for this"
SUGGEST = "alignment.tasks.suggest"
_State = Suggestion.State
_UNREAD = {
    "refused": "the model refused to answer",
    "cut_off": "the answer was cut off at its token limit",
    "too_long": "the question is over the model's context: take fewer chats",
}


def suggestion_work(suggestion_id: int) -> None:
    """Ask for one suggestion and put the answer away; nothing where it is not waiting (any more)."""
    lease = lease_begin(None)
    try:
        row = _take(suggestion_id, lease)
        if row is not None:
            _answer(row, lease)
    finally:
        # Whatever cut it short: somebody else may ask.
        held = Suggestion.objects.filter(pk=suggestion_id, lease=lease, state=_State.ASKING)
        held.update(state=_State.OPEN, lease=None)
        lease_end(lease.pk)


def suggestion_enqueue(suggestion_id: int) -> bool:
    """Enqueue one; False when the broker is down: the next sweep does it."""
    return enqueue_row(SUGGEST, Suggestion.objects.filter(pk=suggestion_id))


def suggestions_sweep() -> None:
    """Free what dead workers held, and enqueue what nobody works on."""
    for suggestion_id in suggestions_waiting():
        if not suggestion_enqueue(suggestion_id):
            break  # the others would wait for the same broker


def suggestions_waiting() -> list[int]:
    """Take back those whose worker died, and return the open ones that nobody was rung for lately."""
    _take_back()
    _mark_lost()
    quiet = Q(rung_at=None) | Q(rung_at__lt=timezone.now() - RING_AGAIN)
    waiting = Suggestion.objects.filter(quiet, state=_State.OPEN).order_by("pk")
    return list(waiting.values_list("pk", flat=True))


@transaction.atomic
def _take_back() -> None:
    asking = Suggestion.objects.filter(state=_State.ASKING).select_for_update(of=("self",))
    for row in asking.select_related("lease"):
        # The reaper may have removed a dead lease already.
        if not _is_held(row):
            row.state, row.lease = _State.OPEN, None
            row.save(update_fields=["state", "lease"])
            log.warning("suggestion %s is asked again: its worker died", row.pk)


def _mark_lost() -> None:
    """Close the requests whose worker is gone, whether or not anybody still wants their answer."""
    # Read first: whoever sent one of them had a lease by then.
    sent = Attempt.objects.filter(call__role="reviser", ended_at=None).values_list("pk", "call__key")
    if left := list(sent):
        asking = Suggestion.objects.exclude(lease=None).select_related("lease")
        alive = {question_key(_request(row.request or {})) for row in asking if _is_held(row)}
        attempts_mark_lost(ids=[pk for pk, key in left if key not in alive])


def _is_held(row: Suggestion) -> bool:
    """Whether a living worker asks it, cancelled or not."""
    return row.lease is not None and not is_dead(row.lease)


@transaction.atomic
def _take(suggestion_id: int, lease: WorkerLease) -> Suggestion | None:
    rows = Suggestion.objects.select_for_update(of=("self",)).filter(pk=suggestion_id, state=_State.OPEN)
    row = rows.first()
    if row is None:
        return None
    if row.tries >= MOST_TRIES:
        _fail(row, POISON)
        return None
    if _is_on_its_way(row):
        # Nobody is to wait longer than for the clock's next tick.
        row.rung_at = None
        row.save(update_fields=["rung_at"])
        return None
    row.state, row.lease, row.tries = _State.ASKING, lease, row.tries + 1
    row.save(update_fields=["state", "lease", "tries"])
    return row


def _is_on_its_way(row: Suggestion) -> bool:
    """Whether the very same question of a cancelled suggestion is still asked: its answer will do."""
    same = Suggestion.objects.filter(question=row.question, sample=row.sample).exclude(lease=None)
    return any(_is_held(other) for other in same.exclude(pk=row.pk).select_related("lease"))


def _answer(row: Suggestion, lease: WorkerLease) -> None:
    try:
        reply = question_ask(_request(row.request or {}), lease_id=lease.pk, seconds=PATIENCE)
    except EndpointDown as down:
        if not down.lasting:
            # An outage is no fault of the question's: the reaper rings again.
            held = Suggestion.objects.filter(pk=row.pk, lease=lease)
            held.update(error=str(down), tries=F("tries") - 1)
            return
        _settle(row, lease, error=str(down))
    except (InputProblem, EmbeddedModelError) as problem:
        _settle(row, lease, error=" ".join(str(problem).split()))
    except LeaseLost:
        log.warning("suggestion %s was taken over", row.pk)
    else:
        _read(row, lease, reply)


def _read(row: Suggestion, lease: WorkerLease, reply: Reply) -> None:
    used = reply.call
    call = ModelCall.objects.get(pk=used.call_id) if isinstance(used, CallUsed) else None
    drafted, error = _drafted(row, reply)
    _settle(row, lease, drafted=drafted, error=error, call=call)


def _drafted(row: Suggestion, reply: Reply) -> tuple[Drafted | None, str]:
    """What the answer suggests, else why it cannot be read."""
    if reply.state != "answered":
        return None, _UNREAD.get(reply.state, reply.error)
    try:
        return read_answer(reply.text, prompt=row.base_text, question=row.material["question"]), ""
    except Unreadable as unread:
        return None, str(unread)


@transaction.atomic
def _settle(
    row: Suggestion,
    lease: WorkerLease,
    *,
    error: str,
    drafted: Drafted | None = None,
    call: ModelCall | None = None,
) -> None:
    """Put it away, unless it was cancelled or taken over meanwhile."""
    locked = Suggestion.objects.select_for_update(of=("self",))
    if locked.filter(pk=row.pk, lease=lease, state=_State.ASKING).first() is None:
        return
    row.call = call
    # NB: not whether the store had it: a worker may have died between the answer and this.
    row.reused = bool(call and call.answered_at and call.answered_at < row.created_at)
    row.cost_usd = Decimal(0) if row.reused else call.cost_usd if call else None
    if drafted is None:
        _fail(row, error)
        return
    row.text, row.reasons, row.reason = drafted.text, drafted.reasons, drafted.reason
    row.state, row.error = _State.DONE, ""
    _close(row)


def _fail(row: Suggestion, why: str) -> None:
    row.state, row.error = _State.FAILED, why
    _close(row)


def _close(row: Suggestion) -> None:
    row.lease, row.request, row.finished_at = None, None, timezone.now()
    row.save()


def _request(frozen: Mapping[str, Any]) -> Request:
    """The request that was frozen when the suggestion was asked for."""
    messages = tuple(PromptMessage(one["role"], tuple(one["parts"])) for one in frozen["messages"])
    return Request(**{**frozen, "messages": messages})
