"""Decides whether a failed request is repeated, and after how long."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from evaluation.gateway.replies import Kind, Outcome

MAX_ATTEMPTS = 4
# The model may have worked for these, so each attempt is likely to be billed.
MAX_PAID_ATTEMPTS = 2
# A rate limit costs nothing and does not depend on the call; some calls must wait long.
MAX_REFUSED_ATTEMPTS = 10
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
LONGEST_RETRY_AFTER = 120.0

Action = Literal["keep", "again", "rewrite", "give_up", "stop"]

_KEPT: frozenset[Kind] = frozenset({"answered", "refused", "cut_off", "too_long"})
_FATAL: frozenset[Kind] = frozenset({"auth", "redirect"})
# An empty answer is asked again by the engine, with more room.
_ALLOWED: dict[Kind, int] = {
    "rate_limited": MAX_REFUSED_ATTEMPTS,
    "server_error": MAX_ATTEMPTS,
    "connection": MAX_ATTEMPTS,
    "timeout": MAX_PAID_ATTEMPTS,
    "not_json": MAX_PAID_ATTEMPTS,
}
# Up to this many consecutive calls may fail because of their content.
BLAMED_CALLS = 2
# Outcomes of every call during an outage.
OUTAGE: frozenset[Kind] = frozenset({"server_error", "connection", "timeout", "not_json"})


@dataclass(frozen=True, slots=True)
class Streak:
    """Failures since the endpoint last answered: how many `calls` failed, and how often this one (`own`)."""

    calls: int = 0
    own: int = 0


FIRST = Streak(1, 1)


@dataclass(frozen=True, slots=True)
class Decision:
    """The reaction to an outcome.

    `keep`: it is a result. `again`: retry after `wait` seconds, once the throttle admits it; an attempt lost
    to an outage does not `count` against the call. `rewrite`: at once, without what was refused. `give_up`:
    this call failed, others may not. `stop`: every other call to this endpoint would fail in the same way.
    """

    action: Action
    wait: float = 0.0
    counts: bool = True


def decide(*, outcome: Outcome, attempt: int, seed: str, streak: Streak = FIRST) -> Decision:
    """Return what to do after attempt number `attempt` of one call (from 1, only those that count).

    `seed`, such as the call's key, fixes the jitter: decisions are repeatable and calls spread out. With more
    than two failing calls in the `streak` the endpoint is at fault; one or two may fail because of their
    content. The throttle limits the length of an outage: its `enter` raises EndpointDown.
    """
    if outcome.kind in _KEPT:
        return Decision("keep")
    if is_lasting(outcome):
        return Decision("stop")
    wait = wait_before_next(attempt=attempt, seed=seed, retry_after=outcome.retry_after)
    if outcome.kind in OUTAGE and streak.calls > BLAMED_CALLS:
        return Decision("again", wait, counts=False)
    if attempt < attempts_allowed(outcome.kind):
        return Decision("again", wait)
    # No call was answered meanwhile, and an unreachable endpoint cannot have failed on this call.
    unreachable = outcome.kind == "connection" and streak.own >= attempt
    return Decision("again", wait, counts=False) if unreachable else Decision("give_up")


def is_lasting(outcome: Outcome) -> bool:
    """Return whether only a user can fix it: a refused key, no credit, a redirect, an unknown model."""
    return outcome.kind in _FATAL or (outcome.kind == "bad_request" and outcome.status == 404)


def attempts_allowed(kind: Kind) -> int:
    """Return the allowed attempts of a call that ends like this at a working endpoint."""
    return _ALLOWED.get(kind, 1)


def wait_before_next(*, attempt: int, seed: str, retry_after: float | None = None) -> float:
    """Return the seconds to wait after attempt `attempt`: doubling, with jitter between half and all of it.

    Retry-After is obeyed up to LONGEST_RETRY_AFTER, plus up to a second so that callers do not return at
    once.

    Examples
    --------
    >>> 0.5 <= wait_before_next(attempt=2, seed="a") <= 1.0
    True
    """
    share = _share(f"{seed}:{attempt}")
    if retry_after is not None:
        return min(retry_after, LONGEST_RETRY_AFTER) + share
    longest: float = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 16), LONGEST_WAIT)
    return longest * (0.5 + share / 2)


def _share(text: str) -> float:
    """Return a number in [0, 1) that depends on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
