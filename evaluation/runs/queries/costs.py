"""What a run's requests cost: what is known, and what requests without a known cost may add."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from evaluation.gateway.budget import COST_UNKNOWN
from evaluation.models.runs import Attempt

# Outcomes for which a model worked.
PAID = (Attempt.Outcome.ANSWERED, Attempt.Outcome.REFUSED, Attempt.Outcome.CUT_OFF)


@dataclass(frozen=True, slots=True)
class RunCosts:
    """Known and unknown costs in US dollars.

    `cost_usd` is the sum of the known costs, None if the cost of an answer is unknown. `unknown_requests`
    have no known cost: pending, broken off, timed out, or without a price. They add at most `unknown_usd`,
    which is None if one of them has no reservation, as without a budget.
    """

    cost_usd: Decimal | None = Decimal(0)
    unknown_requests: int = 0
    unknown_usd: Decimal | None = Decimal(0)


def cost_sums() -> dict[str, Any]:
    """Return the aggregates over attempts that `costs_of` reads."""
    return {
        "cost": Coalesce(Sum("cost_usd"), Decimal(0)),
        "unpriced": Count("id", filter=Q(outcome__in=PAID, cost_usd__isnull=True)),
        "unknown": Count("id", filter=COST_UNKNOWN),
        "unreserved": Count("id", filter=COST_UNKNOWN & Q(reserved_usd__isnull=True)),
        "reserved": Coalesce(Sum("reserved_usd", filter=COST_UNKNOWN), Decimal(0)),
    }


def costs_of(sums: Mapping[str, Any]) -> RunCosts:
    """Return the costs from these aggregates."""
    return RunCosts(
        cost_usd=None if sums["unpriced"] else sums["cost"],
        unknown_requests=sums["unknown"],
        unknown_usd=None if sums["unreserved"] else sums["reserved"],
    )


def run_costs(run_id: int) -> RunCosts:
    """Return the costs of a run from the record of every request; one query."""
    return costs_of(Attempt.objects.filter(run=run_id).aggregate(**cost_sums()))


def costs_json(costs: RunCosts) -> dict[str, Any]:
    """Return the costs as commands and API show them."""
    return {
        "cost_usd": None if costs.cost_usd is None else float(costs.cost_usd),
        "unknown_cost_requests": costs.unknown_requests,
        "unknown_cost_usd": None if costs.unknown_usd is None else float(costs.unknown_usd),
    }
