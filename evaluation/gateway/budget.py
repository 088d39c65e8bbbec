"""A run's budget: a request's worst-case cost is reserved before it leaves, and settled when it ends."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from math import ceil

from django.db.models import Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from common.problems import OPERATOR, InputProblem
from evaluation.core.tokens import tokens_at_most
from evaluation.core.types import ModelAt, Request
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.gateway.prices import PRICE_SETTING, Price, highest_cost
from evaluation.gateway.replies import Kind
from evaluation.models.runs import Attempt, Run, WorkerLease

# How the error of a run paused by its budget begins.
BUDGET_REACHED = "the budget of"
# Replies for which no model worked; with status 200 the endpoint failed in the middle of an answer.
_FREE: frozenset[Kind] = frozenset(
    {"rate_limited", "server_error", "auth", "bad_request", "redirect", "too_long"}
)
# Requests without a known cost, pending ones included: each may cost as much as its reservation.
COST_UNKNOWN = Q(cost_usd__isnull=True) & (~Q(outcome__in=_FREE) | Q(status=200))


class BudgetReached(Exception):
    """The next request exceeds the remaining budget, and no pending request can free any of it."""


def budget_reached(budget: Decimal) -> str:
    """Return why a run pauses at its budget.

    Examples
    --------
    >>> budget_reached(Decimal("5.0000"))
    'the budget of $5 is reached'
    """
    return f"{BUDGET_REACHED} ${budget.normalize():f} is reached"


def budget_check(
    *, budget: Decimal | None, models: Collection[ModelAt], prices: Mapping[ModelAt, Price]
) -> None:
    """Refuse a budget if a model's price is unknown; raises InputProblem."""
    unknown = sorted(at.model for at in set(models) - set(prices))
    if budget is not None and unknown:
        raise InputProblem(
            f"a budget needs a price for {unknown[0]!r}: "
            f"{OPERATOR} can add it to the price file, a lead to an endpoint that is connected",
            settings=(PRICE_SETTING,),
        )


# A vocabulary may need more tokens than estimated.
CONTEXT_MARGIN = 1.1


def prompt_tokens_at_most(request: Request) -> int:
    """Return the tokens of a request's prompt with a vocabulary that is weak outside English."""
    return ceil(sum(tokens_at_most(message.text) for message in request.messages))


def token_limit(request: Request, profile: ModelProfile | None) -> int:
    """Return the token limit that is sent with a request: with room for thoughts, as the model accepts it."""
    if profile is None:
        return request.max_tokens
    prompt = ceil(CONTEXT_MARGIN * prompt_tokens_at_most(request)) if profile.context else 0
    return profile.limit(tokens=request.max_tokens, effort=request.reasoning_effort, prompt_tokens=prompt)


def worst_cost(
    request: Request, prices: Mapping[ModelAt, Price], *, profile: ModelProfile | None = None
) -> Decimal | None:
    """Return a request's highest cost in US dollars (nothing cached, longest answer); None if unpriced."""
    return highest_cost(
        prices=prices,
        model=request.at,
        prompt_tokens=prompt_tokens_at_most(request),
        completion_tokens=token_limit(request, profile),
    )


def budget_recount(run_id: int) -> None:
    """Recompute from the record of every request what counts against the budget."""
    Run.objects.select_for_update().get(pk=run_id)
    sums = Attempt.objects.filter(run_id=run_id).aggregate(
        paid=Coalesce(Sum("cost_usd"), Decimal(0)),
        reserved=Coalesce(Sum("reserved_usd", filter=COST_UNKNOWN), Decimal(0)),
    )
    Run.objects.filter(pk=run_id).update(committed_usd=sums["paid"] + sums["reserved"])


def cost_without_answer(outcome: str, status: int | None) -> Decimal | None:
    """Return 0 for a reply for which no model worked, None where one may have worked.

    Examples
    --------
    >>> cost_without_answer("rate_limited", 429), cost_without_answer("connection", None)
    (Decimal('0'), None)
    """
    return Decimal(0) if outcome in _FREE and status != 200 else None


def reserve(run_id: int | None, worst: Sequence[Decimal | None]) -> list[bool]:
    """Reserve these amounts in turn, as far as the budget allows; return which fit. None costs nothing."""
    if run_id is None or all(amount is None for amount in worst):
        return [True] * len(worst)
    run = Run.objects.select_for_update().only("budget_usd", "committed_usd").get(pk=run_id)
    committed, fitting = run.committed_usd, []
    for amount in worst:
        after = committed + (amount or 0)
        fits = run.budget_usd is None or after <= run.budget_usd
        fitting.append(fits)
        committed = after if fits else committed
    if committed != run.committed_usd:
        Run.objects.filter(pk=run_id).update(committed_usd=committed)
    return fitting


def settle(ended: Iterable[tuple[int | None, Decimal | None, Decimal | None]]) -> None:
    """Replace reservations by actual costs: run, reserved amount and cost of each request.

    An unknown cost keeps its reservation; a request without a reservation is not counted.
    """
    differences: dict[int, Decimal] = defaultdict(Decimal)
    for run_id, reserved, paid in ended:
        if run_id is not None and reserved is not None and paid is not None:
            differences[run_id] += paid - reserved
    for run_id, difference in differences.items():
        run = Run.objects.select_for_update().only("committed_usd").get(pk=run_id)
        # No F expression: SQLite would calculate with floats.
        Run.objects.filter(pk=run_id).update(committed_usd=max(run.committed_usd + difference, Decimal(0)))


def reserved_elsewhere(run_id: int, unit_id: int) -> bool:
    """Return whether requests of other live workers are pending and may free some budget."""
    reservations = Attempt.objects.filter(run_id=run_id, ended_at=None, reserved_usd__isnull=False)
    alive = reservations.filter(unit__lease__expires_at__gt=timezone.now())
    return alive.exclude(unit__lease__in=WorkerLease.objects.filter(units=unit_id)).exists()


class OutstandingRequests:
    """The pending requests of this process, whose end may free money, and the tasks that wait for it."""

    def __init__(self, budget: Decimal | None) -> None:
        self._budget = budget
        self._count = 0
        self._freed = asyncio.Event()

    def begin(self) -> None:
        """Count a request that is about to be recorded."""
        self._count += 1

    def end(self) -> None:
        """Count a request as ended or refused; waiting tasks try again."""
        self._count -= 1
        self._freed.set()
        self._freed = asyncio.Event()

    async def room(self) -> None:
        """Wait until a request ends; raises BudgetReached if none is pending."""
        if self._count == 0:
            raise BudgetReached(budget_reached(self._budget or Decimal(0)))
        await self._freed.wait()
