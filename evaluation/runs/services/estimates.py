"""Estimates the calls and cost of a run before it starts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from django.db import transaction

from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.runs.queries.pace import calls_a_second
from evaluation.runs.services.runs import RunChoice, chosen_criteria, chosen_members, next_replicate
from evaluation.runs.worker.estimate import Asking, Estimate, Scope, asking_of, plan_estimate
from labeling.models.chats import ChatSet


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """Today's plan of a choice: judge, requests, chats, and the next free replicate.

    `pace` is in calls per second, from earlier similar runs; None without any.
    """

    fingerprint: str
    asking: Asking
    chat_ids: Sequence[int]
    next_replicate: int
    mode: Run.Mode = Run.Mode.LIVE
    budget_usd: Decimal | None = None
    pace: float | None = None

    def again(self) -> "PlannedRun":
        """Return the plan of repeating the judge once more."""
        return replace(self, asking=replace(self.asking, replicate=self.next_replicate))


def estimate_for(
    *,
    chat_set: ChatSet,
    judge: JudgeSpec,
    run: RunChoice,
    endpoint: Endpoint,
    most_chats: int | None = None,
    prompts: Collection[PromptVersion] = (),
) -> Estimate:
    """Return the calls and cost of this choice today; `prompts` and errors as for run_start.

    Of more than `most_chats` chats only that many are used, evenly spaced, and the figures are scaled up.
    Rows that the judge needs are created and rolled back; units are never created.
    """
    planned = planned_for(chat_set=chat_set, judge=judge, run=run, endpoint=endpoint, prompts=prompts)
    return planned_estimate(planned, most_chats=most_chats)


def planned_for(
    *,
    chat_set: ChatSet,
    judge: JudgeSpec,
    run: RunChoice,
    endpoint: Endpoint,
    prompts: Collection[PromptVersion] = (),
) -> PlannedRun:
    """Return what run_start would plan; everything is rolled back. Raises what run_start raises."""
    chat_ids = list(chosen_members(chat_set, run).values_list("chat_id", flat=True))
    with transaction.atomic():
        criteria = chosen_criteria(chat_set, run.criteria)
        row = judge_ensure(choice=judge, criteria=criteria, endpoint=endpoint, prompts=prompts, by=None)
        planned = PlannedRun(
            fingerprint=row.fingerprint,
            asking=asking_of(row, replicate=run.replicate, audit=run.audit),
            chat_ids=chat_ids,
            next_replicate=next_replicate(judge=row, chat_set=chat_set),
            mode=run.mode,
            budget_usd=run.budget_usd,
            pace=calls_a_second(row, max_in_flight=run.options.get("max_in_flight")),
        )
        transaction.set_rollback(True)
    return planned


def planned_as(run: Run, *, budget_usd: Decimal | None) -> PlannedRun:
    """Return the plan of an existing run; with this budget, `again()` is what run_repeat would plan."""
    audit = float(run.options.get("audit") or 0)
    return PlannedRun(
        fingerprint=run.judge.fingerprint,
        asking=asking_of(run.judge, replicate=run.replicate, audit=audit),
        chat_ids=list(run.run_chats.values_list("chat_id", flat=True)),
        next_replicate=next_replicate(judge=run.judge, chat_set=run.chat_set),
        budget_usd=budget_usd,
        pace=calls_a_second(run.judge, max_in_flight=run.options.get("max_in_flight")),
    )


def planned_estimate(
    planned: PlannedRun, *, most_chats: int | None = None, asked: set[str] | None = None
) -> Estimate:
    """Return the calls and cost of the plan; `asked` as for plan_estimate."""
    groups = list(planned.asking.groups)

    def every_group(chunk: Sequence[int]) -> dict[int, list[int]]:
        return dict.fromkeys(chunk, groups)

    return plan_estimate(
        asking=planned.asking,
        scope=Scope(planned.chat_ids, every_group),
        mode=planned.mode,
        budget_usd=planned.budget_usd,
        most_chats=most_chats,
        asked=asked,
        pace=planned.pace,
    )
