"""The one database thread beside an event loop: what is queued is committed in one transaction."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from django.db import connection, transaction

T = TypeVar("T")


class DatabaseThread:
    """Runs database work off the loop, in the order it was queued, with a connection of its own.

    Whatever is waiting is done in one transaction; a job that fails is alone: the batch is rolled back and
    each of its jobs runs again in its own transaction, so jobs must be plain database work.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="database", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jobs.put(None)
        self._thread.join()

    async def do(self, job: Callable[[], T]) -> T:
        """Queue a job; return its result once its transaction is committed."""
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return await asyncio.wrap_future(future)

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

    def _run(self, batch: list[tuple[Callable[[], Any], Future[Any]]]) -> None:
        try:
            with transaction.atomic():
                results = [job() for job, _ in batch]
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            if len(batch) > 1:
                for single in batch:
                    self._run([single])
                return
            _settle(batch[0][1], error=error)
        else:
            for (_, future), result in zip(batch, results, strict=True):
                _settle(future, result=result)


def _settle(future: Future[Any], *, result: Any = None, error: BaseException | None = None) -> None:
    """Deliver to a waiter that may have gone away (Ctrl-C)."""
    if not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
