"""Runs a probe's cases against the endpoint, outside of runs; answers are stored like any other."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.db.models import Count, Q, Sum

from common.problems import OutsideFailure
from evaluation.core.types import Embedder, GroupResult, Model, Reply, Request, VerdictResult
from evaluation.engines.core import judge_group
from evaluation.gateway.budget import prompt_tokens_at_most
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.embeddings import Embeddings, UnitEmbedder
from evaluation.gateway.ledger import STORED_STATES, CallUsed, call_key, stored_reply
from evaluation.gateway.model import GatewayModel
from evaluation.gateway.prices import cost
from evaluation.gateway.throttle import EndpointDown
from evaluation.gateway.writer import DatabaseThread
from evaluation.models.judges import Judge
from evaluation.models.runs import ModelCall, Run
from evaluation.probes.core import Trial
from evaluation.probes.worker.cases import Case
from evaluation.runs.worker.plan import plan_load
from evaluation.runs.worker.process_units import FAILURES_IN_A_ROW, Plan, gateway_open
from evaluation.runs.worker.replay import StoredVectors

LOT = 500


@dataclass(slots=True)
class ProbeResults:
    """The results of the cases. `failed` cases have no answer for an outside reason and are not trials."""

    trials: list[Trial] = field(default_factory=list)
    calls: set[int] = field(default_factory=set)
    reused: int = 0
    failed: int = 0


def probe_plan(judge: Judge, *, max_in_flight: int | None = None) -> Plan:
    """Return the plan of an unsaved run of this judge; raises what plan_load raises."""
    return plan_load(Run(judge=judge), max_in_flight=max_in_flight)


def probes_ask(plan: Plan, cases: Iterable[Case], *, on_case: Callable[[], None]) -> ProbeResults:
    """Judge every case; `on_case` is called after each. Raises OutsideFailure if the endpoint is down.

    Calls are addressed by content: repeating a probe asks only what has no stored answer.
    """
    with DatabaseThread() as database:
        try:
            return asyncio.run(_ask(plan, database, enumerate(cases), on_case))
        except (EndpointDown, EmbeddedModelError) as error:
            raise OutsideFailure(f"{error}; answers are stored: repeat the command to continue") from error


async def _ask(
    plan: Plan, database: DatabaseThread, cases: Iterator[tuple[int, Case]], on_case: Callable[[], None]
) -> ProbeResults:
    collector = _Collector()
    async with gateway_open(plan, database) as gateway:
        embedder = UnitEmbedder(Embeddings(gateway, plan.embedding_model), None, None)

        async def serve() -> None:
            for place, case in cases:
                cache_key = f"{plan.fingerprint}:{case.group}"
                model = GatewayModel(gateway, None, None, first_sample(case), cache_key)
                result = await judge_case(case, model=model, plan=plan, embedder=embedder)
                collector.add(place, case, result)
                on_case()

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(plan.max_in_flight + plan.ahead):
                    group.create_task(serve())
        except ExceptionGroup as errors:
            # The first error ended the others; callers know it by its own class.
            raise errors.exceptions[0] from None
    return collector.results()


def first_sample(case: Case) -> int:
    """Return the index of a case's first answer, as in a run of this replicate."""
    return case.replicate * case.setup.samples


async def judge_case(
    case: Case, *, model: Model, plan: Plan, embedder: Embedder | None = None
) -> GroupResult:
    """Return the engine's answer to a case."""
    return await judge_group(
        chat=case.chat,
        criteria=case.criteria,
        setup=case.setup,
        model=model,
        fence_secret=plan.fence_secret,
        embedder=embedder,
    )


