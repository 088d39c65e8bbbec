"""An event loop whose clock jumps to the next timer instead of waiting for it."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NoWait(selectors.DefaultSelector):
    """A selector that does not sleep but counts the seconds it was asked to sleep."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.skipped += timeout
        return ready


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumps = _NoWait()
        super().__init__(self._jumps)

    def time(self) -> float:
        return 1000.0 + self._jumps.skipped

    def stall(self, seconds: float) -> None:
        """Let time pass while nothing runs."""
        self._jumps.skipped += seconds


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time; for code that waits for timers alone, not for threads or sockets."""
    with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
        return runner.run(main)
