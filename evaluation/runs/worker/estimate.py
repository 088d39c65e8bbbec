"""Estimates the calls and cost of a run by replaying its plan without sending anything."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, get_args

from django.db.models import Count

from evaluation.core.prefixes import Prefixes
from evaluation.core.tokens import CHARS_A_TOKEN, tokens_expected
from evaluation.core.types import Chat as CoreChat
from evaluation.core.types import Layout, ModelAt, Reply, Request
from evaluation.endpoints.core.profile import ModelProfile
from evaluation.endpoints.queries import profiles_at
from evaluation.engines.core import judge_group
from evaluation.gateway.budget import prompt_tokens_at_most, token_limit, worst_cost
from evaluation.gateway.current import prices_at
from evaluation.gateway.ledger import STORED_STATES, call_key, stored_reply
from evaluation.gateway.prices import BATCH_SHARE, Price, cost, price_sources
from evaluation.models.judges import Judge
from evaluation.models.runs import ModelCall, Run, Unit
from evaluation.runs.queries.answer_lengths import mean_answer_tokens
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.queries.pace import calls_a_second
from evaluation.runs.worker.plan import judge_groups
from evaluation.runs.worker.process_units import Group
from evaluation.runs.worker.replay import Lookups, StoredVectors, replay_together, sample_index
from labeling.models.chats import Chat
from labeling.models.people import Workspace

# Units replayed side by side, with their chats in memory.
CHUNK = 400
# Chats on which the two layouts are compared; more hardly change the shares.
COMPARED = 200
# Without stored answers of its role and model, an answer is expected to be half as long as allowed, and at
# most this long per criterion.
ANSWER_TOKENS = 300

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The calls of a run if every answer can be read by rule, at most and as expected.

    `prompt_tokens`, `completion_tokens` and `cost_usd` are the worst case: a vocabulary that is weak outside
    English, and answers as long as allowed. The expected ones assume a newer vocabulary, and the mean length
    of stored answers (`learned`, the share of calls for which there is one), else a start value.
    `price_sources` says where the known prices are from.
    `calls` would be sent; `reused` are stored, or asked by another unit of the run. `windowed` units are
    chats judged in windows. `repeated` is, by layout, the share of prompt characters that repeat an earlier
    beginning, measured on up to 200 chats (None without a call). Only `walked` chats were used; with fewer
    than `chats`, all figures are scaled up. `cost_usd` is at the mode's price, None if a price is unknown.
    `fits_budget` is None without a budget or a cost. `seconds` is the time at the pace of earlier runs, None
    without any.
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
    expected_prompt_tokens: int = 0
    expected_completion_tokens: int = 0
    expected_cost_usd: Decimal | None = None
    learned: float = 0.0
    price_sources: Sequence[str] = ()

    @property
    def fits_budget(self) -> bool | None:
        """Return whether the highest cost is within the budget."""
        if self.budget_usd is None or self.cost_usd is None:
            return None
        return self.cost_usd <= self.budget_usd

    @property
    def expected_to_fit(self) -> bool:
        """Return whether the expected cost is within the budget; False without a budget or a cost."""
        if self.budget_usd is None or self.expected_cost_usd is None:
            return False
        return self.expected_cost_usd <= self.budget_usd

    def as_json(self) -> dict[str, Any]:
        """Return the dry run's answer."""
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
            "expected_prompt_tokens": self.expected_prompt_tokens,
            "expected_completion_tokens": self.expected_completion_tokens,
            "expected_cost_usd": _number(self.expected_cost_usd),
            "learned_share": self.learned,
            "price_sources": list(self.price_sources),
            "mode": str(self.mode),
            "layout": self.layout,
            "repeated_share": dict(self.repeated),
            "budget_usd": _number(self.budget_usd),
            "fits_budget": self.fits_budget,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of an estimate: chats in the order of work, and the open groups of criteria of each."""

    chat_ids: Sequence[int]
    open_groups: Callable[[Sequence[int]], Mapping[int, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Asking:
    """A judge's groups and settings as plain values, which outlive the transaction they were read in."""

    groups: Mapping[int, Group]
    replicate: int
    audit: float
    fence_secret: bytes
    prices: Mapping[ModelAt, Price]
    endpoint: str
    answer_tokens: Mapping[tuple[str, ModelAt], float] = field(default_factory=dict)  # by role and model
    profiles: Mapping[ModelAt, ModelProfile] = field(default_factory=dict)

    @property
    def models(self) -> set[ModelAt]:
        """Return the models that the roles ask."""
        return {role.at for group in self.groups.values() for role in group.setup.roles.values()}

    def stored_vectors(self) -> StoredVectors:
        """Return the vectors that rank passages without asking for any: those that are stored."""
        model = next((group.setup.embedding_model for group in self.groups.values()), "")
        return StoredVectors(endpoint=self.endpoint, model=model)


