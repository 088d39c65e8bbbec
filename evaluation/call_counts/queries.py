"""Totals of model calls: the stored counts, and what ended since."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Max, QuerySet, Sum
from django.utils import timezone

from evaluation.models.call_counts import CallCount, WorkCounter
from evaluation.models.runs import Attempt

# Attempts that ended since the last count are read from their rows, unless the counting stopped.
COUNTED_WITHIN = timedelta(hours=1)
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class CallSum:
    """Attempts at one model with one outcome: how many, their tokens, known cost, and the latest one."""

    endpoint: str
    model: str
    outcome: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal
    last_at: datetime

    @property
    def key(self) -> Key:
        """Return what it is counted by."""
        return self.endpoint, self.model, self.outcome

    def plus(self, other: "CallSum | None") -> "CallSum":
        """Return both together."""
        if other is None:
            return self
        return CallSum(
            *self.key,
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost_usd + other.cost_usd,
            max(self.last_at, other.last_at),
        )


def call_totals(*, now: datetime | None = None) -> list[CallSum]:
    """Return all attempts that ended, by endpoint, model and outcome; three queries."""
    counted_to = WorkCounter.objects.filter(name=WorkCounter.Name.CALLS).values_list("counted_to", flat=True)
    since = counted_to.first()
    totals = stored_sums()
    if since is not None and since > (now or timezone.now()) - COUNTED_WITHIN:
        totals = added(totals, attempt_sums(Attempt.objects.filter(ended_at__gt=since)))
    return sorted(totals.values(), key=lambda total: total.key)


def stored_sums() -> dict[Key, CallSum]:
    """Return the stored counts; one query."""
    names = ("endpoint", "model", "outcome", "calls", "prompt_tokens", "completion_tokens")
    rows = CallCount.objects.values_list(*names, "cost_usd", "last_at")
    sums = [CallSum(*row) for row in rows]
    return {one.key: one for one in sums}


def attempt_sums(attempts: QuerySet[Attempt]) -> list[CallSum]:
    """Return these attempts, which ended, by endpoint, model and outcome; one query."""
    by = attempts.values_list("call__endpoint", "call__model", "outcome").order_by()
    rows = by.annotate(
        n=Count("id"),
        tokens_in=Sum("prompt_tokens", default=0),
        tokens_out=Sum("completion_tokens", default=0),
        cost=Sum("cost_usd", default=Decimal(0)),
        last=Max("ended_at"),
    )
    return [CallSum(*row) for row in rows]


def added(totals: dict[Key, CallSum], more: Iterable[CallSum]) -> dict[Key, CallSum]:
    """Return the totals with these added."""
    return totals | {one.key: one.plus(totals.get(one.key)) for one in more}


def leases_lost() -> int:
    """Return how many leases were taken back from workers so far; one query."""
    rows = WorkCounter.objects.filter(name=WorkCounter.Name.LEASES_LOST)
    return rows.values_list("value", flat=True).first() or 0
