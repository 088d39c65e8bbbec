"""Judge runs against an endpoint of fixed latency, side by side with a bare AsyncOpenAI loop.

`LACE_BENCH_FULL=1` measures every engine at every load, and 20,000 units.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.management import call_command

from bench import Figure
from bench._child import in_child
from bench._endpoint import MODEL, Server, endpoint
from tests.with_postgres import postgres

FULL = bool(os.environ.get("LACE_BENCH_FULL"))
CALLS = {"direct": 1, "reflection": 2, "debate": 3}  # of one unit
BEHIND = 0.9  # of what the bare loop reaches
CPU_MS, PEAK_MB, FLAT = 2.0, 150.0, 1.1
CPU_BESIDE = 1.25  # times the bare loop's CPU; holds on a slow machine as well
FEW, MANY = 1000, 20_000 if FULL else 4000


@dataclass(frozen=True, slots=True)
class Load:
    """So many calls at least, so many at once, each answered after `latency` seconds.

    `floor` is the least share of the ideal time: calls × latency ÷ slots, over first request to last answer.
    """

    calls: int
    slots: int
    latency: float
    floor: float

    def units(self, engine: str) -> int:
        """Units that make up the calls, in whole chats of five criteria."""
        return -(-self.calls // CALLS[engine] // 5) * 5

    def __str__(self) -> str:
        return f"{self.slots} at once, {self.latency:g} s"


LOADS = [
    Load(2048, 32, 1.0, 0.95),
    Load(2048, 128, 1.0, 0.93),
    Load(2048 if FULL else 1024, 32, 0.2, 0.92),
    Load(2048, 128, 0.2, 0.84),
]


@dataclass(frozen=True, slots=True)
class Measured:
    """Share of the ideal time, CPU of the whole process for a call, peak memory."""

    efficiency: float
    cpu_ms: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Place:
    """An endpoint, and a database with its name."""

    server: Server
    name: str
    database_url: str

    def measure(self, load: Load, engine: str = "direct", *, bare: bool = False) -> Measured:
        """Plan the run in one process and work it off in another; `bare` sends its prompts by a bare loop."""
        chosen = {
            "DATABASE_URL": self.database_url,
            "OPENAI_BASE_URL": self.server.base_url,
            "OPENAI_API_KEY": "bench",
            "LACE_REASONING_MODEL": MODEL,
            "LACE_MAX_IN_FLIGHT": str(load.slots),
        }
        units = load.units(engine)
        run = in_child("_runs", "plan_run", {"units": units, "engine": engine}, chosen)
        self.server.set(reset=True, latency=load.latency)
        how = ("bare_loop", {"run": run, "slots": load.slots}) if bare else ("judge_run", {"run": run})
        spent = in_child("_runs", *how, chosen)
        counts, calls = self.server.counts(), units * CALLS[engine]
        if not counts["requests"] == counts["answered"] == calls:
            raise RuntimeError(f"{engine}, {load}: {counts} of {calls} calls")
        ideal = calls * load.latency / load.slots
        return Measured(ideal / counts["span"], spent["cpu"] / calls * 1000, spent["peak_mb"])


def figures() -> Iterator[Figure]:
    """Every load with both databases, a bare loop beside it; then few units and many."""
    with endpoint() as server, databases() as urls:
        places = [Place(server, name, url) for name, url in urls.items()]
        for load in LOADS if FULL else LOADS[1:]:
            for engine in CALLS if FULL or load is LOADS[-1] else ("direct",):
                bare = places[0].measure(load, bare=True)
                note(f"{load}: bare loop {bare.efficiency:.3f} of the ideal, {bare.cpu_ms:.2f} ms CPU a call")
                for place in places:
                    yield from beside(
                        place.measure(load, engine), bare, f"{engine}, {place.name}, {load}", load
                    )
        yield from growth(places[0])
    note(f"load average {' '.join(f'{value:.1f}' for value in os.getloadavg())}, {os.cpu_count()} cores")


def beside(ours: Measured, bare: Measured, name: str, load: Load) -> Iterator[Figure]:
    """A run's share of the ideal and its CPU for a call, both also beside the bare loop's."""
    yield Figure(name, ours.efficiency, load.floor, "of ideal", floor=True)
    yield Figure(f"{name}, beside bare", ours.efficiency / bare.efficiency, BEHIND, "of bare", floor=True)
    yield Figure(f"{name}, CPU a call", ours.cpu_ms, CPU_MS, "ms")
    yield Figure(f"{name}, CPU a call beside bare", ours.cpu_ms / bare.cpu_ms, CPU_BESIDE, "of bare")


def growth(place: Place) -> Iterator[Figure]:
    """CPU of a call and peak memory, of few units and of many."""
    few, many = (place.measure(Load(count, 128, 0.2, 0.0)) for count in (FEW, MANY))
    for count, measured in ((FEW, few), (MANY, many)):
        yield Figure(f"{count:,} units, {place.name}, CPU a call", measured.cpu_ms, CPU_MS, "ms")
        yield Figure(f"{count:,} units, {place.name}, peak memory", measured.peak_mb, PEAK_MB, "MB")
    yield Figure(f"CPU a call, {MANY:,} units against {FEW:,}", many.cpu_ms / few.cpu_ms, FLAT, "times")
    yield Figure(f"peak memory, {MANY:,} units against {FEW:,}", many.peak_mb / few.peak_mb, FLAT, "times")


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    """The benchmark's own SQLite database and a PostgreSQL, both migrated, by name."""
    with postgres() as url:
        in_child("throughput", "migrate", {}, {"DATABASE_URL": url})
        yield {"SQLite": os.environ["DATABASE_URL"], "PostgreSQL": url}


def migrate() -> None:
    """Make the tables."""
    call_command("migrate", verbosity=0)


def note(text: str) -> None:
    """Beside the figures."""
    print(text, file=sys.stderr, flush=True)
