"""Says what a run would ask and cost before it is started."""

from collections.abc import Collection, Sequence

from django.db import transaction

from evaluation.core.choice import JudgeChoice
from evaluation.gateway.endpoints import Endpoint
from evaluation.models.prompts import PromptVersion
from evaluation.runner.estimate import Estimate, Scope, asking_of, plan_estimate
from evaluation.services.judges import judge_ensure
from evaluation.services.runs import RunChoice, chosen_criteria, chosen_members
from labeling.models.chats import ChatSet


def estimate_for(
    *,
    chat_set: ChatSet,
    judge: JudgeChoice,
    run: RunChoice,
    endpoint: Endpoint,
    most_chats: int | None = None,
    prompts: Collection[PromptVersion] = (),
) -> Estimate:
    """What this choice would ask and cost today; `prompts` as for run_start, which raises the same.

    Of more than `most_chats` chats only so many are looked at, evenly spaced, and the figures scaled up. What
    the judge needs (its row, generated prompts) is made and taken back; a plan of units is never made.
    """
    chat_ids = list(chosen_members(chat_set, run).values_list("chat_id", flat=True))
    with transaction.atomic():
        criteria = chosen_criteria(chat_set, run.criteria)
        row = judge_ensure(choice=judge, criteria=criteria, endpoint=endpoint, prompts=prompts)
        asking = asking_of(row, replicate=run.replicate, audit=run.audit)
        transaction.set_rollback(True)
    groups = list(asking.groups)

    def every_group(chunk: Sequence[int]) -> dict[int, list[int]]:
        return dict.fromkeys(chunk, groups)

    return plan_estimate(
        asking=asking,
        scope=Scope(chat_ids, every_group),
        mode=run.mode,
        budget_usd=run.budget_usd,
        most_chats=most_chats,
    )