@dataclass(slots=True)
class _Tally:
    """Sums over the replayed questions."""

    units: int = 0
    calls: int = 0
    reused: int = 0
    windowed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    expected_prompt_tokens: float = 0.0
    expected_completion_tokens: float = 0.0
    expected_cost_usd: Decimal | None = Decimal(0)
    learned: int = 0


@dataclass(slots=True)
class _Repetition:
    """How much of the prompts of one layout repeats; each model has its own cache."""

    prefixes: dict[ModelAt, Prefixes] = field(default_factory=lambda: defaultdict(Prefixes))
    characters: int = 0
    repeated: int = 0

    def add(self, request: Request) -> None:
        characters, repeated = self.prefixes[request.at].add(request.messages)
        self.characters += characters
        self.repeated += repeated

    @property
    def share(self) -> float | None:
        return self.repeated / self.characters if self.characters else None


@dataclass(slots=True)
class _CountingModel:
    """A Model that answers from the store, else with prose and a readable block; it counts the questions.

    Without a `tally` it only measures repetition. `twin`: the same chat was replayed before. `asked`: keys of
    an earlier plan's questions, extended by this plan's.
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
        """Return prose and a block; `key` makes it unique, because an audit selects answers by their text."""
        keys = [criterion.key for criterion in self.group.criteria]
        prose = "word " * int(self._expected_tokens(request) * CHARS_A_TOKEN / 5)
        return f"{prose}{key}\n\nVERDICTS\n" + "\n".join(f"{criterion}: TRUE" for criterion in keys)

    def _expected_tokens(self, request: Request) -> float:
        """Return the expected length of an answer."""
        start = min(request.max_tokens // 2, ANSWER_TOKENS * len(self.group.criteria))
        mean = self.asking.answer_tokens.get((request.role, request.at), start)
        return min(mean, request.max_tokens)

    def _count(self, tally: _Tally, request: Request, *, known: bool) -> None:
        if request.window and not self.windowed:
            self.windowed = True
            tally.windowed += 1
        if known:
            tally.reused += 1
            return
        profile = self.asking.profiles.get(request.at)
        price = worst_cost(request, self.asking.prices, profile=profile)
        tally.calls += 1
        tally.prompt_tokens += prompt_tokens_at_most(request)
        tally.completion_tokens += token_limit(request, profile)
        tally.cost_usd = _plus(tally.cost_usd, price)
        prompt = sum(tokens_expected(message.text) for message in request.messages)
        answer = self._expected_tokens(request)
        tally.expected_prompt_tokens += prompt
        tally.expected_completion_tokens += answer
        tally.expected_cost_usd = _plus(
            tally.expected_cost_usd,
            cost(
                prices=self.asking.prices,
                model=request.at,
                prompt_tokens=round(prompt),
                completion_tokens=round(answer),
            ),
        )
        tally.learned += (request.role, request.at) in self.asking.answer_tokens


def run_estimate(run: Run, *, budget_usd: Decimal | None = None, most_chats: int | None = None) -> Estimate:
    """Return the rest of a planned run, under its budget or another. Sends and writes nothing."""
    left, budget = run.units.exclude(state=Unit.State.DONE), budget_usd or run.budget_usd
    chats = run.run_chats.filter(chat_id__in=left.values("chat_id")).order_by("id")

    def open_groups(chunk: Sequence[int]) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = defaultdict(list)
        rows = left.filter(chat_id__in=chunk).order_by("group")
        for chat_id, group in rows.values_list("chat_id", "group"):
            groups[chat_id].append(group)
        return groups

    return plan_estimate(
        asking=asking_of(run.judge, replicate=run.replicate, audit=float(run.options.get("audit") or 0)),
        scope=Scope(list(chats.values_list("chat_id", flat=True)), open_groups),
        mode=Run.Mode(run.mode),
        budget_usd=None if budget is None else budget - run.committed_usd,
        most_chats=most_chats,
        pace=calls_a_second(run.judge, max_in_flight=run.options.get("max_in_flight")),
    )


def asking_of(judge: Judge, *, replicate: int, audit: float) -> Asking:
    """Return this judge's groups and the prices in the settings."""
    prompts = list(judge.prompts.select_related("criterion", "criterion_version", "prompt_version"))
    groups = judge_groups(judge, prompts)
    models = {role.at for group in groups.values() for role in group.setup.roles.values()}
    return Asking(
        groups=groups,
        replicate=replicate,
        audit=audit,
        fence_secret=bytes(Workspace.current().fence_secret),
        prices=prices_at(models),
        endpoint=judge.config["endpoint"],
        answer_tokens=mean_answer_tokens(models=models),
        profiles=profiles_at(models),
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
    """Replay a judge's questions about these chats; of more than `most_chats`, about evenly spaced ones.

    `asked` carries the questions of one plan over to the next: common questions count once. `pace` is in
    calls per second, from earlier live runs.
    """
    walked = evenly_spaced(scope.chat_ids, most_chats)
    tally, repetition = _walk(asking, replace(scope, chat_ids=walked), asked)
    scale = len(scope.chat_ids) / len(walked) if walked else 1
    share = Decimal(scale) * (BATCH_SHARE if mode == Run.Mode.BATCH else 1)
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
        cost_usd=None if tally.cost_usd is None else tally.cost_usd * share,
        expected_prompt_tokens=round(tally.expected_prompt_tokens * scale),
        expected_completion_tokens=round(tally.expected_completion_tokens * scale),
        expected_cost_usd=None if tally.expected_cost_usd is None else tally.expected_cost_usd * share,
        learned=tally.learned / tally.calls if tally.calls else 0.0,
        price_sources=price_sources(prices=asking.prices, models=asking.models),
        layout=next(iter(asking.groups.values())).setup.layout,
        repeated={layout: one.share for layout, one in repetition.items()},
        mode=mode,
        budget_usd=budget_usd,
        seconds=calls / pace if pace and mode == Run.Mode.LIVE else None,
    )


