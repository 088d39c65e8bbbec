"""Under a budget, a unit opens only if the money suffices to finish it beside the units that are open."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

from django.db.models import Count, Sum
from django.utils import timezone

from evaluation.core.tokens import CHARS_A_TOKEN
from evaluation.core.types import GroupResult, Model, ModelAt, Reply, Request
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.gateway.budget import (
    BudgetReached,
    budget_reached,
    reserved_elsewhere,
    worst_cost,
)
from evaluation.gateway.ledger import STORED_STATES, call_key, stored_reply
from evaluation.gateway.model import Gateway
from evaluation.gateway.prices import Price
from evaluation.models.runs import Attempt, ModelCall, Run, Unit, WorkerLease

# How often to look whether other workers freed money.
LOOK_SECONDS = 0.5
# With plenty of money a unit is not measured: it is held to cost this many times the dearest one measured.
MARGIN = 3

Judge = Callable[[Model], Awaitable[GroupResult]]
Find = Callable[[Request], Awaitable[Reply | None]]


@dataclass(frozen=True, slots=True)
class Funds:
    """What a run may still spend, one process's share of it, and the mean cost of its finished units.

    `unit_mean` is None if unknown, or if no finished unit cost anything.
    """

    left: Decimal
    share: Decimal
    unit_mean: Decimal | None = None


@dataclass(slots=True)
class WorstCase:
    """A Model that sums the highest costs of a unit's calls; each answer is as long as allowed.

    With `find` stored answers cost nothing; `share` is of the live price. Formatter calls, which are made as
    needed, are not in it.
    """

    prices: Mapping[ModelAt, Price]
    keys: Sequence[str]
    find: Find | None = None
    share: Decimal = Decimal(1)
    total: Decimal = Decimal(0)
    dearest: Decimal = Decimal(0)
    stored: int = 0
    profiles: Mapping[ModelAt, ModelProfile] = field(default_factory=dict)

    async def complete(self, request: Request) -> Reply:
        if self.find is not None and (reply := await self.find(request)) is not None:
            self.stored += 1
            return reply
        if request.role != "formatter":
            profile = self.profiles.get(request.at)
            cost = (worst_cost(request, self.prices, profile=profile) or Decimal(0)) * self.share
            self.total += cost
            self.dearest = max(self.dearest, cost)
        prose = "word " * (request.max_tokens * CHARS_A_TOKEN // 5)
        return Reply("answered", f"{prose}\n\nVERDICTS\n" + "\n".join(f"{key}: TRUE" for key in self.keys))


def unit_fits(*, worst: WorstCase, funds: Funds, held: Decimal, alone: bool) -> bool:
    """Return whether a unit may open: its highest cost fits beside what open units may still cost.

    Several processes share the money equally. With no other unit open anywhere (`alone`) the mean cost of
    finished units and the dearest call suffice: otherwise much of a budget would stay unused, because most
    answers are shorter than allowed.
    """
    if held + worst.total <= funds.share:
        return True
    enough = worst.total
    if funds.unit_mean is not None:
        enough = min(enough, funds.unit_mean + worst.dearest)
    return alone and enough <= funds.left


def funds_of(run_id: int, *, mean: bool = False) -> Funds:
    """Return what a run with a budget may still spend; with `mean` also the mean cost of a finished unit."""
    run = Run.objects.only("budget_usd", "committed_usd").get(pk=run_id)
    left = (run.budget_usd or Decimal(0)) - run.committed_usd
    processes = WorkerLease.objects.filter(run=run_id, expires_at__gt=timezone.now()).count()
    share = left / max(processes, 1)
    if not mean:
        return Funds(left, share)
    paid = Attempt.objects.filter(run=run_id, unit__state=Unit.State.DONE, cost_usd__gt=0)
    sums = paid.aggregate(cost=Sum("cost_usd"), units=Count("unit", distinct=True))
    return Funds(left, share, sums["cost"] / sums["units"] if sums["units"] else None)


@dataclass(slots=True)
class UnitBudget:
    """The open units of this process and what their coming calls may cost."""

    gateway: Gateway
    run_id: int
    first_sample: int
    stop: asyncio.Event
    _held: dict[int, Decimal] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _measuring: asyncio.Lock = field(default_factory=asyncio.Lock)
    _dearest: Decimal = Decimal(0)

    async def judge(
        self, unit_id: int, judge: Judge, *, model: Model, keys: Sequence[str]
    ) -> GroupResult | None:
        """Judge a unit once there is money to finish it; None if the run stops before that.

        Raises BudgetReached if no open unit can free enough.
        """
        if not await self._open(unit_id, judge, keys):
            return None
        try:
            return await judge(_Counting(model, partial(self._spend, unit_id), self.gateway.prices))
        finally:
            self._held.pop(unit_id, None)
            self._change()

    async def _open(self, unit_id: int, judge: Judge, keys: Sequence[str]) -> bool:
        """Open the unit as soon as there is money to finish it; False if the run stops before that."""
        if await self._opens_unmeasured(unit_id):
            return True
        async with self._measuring:  # the first unit is measured while the others wait
            if await self._opens_unmeasured(unit_id):
                return True
            worst = WorstCase(self.gateway.prices, keys, profiles=self.gateway.profiles)
            await judge(worst)
            self._dearest = max(self._dearest, worst.total)
        if await self._fits(unit_id, worst):
            return True
        worst = WorstCase(self.gateway.prices, keys, self._find, profiles=self.gateway.profiles)
        await judge(worst)
        return await self._wait(unit_id, worst)

    async def _opens_unmeasured(self, unit_id: int) -> bool:
        """Open the unit if there is money for a much dearer one; measuring takes time."""
        if not self._dearest:
            return False
        funds = await self.gateway.database.add(_funds_for_all, self.run_id)
        held = self._dearest * MARGIN
        if self._sum() + held > funds.share:
            return False
        self._held[unit_id] = held
        return True

    async def _wait(self, unit_id: int, worst: WorstCase) -> bool:
        """Wait until the unit fits; False if the run stops."""
        while not await self._fits(unit_id, worst):
            if self._held:
                await self._changed.wait()
            elif not await self._others_pending(unit_id):
                raise BudgetReached(budget_reached(self.gateway.budget_usd or Decimal(0)))
            else:
                await asyncio.sleep(LOOK_SECONDS)
            if self.stop.is_set():
                return False
        return True

    async def _fits(self, unit_id: int, worst: WorstCase) -> bool:
        """Open the unit if it fits now."""
        funds = await self.gateway.database.add(_funds_for_all, self.run_id)
        fits = unit_fits(worst=worst, funds=funds, held=self._sum(), alone=False)
        if not fits and not self._held and not await self._others_pending(unit_id):
            funds = await self.gateway.database.do(partial(funds_of, self.run_id, mean=True))
            # Another unit may have opened meanwhile.
            fits = unit_fits(worst=worst, funds=funds, held=self._sum(), alone=not self._held)
        if fits:
            self._held[unit_id] = worst.total
        return fits

    async def _others_pending(self, unit_id: int) -> bool:
        """Return whether requests of other processes are pending, which may free money."""
        return await self.gateway.database.do(partial(reserved_elsewhere, self.run_id, unit_id))

    async def _find(self, request: Request) -> Reply | None:
        key = call_key(request, sample=self.first_sample + request.sample)
        return await self.gateway.database.add(_stored_replies, key)

    def _spend(self, unit_id: int, cost: Decimal) -> None:
        self._held[unit_id] = max(self._held.get(unit_id, Decimal(0)) - cost, Decimal(0))
        self._change()

    def _sum(self) -> Decimal:
        return sum(self._held.values(), Decimal(0))

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(frozen=True, slots=True)
class _Counting:
    """A model that reports the highest cost of each planned call once it is answered, and so settled."""

    model: Model
    spend: Callable[[Decimal], None]
    prices: Mapping[ModelAt, Price]

    async def complete(self, request: Request) -> Reply:
        reply = await self.model.complete(request)
        if request.role != "formatter":
            self.spend(worst_cost(request, self.prices) or Decimal(0))
        return reply


def _funds_for_all(run_ids: Sequence[int]) -> list[Funds]:
    return [funds_of(run_ids[0])] * len(run_ids)


def _stored_replies(keys: Sequence[str]) -> list[Reply | None]:
    calls = ModelCall.objects.filter(key__in=keys, state__in=STORED_STATES)
    found = {call.key: stored_reply(call) for call in calls}
    return [found.get(key) for key in keys]
