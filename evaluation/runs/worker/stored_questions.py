"""Rows that ask a model one stored question each. A worker that takes over sends the same request."""

import logging
from abc import abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Generic, TypeVar

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from common.problems import InputProblem
from evaluation.core.types import PromptMessage, Reply, Request
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.ledger import CallUsed, attempts_mark_lost
from evaluation.gateway.throttle import EndpointDown
from evaluation.models.questions import StoredQuestion
from evaluation.models.runs import Attempt, ModelCall, WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows, has_living_worker
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost
from evaluation.runs.worker.single_calls import question_ask, question_key

log = logging.getLogger(__name__)

# Seconds to wait for an endpoint that does not answer, before the worker turns to other tasks.
PATIENCE = 45.0
POISON = f"the worker process died {MOST_TRIES} times while it asked for this"
NO_ANSWER = {
    "refused": "the model refused to answer",
    "cut_off": "the answer was cut off at its token limit",
    "too_long": "the request is longer than the model's context: choose fewer chats",
}
_State = StoredQuestion.State

Row = TypeVar("Row", bound=StoredQuestion)
Answer = TypeVar("Answer")


class StoredQuestions(LeasedRows[Row], Generic[Row, Answer]):
    """The questions of one table. A subclass says how an answer is read, and where it is stored."""

    open_state = _State.OPEN
    working_state = _State.ASKING
    role: ClassVar[str]  # of the model calls
    unreadable: ClassVar[type[Exception]]  # what `read` raises; its message says why

    @abstractmethod
    def read(self, row: Row, text: str) -> Answer:
        """Return what the answer says. Raises `unreadable`."""

    @abstractmethod
    def store(self, row: Row, answer: Answer) -> None:
        """Set the row's columns and write to other tables; the row is locked and saved afterwards."""

    def answer(self, pk: int) -> None:
        """Ask one question and store the answer; do nothing unless it is open."""
        with self.work(pk) as (row, lease):
            if row is not None:
                self._ask(row, lease)

    def fail(self, row: Row) -> None:
        """Store that the row used up its tries. It is locked."""
        row.state, row.error = _State.FAILED, POISON
        _close(row)

    def log_death(self, row: Row) -> None:
        """Log that the row was reopened because its worker died."""
        log.warning("%s is asked again: its worker died", row)

    def waiting(self) -> list[int]:
        """Reopen the rows of dead workers; return the open ones whose task was not enqueued lately."""
        ids = super().waiting()
        self._mark_lost()
        return ids

    def must_wait(self, row: Row) -> bool:
        """Whether the worker of a cancelled row still asks the same question: its answer will do."""
        same = self.model.objects.filter(question=row.question, sample=row.sample).exclude(lease=None)
        return any(map(has_living_worker, same.exclude(pk=row.pk).select_related("lease")))

    def _mark_lost(self) -> None:
        """Close the requests of dead workers, also if their row was cancelled."""
        # Read first: a worker that sent one of them had a lease by then.
        sent = Attempt.objects.filter(call__role=self.role, ended_at=None).values_list("pk", "call__key")
        if unfinished := list(sent):
            leased = self.model.objects.exclude(lease=None).select_related("lease")
            alive = {question_key(_request(row)) for row in leased if has_living_worker(row)}
            attempts_mark_lost(ids=[pk for pk, key in unfinished if key not in alive])

    def _ask(self, row: Row, lease: WorkerLease) -> None:
        try:
            reply = question_ask(_request(row), lease_id=lease.pk, seconds=PATIENCE)
        except EndpointDown as down:
            if not down.lasting:
                # An outage is not the question's fault: the sweep enqueues it again.
                self.owned(row.pk, lease).update(error=str(down), tries=F("tries") - 1)
                return
            self._settle(row, lease, error=str(down))
        except (InputProblem, EmbeddedModelError) as problem:
            self._settle(row, lease, error=" ".join(str(problem).split()))
        except LeaseLost:
            log.warning("%s was taken over", row)
        else:
            self._answered(row, lease, reply)

    def _answered(self, row: Row, lease: WorkerLease, reply: Reply) -> None:
        used = reply.call
        call = ModelCall.objects.get(pk=used.call_id) if isinstance(used, CallUsed) else None
        if reply.state != "answered":
            error = NO_ANSWER.get(reply.state, reply.error)
            self._settle(row, lease, error=error, call=call)
            return
        try:
            answer = self.read(row, reply.text)
        except self.unreadable as unread:
            self._settle(row, lease, error=str(unread), call=call)
        else:
            self._settle(row, lease, answer=answer, call=call)

    @transaction.atomic
    def _settle(
        self,
        row: Row,
        lease: WorkerLease,
        *,
        answer: Answer | None = None,
        error: str = "",
        call: ModelCall | None = None,
    ) -> None:
        """Store the result, unless the row was cancelled or taken over meanwhile."""
        if self.owned(row.pk, lease).select_for_update(of=("self",)).first() is None:
            return
        row.call = call
        # NB: compared by time: a worker may have died after it stored the answer it paid for.
        row.reused = bool(call and call.answered_at and call.answered_at < row.created_at)
        row.cost_usd = Decimal(0) if row.reused else call.cost_usd if call else None
        row.state, row.error = _State.FAILED, error
        if answer is not None:
            row.state = _State.DONE
            self.store(row, answer)
        _close(row)


def _request(row: StoredQuestion) -> Request:
    """Rebuild the request that was stored with the row."""
    stored: Mapping[str, Any] = row.request or {}
    messages = tuple(PromptMessage(one["role"], tuple(one["parts"])) for one in stored["messages"])
    return Request(**{**stored, "messages": messages})


def _close(row: StoredQuestion) -> None:
    row.lease, row.request, row.finished_at = None, None, timezone.now()
    row.save()
