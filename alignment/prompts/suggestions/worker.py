"""Ask the model for open suggestions. A worker that takes over sends the same request."""

import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.core import Revision, Unreadable, read_answer
from common.problems import InputProblem
from evaluation.core.types import PromptMessage, Reply, Request
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.ledger import CallUsed, attempts_mark_lost
from evaluation.gateway.throttle import EndpointDown
from evaluation.models.runs import Attempt, ModelCall, WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows, has_living_worker
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost
from evaluation.runs.worker.single_calls import question_ask, question_key

log = logging.getLogger(__name__)

# Seconds to wait for an endpoint that does not answer, before the worker turns to other tasks.
PATIENCE = 45.0
POISON = f"the worker process died {MOST_TRIES} times while it asked for this"
SUGGEST = "alignment.tasks.suggest"
_State = Suggestion.State
NO_ANSWER = {
    "refused": "the model refused to answer",
    "cut_off": "the answer was cut off at its token limit",
    "too_long": "the request is longer than the model's context: choose fewer chats",
}


class _Suggestions(LeasedRows[Suggestion]):
    model = Suggestion
    task = SUGGEST
    open_state = _State.OPEN
    working_state = _State.ASKING

    def fail(self, row: Suggestion) -> None:
        _fail(row, POISON)

    def log_death(self, row: Suggestion) -> None:
        log.warning("suggestion %s is asked again: its worker died", row.pk)

    def waiting(self) -> list[int]:
        ids = super().waiting()
        _mark_lost()
        return ids

    def must_wait(self, row: Suggestion) -> bool:
        """Whether a cancelled suggestion's worker still asks the same question: its answer will do."""
        same = Suggestion.objects.filter(question=row.question, sample=row.sample).exclude(lease=None)
        return any(map(has_living_worker, same.exclude(pk=row.pk).select_related("lease")))


SUGGESTIONS = _Suggestions()


def suggestion_work(suggestion_id: int) -> None:
    """Ask for one suggestion and store the answer; do nothing unless it is open."""
    with SUGGESTIONS.work(suggestion_id) as (row, lease):
        if row is not None:
            _answer(row, lease)


def suggestions_waiting() -> list[int]:
    """Reopen the suggestions of dead workers, and return the open ones whose task was not enqueued lately."""
    return SUGGESTIONS.waiting()


def suggestions_sweep() -> None:
    """Enqueue the suggestions that wait."""
    SUGGESTIONS.sweep()


def _mark_lost() -> None:
    """Close the requests of dead workers, also if their suggestion was cancelled."""
    # Read first: a worker that sent one of them had a lease by then.
    sent = Attempt.objects.filter(call__role="reviser", ended_at=None).values_list("pk", "call__key")
    if unfinished := list(sent):
        leased = Suggestion.objects.exclude(lease=None).select_related("lease")
        alive = {question_key(stored_request(row.request or {})) for row in leased if has_living_worker(row)}
        attempts_mark_lost(ids=[pk for pk, key in unfinished if key not in alive])


def _answer(row: Suggestion, lease: WorkerLease) -> None:
    try:
        reply = question_ask(stored_request(row.request or {}), lease_id=lease.pk, seconds=PATIENCE)
    except EndpointDown as down:
        if not down.lasting:
            # An outage is not the question's fault: the reaper enqueues it again.
            owned = Suggestion.objects.filter(pk=row.pk, lease=lease)
            owned.update(error=str(down), tries=F("tries") - 1)
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
    revision, error = _revision(row, reply)
    _settle(row, lease, revision=revision, error=error, call=call)


def _revision(row: Suggestion, reply: Reply) -> tuple[Revision | None, str]:
    """Return the revision, or None and why the answer cannot be read."""
    if reply.state != "answered":
        return None, NO_ANSWER.get(reply.state, reply.error)
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
    revision: Revision | None = None,
    call: ModelCall | None = None,
) -> None:
    """Store the result, unless the suggestion was cancelled or taken over meanwhile."""
    if SUGGESTIONS.owned(row.pk, lease).select_for_update(of=("self",)).first() is None:
        return
    row.call = call
    # NB: compared by time: a worker may have died after it stored the answer it paid for.
    row.reused = bool(call and call.answered_at and call.answered_at < row.created_at)
    row.cost_usd = Decimal(0) if row.reused else call.cost_usd if call else None
    if revision is None:
        _fail(row, error)
        return
    row.text, row.reasons, row.reason = revision.text, revision.reasons, revision.reason
    row.state, row.error = _State.DONE, ""
    _close(row)


def _fail(row: Suggestion, why: str) -> None:
    row.state, row.error = _State.FAILED, why
    _close(row)


def _close(row: Suggestion) -> None:
    row.lease, row.request, row.finished_at = None, None, timezone.now()
    row.save()


def stored_request(stored: Mapping[str, Any]) -> Request:
    """Rebuild the request that was stored when the suggestion was started."""
    messages = tuple(PromptMessage(one["role"], tuple(one["parts"])) for one in stored["messages"])
    return Request(**{**stored, "messages": messages})
