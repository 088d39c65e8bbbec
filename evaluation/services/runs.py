"""Starts runs: the whole plan is in the database before the first call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from evaluation.core.choice import JudgeChoice
from evaluation.gateway.budget import budget_check
from evaluation.gateway.endpoints import Endpoint
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Unit
from evaluation.runner.plan import current_prices
from evaluation.services.judges import judge_ensure
from labeling.core.problems import InputProblem
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.models.rubric import Criterion

BATCH = 2000


class RunRefused(InputProblem):
    """A run that cannot be planned; the message names what is wrong."""


@dataclass(frozen=True, slots=True)
class RunChoice:
    """What a run covers: criteria (none = the whole rubric), a split ('' = all), the first `limit` chats.

    `budget_usd` caps what it may spend. `audit` is the share of readable answers (0 to 1) that the formatter
    reads once more without their block; verdicts do not depend on it. No two runs share a `source_hash`.
    """

    criteria: Sequence[str] = ()
    split: str = ""
    limit: int | None = None
    replicate: int = 0
    mode: Run.Mode = Run.Mode.LIVE
    budget_usd: Decimal | None = None
    audit: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    source_hash: str = ""


@transaction.atomic
def run_start(
    *, chat_set: ChatSet, judge: JudgeChoice, run: RunChoice, endpoint: Endpoint, by: User | None = None
) -> Run:
    """Plan a run: judge, pinned chats, one unit for each chat and criteria group.

    Raises RunRefused; InputProblem for a budget that cannot be kept without a price.
    """
    if run.mode == Run.Mode.BATCH and endpoint.embedded:
        raise RunRefused("the embedded model has no Batch API: ask it one request a call")
    criteria = chosen_criteria(chat_set, run.criteria)
    members = list(chosen_members(chat_set, run))
    row = judge_ensure(choice=judge, criteria=criteria, endpoint=endpoint)
    models = {role["model"] for role in row.config["roles"].values()}
    budget_check(budget=run.budget_usd, models=models, prices=current_prices())
    started = Run.objects.create(
        judge=row,
        chat_set=chat_set,
        replicate=run.replicate,
        mode=run.mode,
        budget_usd=run.budget_usd,
        source_hash=run.source_hash,
        options={
            "criteria": list(run.criteria),
            "split": run.split,
            "limit": run.limit,
            "audit": run.audit,
            **run.options,
        },
        units_total=len(members) * _group_count(row),
        started_by=by,
    )
    RunChat.objects.bulk_create(
        (RunChat(run=started, chat_id=member.chat_id, split=member.split) for member in members),
        batch_size=BATCH,
    )
    Unit.objects.bulk_create(_units(started, row, members), batch_size=BATCH)
    return started


def chosen_criteria(chat_set: ChatSet, keys: Sequence[str]) -> list[Criterion]:
    """The active criteria of the set's rubric, or those named. Raises RunRefused."""
    rows = list(
        chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)
        .select_related("dimension")
        .order_by("dimension__position", "position")
    )
    unknown = sorted(set(keys) - {row.key for row in rows})
    if unknown:
        raise RunRefused(
            f"--criteria: {unknown[0]!r} is no active criterion of the rubric {chat_set.rubric.name!r}"
        )
    if not rows:
        raise RunRefused(f"the rubric {chat_set.rubric.name!r} has no active criterion")
    return [row for row in rows if not keys or row.key in keys]


def chosen_members(chat_set: ChatSet, run: RunChoice) -> QuerySet[ChatSetMember]:
    """The chats a run is to cover, in the set's order. Raises RunRefused when there is none."""
    members = chat_set.members.order_by("position")
    if run.split:
        members = members.filter(split=run.split)
    if not members.exists():
        where = f"split {run.split!r} of " if run.split else ""
        raise RunRefused(f"no chats in {where}the set {chat_set.name!r}")
    return members[: run.limit] if run.limit else members


def _group_count(judge: Judge) -> int:
    return len(judge.config["groups"])


def _units(run: Run, judge: Judge, members: list[ChatSetMember]) -> list[Unit]:
    """In the order of work: what shares the longer prompt prefix stays together."""
    groups = range(_group_count(judge))
    if judge.config["layout"] == "chat_first":
        pairs = [(member.chat_id, group) for member in members for group in groups]
    else:
        pairs = [(member.chat_id, group) for group in groups for member in members]
    return [Unit(run=run, chat_id=chat_id, group=group) for chat_id, group in pairs]
