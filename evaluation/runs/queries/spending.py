"""The calls, tokens, cost and time behind the answers of several runs."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from evaluation.models.runs import ModelCall, UnitCall

# States for which a model worked.
_PAID = (ModelCall.State.ANSWERED, ModelCall.State.REFUSED, ModelCall.State.CUT_OFF)


@dataclass(slots=True)
class Spending:
    """Sums over the calls behind a run's answers, reused ones included: the cost without reuse.

    `costs` is in dollars by group of criteria, None if the price of an answer is unknown. `latencies` counts
    calls by milliseconds.
    """

    calls: int = 0
    reused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    costs: dict[int, Decimal | None] = field(default_factory=dict)
    latencies: dict[int, int] = field(default_factory=dict)

    @property
    def cost(self) -> Decimal | None:
        """Return the cost of all groups; None if a price is unknown or no call is recorded."""
        known = [cost for cost in self.costs.values() if cost is not None]
        return sum(known, Decimal(0)) if known and len(known) == len(self.costs) else None

    def latency(self, percent: int) -> int | None:
        """Return the time in ms within which `percent` of the calls were answered.

        None if no call's time is known.
        """
        left = sum(self.latencies.values()) * percent
        for milliseconds, calls in sorted(self.latencies.items()):
            left -= 100 * calls
            if left <= 0:
                return milliseconds
        return None


def runs_spending(runs: Collection[int], *, chats: QuerySet[Any, int]) -> dict[int, Spending]:
    """Return the spending by run id on these chats (a subquery of ids); two queries."""
    by_run: dict[int, Spending] = defaultdict(Spending)
    used = UnitCall.objects.filter(unit__run__in=runs, unit__chat__in=chats).order_by()
    for row in _sums(used):
        one = by_run[row["unit__run"]]
        one.calls += row["calls"]
        one.reused += row["again"]
        one.prompt_tokens += row["prompt"] or 0
        one.completion_tokens += row["completion"] or 0
        one.costs[row["unit__group"]] = None if row["unpriced"] else row["cost"] or Decimal(0)
    timed = used.filter(call__latency_ms__isnull=False).values_list("unit__run", "call__latency_ms")
    for run, milliseconds, calls in timed.annotate(n=Count("id")):
        by_run[run].latencies[milliseconds] = calls
    return dict(by_run)


@dataclass(frozen=True, slots=True)
class GroupCost:
    """Dollars behind a group's answers, reused ones included, and its units; None if a price is unknown."""

    cost: Decimal | None
    units: int


def group_costs(runs: Collection[int]) -> dict[int, dict[int, GroupCost]]:
    """Return by run id the cost of each group of criteria; one query, which reads every call of the runs."""
    costs: dict[int, dict[int, GroupCost]] = {}
    used = UnitCall.objects.filter(unit__run__in=runs).order_by()
    for row in _sums(used).annotate(units=Count("unit", distinct=True)):
        cost = None if row["unpriced"] else row["cost"] or Decimal(0)
        costs.setdefault(row["unit__run"], {})[row["unit__group"]] = GroupCost(cost, row["units"])
    return costs


def _sums(used: QuerySet[UnitCall]) -> Any:
    return used.values("unit__run", "unit__group").annotate(
        calls=Count("id"),
        again=Count("id", filter=Q(reused=True)),
        prompt=Sum("call__prompt_tokens"),
        completion=Sum("call__completion_tokens"),
        cost=Sum("call__cost_usd"),
        unpriced=Count("id", filter=Q(call__state__in=_PAID, call__cost_usd=None)),
    )
