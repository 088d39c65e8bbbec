"""Processes a run's open units: one event loop, many calls in flight, one database thread."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Self

from django.db import InterfaceError, OperationalError

from evaluation.core.types import Chat, Criterion, GroupResult, Model, ModelAt, Setup
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.engines.core import judge_group
from evaluation.gateway.budget import BudgetReached, budget_check, budget_recount
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.current import endpoint_client
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.embeddings import Embeddings, UnitEmbedder
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.model import Gateway, GatewayModel
from evaluation.gateway.prices import Price
from evaluation.gateway.simulated import SimulatedClient
from evaluation.gateway.throttle import EndpointDown, Limits, SharedThrottle, throttle_for
from evaluation.gateway.writer import DatabaseThread
from evaluation.models.runs import Run
from evaluation.runs.worker.leases import LEASE, MOST_TRIES, LeaseLost, lease_beat, lease_begin, lease_end
from evaluation.runs.worker.placebo_chat import placebo_chat
from evaluation.runs.worker.unit_budget import UnitBudget
from evaluation.runs.worker.units import JudgedUnit, UnitWriter, Work, units_take

# After this many chats in a row without an answer the endpoint counts as down.
FAILURES_IN_A_ROW = 5
# How often to check whether the run was paused or cancelled.
WATCH_SECONDS = 1.0
# Calls prepared beyond the slots, so that a free slot finds its next attempt committed: one for each
# SLOTS_AN_AHEAD slots. More would leave more attempts of unknown outcome after a kill.
SLOTS_AN_AHEAD = 8
MOST_AHEAD = 16
# Most units leased at a time; they wait for a worker.
LARGEST_LOT = 64


class Trouble(str):
    """Why the endpoint cannot answer, in one line, or ""; `lasting` means that only a user can fix it."""

    lasting: bool

    def __new__(cls, text: str = "", *, lasting: bool = False) -> Self:
        trouble = super().__new__(cls, text)
        trouble.lasting = lasting
        return trouble


@dataclass(frozen=True, slots=True)
class Group:
    """A judge's group: criteria that share a call, and their setup."""

    criteria: tuple[Criterion, ...]
    setup: Setup


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a worker needs besides the units; loaded once, before the loop starts.

    `endpoint` is the judge's, `others` those that single roles use.

    The sample index of a call is replicate × samples + the sample's number in its unit. With `suspects`, only
    units are taken that were in work when workers died. `began`: units were judged before.
    """

    run_id: int
    replicate: int
    groups: dict[int, Group]
    criterion_ids: dict[str, int]
    fence_secret: bytes
    endpoint: Endpoint
    prices: dict[ModelAt, Price]
    max_in_flight: int
    timeout: float
    samples: int = 1
    audit: float = 0.0
    fingerprint: str = ""
    budget_usd: Decimal | None = None
    others: tuple[Endpoint, ...] = ()
    broker_url: str = ""
    suspects: bool = False
    profiles: dict[ModelAt, ModelProfile] = field(default_factory=dict)
    began: bool = False
    reasoning_timeout: float = 0.0

    @property
    def models(self) -> set[ModelAt]:
        """Return every model of the run, at its endpoint."""
        asked = {role.at for group in self.groups.values() for role in group.setup.roles.values()}
        vectors = {ModelAt(self.endpoint.id, self.embedding_model)} if self.embedding_model else set()
        return asked | vectors

    @property
    def embedding_model(self) -> str:
        """Return the model that ranks passages, "" without one."""
        return next((group.setup.embedding_model for group in self.groups.values()), "")

    @property
    def ahead(self) -> int:
        """Return how many calls may be prepared beyond those in flight."""
        return min(MOST_AHEAD, self.max_in_flight // SLOTS_AN_AHEAD)

    @property
    def lot(self) -> int:
        """Return how many units to lease at a time: half of those in flight.

        More would leave other workers without units at the end of a run.
        """
        return min(LARGEST_LOT, max(1, self.max_in_flight // 2))


@dataclass(slots=True)
class _Progress:
    """State shared by the slots: chats that failed since the last answer, and why to stop."""

    report: Callable[[bool], None]
    failed_in_a_row: set[int] = field(default_factory=set)
    trouble: Trouble = field(default_factory=Trouble)
    leave: threading.Event | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def leaves(self) -> bool:
        """Return whether this process must stop."""
        return self.leave is not None and self.leave.is_set()

    def down(self, why: str, *, lasting: bool) -> None:
        self.trouble = self.trouble or Trouble(why, lasting=lasting)
        self.stop.set()

    def finished(self, error: str, chat_id: int) -> None:
        if not error:
            self.failed_in_a_row.clear()
        else:
            self.failed_in_a_row.add(chat_id)
        if len(self.failed_in_a_row) >= FAILURES_IN_A_ROW:
            self.down(f"{error} ({FAILURES_IN_A_ROW} chats in a row)", lasting=True)
        self.report(bool(error))


def process_units(
    plan: Plan,
    *,
    on_unit: Callable[[bool], None],
    seconds: float | None = None,
    leave: threading.Event | None = None,
) -> Trouble:
    """Process the run's open units; return "" or, if the endpoint cannot answer, why (one line).

    `on_unit(failed)` is called after each finished unit. No unit starts after `seconds`, or once `leave` is
    set; neither counts as a reason. Ctrl-C raises KeyboardInterrupt after finished units are stored and the
    rest is returned. Raises InputProblem for a budget without prices, before anything is sent.
    """
    budget_check(budget=plan.budget_usd, models=plan.models, prices=plan.prices)
    with DatabaseThread() as database:
        try:
            return asyncio.run(_process(plan, database, _Progress(on_unit, leave=leave), seconds))
        except EmbeddedModelError as error:
            return Trouble(str(error), lasting=True)


async def _process(
    plan: Plan, database: DatabaseThread, progress: _Progress, seconds: float | None
) -> Trouble:
    lease = await database.do(partial(lease_begin, plan.run_id))
    if plan.budget_usd is not None:
        await database.do(partial(budget_recount, plan.run_id))
    beside = [
        asyncio.create_task(_beat(database, lease.pk, progress)),
        asyncio.create_task(_watch(database, plan.run_id, progress, seconds)),
    ]
    crashed = False
    try:
        async with gateway_open(plan, database, seconds=seconds) as gateway:
            await _UnitWorkers(plan, gateway, lease.pk, progress).work()
    except Exception as error:
        # A chat that the database rejects must not be retried for ever.
        crashed = not isinstance(error, EmbeddedModelError | OperationalError | InterfaceError)
        raise
    finally:
        for task in beside:
            task.cancel()
        ended = await asyncio.gather(*beside, return_exceptions=True)
        await asyncio.shield(database.do(partial(lease_end, lease.pk, crashed=crashed)))
    for fault in ended:
        if isinstance(fault, Exception):
            raise fault
    return progress.trouble


@contextlib.asynccontextmanager
async def gateway_open(
    plan: Plan, database: DatabaseThread, *, seconds: float | None = None
) -> AsyncIterator[Gateway]:
    """Open the gateway to a plan's endpoints, limited together with all other users of each endpoint."""
    async with endpoint_client(plan.endpoint) as client, AsyncExitStack() as stack:
        others: dict[str, EndpointClient | SimulatedClient] = {
            one.id: await stack.enter_async_context(endpoint_client(one)) for one in plan.others
        }
        yield Gateway(
            endpoint=plan.endpoint,
            client=client,
            database=database,
            throttles=await _throttles(plan, stack, seconds),
            prepared=asyncio.Semaphore(plan.max_in_flight + plan.ahead),
            prices=plan.prices,
            timeout=plan.timeout,
            budget_usd=plan.budget_usd,
            profiles=plan.profiles,
            reasoning_timeout=plan.reasoning_timeout,
            others=others,
        )


