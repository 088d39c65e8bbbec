"""Reads a reply's rate-limit headers: how long to wait, and how much the endpoint still allows."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Larger values than any endpoint's are ignored.
LONGEST_RESET = 86_400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern}){{1,5}}")
_COUNT = re.compile(r"\d{1,15}")
_PREFIX = "x-ratelimit-re"


@dataclass(frozen=True, slots=True)
class Allowance:
    """The endpoint's remaining requests and tokens, and the seconds until its limits reset.

    A field is None if the endpoint does not say, or says nonsense.
    """

    requests_left: int | None = None
    tokens_left: int | None = None
    requests_reset: float | None = None
    tokens_reset: float | None = None

    def pause(self, *, tokens: int) -> float:
        """Return the seconds until a request of `tokens` tokens can succeed; 0 if it can now.

        Examples
        --------
        >>> Allowance(tokens_left=10, tokens_reset=4.0).pause(tokens=100)
        4.0
        """
        requests = self.requests_reset if self.requests_left == 0 else None
        short = self.tokens_left is not None and self.tokens_left < max(tokens, 1)
        return max(requests or 0.0, (self.tokens_reset if short else None) or 0.0)


def read_allowance(headers: Mapping[str, str]) -> Allowance | None:
    """Return the content of the `x-ratelimit-…` headers (names in any case); None without such headers."""
    limits = {
        name.lower(): value for name, value in headers.items() if name[: len(_PREFIX)].lower() == _PREFIX
    }
    if not limits:
        return None
    return Allowance(
        requests_left=_count(limits.get("x-ratelimit-remaining-requests")),
        tokens_left=_count(limits.get("x-ratelimit-remaining-tokens")),
        requests_reset=duration(limits.get("x-ratelimit-reset-requests")),
        tokens_reset=duration(limits.get("x-ratelimit-reset-tokens")),
    )


def duration(text: str | None) -> float | None:
    """Return the seconds of a duration, None if the text is not one.

    Examples
    --------
    >>> duration("6m0s"), duration("120ms"), duration("7.66"), duration("soon")
    (360.0, 0.12, 7.66, None)
    """
    text = (text or "").strip()
    seconds = _number(text)
    if seconds is None and _DURATION.fullmatch(text):
        seconds = sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(text))
    return seconds if seconds is not None and seconds <= LONGEST_RESET else None


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the requested wait in seconds: `retry-after-ms`, else `retry-after` in seconds or as a date."""
    lowered = {name.lower(): value for name, value in headers.items()}
    milliseconds = _number(lowered.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = lowered.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and _COUNT.fullmatch(text.strip()) else None