def evenly_spaced(chat_ids: Sequence[int], most: int | None) -> Sequence[int]:
    """Return at most `most` of the chats, spread over the whole list.

    >>> evenly_spaced([1, 2, 3, 4, 5, 6], 3)
    [1, 3, 5]
    """
    if most is None or len(chat_ids) <= most:
        return chat_ids
    return [chat_ids[number * len(chat_ids) // most] for number in range(most)]


def _walk(asking: Asking, scope: Scope, asked: set[str] | None) -> tuple[_Tally, dict[Layout, _Repetition]]:
    """Replay chunk by chunk, so that memory does not grow with the number of chats."""
    tally, repetition = _Tally(), {layout: _Repetition() for layout in LAYOUTS}
    compared = frozenset(evenly_spaced(scope.chat_ids, COMPARED))
    twins, step = _Twins(), max(1, CHUNK // len(asking.groups))
    for start in range(0, len(scope.chat_ids), step):
        chunk = scope.chat_ids[start : start + step]
        rows, lookups, walks = Chat.objects.in_bulk(chunk), Lookups(_stored), []
        embedder = asking.stored_vectors()
        others = {chat_id: core_chat(rows[other]) for chat_id, other in zip(chunk, _next(chunk), strict=True)}
        twins.look(rows.values())
        for chat_id, numbers in scope.open_groups(chunk).items():
            tally.units += len(numbers)
            chat, twin = core_chat(rows[chat_id]), twins.walked_before(rows[chat_id])
            for group in (asking.groups[number] for number in numbers):
                for layout in LAYOUTS if chat_id in compared else (group.setup.layout,):
                    walker = _CountingModel(
                        asking=asking,
                        group=replace(group, setup=replace(group.setup, layout=layout)),
                        lookups=lookups,
                        tally=tally if layout == group.setup.layout else None,
                        repetition=repetition[layout] if chat_id in compared else None,
                        twin=twin,
                        asked=asked,
                    )
                    walks.append(_judge(chat, walker, others[chat_id], embedder))
        for result in replay_together(walks):
            if isinstance(result, BaseException):
                raise result
    return tally, repetition


class _Twins:
    """Chats with equal content: a question about one is not asked again about the next."""

    def __init__(self) -> None:
        self._looked_for: set[str] = set()
        self._walked: set[str] = set()

    def look(self, chats: Any) -> None:
        """Find the contents that occur in the workspace more than once, so that only these are remembered."""
        rows = Chat.objects.filter(content_hash__in=[row.content_hash for row in chats])
        counted = rows.values("content_hash").annotate(n=Count("id")).filter(n__gt=1)
        self._looked_for.update(counted.values_list("content_hash", flat=True))

    def walked_before(self, chat: Chat) -> bool:
        known = chat.content_hash in self._walked
        if chat.content_hash in self._looked_for:
            self._walked.add(chat.content_hash)
        return known


def _next(chat_ids: Sequence[int]) -> list[int]:
    """Return the chat whose briefs a placebo debate uses, approximately as in a run."""
    return [*chat_ids[1:], chat_ids[0]]


async def _judge(chat: CoreChat, walker: _CountingModel, other: CoreChat, embedder: StoredVectors) -> None:
    await judge_group(
        chat=chat,
        criteria=walker.group.criteria,
        setup=walker.group.setup,
        model=walker,
        fence_secret=walker.asking.fence_secret,
        other_chat=other,
        audit=walker.asking.audit,
        embedder=embedder,
    )


def _stored(keys: Sequence[str]) -> dict[str, Reply]:
    calls = ModelCall.objects.filter(key__in=keys, state__in=STORED_STATES)
    return {call.key: stored_reply(call) for call in calls}


def _plus(total: Decimal | None, price: Decimal | None) -> Decimal | None:
    return None if total is None or price is None else total + price


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
