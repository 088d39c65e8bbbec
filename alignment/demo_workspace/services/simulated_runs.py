"""Runs of the simulated judge, stored as a worker stores them, but each run in one transaction.

A worker's threads, heartbeats and many small transactions serve models that are slow; this one answers at
once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import cast

from django.db import transaction
from django.utils import timezone

from alignment.demo_workspace.core.plain_answers import plain_verdicts
from alignment.demo_workspace.services.demo_workspace import clock
from evaluation.core.hashing import text_hash
from evaluation.core.prefixes import Prefixes
from evaluation.core.types import Chat, GroupResult, ModelAt, Reply, Request
from evaluation.engines.core import judge_group
from evaluation.engines.core.session import Session
from evaluation.gateway.budget import worst_cost
from evaluation.gateway.ledger import Ask, CallUsed, Ended, Ledger, OpenedCall, call_key
from evaluation.gateway.model import reply_state
from evaluation.gateway.prices import cost
from evaluation.gateway.replies import Outcome
from evaluation.gateway.simulated import Answers, simulated_outcome
from evaluation.models.runs import FINISHED, Run, WorkerLease
from evaluation.runs.worker.execute import run_settle
from evaluation.runs.worker.leases import lease_begin
from evaluation.runs.worker.plan import plan_load
from evaluation.runs.worker.process_units import Group, Plan
from evaluation.runs.worker.units import JudgedUnit, UnitWriter, Work, units_take

# Requests that a worker would have in flight: they decide how long a run took.
IN_FLIGHT = 32
EVERY_UNIT = 1_000_000


@transaction.atomic
def run_simulate(run: Run, *, answers: Answers, memory: "Memory | None" = None) -> Run:
    """Judge all open units of a run, and end it as late as a worker would have.

    With a `memory`, the answer to a question that was asked before is not written and read again: it would be
    the same. NB: one memory for the same `answers` only.
    """
    if run.state in FINISHED:
        return run
    plan, begun = plan_load(run), timezone.now()
    lease = lease_begin(run.pk)
    units = units_take(run_id=run.pk, lease_id=lease.pk, limit=EVERY_UNIT)
    judged = asyncio.run(_judge_all(plan, units, answers, {} if memory is None else memory))
    calls = _Calls(plan, [asked for one in units for asked in judged[one.unit_id].asked])
    with clock(begun + timedelta(milliseconds=calls.latency_ms / IN_FLIGHT)):
        calls.end()
        done = [JudgedUnit(run.pk, lease.pk, one, judged[one.unit_id].stored(calls)) for one in units]
        UnitWriter(plan.criterion_ids).finish(done)
        # NB: all units have ended, so nothing refers to the lease; Django would ask nine tables for it.
        leases = WorkerLease.objects.filter(pk=lease.pk)
        leases._raw_delete(leases.db)
        run_settle(run, trouble="")
    return run


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A request with its answer; engines keep it as the handle of a call."""

    ask: Ask
    outcome: Outcome


@dataclass(slots=True)
class _Judged:
    """The simulated judge as the engine of one unit asks it, and what the engine made of its answers."""

    plan: Plan
    unit_id: int
    answers: Answers
    asked: list[_Asked] = field(default_factory=list)
    result: GroupResult | None = None

    async def complete(self, request: Request) -> Reply:
        """Answer at once; implements `Model`."""
        system, user = (message.text for message in request.messages)
        outcome = simulated_outcome(system=system, user=user, answers=self.answers)
        return Reply(reply_state(outcome), outcome.text, call=self._ask(request, outcome))

    def repeat(self, earlier: "_Judged") -> None:
        """Ask what was asked about the same chat before, with the same result."""
        again = {id(one): self._ask(one.ask.request, one.outcome) for one in earlier.asked}
        result = cast(GroupResult, earlier.result)
        uses = (replace(use, call=again[id(use.call)]) for use in result.calls)
        self.result = replace(result, calls=tuple(uses))

    def _ask(self, request: Request, outcome: Outcome) -> _Asked:
        plan, worst = self.plan, None
        if plan.budget_usd is not None:
            worst = worst_cost(request, plan.prices, profile=plan.profiles.get(request.at))
        sample = plan.replicate * plan.samples + request.sample
        ask = Ask(request, call_key(request, sample=sample), sample, plan.run_id, self.unit_id, worst)
        self.asked.append(asked := _Asked(ask, outcome))
        return asked

    def stored(self, calls: "_Calls") -> GroupResult:
        """Return the engine's result with the stored calls."""
        result = cast(GroupResult, self.result)
        uses = (replace(use, call=calls.used(cast(_Asked, use.call))) for use in result.calls)
        return replace(result, calls=tuple(uses))


