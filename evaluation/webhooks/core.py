"""Webhook requests after the Standard Webhooks convention: body, signature, pauses between attempts."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

PREFIX = "whsec_"
SECRET_BYTES = 32
# The pause before the second attempt; each later one is three times as long, up to LONGEST_PAUSE.
FIRST_PAUSE, LONGEST_PAUSE, FACTOR = timedelta(seconds=5), timedelta(days=1), 3
MOST_ATTEMPTS = 12  # over four to seven days
# So many requests in a row without an answer: one at a time is tried, after a pause.
OPEN_AFTER = 5
LONGEST_HOLD, LONGEST_RETRY_AFTER = timedelta(seconds=60), timedelta(hours=1)
DEAD_AFTER = timedelta(days=3)
GONE = 410
# Answers that say "later", of a receiver that may be well again soon.
LATER = (408, 425, 429)
MOST_HISTORY = 20
LONGEST_RESPONSE, LONGEST_ERROR = 500, 300


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one request; `status` is None where no answer came, and `error` says why."""

    status: int | None
    ms: int
    response: str = ""
    error: str = ""
    retry_after: float | None = None

    @property
    def accepted(self) -> bool:
        """Return whether the receiver accepted the event."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def unwell(self) -> bool:
        """Return whether the receiver is away or overloaded: the fault is not the event's."""
        return self.status is None or self.status >= 500 or self.status in LATER


def secret_new() -> str:
    """Return a new signing secret, as receivers' libraries read it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def event_body(*, event_id: str, kind: str, at: datetime, payload: Mapping[str, Any]) -> bytes:
    """Return the body of an event; the same event has the same bytes in every request."""
    told = event_told(event_id=event_id, kind=kind, at=at, payload=payload)
    return json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def event_told(*, event_id: str, kind: str, at: datetime, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event as its body tells it."""
    return {"id": event_id, "type": kind, "timestamp": at.isoformat(), "data": payload}


def signature(secret: str, *, event_id: str, timestamp: int, body: bytes) -> str:
    """Return one signature: HMAC-SHA256 over id, timestamp and body, in Base64.

    Examples
    --------
    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> signature(secret, event_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330,
    ...           body=b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    signed = b".".join((event_id.encode(), str(timestamp).encode(), body))
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


def signed_headers(keys: Sequence[str], *, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a request; while a secret is replaced, both the new and the old one sign."""
    signatures = [signature(key, event_id=event_id, timestamp=timestamp, body=body) for key in keys]
    return {
        "Content-Type": "application/json",
        "User-Agent": "LACE-workbench",
        "Accept-Encoding": "identity",
        "Webhook-Id": event_id,
        "Webhook-Timestamp": str(timestamp),
        "Webhook-Signature": " ".join(signatures),
    }


def pause_after(attempts: int, *, chance: float) -> timedelta | None:
    """Return how long to wait after a number of attempts, from half the pause to all of it; None: give up.

    `chance` is from 0 to 1: deliveries that failed together do not come back together.

    Examples
    --------
    >>> pause_after(1, chance=1.0), pause_after(2, chance=0.0)
    (datetime.timedelta(seconds=5), datetime.timedelta(seconds=7, microseconds=500000))
    >>> pause_after(11, chance=1.0), pause_after(12, chance=1.0)
    (datetime.timedelta(days=1), None)
    """
    if attempts >= MOST_ATTEMPTS:
        return None
    return _jittered(min(FIRST_PAUSE * FACTOR ** (attempts - 1), LONGEST_PAUSE), chance)


def hold_after(failures: int, *, retry_after: float | None, chance: float) -> timedelta | None:
    """Return how long to spare a receiver that left a number of requests in a row unanswered.

    The receiver may name the time itself (Retry-After). None: go on.

    Examples
    --------
    >>> hold_after(4, retry_after=None, chance=1.0), hold_after(5, retry_after=None, chance=1.0)
    (None, datetime.timedelta(seconds=5))
    >>> hold_after(50, retry_after=None, chance=1.0), hold_after(1, retry_after=7.0, chance=1.0)
    (datetime.timedelta(seconds=60), datetime.timedelta(seconds=7))
    """
    if retry_after is not None:
        return min(timedelta(seconds=retry_after), LONGEST_RETRY_AFTER)
    if failures < OPEN_AFTER:
        return None
    return _jittered(min(FIRST_PAUSE * 2 ** min(failures - OPEN_AFTER, 10), LONGEST_HOLD), chance)


def retry_after_read(header: str) -> float | None:
    """Return the seconds of a Retry-After header; None without a number.

    Examples
    --------
    >>> retry_after_read("30"), retry_after_read("Wed, 21 Oct 2026 07:28:00 GMT"), retry_after_read("")
    (30.0, None, None)
    """
    text = header.strip()
    return float(text[:9]) if text.isascii() and text.isdecimal() else None


def history_with(history: Sequence[Mapping[str, Any]], result: Result, *, at: datetime) -> list[Any]:
    """Return the attempts with the latest one; the oldest go once there are MOST_HISTORY."""
    latest = {"at": at.isoformat(), "status": result.status, "ms": result.ms, "error": result.error}
    return [*history, latest][-MOST_HISTORY:]


def _jittered(pause: timedelta, chance: float) -> timedelta:
    return pause * (0.5 + chance / 2)
