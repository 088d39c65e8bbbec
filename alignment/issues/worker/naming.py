"""Ask the judge's model for the name of an issue. A worker that takes over sends the same request."""

import logging
from decimal import Decimal

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from alignment.issues.core.naming import Drafted, Unreadable, read_name
from alignment.models.issues import Issue, IssueNaming
from alignment.prompts.suggestions.worker import NO_ANSWER, PATIENCE, POISON, stored_request
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

NAME = "alignment.tasks.name_issue"
ROLE = "namer"
_State = IssueNaming.State


class _Namings(LeasedRows[IssueNaming]):
    model = IssueNaming
    task = NAME
    open_state = _State.OPEN
    working_state = _State.ASKING

    def fail(self, row: IssueNaming) -> None:
        row.state, row.error = _State.FAILED, POISON
        _close(row)

    def log_death(self, row: IssueNaming) -> None:
        log.warning("the name of issue %s is asked again: its worker died", row.issue_id)

    def waiting(self) -> list[int]:
        ids = super().waiting()
        _mark_lost()
        return ids

    def must_wait(self, row: IssueNaming) -> bool:
        """Whether a worker still asks the same question: its answer will do."""
        same = IssueNaming.objects.filter(question=row.question, sample=row.sample).exclude(lease=None)
        return any(map(has_living_worker, same.exclude(pk=row.pk).select_related("lease")))


NAMINGS = _Namings()


def naming_work(naming_id: int) -> None:
    """Ask for one name and store it; do nothing unless it is open."""
    with NAMINGS.work(naming_id) as (row, lease):
        if row is not None:
            _answer(row, lease)


def namings_sweep() -> None:
    """Enqueue the names that wait."""
    NAMINGS.sweep()


def _mark_lost() -> None:
    """Close the requests of dead workers, also if the naming was cancelled."""
    # Read first: a worker that sent one of them had a lease by then.
    sent = Attempt.objects.filter(call__role=ROLE, ended_at=None).values_list("pk", "call__key")
    if unfinished := list(sent):
        leased = IssueNaming.objects.exclude(lease=None).select_related("lease")
        alive = {question_key(stored_request(row.request or {})) for row in leased if has_living_worker(row)}
        attempts_mark_lost(ids=[pk for pk, key in unfinished if key not in alive])


def _answer(row: IssueNaming, lease: WorkerLease) -> None:
    try:
        reply = question_ask(stored_request(row.request or {}), lease_id=lease.pk, seconds=PATIENCE)
    except EndpointDown as down:
        if not down.lasting:
            # An outage is not the question's fault: the sweep enqueues it again.
            owned = IssueNaming.objects.filter(pk=row.pk, lease=lease)
            owned.update(error=str(down), tries=F("tries") - 1)
            return
        _settle(row, lease, error=str(down))
    except (InputProblem, EmbeddedModelError) as problem:
        _settle(row, lease, error=" ".join(str(problem).split()))
    except LeaseLost:
        log.warning("the name of issue %s was taken over", row.issue_id)
    else:
        used = reply.call
        call = ModelCall.objects.get(pk=used.call_id) if isinstance(used, CallUsed) else None
        drafted, error = _read(reply)
        _settle(row, lease, drafted=drafted, error=error, call=call)


def _read(reply: Reply) -> tuple[Drafted | None, str]:
    """Return the name, or None and why the answer cannot be read."""
    if reply.state != "answered":
        return None, NO_ANSWER.get(reply.state, reply.error)
    try:
        return read_name(reply.text), ""
    except Unreadable as unread:
        return None, str(unread)


@transaction.atomic
def _settle(
    row: IssueNaming,
    lease: WorkerLease,
    *,
    error: str,
    drafted: Drafted | None = None,
    call: ModelCall | None = None,
) -> None:
    """Store the result, unless the naming was cancelled or taken over meanwhile."""
    if NAMINGS.owned(row.pk, lease).select_for_update(of=("self",)).first() is None:
        return
    row.call = call
    # NB: compared by time: a worker may have died after it stored the answer it paid for.
    row.reused = bool(call and call.answered_at and call.answered_at < row.created_at)
    row.cost_usd = Decimal(0) if row.reused else call.cost_usd if call else None
    row.state, row.error = _State.FAILED, error
    if drafted is not None:
        row.state, row.error = _State.DONE, ""
        issue = Issue.objects.select_for_update(of=("self",)).get(pk=row.issue_id)
        issue.name, issue.summary, issue.name_by = drafted.name, drafted.summary, Issue.NameBy.MODEL
        issue.save(update_fields=["name", "summary", "name_by"])
    _close(row)


def _close(row: IssueNaming) -> None:
    row.lease, row.request, row.finished_at = None, None, timezone.now()
    row.save()
