"""Probes a judge with attacks, harmless changes, an altered article, and repeated questions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction

from common.problems import InputProblem
from evaluation.core.types import Chat
from evaluation.engines.core.injection_detection import chat_flags
from evaluation.gateway.budget import budget_check
from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.judges import Judge
from evaluation.probes.core import KINDS, Direction, attacks, probe_report
from evaluation.probes.worker.cases import Case, Suite, articles_read, probe_cases
from evaluation.probes.worker.probes import calls_paid, probe_plan, probes_ask, probes_cost
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.services.runs import chosen_criteria
from evaluation.runs.worker.process_units import Plan
from labeling.models.chats import ChatSet


@dataclass(frozen=True, slots=True)
class ProbeChoice:
    """The scope of a probe: criteria (none = the rubric), a split ("" = all), the first `limit` chats.

    `kinds` and `directions` select attacks (none = all). `altered` is an article's key and another text. With
    `budget_usd`, a probe that may cost more is refused before the first call.
    """

    criteria: Sequence[str] = ()
    split: str = ""
    limit: int | None = None
    kinds: Sequence[str] = ()
    directions: Sequence[Direction] = ()
    repeats: int = 1
    harmless: bool = True
    altered: tuple[str, str] | None = None
    budget_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """A judge and its cases, ready to run. Only the answers are stored."""

    judge: Judge
    plan: Plan
    chats: dict[str, Chat]
    cases: tuple[Case, ...]


def probe_estimate(
    *, chat_set: ChatSet, judge: JudgeSpec, choice: ProbeChoice, endpoint: Endpoint
) -> dict[str, Any]:
    """Return the calls and cost of a probe; sends and writes nothing. Raises InputProblem."""
    with transaction.atomic():
        probe = probe_prepare(chat_set=chat_set, judge=judge, choice=choice, endpoint=endpoint)
        walker = probes_cost(probe.plan, probe.cases)
        transaction.set_rollback(True)
    return {"chats": len(probe.chats), "cases": len(probe.cases)} | walker.as_json()


def probe_prepare(
    *,
    chat_set: ChatSet,
    judge: JudgeSpec,
    choice: ProbeChoice,
    endpoint: Endpoint,
    max_in_flight: int | None = None,
) -> Probe:
    """Return today's judge and its cases. Raises InputProblem."""
    criteria = chosen_criteria(chat_set, choice.criteria)
    suite = _suite(choice)
    row = judge_ensure(choice=judge, criteria=criteria, endpoint=endpoint, by=None)
    plan = probe_plan(row, max_in_flight=max_in_flight)
    if choice.altered and choice.altered[0] not in articles_read(list(plan.groups.values())):
        raise InputProblem(f"--altered: no chosen criterion reads the article {choice.altered[0]!r}")
    chats = _chats(chat_set, choice)
    cases = tuple(probe_cases(chats=chats, groups=plan.groups, suite=suite))
    if choice.budget_usd is not None:
        _refuse_above(choice.budget_usd, plan, cases)
    return Probe(row, plan, chats, cases)


def probe_judge(probe: Probe, *, chat_set: ChatSet, on_case: Callable[[], None]) -> dict[str, Any]:
    """Run all cases and return the report (docs/reference/commands.md). Raises OutsideFailure."""
    results = probes_ask(probe.plan, probe.cases, on_case=on_case)
    flagged = sum(bool(chat_flags(chat)) for chat in probe.chats.values())
    return {
        "set": chat_set.name,
        "judge": {
            "name": probe.judge.name,
            "fingerprint": probe.judge.fingerprint,
            "engine": probe.judge.engine,
            "model": probe.judge.model,
        },
        "chats": len(probe.chats),
        "flagged_as_they_are": flagged,
        **probe_report(results.trials),
        "failed": results.failed,
        "calls": len(results.calls),
        "reused": results.reused,
        **calls_paid(results.calls),
    }


def _refuse_above(budget: Decimal, plan: Plan, cases: Sequence[Case]) -> None:
    budget_check(budget=budget, models=plan.models, prices=plan.prices)
    worst = probes_cost(plan, cases).cost_usd
    if worst is None or worst > budget:
        raise InputProblem(f"--budget: this probe may cost ${worst:.4f}; choose fewer chats or kinds")


def _suite(choice: ProbeChoice) -> Suite:
    unknown = [kind for kind in choice.kinds if kind not in KINDS]
    if unknown:
        raise InputProblem(f"--kinds: {unknown[0]!r} is not one of {', '.join(KINDS)}")
    chosen = tuple(attacks(kinds=choice.kinds, directions=choice.directions))
    return Suite(chosen, choice.repeats, choice.harmless, choice.altered)


def _chats(chat_set: ChatSet, choice: ProbeChoice) -> dict[str, Chat]:
    members = chat_set.members.select_related("chat").order_by("position")
    if choice.split:
        members = members.filter(split=choice.split)
    chats = {member.chat.external_id: core_chat(member.chat) for member in members[: choice.limit]}
    if not chats:
        where = f"split {choice.split!r} of " if choice.split else ""
        raise InputProblem(f"--set: no chats in {where}the set {chat_set.name!r}")
    return chats
