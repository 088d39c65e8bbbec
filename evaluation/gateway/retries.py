"""When a failed request is worth another attempt, and how long to wait for it."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from evaluation.gateway.replies import Kind, Outcome

MAX_ATTEMPTS = 4
# These came back after the model had (or may have) worked, so each attempt is likely to be billed.
MAX_PAID_ATTEMPTS = 2
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
LONGEST_RETRY_AFTER = 120.0

Action = Literal["keep", "again", "give_up", "stop"]

_KEPT: frozenset[Kind] = frozenset({"answered", "refused", "cut_off", "too_long"})
_FREE: frozenset[Kind] = frozenset({"rate_limited", "server_error", "connection"})
_PAID: frozenset[Kind] = frozenset({"timeout", "empty", "not_json"})
_FATAL: frozenset[Kind] = frozenset({"auth", "redirect"})


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with an outcome.

    keep: it is a result. again: try once more after `wait` seconds. give_up: this call has failed, others may
    not. stop: every other call to this endpoint would fail the same way.
    """

    action: Action
    wait: float = 0.0


def decide(*, outcome: Outcome, attempt: int, seed: str) -> Decision:
    """Return what to do after attempt number `attempt` (from 1) of one call.

    `seed` (the call's key, say) fixes the jitter, so that a decision can be repeated and calls spread out.
    """
    if outcome.kind in _KEPT:
        return Decision("keep")
    if outcome.kind in _FATAL or (outcome.kind == "bad_request" and outcome.status == 404):
        return Decision("stop")
    if attempt < attempts_allowed(outcome.kind):
        return Decision(
            "again", wait_before_next(attempt=attempt, seed=seed, retry_after=outcome.retry_after)
        )
    return Decision("stop" if outcome.kind == "connection" else "give_up")


def attempts_allowed(kind: Kind) -> int:
    """Return how many attempts in all a call may have when they end like this."""
    if kind in _FREE:
        return MAX_ATTEMPTS
    return MAX_PAID_ATTEMPTS if kind in _PAID else 1


def wait_before_next(*, attempt: int, seed: str, retry_after: float | None = None) -> float:
    """Return the seconds to wait after attempt `attempt`: doubling, jittered between half and all of it.

    Retry-After is obeyed up to LONGEST_RETRY_AFTER, plus up to a second so that callers don't return at once.

    >>> 0.5 <= wait_before_next(attempt=2, seed="a") <= 1.0
    True
    """
    share = _share(f"{seed}:{attempt}")
    if retry_after is not None:
        return min(retry_after, LONGEST_RETRY_AFTER) + share
    longest: float = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 16), LONGEST_WAIT)
    return longest * (0.5 + share / 2)


def _share(text: str) -> float:
    """Return a number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