async def _throttles(
    plan: Plan, stack: AsyncExitStack, seconds: float | None
) -> dict[ModelAt, SharedThrottle]:
    """Return each model's throttle; the models of one endpoint share its slots."""
    throttles: dict[ModelAt, SharedThrottle] = {}
    for endpoint in (plan.endpoint, *plan.others):
        models = sorted(at for at in plan.models if at.endpoint == endpoint.id)
        slots = endpoint.slots(plan.max_in_flight)
        total = asyncio.Semaphore(slots) if len(models) > 1 else None
        for at in models:
            throttle = throttle_for(
                endpoint=at.endpoint,
                model=at.model,
                max_in_flight=slots,
                limits=Limits(endpoint.requests_per_minute, endpoint.tokens_per_minute),
                broker_url=plan.broker_url,
                patience=seconds,
                total=total,
            )
            throttles[at] = await stack.enter_async_context(throttle)
    return throttles


async def _beat(database: DatabaseThread, lease_id: int, progress: _Progress) -> None:
    """Renew the lease; a process that missed its heartbeats lost its units and starts no other."""
    try:
        while True:
            await asyncio.sleep(LEASE.total_seconds() / 4)
            await database.do(partial(lease_beat, lease_id))
    except LeaseLost:
        return
    finally:
        progress.stop.set()


