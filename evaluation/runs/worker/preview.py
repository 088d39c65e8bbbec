"""The messages that each role of a judge would receive about a chat, assembled by the engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from evaluation.core.types import Reply, Request, Role
from evaluation.engines.core import judge_group
from evaluation.engines.core.roles import ROLES, role_of
from evaluation.gateway.budget import prompt_tokens_at_most, token_limit, worst_cost
from evaluation.gateway.prices import price_sources
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.worker.estimate import Asking
from evaluation.runs.worker.replay import replay_together
from labeling.models.chats import Chat

# Marks an answer that the judge has not given yet. NB: without a VERDICTS block, so that the formatter is
# asked as well, and without anything that the engines would change in a brief.
PLACEHOLDERS: Mapping[Role, str] = {
    role.key: f"({role.name}: {'brief' if role.output == 'brief' else 'answer'})" for role in ROLES
}


@dataclass(frozen=True, slots=True)
class PreviewedCall:
    """One role's request about one window of the chat (`part`, from 0).

    `messages` are pairs of message role and text, as sent. Prompt tokens are estimated as characters / 4;
    completion tokens are the limit. `cost_usd` is the highest cost, None without a price. `times`: how often
    it is asked. `if_needed`: the formatter, which reads only what the rules cannot.
    """

    role: Role
    model: str
    part: int
    messages: tuple[tuple[str, str], ...]
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal | None
    times: int = 1
    if_needed: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """All requests about a chat by one group of criteria; the sums exclude requests made only if needed."""

    engine: str
    criteria: tuple[str, ...]
    parts: int
    calls: tuple[PreviewedCall, ...]
    price_sources: Sequence[str] = ()
    embedded: bool = False

    @property
    def _certain(self) -> list[PreviewedCall]:
        return [call for call in self.calls if not call.if_needed]

    @property
    def count(self) -> int:
        """Return the number of calls."""
        return sum(call.times for call in self._certain)

    @property
    def prompt_tokens(self) -> int:
        """Return the prompt tokens of all calls."""
        return sum(call.prompt_tokens * call.times for call in self._certain)

    @property
    def completion_tokens(self) -> int:
        """Return the limit of all answers together."""
        return sum(call.completion_tokens * call.times for call in self._certain)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Return the placeholders that the messages contain."""
        texts = [text for call in self.calls for _, text in call.messages]
        return tuple(mark for mark in PLACEHOLDERS.values() if any(mark in text for text in texts))

    @property
    def cost_usd(self) -> Decimal | None:
        """Return the highest possible cost; None if a price is unknown."""
        costs = [None if call.cost_usd is None else call.cost_usd * call.times for call in self._certain]
        known = [cost for cost in costs if cost is not None]
        return sum(known, Decimal(0)) if len(known) == len(costs) else None


@dataclass(slots=True)
class _Recorder:
    """A Model that records requests and answers with the role's placeholder."""

    requests: list[Request] = field(default_factory=list)

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply("answered", PLACEHOLDERS[request.role])


def preview(*, asking: Asking, key: str, chat: Chat) -> Preview:
    """Return the requests of the judge's group with this criterion about a chat; sends and writes nothing.

    Raises StopIteration if no group has the criterion.
    """
    group = next(one for one in asking.groups.values() if key in {row.key for row in one.criteria})
    recorder = _Recorder()
    judged = judge_group(
        chat=core_chat(chat),
        criteria=group.criteria,
        setup=group.setup,
        model=recorder,
        fence_secret=asking.fence_secret,
        embedder=asking.stored_vectors(),
    )
    for result in replay_together([judged]):
        if isinstance(result, BaseException):
            raise result
    calls = tuple(_call(request, asking, group.setup.samples) for request in _shown(recorder.requests))
    return Preview(
        engine=group.setup.engine,
        criteria=tuple(row.key for row in group.criteria),
        parts=1 + max(call.part for call in calls),
        calls=calls,
        price_sources=price_sources(prices=asking.prices, models={one.at for one in recorder.requests}),
        embedded=asking.endpoint.startswith("embedded:"),
    )


def _shown(requests: Sequence[Request]) -> list[Request]:
    """Return the first sample's requests, by window and role; of each window the formatter's last one."""
    order, by_place = list(PLACEHOLDERS), {}
    for request in requests:
        if request.sample == 0:
            by_place[request.window, order.index(request.role)] = request
    return [by_place[place] for place in sorted(by_place)]


def _call(request: Request, asking: Asking, samples: int) -> PreviewedCall:
    profile = asking.profiles.get(request.at)
    return PreviewedCall(
        role=request.role,
        model=request.model,
        part=request.window,
        messages=tuple((message.role, message.text) for message in request.messages),
        prompt_tokens=prompt_tokens_at_most(request),
        completion_tokens=token_limit(request, profile),
        cost_usd=worst_cost(request, asking.prices, profile=profile),
        times=samples,
        if_needed=role_of(request.role).output == "copy",
    )
