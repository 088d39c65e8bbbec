"""The database thread beside an event loop: queued jobs are committed in one transaction."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from django.db import connection, transaction

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Job:
    """An item for a bulk function, and the future of its result."""

    kind: Callable[[Sequence[Any]], Sequence[Any]]
    item: Any
    future: asyncio.Future[Any]


class DatabaseThread:
    """Runs database work off the loop, on its own connection; jobs of one kind run together.

    All queued jobs run in one transaction, without waiting for more: one call of each bulk function, in the
    order in which the kinds arrived. After an error it is rolled back and repeated by kind, then by item,
    each in its own transaction, so that one bad item affects no other. Jobs must therefore be plain database
    work.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="database", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jobs.put(None)
        self._thread.join()

    def add(self, kind: Callable[[Sequence[A]], Sequence[R]], item: A) -> asyncio.Future[R]:
        """Queue an item for a bulk function, which returns one result per item, in order.

        The future is done once the transaction is committed; the caller may ignore it.
        """
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(kind, item, future))
        return future

    async def do(self, job: Callable[[], R]) -> R:
        """Queue a single job; return its result once its transaction is committed."""
        return await self.add(_each, job)

    def _work(self) -> None:
        try:
            while (first := self._jobs.get()) is not None:
                batch, stop = [first], False
                while not self._jobs.empty() and not stop:
                    if (job := self._jobs.get()) is None:
                        stop = True
                    else:
                        batch.append(job)
                self._run(batch)
                if stop:
                    return
        finally:
            connection.close()

    def _run(self, batch: list[_Job]) -> None:
        kinds: dict[Any, list[_Job]] = {}
        for job in batch:
            kinds.setdefault(job.kind, []).append(job)
        try:
            with transaction.atomic():
                done = [
                    pair
                    for kind, jobs in kinds.items()
                    for pair in zip(jobs, kind([job.item for job in jobs]), strict=True)
                ]
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self._part(batch, list(kinds.values()), error)
        else:
            _deliver(done, lambda job, result: job.future.set_result(result))

    def _part(self, batch: list[_Job], kinds: list[list[_Job]], error: Exception) -> None:
        """Find the failing item; the rest of the batch runs without it."""
        if len(batch) == 1:
            _deliver([(batch[0], error)], lambda job, result: job.future.set_exception(result))
            return
        for jobs in kinds if len(kinds) > 1 else [[job] for job in batch]:
            self._run(jobs)


def _each(jobs: Sequence[Callable[[], R]]) -> list[R]:
    return [job() for job in jobs]


def _deliver(done: list[tuple[_Job, Any]], settle: Callable[[_Job, Any], None]) -> None:
    """Wake all waiting tasks at once; some may have ended (Ctrl-C), and the loop with them."""

    def on_loop() -> None:
        for job, result in done:
            if not job.future.done():
                settle(job, result)

    with contextlib.suppress(RuntimeError):
        done[0][0].future.get_loop().call_soon_threadsafe(on_loop)