# By the chat's content, and a hash of the criteria and their setup.
Memory = dict[tuple[str, str], _Judged]


async def _judge_all(
    plan: Plan, units: Sequence[Work], answers: Answers, memory: Memory
) -> Mapping[int, _Judged]:
    """Judge units, by id. Those of a chat follow each other: its fences and flags are computed once."""
    judged: dict[int, _Judged] = {}
    asked = {number: text_hash(repr((plan.fence_secret, group))) for number, group in plan.groups.items()}
    for work in sorted(units, key=lambda one: (one.chat_id, one.group)):
        group = plan.groups[work.group]
        model = judged[work.unit_id] = _Judged(plan, work.unit_id, answers)
        if (earlier := memory.get((work.chat.content_hash, asked[work.group]))) is not None:
            model.repeat(earlier)
            continue
        memory[work.chat.content_hash, asked[work.group]] = model
        model.result = await _plain_result(work.chat, group, model) or await judge_group(
            chat=work.chat,
            criteria=group.criteria,
            setup=group.setup,
            model=model,
            fence_secret=plan.fence_secret,
            audit=plan.audit,
        )
    return judged


async def _plain_result(chat: Chat, group: Group, model: _Judged) -> GroupResult | None:
    """Return the result of the engine `direct`; None, with nothing asked, where that has to look itself."""
    setup, plan = group.setup, model.plan
    others = (setup.samples > 1, setup.windows, setup.knowledge == "retrieved", plan.audit)
    if setup.engine != "direct" or any(others):
        return None
    session = Session(chat, group.criteria, setup, model, plan.fence_secret)
    reply = await session.reason("direct")
    verdicts = plain_verdicts(reply.text, chat=chat, criteria=group.criteria)
    if verdicts is None:
        model.asked.clear()
        return None
    return GroupResult(verdicts, session.calls)


class _Calls:
    """The calls of a run: stored, or found where the same question was answered before."""

    def __init__(self, plan: Plan, asked: Sequence[_Asked]) -> None:
        self._plan, self._ledger = plan, Ledger()
        opened = self._ledger.open([one.ask for one in asked])
        self._opened: list[tuple[_Asked, OpenedCall]] = list(zip(asked, opened, strict=True))
        self._ids = {one.ask.key: call.call_id for one, call in self._opened}
        # Only the first of equal questions was sent, unless an earlier run had sent it.
        self._sent = [(one, call) for one, call in self._opened if call.to_send]
        self._paid = {id(one): used for one, used in self._used_first()}

    @property
    def latency_ms(self) -> int:
        """How long the requests took, one after the other."""
        return sum(one.outcome.latency_ms or 0 for one, _ in self._sent)

    def end(self) -> None:
        """Store the answers."""
        self._ledger.end(
            [
                Ended(one.ask, call, one.outcome, reply_state(one.outcome), self._cost(one))
                for one, call in self._sent
            ]
        )

    def used(self, asked: _Asked) -> CallUsed:
        """Return the stored call of a request."""
        return self._paid.get(id(asked)) or CallUsed(self._ids[asked.ask.key], reused=True)

    def _used_first(self) -> list[tuple[_Asked, CallUsed]]:
        prefixes: dict[ModelAt, Prefixes] = {}
        used = []
        for one, call in self._sent:
            request, outcome = one.ask.request, one.outcome
            characters, repeated = prefixes.setdefault(request.at, Prefixes()).add(request.messages)
            stored = CallUsed(
                call.call_id,
                reused=False,
                prompt_tokens=outcome.prompt_tokens or 0,
                cached_tokens=outcome.cached_tokens or 0,
                completion_tokens=outcome.completion_tokens or 0,
                prompt_chars=characters,
                repeated_chars=repeated,
            )
            used.append((one, stored))
        return used

    def _cost(self, one: _Asked) -> Decimal | None:
        return cost(
            prices=self._plan.prices,
            model=one.ask.request.at,
            prompt_tokens=one.outcome.prompt_tokens,
            completion_tokens=one.outcome.completion_tokens,
            cached_tokens=one.outcome.cached_tokens,
        )
