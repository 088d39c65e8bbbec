"""What a run would ask and cost, found by walking its plan without sending anything."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, get_args

from django.db.models import Count

from evaluation.core.prefixes import Prefixes
from evaluation.core.types import Chat as CoreChat
from evaluation.core.types import Layout, Reply, Request
from evaluation.engines.core import judge_group
from evaluation.gateway.budget import CHARS_A_TOKEN, worst_cost
from evaluation.gateway.current import current_prices
from evaluation.gateway.ledger import STORED_STATES, call_key, stored_reply
from evaluation.gateway.prices import BATCH_SHARE, Price
from evaluation.models.judges import Judge
from evaluation.models.runs import ModelCall, Run, Unit
from evaluation.runs.queries.pace import calls_a_second
from evaluation.runs.worker.plan import judge_groups
from evaluation.runs.worker.process_units import Group
from evaluation.runs.worker.replay import Lookups, sample_index, walk_together
from evaluation.runs.worker.units import core_chat
from labeling.models.chats import Chat
from labeling.models.people import Workspace

# Units walked side by side, with their chats in memory.
CHUNK = 400
# Chats on which the two layouts are compared; the shares hardly move beyond.
COMPARED = 200
# An answer not given yet is taken to be half as long as allowed, and no longer than this for a criterion.
ANSWER_TOKENS = 300

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would ask if every answer can be read by rule; completion tokens are the limit.

    `calls` would be sent; `reused` are answered already, or asked by another unit of the same run.
    `windowed` units are chats judged in windows. `repeated` is, by layout of the prompts, the share of their
    characters that repeats an earlier prompt's beginning, found on up to 200 chats (None without a call).
    Only `walked` chats were looked at: with fewer than `chats` every figure is scaled up from them.
    `cost_usd` is at the mode's price, None where a price is unknown; `fits_budget` is None without a budget
    or a cost. `seconds` is what the calls take at the pace of earlier runs, None with nothing to go by.
    """

    chats: int
    walked: int
    units: int
    calls: int
    reused: int
    windowed: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal | None
    layout: Layout
    repeated: Mapping[Layout, float | None]
    mode: str = Run.Mode.LIVE
    budget_usd: Decimal | None = None
    seconds: float | None = None

    @property
    def fits_budget(self) -> bool | None:
        if self.budget_usd is None or self.cost_usd is None:
            return None
        return self.cost_usd <= self.budget_usd

    def as_json(self) -> dict[str, Any]:
        """The dry run's answer."""
        return {
            "chats": self.chats,
            "walked": self.walked,
            "units": self.units,
            "calls": self.calls,
            "reused": self.reused,
            "windowed_units": self.windowed,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": _number(self.cost_usd),
            "mode": str(self.mode),
            "layout": self.layout,
            "repeated_share": dict(self.repeated),
            "budget_usd": _number(self.budget_usd),
            "fits_budget": self.fits_budget,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Scope:
    """What is to be estimated: chats in order of work, and the groups of criteria still open for each."""

    chat_ids: Sequence[int]
    open_groups: Callable[[Sequence[int]], Mapping[int, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Asking:
    """How a judge asks; plain values, so that they outlive the transaction they were read in."""

    groups: Mapping[int, Group]
    replicate: int
    audit: float
    fence_secret: bytes
    prices: Mapping[str, Price]


@dataclass(slots=True)
class _Tally:
    """What was asked so far."""

    units: int = 0
    calls: int = 0
    reused: int = 0
    windowed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)


@dataclass(slots=True)
class _Repetition:
    """How much of the prompts of one layout repeats; each model has a cache of its own."""

    prefixes: dict[str, Prefixes] = field(default_factory=lambda: defaultdict(Prefixes))
    characters: int = 0
    repeated: int = 0

    def add(self, request: Request) -> None:
        characters, repeated = self.prefixes[request.model].add(request.messages)
        self.characters += characters
        self.repeated += repeated

    @property
    def share(self) -> float | None:
        return self.repeated / self.characters if self.characters else None


@dataclass(slots=True)
class _Walker:
    """A Model that answers from the store, else with prose and a readable block; it counts the questions.

    Without a `tally` it only watches how much repeats. `twin`: the same chat was walked before. `asked` are
    the keys of an earlier plan's questions, and this one's too as it goes.
    """

    asking: Asking
    group: Group
    lookups: Lookups[Reply]
    tally: _Tally | None = None
    repetition: _Repetition | None = None
    twin: bool = False
    windowed: bool = False
    asked: set[str] | None = None

    async def complete(self, request: Request) -> Reply:
        if self.repetition is not None:
            self.repetition.add(request)
        sample = sample_index(request, replicate=self.asking.replicate, setup=self.group.setup)
        key, stored = call_key(request, sample=sample), None
        if self.tally is not None:
            stored = await self.lookups.get(key)
            self._count(self.tally, request, known=stored is not None or self.twin or self._asked_before(key))
        return stored or Reply("answered", self._answer(request, key))

    def _asked_before(self, key: str) -> bool:
        if self.asked is None:
            return False
        before = key in self.asked
        self.asked.add(key)
        return before

    def _answer(self, request: Request, key: str) -> str:
        """Prose and block; `key` makes it the one answer to its question, as an audit draws by the text."""
        keys = [criterion.key for criterion in self.group.criteria]
        tokens = min(request.max_tokens // 2, ANSWER_TOKENS * len(keys))
        prose = "word " * (tokens * CHARS_A_TOKEN // 5)
        return f"{prose}{key}\n\nVERDICTS\n" + "\n".join(f"{criterion}: TRUE" for criterion in keys)

    def _count(self, tally: _Tally, request: Request, *, known: bool) -> None:
        if request.window and not self.windowed:
            self.windowed = True
            tally.windowed += 1
        if known:
            tally.reused += 1
            return
        price = worst_cost(request, self.asking.prices)
        tally.calls += 1
        tally.prompt_tokens += sum(len(message.text) for message in request.messages) // CHARS_A_TOKEN
        tally.completion_tokens += request.max_tokens
        tally.cost_usd = None if price is None or tally.cost_usd is None else tally.cost_usd + price


def run_estimate(run: Run, *, budget_usd: Decimal | None = None, most_chats: int | None = None) -> Estimate:
    """What is left of a planned run, under its budget or another. Nothing is sent and nothing is written."""
    left, budget = run.units.exclude(state=Unit.State.DONE), budget_usd or run.budget_usd
    chats = run.run_chats.filter(chat_id__in=left.values("chat_id")).order_by("id")

    def open_groups(chunk: Sequence[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        rows = left.filter(chat_id__in=chunk).order_by("group")
        for chat_id, group in rows.values_list("chat_id", "group"):
            found[chat_id].append(group)
        return found

    return plan_estimate(
        asking=asking_of(run.judge, replicate=run.replicate, audit=float(run.options.get("audit") or 0)),
        scope=Scope(list(chats.values_list("chat_id", flat=True)), open_groups),
        mode=Run.Mode(run.mode),
        budget_usd=None if budget is None else budget - run.committed_usd,
        most_chats=most_chats,
        pace=calls_a_second(run.judge, max_in_flight=run.options.get("max_in_flight")),
    )


def asking_of(judge: Judge, *, replicate: int, audit: float) -> Asking:
    """How this judge asks today: its groups, and the settings' prices."""
    prompts = list(judge.prompts.select_related("criterion", "criterion_version", "prompt_version"))
    return Asking(
        groups=judge_groups(judge, prompts),
        replicate=replicate,
        audit=audit,
        fence_secret=bytes(Workspace.current().fence_secret),
        prices=current_prices(),
    )


def plan_estimate(
    *,
    asking: Asking,
    scope: Scope,
    mode: Run.Mode,
    budget_usd: Decimal | None = None,
    most_chats: int | None = None,
    asked: set[str] | None = None,
    pace: float | None = None,
) -> Estimate:
    """Walk what a judge would ask about these chats; of more than `most_chats` evenly spaced ones.

    `asked` carries the questions of one plan over to the next: what both ask is asked once. `pace` is in
    calls a second, of earlier runs that were sent one request a call.
    """
    walked = evenly_spaced(scope.chat_ids, most_chats)
    tally, repetition = _walk(asking, replace(scope, chat_ids=walked), asked)
    scale = len(scope.chat_ids) / len(walked) if walked else 1
    price = None if tally.cost_usd is None else tally.cost_usd * Decimal(scale)
    calls = round(tally.calls * scale)
    return Estimate(
        chats=len(scope.chat_ids),
        walked=len(walked),
        units=round(tally.units * scale),
        calls=calls,
        reused=round(tally.reused * scale),
        windowed=round(tally.windowed * scale),
        prompt_tokens=round(tally.prompt_tokens * scale),
        completion_tokens=round(tally.completion_tokens * scale),
        cost_usd=price * BATCH_SHARE if price is not None and mode == Run.Mode.BATCH else price,
        layout=next(iter(asking.groups.values())).setup.layout,
        repeated={layout: seen.share for layout, seen in repetition.items()},
        mode=mode,
        budget_usd=budget_usd,
        seconds=calls / pace if pace and mode == Run.Mode.LIVE else None,
    )


def evenly_spaced(chat_ids: Sequence[int], most: int | None) -> Sequence[int]:
    """At most so many of them, from the whole length of the list.

    >>> evenly_spaced([1, 2, 3, 4, 5, 6], 3)
    [1, 3, 5]
    """
    if most is None or len(chat_ids) <= most:
        return chat_ids
    return [chat_ids[number * len(chat_ids) // most] for number in range(most)]


def _walk(asking: Asking, scope: Scope, asked: set[str] | None) -> tuple[_Tally, dict[Layout, _Repetition]]:
    """Chunk by chunk, so that memory does not grow with the number of chats."""
    tally, repetition = _Tally(), {layout: _Repetition() for layout in LAYOUTS}
    compared = frozenset(evenly_spaced(scope.chat_ids, COMPARED))
    twins, step = _Twins(), max(1, CHUNK // len(asking.groups))
    for start in range(0, len(scope.chat_ids), step):
        chunk = scope.chat_ids[start : start + step]
        rows, lookups, walks = Chat.objects.in_bulk(chunk), Lookups(_stored), []
        others = {chat_id: core_chat(rows[other]) for chat_id, other in zip(chunk, _next(chunk), strict=True)}
        twins.look(rows.values())
        for chat_id, numbers in scope.open_groups(chunk).items():
            tally.units += len(numbers)
            chat, twin = core_chat(rows[chat_id]), twins.walked_before(rows[chat_id])
            for group in (asking.groups[number] for number in numbers):
                for layout in LAYOUTS if chat_id in compared else (group.setup.layout,):
                    walker = _Walker(
                        asking=asking,
                        group=replace(group, setup=replace(group.setup, layout=layout)),
                        lookups=lookups,
                        tally=tally if layout == group.setup.layout else None,
                        repetition=repetition[layout] if chat_id in compared else None,
                        twin=twin,
                        asked=asked,
                    )
                    walks.append(_judge(chat, walker, others[chat_id]))
        for result in walk_together(walks):
            if isinstance(result, BaseException):
                raise result
    return tally, repetition


class _Twins:
    """Chats of the same content: what is asked about one is not asked again about the next."""

    def __init__(self) -> None:
        self._looked_for: set[str] = set()
        self._walked: set[str] = set()

    def look(self, chats: Any) -> None:
        """Learn which of these contents stand in the workspace more than once: few, so few are remembered."""
        rows = Chat.objects.filter(content_hash__in=[row.content_hash for row in chats])
        counted = rows.values("content_hash").annotate(n=Count("id")).filter(n__gt=1)
        self._looked_for.update(counted.values_list("content_hash", flat=True))

    def walked_before(self, chat: Chat) -> bool:
        known = chat.content_hash in self._walked
        if chat.content_hash in self._looked_for:
            self._walked.add(chat.content_hash)
        return known


def _next(chat_ids: Sequence[int]) -> list[int]:
    """Who lends a placebo debate its briefs: roughly whom a run would take."""
    return [*chat_ids[1:], chat_ids[0]]


async def _judge(chat: CoreChat, walker: _Walker, other: CoreChat) -> None:
    await judge_group(
        chat=chat,
        criteria=walker.group.criteria,
        setup=walker.group.setup,
        model=walker,
        fence_secret=walker.asking.fence_secret,
        other_chat=other,
        audit=walker.asking.audit,
    )


def _stored(keys: Sequence[str]) -> dict[str, Reply]:
    calls = ModelCall.objects.filter(key__in=keys, state__in=STORED_STATES)
    return {call.key: stored_reply(call) for call in calls}


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