async def _watch(database: DatabaseThread, run_id: int, progress: _Progress, seconds: float | None) -> None:
    """Start no further unit when time is over, the process must stop, or the run may not continue."""
    loop = asyncio.get_running_loop()
    end = loop.time() + (float("inf") if seconds is None else seconds)
    try:
        while loop.time() < end and not progress.leaves and await database.do(partial(_may_run, run_id)):
            await asyncio.sleep(min(WATCH_SECONDS, max(end - loop.time(), 0)))
    finally:
        progress.stop.set()


def _may_run(run_id: int) -> bool:
    """Return whether the run is still running: a user may have paused or cancelled it."""
    return Run.objects.filter(pk=run_id, state=Run.State.RUNNING).exists()


class _UnitWorkers:
    """One feeder leases units ahead; a few more workers than calls may be prepared process them."""

    def __init__(self, plan: Plan, gateway: Gateway, lease_id: int, progress: _Progress) -> None:
        self._plan, self._gateway, self._lease_id, self._progress = plan, gateway, lease_id, progress
        self._desk = UnitWriter(plan.criterion_ids)
        self._embeddings = Embeddings(gateway, plan.embedding_model)
        self._workers = plan.max_in_flight + 2 * plan.ahead  # some wait for their verdicts' commit
        self._queue: asyncio.Queue[Work | None] = asyncio.Queue(maxsize=1)
        self._first_sample = plan.replicate * plan.samples
        self._budget: UnitBudget | None = None
        if plan.budget_usd is not None:
            self._budget = UnitBudget(gateway, plan.run_id, self._first_sample, progress.stop)

    async def work(self) -> None:
        """Work until no unit is open, time is over, or the endpoint cannot answer."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._feed())
                for _ in range(self._workers):
                    group.create_task(self._serve())
        except ExceptionGroup as errors:
            # The first error ended the others; callers know it by its own class.
            raise errors.exceptions[0] from None

    async def _feed(self) -> None:
        limit = self._workers  # at first every worker waits
        while not self._progress.stop.is_set():
            take = partial(self._take, limit)
            if not (taken := await self._gateway.database.do(take)):
                break
            for work in taken:
                await self._queue.put(work)
            limit = self._plan.lot
        for _ in range(self._workers):
            await self._queue.put(None)

    def _take(self, limit: int) -> list[Work]:
        plan = self._plan
        least_tries = MOST_TRIES - 1 if plan.suspects else 0
        return units_take(run_id=plan.run_id, lease_id=self._lease_id, limit=limit, least_tries=least_tries)

    async def _serve(self) -> None:
        while (work := await self._queue.get()) is not None:
            if self._progress.stop.is_set():
                continue  # given back with the lease
            try:
                result = await self._judge(work)
            except BudgetReached as reached:
                self._progress.down(str(reached), lasting=True)
                continue
            except EndpointDown as down:
                self._progress.down(str(down), lasting=down.lasting)
                continue
            if result is None:
                continue  # stopped before there was money for it; given back with the lease
            finished = JudgedUnit(self._plan.run_id, self._lease_id, work, result)
            if await self._gateway.database.add(self._desk.finish, finished):
                self._progress.finished(finished.error, work.chat_id)

    async def _judge(self, work: Work) -> GroupResult | None:
        plan, group = self._plan, self._plan.groups[work.group]
        model = GatewayModel(
            self._gateway,
            plan.run_id,
            work.unit_id,
            first_sample=self._first_sample,
            cache_key=plan.fingerprint,
            chat_id=work.chat_id,
            run_began=plan.began,
        )
        placebo = group.setup.ablation == "placebo_briefs"
        other = await self._placebo_chat(work) if placebo else None

        def judge(by: Model) -> Awaitable[GroupResult]:
            return judge_group(
                chat=work.chat,
                criteria=group.criteria,
                setup=group.setup,
                model=by,
                fence_secret=plan.fence_secret,
                other_chat=other,
                audit=plan.audit,
                embedder=UnitEmbedder(self._embeddings, plan.run_id, work.unit_id),
            )

        if self._budget is None:
            return await judge(model)
        keys = [criterion.key for criterion in group.criteria]
        return await self._budget.judge(work.unit_id, judge, model=model, keys=keys)

    async def _placebo_chat(self, work: Work) -> Chat | None:
        load = partial(placebo_chat, run_id=self._plan.run_id, chat_id=work.chat_id)
        return await self._gateway.database.do(load)
