"""Benchmarks: what was measured, beside the limit it has to keep."""

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """
    One measured number and its limit, both in `unit`.

    `floor` says that the limit is the least allowed, else it is the most. The ratio is 1 at the limit and
    larger where there is room left.

    Examples
    --------
    >>> Figure("import", 6000.0, 3000.0, "chats/s", floor=True).ratio
    2.0
    >>> Figure("page", 0.25, 1.0, "s").ratio
    4.0
    """

    name: str
    measured: float
    limit: float
    unit: str
    floor: bool = False

    @property
    def ratio(self) -> float:
        """How often the measured number fits the limit; infinite for a measured 0 below a ceiling."""
        over, under = (self.measured, self.limit) if self.floor else (self.limit, self.measured)
        return over / under if under > 0 else float("inf")

    @property
    def line(self) -> str:
        """Name, measured, limit, ratio."""
        bound = "at least" if self.floor else "at most"
        measured = f"{self.measured:,.3g}" if self.measured < 1000 else f"{self.measured:,.0f}"
        limit = f"{bound} {self.limit:,g} {self.unit}"
        return f"{self.name:<54} {measured:>8} {self.unit:<8} {limit:<22} ratio {self.ratio:.2f}"


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds on the clock, and of this process on the CPU: the two differ where a machine is busy."""

    wall: float
    cpu: float


def timed(work: Callable[[], object]) -> Time:
    """One call's time."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Time(time.perf_counter() - wall, time.process_time() - cpu)


def time_figures(name: str, spent: Time, *, limit: float) -> list[Figure]:
    """Both times against a limit in seconds."""
    return [
        Figure(f"{name}, clock", spent.wall, limit, "s"),
        Figure(f"{name}, CPU", spent.cpu, limit, "s"),
    ]


def peak_mb() -> float:
    """This process's peak resident memory."""
    unit = 1024 if sys.platform == "linux" else 1  # KiB on Linux, bytes on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
