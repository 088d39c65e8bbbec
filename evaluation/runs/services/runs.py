"""Starts runs: the whole plan is in the database before the first call."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db import models, transaction
from django.db.models import Exists, OuterRef

from common.problems import InputProblem
from evaluation.core.types import ModelAt
from evaluation.gateway.budget import budget_check, budget_recount
from evaluation.gateway.current import prices_at
from evaluation.gateway.endpoints import Endpoint, endpoint_name
from evaluation.gateway.rows import rows_insert
from evaluation.gateway.simulated import OUTSIDE, SIMULATED_MODEL
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import groups_of
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.judges import Judge
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import ON_WORKER, Run, RunChat, Unit
from labeling.models.chats import ChatSet, ChatSetMember, ChatSetMemberQuerySet, Split
from labeling.models.imports import DataImport
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion

BATCH = 2000


class RunRefused(InputProblem):
    """A run that cannot be planned; the message says why."""


@dataclass(frozen=True, slots=True)
class RunChoice:
    """The scope of a run: criteria (none = the whole rubric), a split ("" = all), the first `limit` chats.

    `chats` selects members of the set by id. `purpose`: a try never covers a chat that is holdout in any set.
    `budget_usd` limits the cost. `audit` is the share of readable answers (0 to 1) that the formatter reads
    again without their block; verdicts do not change. No two runs have the same `source_hash`.
    """

    criteria: Sequence[str] = ()
    split: str = ""
    limit: int | None = None
    chats: Sequence[int] | None = None
    replicate: int = 0
    mode: Run.Mode = Run.Mode.LIVE
    purpose: Run.Purpose = Run.Purpose.EVALUATION
    budget_usd: Decimal | None = None
    audit: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    source_hash: str = ""


@transaction.atomic
def run_start(
    *,
    chat_set: ChatSet,
    judge: JudgeSpec,
    run: RunChoice,
    endpoint: Endpoint,
    by: User | None = None,
    prompts: Collection[PromptVersion] = (),
) -> Run:
    """Plan a run: judge, pinned chats, one unit per chat and group of criteria.

    `prompts` replace their criteria's champions.

    Raises RunRefused; InputProblem for a budget that cannot be kept without a price.
    """
    _endpoint_check(judge, run.mode, endpoint)
    if DataImport.objects.writing_to(chat_set.name).exists():
        raise RunRefused(f"an import is writing to the set {chat_set.name!r}: wait until it ends")
    criteria = chosen_criteria(chat_set, run.criteria)
    row = judge_ensure(choice=judge, criteria=criteria, endpoint=endpoint, prompts=prompts, by=by)
    return run_plan(chat_set=chat_set, judge=row, run=run, by=by)


@transaction.atomic
def run_plan(*, chat_set: ChatSet, judge: Judge, run: RunChoice, by: User | None = None) -> Run:
    """Plan a run of a judge that exists, as run_start does.

    Raises RunRefused; InputProblem for a budget that cannot be kept without a price.
    """
    members = list(chosen_members(chat_set, run).values_list("chat_id", "split"))
    _budget_check(judge, run.budget_usd)
    started = Run.objects.create(
        judge=judge,
        chat_set=chat_set,
        replicate=run.replicate,
        mode=run.mode,
        purpose=run.purpose,
        budget_usd=run.budget_usd,
        source_hash=run.source_hash,
        options={
            "criteria": list(run.criteria),
            "split": run.split,
            "limit": run.limit,
            "audit": run.audit,
            **run.options,
        },
        units_total=len(members) * _group_count(judge),
        started_by=by,
    )
    _add_chats((RunChat(run=started, chat_id=chat_id, split=split) for chat_id, split in members))
    _add_units(started, judge, [chat_id for chat_id, _ in members])
    return started


@transaction.atomic
def run_repeat(
    run: Run, *, purpose: Run.Purpose, budget_usd: Decimal | None, on_worker: bool, by: User | None = None
) -> Run:
    """Plan the same judge over the same chats under the next free replicate, without stored answers.

    The run uses single requests, even if the first one used the Batch API. Raises InputProblem for a budget
    that cannot be kept without a price.
    """
    _budget_check(run.judge, budget_usd)
    rows = run.run_chats.filter(chat__text_deleted_at=None)
    covered = list(rows.values_list("chat_id", "split", "weight"))
    repeated = Run.objects.create(
        judge=run.judge,
        chat_set=run.chat_set,
        replicate=next_replicate(judge=run.judge, chat_set=run.chat_set),
        mode=Run.Mode.LIVE,
        purpose=purpose,
        budget_usd=budget_usd,
        options=run.options | {ON_WORKER: on_worker},
        units_total=len(covered) * _group_count(run.judge),
        started_by=by,
    )
    _add_chats((RunChat(run=repeated, chat_id=chat, split=split, weight=w) for chat, split, w in covered))
    _add_units(repeated, run.judge, [chat for chat, _, _ in covered])
    return repeated


def next_replicate(*, judge: Judge, chat_set: ChatSet | None) -> int:
    """Return the first unused replicate of this judge on this set; 1 if it has not run there."""
    same = Run.objects.filter(judge=judge, chat_set=chat_set)
    return int(same.aggregate(last=models.Max("replicate"))["last"] or 0) + 1


@transaction.atomic
def budget_change(run: Run, budget: Decimal) -> None:
    """Change a run's budget. Raises InputProblem if it is already spent or a price is unknown."""
    _budget_check(run.judge, budget)
    # A run without a budget has reserved nothing.
    budget_recount(run.pk)
    run.refresh_from_db(fields=["committed_usd"])
    if budget <= run.committed_usd:
        raise InputProblem(f"run {run.pk} has already spent ${run.committed_usd:.4f}: set a larger budget")
    run.budget_usd = budget
    run.save(update_fields=["budget_usd"])


