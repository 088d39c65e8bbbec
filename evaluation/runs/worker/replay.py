"""Replays units through their engines with stored answers only: many at a time, few queries."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from asgiref.sync import async_to_sync, sync_to_async

from evaluation.core.hashing import text_hash
from evaluation.core.types import Request, Setup, Vector
from evaluation.gateway.embeddings import by_text, vectors_stored

T = TypeVar("T")


class Lookups(Generic[T]):
    """Fetches all keys requested at the same moment with one query. Belongs to one event loop."""

    def __init__(self, fetch: Callable[[Sequence[str]], Mapping[str, T]]) -> None:
        self._fetch = fetch
        self._waiting: dict[str, asyncio.Future[T | None]] = {}
        self._fetching: set[asyncio.Task[None]] = set()

    async def get(self, key: str) -> T | None:
        """Return the value that `fetch` finds under a key, None without one."""
        if key not in self._waiting:
            loop = asyncio.get_running_loop()
            if not self._waiting:
                # Called once all ready tasks have added their keys.
                loop.call_soon(self._start)
            self._waiting[key] = loop.create_future()
        return await self._waiting[key]

    def _start(self) -> None:
        waiting, self._waiting = self._waiting, {}
        task = asyncio.create_task(self._answer(waiting))
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

    async def _answer(self, waiting: dict[str, asyncio.Future[T | None]]) -> None:
        try:
            # In the thread that called replay_together, on its connection.
            values = await sync_to_async(self._fetch)(list(waiting))
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            for future in waiting.values():
                future.set_exception(error)
            return
        for key, future in waiting.items():
            future.set_result(values.get(key))


class StoredVectors:
    """Gives stored vectors only; implements Embedder. Belongs to one event loop, like its look-ups."""

    def __init__(self, *, endpoint: str, model: str) -> None:
        self._lookups = Lookups(lambda keys: vectors_stored(endpoint=endpoint, model=model, digests=keys))
        self._known: dict[str, Vector | None] = {}

    async def embed(self, texts: Sequence[str]) -> dict[str, Vector] | None:
        """Return the vectors of texts; None if one is not stored."""
        digests = {text: text_hash(text) for text in texts}
        unknown = [digest for digest in digests.values() if digest not in self._known]
        found = await asyncio.gather(*(self._lookups.get(digest) for digest in unknown))
        self._known.update(zip(unknown, found, strict=True))
        vectors = {digest: self._known[digest] for digest in digests.values()}
        return by_text(digests, {digest: v for digest, v in vectors.items() if v is not None})


def replay_together(replays: Iterable[Awaitable[Any]]) -> list[Any]:
    """Run replays side by side; return results in order, or the exception of a replay that failed."""

    async def together() -> list[Any]:
        return await asyncio.gather(*replays, return_exceptions=True)

    return async_to_sync(together)()


def sample_index(request: Request, *, replicate: int, setup: Setup) -> int:
    """Return the number under which an answer is stored: other replicates and samples are other questions."""
    return replicate * setup.samples + request.sample
