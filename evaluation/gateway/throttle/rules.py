"""When the next request may leave: plain arithmetic on a shared state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

T = TypeVar("T")

FAILURES_TO_OPEN = 5
PROBE_SECONDS = 10.0
# How much unused allowance may be used later, in seconds: 1% and 10% more within ten seconds.
REQUEST_BURST = 0.1
TOKEN_BURST = 1.0
# The share of a limit that is used, so that requests bunched by the network are not refused.
USED_SHARE = 0.98


@dataclass(frozen=True, slots=True)
class State:
    """The shared knowledge about one model at one endpoint; times are Unix seconds of the store's clock.

    `requests_due` and `tokens_due`: when the next request, and the next token, is due. `not_before`: no
    request leaves earlier. `failures`: consecutive ones. The circuit is open since `opened_at`; the next
    probe is due at `probe_at`.
    """

    requests_due: float = 0.0
    tokens_due: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    opened_at: float | None = None
    probe_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests and tokens per minute over all workers; None is no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __bool__(self) -> bool:
        return bool(self.requests_per_minute or self.tokens_per_minute)

    @property
    def request_pace(self) -> float:
        """Return the seconds between requests; 0 without a limit."""
        return _pace(self.requests_per_minute)

    @property
    def token_pace(self) -> float:
        """Return the seconds between tokens; 0 without a limit."""
        return _pace(self.tokens_per_minute)


@dataclass(frozen=True, slots=True)
class News:
    """Outcomes since the last report.

    `failures` : consecutive ones at its end. `answered` : there was an answer before them. `pause` : the
        longest
    wait that the endpoint requested, in seconds from now. `tokens` : by how much the estimates were too low.
    """

    answered: bool = False
    failures: int = 0
    pause: float = 0.0
    tokens: int = 0

    def __bool__(self) -> bool:
        return self.answered or self.failures > 0 or self.pause > 0

    def then(self, later: "News") -> "News":
        """Return both reports, in this order."""
        return News(
            answered=self.answered or later.answered,
            failures=later.failures + (0 if later.answered else self.failures),
            pause=max(self.pause, later.pause),
            tokens=self.tokens + later.tokens,
        )


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """A state at time `now` of the store's clock, and the result of the rule."""

    state: State
    now: float
    result: T


Rule = Callable[[State, float], Step[T]]


def learn(state: State, now: float, news: News, *, limits: Limits, probe_every: float) -> State:
    """Apply the news: FAILURES_TO_OPEN consecutive failures open the circuit, an answer closes it."""
    failures = news.failures + (0 if news.answered else state.failures)
    opened_at = None if news.answered else state.opened_at
    probe_at = state.probe_at
    if opened_at is None and failures >= FAILURES_TO_OPEN:
        opened_at, probe_at = now, now + probe_every
    return replace(
        state,
        not_before=max(state.not_before, now + news.pause) if news.pause else state.not_before,
        tokens_due=state.tokens_due + news.tokens * limits.token_pace,
        failures=failures,
        opened_at=opened_at,
        probe_at=probe_at,
    )


def admit(
    state: State, now: float, *, news: News, tokens: Sequence[int], limits: Limits, probe_every: float
) -> Step[tuple[float | None, ...]]:
    """Apply the news, then return when each request of about `tokens` tokens may leave.

    None: not now, the circuit is open; ask again. One request per `probe_every` seconds is let through then.
    """
    state = learn(state, now, news, limits=limits, probe_every=probe_every)
    if state.opened_at is None:
        return reserve(state, now, tokens=tokens, limits=limits)
    if not tokens or now < state.probe_at:
        return Step(state, now, (None,) * len(tokens))
    return Step(replace(state, probe_at=now + probe_every), now, (now, *(None,) * (len(tokens) - 1)))


def reserve(
    state: State, now: float, *, tokens: Sequence[int], limits: Limits
) -> Step[tuple[float | None, ...]]:
    """Give each request its time (GCRA: each request is due one interval after the one before).

    Examples
    --------
    >>> limits = Limits(requests_per_minute=60)
    >>> tuple(round(due) for due in reserve(State(), 1000.0, tokens=(10, 10), limits=limits).result)
    (1000, 1001)
    """
    pace, token_pace = limits.request_pace, limits.token_pace
    request_due = max(state.requests_due, state.not_before, now - REQUEST_BURST)
    token_due = max(state.tokens_due, now - TOKEN_BURST)
    times: list[float | None] = []
    for amount in tokens:
        due = max(request_due, token_due)
        times.append(due)
        request_due, token_due = due + pace, token_due + amount * token_pace
    if not limits:
        return Step(state, now, tuple(times))
    return Step(replace(state, requests_due=request_due, tokens_due=token_due), now, tuple(times))


def _pace(per_minute: int | None) -> float:
    return 60.0 / (per_minute * USED_SHARE) if per_minute else 0.0
