"""What a run would ask and cost, found by walking its plan without sending anything."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async

from evaluation.core.engines import judge_group
from evaluation.core.types import Chat as CoreChat
from evaluation.core.types import Reply, Request
from evaluation.gateway.ledger import STORED_STATES, call_key, stored_reply
from evaluation.gateway.prices import Price, cost
from evaluation.models.runs import ModelCall, Run
from evaluation.runner.drain import Group, Plan
from evaluation.runner.plan import plan_load
from evaluation.runner.units import core_chat
from labeling.models.chats import Chat

# English prose in common tokenisers; the real count comes with the answers.
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would ask if every answer can be read by rule; completion tokens are the limit.

    `calls` would be sent; `reused` are answered already, or asked by another unit of the same run.
    """

    chats: int
    units: int
    calls: int
    reused: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal | None

    def as_json(self) -> dict[str, Any]:
        """The dry run's answer."""
        return {
            "chats": self.chats,
            "units": self.units,
            "calls": self.calls,
            "reused": self.reused,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
        }


@dataclass(slots=True)
class _Tally:
    """What was asked so far."""

    asked: set[str] = field(default_factory=set)
    reused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)


@dataclass(slots=True)
class _Walker:
    """A Model that answers from the store, else with prose and a readable block; it counts the questions."""

    sample: int
    keys: Sequence[str]
    prices: dict[str, Price]
    tally: _Tally

    async def complete(self, request: Request) -> Reply:
        key = call_key(request, sample=self.sample)
        stored = await sync_to_async(_stored)(key)
        if stored is not None or key in self.tally.asked:
            self.tally.reused += 1
        else:
            self.tally.asked.add(key)
            self._count(request)
        return stored or Reply(
            "answered", "Prose.\n\nVERDICTS\n" + "\n".join(f"{key}: TRUE" for key in self.keys)
        )

    def _count(self, request: Request) -> None:
        tokens = sum(len(message.text) for message in request.messages) // CHARACTERS_PER_TOKEN
        price = cost(
            prices=self.prices,
            model=request.model,
            prompt_tokens=tokens,
            completion_tokens=request.max_tokens,
        )
        tally = self.tally
        tally.prompt_tokens += tokens
        tally.completion_tokens += request.max_tokens
        tally.cost_usd = None if price is None or tally.cost_usd is None else tally.cost_usd + price


def run_estimate(run: Run) -> Estimate:
    """Walk a planned run; nothing is sent and nothing is written. Raises what plan_load raises."""
    plan, tally = plan_load(run), _Tally()
    chats = {row.pk: core_chat(row) for row in Chat.objects.filter(pk__in=run.run_chats.values("chat_id"))}
    for chat_id, group in run.units.order_by("id").values_list("chat_id", "group"):
        # async_to_sync lets the walker's queries run in this very thread, on this connection.
        async_to_sync(_walk)(plan, plan.groups[group], chats[chat_id], tally)
    return Estimate(
        chats=len(chats),
        units=run.units_total,
        calls=len(tally.asked),
        reused=tally.reused,
        prompt_tokens=tally.prompt_tokens,
        completion_tokens=tally.completion_tokens,
        cost_usd=tally.cost_usd,
    )


async def _walk(plan: Plan, group: Group, chat: CoreChat, tally: _Tally) -> None:
    keys = [criterion.key for criterion in group.criteria]
    await judge_group(
        chat=chat,
        criteria=group.criteria,
        setup=group.setup,
        model=_Walker(plan.replicate, keys, plan.prices, tally),
        fence_secret=plan.fence_secret,
    )


def _stored(key: str) -> Reply | None:
    call = ModelCall.objects.filter(key=key, state__in=STORED_STATES).first()
    return stored_reply(call) if call is not None else None
