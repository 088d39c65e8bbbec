"""Rows that wait for a worker: taken under a lease, reopened if the worker dies, failed after three tries."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar

from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from common.queue import enqueue_row
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leases import MOST_TRIES, is_dead, lease_begin, lease_end

# A task that no worker picked up for this long may be lost: it is enqueued again.
ENQUEUE_AGAIN = timedelta(seconds=30)

Row = TypeVar("Row", bound=models.Model)


class LeasedRows(ABC, Generic[Row]):
    """
    The waiting rows of one table and the workers that take them.

    The table has the columns `state`, `lease` (null unless a worker has the row), `tries` and `rung_at` (when
    its task was last enqueued). A subclass names model, task and states, and says what a failure writes.
    """

    model: ClassVar[Any]
    task: ClassVar[str]  # the name of the task that works on one row
    open_state: ClassVar[str]
    working_state: ClassVar[str]
    related: ClassVar[Collection[str]] = ()  # fetched with a row that is taken
    start: ClassVar[Mapping[str, Any]] = {}  # columns that a new try sets
    reopen: ClassVar[Mapping[str, Any]] = {}  # columns that the death of a worker sets

    @abstractmethod
    def fail(self, row: Row) -> None:
        """Store that the row used up its tries. It is locked."""

    @abstractmethod
    def log_death(self, row: Row) -> None:
        """Log that the row was reopened because its worker died."""

    def must_wait(self, row: Row) -> bool:
        """Whether the row must not be taken yet, although it is open. It is locked."""
        return False

    # ---------- one row ----------

    @contextmanager
    def work(self, pk: int) -> Iterator[tuple[Row | None, WorkerLease]]:
        """Take the row under a new lease; None if it is not open. Reopen it on exit unless it was settled."""
        lease = lease_begin(None)
        try:
            yield self._take(pk, lease), lease
        finally:
            self.owned(pk, lease).update(state=self.open_state, lease=None)
            lease_end(lease.pk)

    def owned(self, pk: int, lease: WorkerLease) -> QuerySet[Row]:
        """The row while this lease still owns it, else nothing."""
        owned: QuerySet[Row] = self.model.objects.filter(pk=pk, lease=lease, state=self.working_state)
        return owned

    @transaction.atomic
    def _take(self, pk: int, lease: WorkerLease) -> Row | None:
        locked = self.model.objects.select_for_update(of=("self",)).filter(pk=pk, state=self.open_state)
        row = locked.select_related(*self.related).first()
        if row is None:
            return None
        if row.tries >= MOST_TRIES:
            self.fail(row)
            return None
        if self.must_wait(row):
            # Due again at the next tick, not after ENQUEUE_AGAIN.
            _store(row, rung_at=None)
            return None
        _store(row, state=self.working_state, lease=lease, tries=row.tries + 1, **self.start)
        taken: Row = row
        return taken

    # ---------- all rows ----------

    def enqueue(self, pk: int) -> bool:
        """Enqueue the task of one row. False when the broker is down: the next sweep enqueues it."""
        return enqueue_row(self.task, self.model.objects.all(), pk)

    def sweep(self) -> None:
        """Enqueue what waits, up to the first row that the broker refuses."""
        for pk in self.waiting():
            if not self.enqueue(pk):
                break  # the others need the same broker

    def waiting(self) -> list[int]:
        """Reopen the rows of dead workers; return the open ones whose task was not enqueued lately."""
        self.reopen_abandoned()
        due = Q(rung_at=None) | Q(rung_at__lt=timezone.now() - ENQUEUE_AGAIN)
        rows = self.model.objects.filter(due, state=self.open_state).order_by("pk")
        return list(rows.values_list("pk", flat=True))

    @transaction.atomic
    def reopen_abandoned(self) -> None:
        """Reopen the rows whose worker died."""
        working = self.model.objects.filter(state=self.working_state).select_for_update(of=("self",))
        for row in working.select_related("lease"):
            if self.is_abandoned(row):
                _store(row, state=self.open_state, lease=None, **self.reopen)
                self.log_death(row)

    def is_abandoned(self, row: Any) -> bool:
        """Whether the row counts as being worked on, but its worker died."""
        return row.state == self.working_state and not has_living_worker(row)


def has_living_worker(row: Any) -> bool:
    """Whether a worker that still lives has the row, in any state. The lease of a dead one may be gone."""
    return row.lease is not None and not is_dead(row.lease)


def _store(row: Any, **columns: Any) -> None:
    for name, value in columns.items():
        setattr(row, name, value)
    row.save(update_fields=list(columns))
