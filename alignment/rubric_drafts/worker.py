"""Ask the model for open drafts. A worker that takes over sends the same request."""

import logging
from decimal import Decimal

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from alignment.models.rubric_drafts import CriterionDraft
from alignment.prompts.suggestions.worker import NO_ANSWER, PATIENCE, POISON, stored_request
from alignment.rubric_drafts.core import DraftedDefinition, Unreadable, read_draft
from common.problems import InputProblem
from evaluation.core.types import Reply
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.ledger import CallUsed, attempts_mark_lost
from evaluation.gateway.throttle import EndpointDown
from evaluation.models.runs import Attempt, ModelCall, WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows, has_living_worker
from evaluation.runs.worker.leases import LeaseLost
from evaluation.runs.worker.single_calls import question_ask, question_key

log = logging.getLogger(__name__)

DRAFT = "alignment.tasks.draft_definition"
_State = CriterionDraft.State


class _Drafts(LeasedRows[CriterionDraft]):
    model = CriterionDraft
    task = DRAFT
    open_state = _State.OPEN
    working_state = _State.ASKING

    def fail(self, row: CriterionDraft) -> None:
        row.state, row.error = _State.FAILED, POISON
        _close(row)

    def log_death(self, row: CriterionDraft) -> None:
        log.warning("definition draft %s is asked again: its worker died", row.pk)

    def waiting(self) -> list[int]:
        ids = super().waiting()
        _mark_lost()
        return ids

    def must_wait(self, row: CriterionDraft) -> bool:
        """Whether a worker of another draft still asks the same question: its answer will do."""
        same = CriterionDraft.objects.filter(question=row.question, sample=row.sample).exclude(lease=None)
        return any(map(has_living_worker, same.exclude(pk=row.pk).select_related("lease")))


DRAFTS = _Drafts()


def draft_work(draft_id: int) -> None:
    """Ask for one draft and store the answer; do nothing unless it is open."""
    with DRAFTS.work(draft_id) as (row, lease):
        if row is not None:
            _answer(row, lease)


def drafts_sweep() -> None:
    """Enqueue the drafts that wait."""
    DRAFTS.sweep()


def _mark_lost() -> None:
    """Close the requests of dead workers, also if their draft was cancelled."""
    # Read first: a worker that sent one of them had a lease by then.
    sent = Attempt.objects.filter(call__role="definer", ended_at=None).values_list("pk", "call__key")
    if unfinished := list(sent):
        leased = CriterionDraft.objects.exclude(lease=None).select_related("lease")
        alive = {question_key(stored_request(row.request or {})) for row in leased if has_living_worker(row)}
        attempts_mark_lost(ids=[pk for pk, key in unfinished if key not in alive])


def _answer(row: CriterionDraft, lease: WorkerLease) -> None:
    try:
        reply = question_ask(stored_request(row.request or {}), lease_id=lease.pk, seconds=PATIENCE)
    except EndpointDown as down:
        if not down.lasting:
            # An outage is not the question's fault: the sweep enqueues it again.
            owned = CriterionDraft.objects.filter(pk=row.pk, lease=lease)
            owned.update(error=str(down), tries=F("tries") - 1)
            return
        _settle(row, lease, error=str(down))
    except (InputProblem, EmbeddedModelError) as problem:
        _settle(row, lease, error=" ".join(str(problem).split()))
    except LeaseLost:
        log.warning("definition draft %s was taken over", row.pk)
    else:
        used = reply.call
        call = ModelCall.objects.get(pk=used.call_id) if isinstance(used, CallUsed) else None
        drafted, error = _read(reply)
        _settle(row, lease, drafted=drafted, error=error, call=call)


def _read(reply: Reply) -> tuple[DraftedDefinition | None, str]:
    """Return the definition, or None and why the answer cannot be read."""
    if reply.state != "answered":
        return None, NO_ANSWER.get(reply.state, reply.error)
    try:
        return read_draft(reply.text), ""
    except Unreadable as unread:
        return None, str(unread)


@transaction.atomic
def _settle(
    row: CriterionDraft,
    lease: WorkerLease,
    *,
    error: str,
    drafted: DraftedDefinition | None = None,
    call: ModelCall | None = None,
) -> None:
    """Store the result, unless the draft was cancelled or taken over meanwhile."""
    if DRAFTS.owned(row.pk, lease).select_for_update(of=("self",)).first() is None:
        return
    row.call = call
    # NB: compared by time: a worker may have died after it stored the answer it paid for.
    row.reused = bool(call and call.answered_at and call.answered_at < row.created_at)
    row.cost_usd = Decimal(0) if row.reused else call.cost_usd if call else None
    row.state, row.error = _State.FAILED, error
    if drafted is not None:
        row.state, row.error = _State.DONE, ""
        row.text, row.remarks = drafted.text, drafted.remarks
    _close(row)


def _close(row: CriterionDraft) -> None:
    row.lease, row.request, row.finished_at = None, None, timezone.now()
    row.save()