def chosen_criteria(chat_set: ChatSet, keys: Sequence[str]) -> list[Criterion]:
    """Return the active criteria of the set's rubric, or the named ones. Raises RunRefused."""
    rows = list(
        chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)
        .select_related("dimension")
        .order_by("dimension__position", "position")
    )
    unknown = sorted(set(keys) - {row.key for row in rows})
    if unknown:
        raise RunRefused(
            f"--criteria: {unknown[0]!r} is not an active criterion of the rubric {chat_set.rubric.name!r}"
        )
    if not rows:
        raise RunRefused(f"the rubric {chat_set.rubric.name!r} has no active criterion")
    return [row for row in rows if not keys or row.key in keys]


def asked_together(
    *, chat_set: ChatSet, criterion: Criterion, judge: JudgeSpec, endpoint: Endpoint
) -> tuple[str, ...]:
    """Return the keys of the criteria that share a call with this one: changing one affects them all.

    Raises RunRefused for a criterion that is not in the set's rubric.
    """
    criteria = chosen_criteria(chat_set, ())
    for _, keys in groups_of(choice=judge, endpoint=endpoint, criteria=criteria):
        if criterion.key in keys:
            return keys
    raise RunRefused(f"{criterion.key} is not an active criterion of the rubric {chat_set.rubric.name!r}")


def chosen_members(chat_set: ChatSet, run: RunChoice) -> ChatSetMemberQuerySet:
    """Return the chats of a run that have a text, in the set's order. Raises RunRefused if there are none."""
    members = chat_set.members.filter(chat__text_deleted_at=None).order_by("position")
    if run.split:
        members = members.filter(split=run.split)
    if run.chats is not None:
        members = _named(members, run.chats, chat_set)
    if not members.exists():
        where = f"split {run.split!r} of " if run.split else ""
        raise RunRefused(f"no chats in {where}the set {chat_set.name!r}")
    if run.purpose == Run.Purpose.TRY and members.filter(_held_out()).exists():
        raise RunRefused("a try cannot use holdout chats")
    return members[: run.limit] if run.limit else members


def _named(
    members: ChatSetMemberQuerySet, chat_ids: Sequence[int], chat_set: ChatSet
) -> ChatSetMemberQuerySet:
    named = members.filter(chat__in=chat_ids)
    if strange := set(chat_ids) - set(named.values_list("chat_id", flat=True)):
        raise RunRefused(f"chat {min(strange)} is not in the set {chat_set.name!r}, or not in this split")
    return named


def _held_out() -> Exists:
    return Exists(ChatSetMember.objects.filter(chat=OuterRef("chat"), split=Split.HOLDOUT))


def _group_count(judge: Judge) -> int:
    return len(judge.config["groups"])


def _endpoint_check(judge: JudgeSpec, mode: str, endpoint: Endpoint) -> None:
    """Raise RunRefused for a batch at an endpoint without one, and for the simulated judge outside demos."""
    if mode == Run.Mode.BATCH:
        if endpoint.embedded or endpoint.simulated or not endpoint.batch:
            name = endpoint_name(endpoint.id) if not endpoint.name else f"the endpoint {endpoint.name}"
            raise RunRefused(f"{name} has no Batch API: use live mode")
        if set(judge.endpoints.values()) - {endpoint.id}:
            raise RunRefused("this judge asks several endpoints, and a batch only one: use live mode")
    named = endpoint.simulated or SIMULATED_MODEL in (judge.model, judge.formatter, *judge.models.values())
    if named and not Workspace.is_demo():
        raise RunRefused(OUTSIDE)


def _budget_check(judge: Judge, budget: Decimal | None) -> None:
    if budget is None:
        return
    models = {ModelAt(role["endpoint"], role["model"]) for role in judge.config["roles"].values()}
    budget_check(budget=budget, models=models, prices=prices_at(models))


def _add_units(run: Run, judge: Judge, chat_ids: Sequence[int]) -> None:
    """Store units in the order of work: those with the longer common prompt prefix are neighbours.

    NB: without the ORM, which takes longer for a unit than the unit's own work in the database.
    """
    groups = range(_group_count(judge))
    if judge.config["layout"] == "chat_first":
        places = ((chat_id, group) for chat_id in chat_ids for group in groups)
    else:
        places = ((chat_id, group) for group in groups for chat_id in chat_ids)
    rows = ((run.pk, chat_id, group, Unit.State.OPEN.value, 0, "") for chat_id, group in places)
    while some := list(islice(rows, BATCH)):
        rows_insert(Unit, ("run", "chat", "group", "state", "tries", "error"), some)


def _add_chats(rows: Iterable[RunChat]) -> None:
    """Store rows in batches, so that millions of chats never fill the memory."""
    rows = iter(rows)
    while some := list(islice(rows, BATCH)):
        RunChat.objects.bulk_create(some)
