"""The messages that each role of a judge would get about a chat, put together by the engines themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from evaluation.core.types import Asked, Reply, Request
from evaluation.engines.core import judge_group
from evaluation.gateway.budget import CHARS_A_TOKEN, worst_cost
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.worker.estimate import Asking
from evaluation.runs.worker.replay import walk_together
from labeling.models.chats import Chat

# What stands for an answer that nobody has given yet. NB: without a VERDICTS block, so that the formatter
# is asked as well, and without anything that the engines would change in a brief.
PLACEHOLDERS: Mapping[Asked, str] = {
    "direct": "(Here stands what the first pass answers.)",
    "reflector": "(Here stands what the reflection answers.)",
    "customer": "(Here stands the brief of the Customer critic.)",
    "support": "(Here stands the brief of the Support defender.)",
    "judge": "(Here stands what the Judge answers.)",
    "formatter": "(Here stands what the Formatter answers.)",
}


@dataclass(frozen=True, slots=True)
class PreviewedCall:
    """One role's request about one part of the chat (counted from 0).

    `messages` are pairs of message role and text, as they are sent. Tokens are estimated at four characters,
    those of the answer are its limit; `cost_usd` is the most that it can cost, None without a price. `times`
    it is asked; `if_needed`: the formatter reads only what the rules could not.
    """

    role: Asked
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
    """All requests about a chat by one group of criteria; the sums leave out what is asked only if needed."""

    engine: str
    criteria: tuple[str, ...]
    parts: int
    calls: tuple[PreviewedCall, ...]

    @property
    def _certain(self) -> list[PreviewedCall]:
        return [call for call in self.calls if not call.if_needed]

    @property
    def count(self) -> int:
        """How many calls are made."""
        return sum(call.times for call in self._certain)

    @property
    def prompt_tokens(self) -> int:
        """Of all calls together."""
        return sum(call.prompt_tokens * call.times for call in self._certain)

    @property
    def completion_tokens(self) -> int:
        """The limit of all answers together."""
        return sum(call.completion_tokens * call.times for call in self._certain)

    @property
    def cost_usd(self) -> Decimal | None:
        """The most it can cost; None where a price is unknown."""
        costs = [None if call.cost_usd is None else call.cost_usd * call.times for call in self._certain]
        known = [cost for cost in costs if cost is not None]
        return sum(known, Decimal(0)) if len(known) == len(costs) else None


@dataclass(slots=True)
class _Recorder:
    """A Model that writes down what it is asked and answers with the role's placeholder."""

    requests: list[Request] = field(default_factory=list)

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply("answered", PLACEHOLDERS[request.role])


def preview(*, asking: Asking, key: str, chat: Chat) -> Preview:
    """What a judge's group that holds this criterion asks about a chat; nothing is sent or written.

    Raises StopIteration when no group does.
    """
    group = next(one for one in asking.groups.values() if key in {row.key for row in one.criteria})
    recorder = _Recorder()
    judged = judge_group(
        chat=core_chat(chat),
        criteria=group.criteria,
        setup=group.setup,
        model=recorder,
        fence_secret=asking.fence_secret,
    )
    for result in walk_together([judged]):
        if isinstance(result, BaseException):
            raise result
    calls = tuple(_call(request, asking, group.setup.samples) for request in _shown(recorder.requests))
    return Preview(
        engine=group.setup.engine,
        criteria=tuple(row.key for row in group.criteria),
        parts=1 + max(call.part for call in calls),
        calls=calls,
    )


def _shown(requests: Sequence[Request]) -> list[Request]:
    """The first sample's requests, in order of parts and roles; of each part the formatter's last one."""
    order, found = list(PLACEHOLDERS), {}
    for request in requests:
        if request.sample == 0:
            found[request.window, order.index(request.role)] = request
    return [found[place] for place in sorted(found)]


def _call(request: Request, asking: Asking, samples: int) -> PreviewedCall:
    return PreviewedCall(
        role=request.role,
        model=request.model,
        part=request.window,
        messages=tuple((message.role, message.text) for message in request.messages),
        prompt_tokens=sum(len(message.text) for message in request.messages) // CHARS_A_TOKEN,
        completion_tokens=request.max_tokens,
        cost_usd=worst_cost(request, asking.prices),
        times=samples,
        if_needed=request.role == "formatter",
    )
