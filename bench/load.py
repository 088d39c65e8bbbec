"""200 people and programs at once, 5 s of thought between two steps, on PostgreSQL and Valkey: times, errors.

They sign in with a password and work over HTTP, most of them raters; a tenth are programs with tokens.
`LACE_LOAD_USERS=20`, `LACE_LOAD_SECONDS=60` and `LACE_LOAD_DEMO=200` (composed chats of the demo workspace)
make it smaller.
"""

import os
import sys
from collections.abc import Iterator

from bench import Figure
from bench._crowd import Result, shares
from bench._office import office

USERS = int(os.environ.get("LACE_LOAD_USERS", "200"))
SECONDS = float(os.environ.get("LACE_LOAD_SECONDS", "600"))
DEMO = int(os.environ.get("LACE_LOAD_DEMO", "0"))
THINK = 5.0
ARRIVE = 1.0  # users a second
LIMIT_MS = 500.0
STEPS_A_CHAT = 11


def figures() -> Iterator[Figure]:
    """p95 and errors of each kind of user, with everything on this machine, locust included."""
    counts = shares(USERS)
    users = sum(counts.values())
    arrived = users / ARRIVE + 10
    chats = int(counts["rater"] * (arrived + SECONDS) / THINK / STEPS_A_CHAT) + 100
    with office(counts=counts, chats=chats, demo=DEMO) as place:
        crowd = place.crowd(counts=counts, think=THINK, rate=ARRIVE, seconds=arrived + SECONDS)
        found = crowd.end()
        lost, doubled = place.lost(found)
    tell(found, since=arrived)
    times = found.scenarios(since=arrived)
    for name, one in times.items():
        title = f"{users} users, {name}"
        yield Figure(f"{title}, p95 of {one.requests:,} requests", one.p95, LIMIT_MS, "ms")
        errors = sum(error["scenario"] == name for error in found.errors)
        yield Figure(f"{title}, errors", errors, 0, "")
    yield Figure(f"{len(found.saved):,} saved labels: lost", lost, 0, "")
    yield Figure(f"{len(found.saved):,} saved labels: doubled", doubled, 0, "")


def tell(found: Result, *, since: float) -> None:
    """Print a table of all kinds of requests, what went wrong, and how busy the machine was."""
    print("| who | request | number | p50, ms | p95, ms | worst, ms |", file=sys.stderr)
    print("| --- | --- | --- | --- | --- | --- |", file=sys.stderr)
    for (who, name), one in found.requests(since=since).items():
        times = f"{one.p50:.0f} | {one.p95:.0f} | {one.worst:.0f}"
        print(f"| {who} | {name} | {one.requests:,} | {times} |", file=sys.stderr)
    found.tell_errors(20)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"load average {load}, {os.cpu_count()} cores", file=sys.stderr, flush=True)
