"""Two web processes and four judge workers under load, one of them killed each minute: nothing may be lost.

Raters save labels and programs start runs meanwhile; what a cut connection left unanswered is sent again, as
the rating screen does. `LACE_KILLS=6` and `LACE_KILL_EVERY=20` (seconds) make it shorter.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import psutil

from bench import Figure
from bench._crowd import Crowd
from bench._office import Office, office, runs_end

KILLS = int(os.environ.get("LACE_KILLS", "30"))
EVERY = float(os.environ.get("LACE_KILL_EVERY", "60"))
COUNTS = {"rater": 24, "author": 0, "lead": 1, "program": 8}
THINK, ARRIVE, CHATS, JUDGES = 1.0, 2.0, 20_000, 4
VICTIMS = ("fd://", *(f"judge{number}@" for number in range(1, JUDGES + 1)), "fd://")
ENDS_WITHIN = 300.0  # a lease of a dead worker runs out first


def figures() -> Iterator[Figure]:
    """Labels and verdicts lost and doubled, runs that do not end, and how long the last ones take."""
    with office(counts=COUNTS, chats=CHATS, demo=None, judges=JUDGES) as place:
        crowd = place.crowd(counts=COUNTS | {"lead": 0}, think=THINK, rate=ARRIVE, repeat=(0, 502, 503))
        time.sleep(sum(COUNTS.values()) / ARRIVE)
        killed = kill(place, crowd)
        found = crowd.end(stop=True, timeout=120)
        begun = time.monotonic()
        runs = runs_end(place.site, within=2 * ENDS_WITHIN)
        spent = time.monotonic() - begun
        harm = place.harm(runs, found, title=f"{len(killed)} × kill -9, ")
    print(f"killed: {', '.join(killed)}; {found.again} requests sent again", file=sys.stderr)
    found.tell_errors()
    yield from harm
    yield Figure("until the last run ended", spent, ENDS_WITHIN, "s")


def kill(place: Office, crowd: Crowd) -> list[str]:
    """Kill one process after the other, with what it started; what was killed."""
    draw, killed = Random(7), []
    for number in range(KILLS):
        time.sleep(EVERY * (0.5 + draw.random()))
        crowd.must_work()
        word = VICTIMS[number % len(VICTIMS)]
        with suppress(psutil.NoSuchProcess, RuntimeError):
            child = place.site.child(word)
            for process in [*child.children(recursive=True), child]:
                process.kill()
            killed.append("web" if word == "fd://" else word.rstrip("@"))
    return killed
