"""100,000 labels saved over HTTP: memory, connections and open files of each process must not grow.

Raters sign in and save without a pause; two web processes, workers and scheduler work as `serve` starts them.
After a warm-up of a fifth, the median of the last third is compared with that of the middle third.
`LACE_SOAK_SAVES=5000` makes it shorter.
"""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

import psutil
import psycopg

from bench import Figure
from bench._crowd import Crowd
from bench._office import CRITERIA, Office, office

SAVES = int(os.environ.get("LACE_SOAK_SAVES", "100000"))
RATERS = 16
COUNTS = {"rater": RATERS, "author": 0, "lead": 1, "program": 1}
THINK, ARRIVE = 0.02, 2.0
LONGEST = 8 * 3600.0
EVERY = 5.0  # seconds from look to look
WARM = 0.2  # of the time
FEWEST = 12  # looks at a process after the warm-up
# Growth from the middle third to the last one. A process that lost 100 bytes a save would grow by 3 MB.
MEMORY_MB, FILES, CONNECTIONS = 3.0, 2.0, 2.0


@dataclass(frozen=True, slots=True)
class Look:
    """What a process holds at one moment: memory of its own (MB), open files, sockets among them."""

    memory: float
    files: float
    sockets: float


def figures() -> Iterator[Figure]:
    """Growth of the process that grew most, of connections to PostgreSQL; labels lost; errors."""
    looks: dict[str, list[Look]] = defaultdict(list)
    connections: list[float] = []
    with office(counts=COUNTS, chats=SAVES // (2 * CRITERIA) + 10 * RATERS, demo=None) as place:
        crowd = place.crowd(
            counts=COUNTS | {"lead": 0, "program": 0},
            think=THINK,
            rate=ARRIVE,
            seconds=LONGEST,
            saves=SAVES,
        )
        begun = time.monotonic()
        watch(place, crowd, looks, connections)
        found, spent = crowd.end(), time.monotonic() - begun
        lost, doubled = place.lost(found)
    kept = {name: rows for name, rows in looks.items() if len(rows) * (1 - WARM) >= FEWEST}
    tell(kept, connections)
    title = f"{len(found.saved):,} labels saved"
    yield Figure(f"{title}, a second", len(found.saved) / spent, 0, "saves/s", floor=True)
    yield Figure(f"{title}: fewer than asked for", max(0, SAVES - len(found.saved)), 0, "")
    yield Figure(f"{title}: lost", lost, 0, "")
    yield Figure(f"{title}: doubled", doubled, 0, "")
    yield Figure(f"{title}: errors", len(found.errors), 0, "")
    for what, limit, unit in (("memory", MEMORY_MB, "MB"), ("files", FILES, ""), ("sockets", FILES, "")):
        most = max(growth([getattr(look, what) for look in rows]) for rows in kept.values())
        yield Figure(f"{title}, growth of one process: {what}", most, limit, unit)
    yield Figure(f"{title}, growth: connections of PostgreSQL", growth(connections), CONNECTIONS, "")


def growth(values: Sequence[float]) -> float:
    """
    Return how far the median of the last third is above that of the middle third, after the warm-up.

    Examples
    --------
    >>> growth([9, 9, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3])
    2.0
    >>> growth([5.0] * 20)
    0.0
    """
    warm = list(values[round(len(values) * WARM) :])
    third = max(1, len(warm) // 3)
    return max(0.0, float(median(warm[-third:]) - median(warm[-2 * third : -third])))


def watch(place: Office, crowd: Crowd, looks: dict[str, list[Look]], connections: list[float]) -> None:
    """Look at all processes of the site until the crowd has gone."""
    while not crowd.over:
        for process in place.site.processes():
            with suppress(psutil.Error):
                files = process.num_fds()
                sockets = sum(1 for _ in process.net_connections("all"))
                memory = process.memory_full_info().uss / 1e6
                looks[f"{name_of(process)} {process.pid}"].append(Look(memory, files, sockets))
        with suppress(psycopg.Error), psycopg.connect(place.url) as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            connections.append(float((row.fetchone() or (0,))[0]))
        time.sleep(EVERY)


def name_of(process: psutil.Process) -> str:
    """What a process of `serve` does, in a word."""
    words = process.cmdline()
    for flag in ("-Q", "-A"):
        if flag in words:
            return "scheduler" if "beat" in words else words[words.index("-Q") + 1]
    return "web" if any("gunicorn" in word for word in words) else "serve"


def tell(looks: Mapping[str, Sequence[Look]], connections: Sequence[float]) -> None:
    """Print a table of what each process held after the warm-up, in the middle and in the end."""
    print("| process | memory, MB | files | sockets |", file=sys.stderr)
    print("| --- | --- | --- | --- |", file=sys.stderr)
    for name, rows in sorted(looks.items()):
        cells = [thirds([getattr(row, what) for row in rows]) for what in ("memory", "files", "sockets")]
        print(f"| {name} | {' | '.join(cells)} |", file=sys.stderr)
    print(f"| PostgreSQL, connections | | | {thirds(connections)} |", file=sys.stderr, flush=True)


def thirds(values: Sequence[float]) -> str:
    """The medians of the three thirds after the warm-up."""
    warm = list(values[round(len(values) * WARM) :])
    third = max(1, len(warm) // 3)
    parts = (warm[-3 * third : -2 * third], warm[-2 * third : -third], warm[-third:])
    return " → ".join(f"{median(part):.4g}" for part in parts if part)