@dataclass(slots=True)
class _Collector:
    """Collects answers in any order and returns them in the order of the cases."""

    own: dict[tuple[str, int], Mapping[str, VerdictResult]] = field(default_factory=dict)
    probed: dict[int, tuple[Case, tuple[VerdictResult, ...]]] = field(default_factory=dict)
    calls: set[int] = field(default_factory=set)
    reused: int = 0
    failed_in_a_row: int = 0

    def add(self, place: int, case: Case, result: GroupResult) -> None:
        for use in result.calls:
            if isinstance(use.call, CallUsed) and not use.call.reused:
                self.calls.add(use.call.call_id)
            else:
                self.reused += 1
        failed = next((v.explanation for v in result.verdicts if v.state == "failed"), None)
        self.failed_in_a_row = 0 if failed is None else self.failed_in_a_row + 1
        if self.failed_in_a_row >= FAILURES_IN_A_ROW:
            raise EndpointDown(f"{failed or 'failed'} ({self.failed_in_a_row} times in a row)")
        if case.probe is None:
            self.own[case.chat_id, case.group] = {v.criterion: v for v in result.verdicts}
        else:
            self.probed[place] = (case, result.verdicts)

    def results(self) -> ProbeResults:
        results = ProbeResults(calls=self.calls, reused=self.reused)
        for _, (case, verdicts) in sorted(self.probed.items()):
            own = self.own[case.chat_id, case.group]
            for after in verdicts:
                before = own[after.criterion]
                if case.probe is None or "failed" in (before.state, after.state):
                    results.failed += 1
                else:
                    results.trials.append(Trial(case.probe, case.chat_id, before, after, case.detected))
        return results


def calls_paid(call_ids: Iterable[int]) -> dict[str, Any]:
    """Return tokens and cost of these calls; the cost is None if one has no price."""
    ids, total = sorted(call_ids), {"prompt_tokens": 0, "completion_tokens": 0, "unpriced": 0}
    dollars = Decimal(0)
    for start in range(0, len(ids), LOT):
        sums = ModelCall.objects.filter(pk__in=ids[start : start + LOT]).aggregate(
            prompt_tokens=Sum("prompt_tokens", default=0),
            completion_tokens=Sum("completion_tokens", default=0),
            unpriced=Count("id", filter=Q(cost_usd__isnull=True)),
            dollars=Sum("cost_usd", default=Decimal(0)),
        )
        dollars += sums.pop("dollars")
        total = {name: total[name] + value for name, value in sums.items()}
    unpriced = total.pop("unpriced")
    return total | {"cost_usd": None if unpriced else float(dollars)}


@dataclass(slots=True)
class CostModel:
    """A Model that answers from the store, else with a readable block; it counts the new questions."""

    plan: Plan
    asked: set[str] = field(default_factory=set)
    reused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    case: Case | None = None

    async def complete(self, request: Request) -> Reply:
        case = self.case
        assert case is not None  # noqa: S101  set before each walk
        key = call_key(request, sample=first_sample(case) + request.sample)
        stored = await sync_to_async(_stored)(key)
        if stored is not None or key in self.asked:
            self.reused += 1
        else:
            self.asked.add(key)
            self._count(request)
        block = "\n".join(f"{criterion.key}: TRUE" for criterion in case.criteria)
        return stored or Reply("answered", f"Prose.\n\nVERDICTS\n{block}")

    def _count(self, request: Request) -> None:
        tokens = prompt_tokens_at_most(request)
        price = cost(
            prices=self.plan.prices,
            model=request.at,
            prompt_tokens=tokens,
            completion_tokens=request.max_tokens,
        )
        self.prompt_tokens += tokens
        self.completion_tokens += request.max_tokens
        self.cost_usd = None if price is None or self.cost_usd is None else self.cost_usd + price

    def as_json(self) -> dict[str, Any]:
        """Return the highest possible calls, tokens and cost: completion tokens are the limits."""
        return {
            "calls": len(self.asked),
            "reused": self.reused,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
        }


def probes_cost(plan: Plan, cases: Iterable[Case]) -> CostModel:
    """Count the calls of the cases without sending anything."""
    walker = CostModel(plan)
    for case in cases:
        walker.case = case
        embedder = StoredVectors(endpoint=plan.endpoint.id, model=plan.embedding_model)
        async_to_sync(judge_case)(case, model=walker, plan=plan, embedder=embedder)
    return walker


def _stored(key: str) -> Reply | None:
    call = ModelCall.objects.filter(key=key, state__in=STORED_STATES).first()
    return stored_reply(call) if call is not None else None
