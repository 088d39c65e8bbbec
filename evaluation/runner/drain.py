"""Works off a run's open units: one event loop, many calls in flight, one database thread."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from django.db import DatabaseError

from evaluation.core.engines import judge_group
from evaluation.core.types import Criterion, GroupResult, Setup
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.model import Gateway, GatewayModel
from evaluation.gateway.prices import Price
from evaluation.gateway.throttle import EndpointDown
from evaluation.gateway.writer import DatabaseThread
from evaluation.models.runs import Run
from evaluation.runner.leases import LEASE, LeaseLost, lease_beat, lease_begin, lease_end
from evaluation.runner.placebo import other_chat
from evaluation.runner.units import Work, unit_finish, units_take

# After so many units in a row without one answer the endpoint is taken for down.
FAILURES_IN_A_ROW = 5
# How often to look whether somebody paused or cancelled the run.
WATCH_SECONDS = 1.0


class Trouble(str):
    """Why nobody can answer, one line, or ''; `lasting` says that only a person can mend it."""

    lasting: bool

    def __new__(cls, text: str = "", *, lasting: bool = False) -> Self:
        trouble = super().__new__(cls, text)
        trouble.lasting = lasting
        return trouble


@dataclass(frozen=True, slots=True)
class Group:
    """A judge's group: the criteria asked together and how."""

    criteria: tuple[Criterion, ...]
    setup: Setup


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a worker needs besides the units: loaded once, before the loop starts."""

    run_id: int
    sample: int
    audit: float
    groups: dict[int, Group]
    criterion_ids: dict[str, int]
    fence_secret: bytes
    endpoint: Endpoint
    prices: dict[str, Price]
    locate: Callable[[], str] | None
    max_in_flight: int
    timeout: float


@dataclass(slots=True)
class _Progress:
    """What the slots share: failures since the last answer, and why to stop."""

    report: Callable[[bool], None]
    failed_in_a_row: int = 0
    trouble: Trouble = field(default_factory=Trouble)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def down(self, why: str, *, lasting: bool = False) -> None:
        self.trouble = self.trouble or Trouble(why, lasting=lasting)
        self.stop.set()

    def finished(self, error: str) -> None:
        self.failed_in_a_row = self.failed_in_a_row + 1 if error else 0
        if self.failed_in_a_row >= FAILURES_IN_A_ROW:
            self.down(f"{error} ({self.failed_in_a_row} units in a row)", lasting=True)
        self.report(bool(error))


def drain(plan: Plan, *, on_unit: Callable[[bool], None], seconds: float | None = None) -> Trouble:
    """Work until no unit of the run is open; returns '' or, when nobody can answer, why (one line).

    After `seconds` no unit is begun, and '' returned once those in work are finished.
    `on_unit(failed)` is called after each finished unit. Ctrl-C raises KeyboardInterrupt after what was
    finished is stored and the rest is given back.
    """
    with DatabaseThread() as database:
        try:
            return asyncio.run(_drain(plan, database, on_unit, seconds))
        except EmbeddedModelError as error:
            return Trouble(str(error), lasting=True)


async def _drain(
    plan: Plan, database: DatabaseThread, on_unit: Callable[[bool], None], seconds: float | None
) -> Trouble:
    lease = await database.do(partial(lease_begin, plan.run_id))
    progress, crashed = _Progress(on_unit), False
    beat = asyncio.create_task(_beat(database, lease.pk, progress))
    watch = asyncio.create_task(_watch(database, plan.run_id, progress, seconds))
    try:
        async with EndpointClient(plan.endpoint, locate=plan.locate) as client:
            gateway = Gateway(
                endpoint=plan.endpoint,
                client=client,
                database=database,
                slots=asyncio.Semaphore(plan.max_in_flight),
                prices=plan.prices,
                timeout=plan.timeout,
            )
            await _work(plan, gateway, lease.pk, progress)
    except Exception as error:
        crashed = not isinstance(error, EmbeddedModelError | DatabaseError)
        raise
    finally:
        for task in (beat, watch):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await asyncio.shield(database.do(partial(lease_end, lease.pk, crashed=crashed)))
    return progress.trouble


async def _beat(database: DatabaseThread, lease_id: int, progress: _Progress) -> None:
    while True:
        await asyncio.sleep(LEASE.total_seconds() / 4)
        try:
            await database.do(partial(lease_beat, lease_id))
        except LeaseLost:
            return progress.stop.set()


async def _watch(database: DatabaseThread, run_id: int, progress: _Progress, seconds: float | None) -> None:
    """Let no further unit begin once the time is over or the run is paused or cancelled."""
    ends = asyncio.get_running_loop().time() + (seconds or float("inf"))
    while asyncio.get_running_loop().time() < ends and await database.do(partial(_may_run, run_id)):
        await asyncio.sleep(WATCH_SECONDS)
    progress.stop.set()


async def _work(plan: Plan, gateway: Gateway, lease_id: int, progress: _Progress) -> None:
    """One feeder leases units a little ahead; as many slots as calls may be in flight take them."""
    queue: asyncio.Queue[Work | None] = asyncio.Queue(maxsize=plan.max_in_flight)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(plan, gateway.database, lease_id, queue, progress))
            for _ in range(plan.max_in_flight):
                group.create_task(_slot(plan, gateway, lease_id, queue, progress))
    except ExceptionGroup as errors:
        # The first one ended the others; who called knows it by its own class.
        raise errors.exceptions[0] from None


async def _feed(
    plan: Plan,
    database: DatabaseThread,
    lease_id: int,
    queue: asyncio.Queue[Work | None],
    progress: _Progress,
) -> None:
    take = partial(units_take, run_id=plan.run_id, lease_id=lease_id, limit=plan.max_in_flight)
    while not progress.stop.is_set() and await database.do(partial(_may_run, plan.run_id)):
        if not (taken := await database.do(take)):
            break
        for work in taken:
            await queue.put(work)
    for _ in range(plan.max_in_flight):
        await queue.put(None)


def _may_run(run_id: int) -> bool:
    """Somebody may have paused or cancelled the run meanwhile."""
    return Run.objects.filter(pk=run_id, state=Run.State.RUNNING).exists()


async def _slot(
    plan: Plan, gateway: Gateway, lease_id: int, queue: asyncio.Queue[Work | None], progress: _Progress
) -> None:
    while (work := await queue.get()) is not None:
        if progress.stop.is_set():
            continue  # given back with the lease
        try:
            result = await _judge(plan, gateway, work)
        except EndpointDown as down:
            progress.down(str(down), lasting=down.lasting)
            continue
        save = partial(
            unit_finish,
            run_id=plan.run_id,
            lease_id=lease_id,
            work=work,
            result=result,
            criterion_ids=plan.criterion_ids,
        )
        if await gateway.database.do(save):
            progress.finished(_error(result))


async def _judge(plan: Plan, gateway: Gateway, work: Work) -> GroupResult:
    group = plan.groups[work.group]
    placebo = group.setup.ablation == "placebo_briefs"
    another = partial(other_chat, run_id=plan.run_id, chat_id=work.chat_id)
    return await judge_group(
        chat=work.chat,
        criteria=group.criteria,
        setup=group.setup,
        model=GatewayModel(gateway, plan.run_id, work.unit_id, plan.sample),
        fence_secret=plan.fence_secret,
        other_chat=await gateway.database.do(another) if placebo else None,
        audit=plan.audit,
    )


def _error(result: GroupResult) -> str:
    return next((v.explanation or "failed" for v in result.verdicts if v.state == "failed"), "")
