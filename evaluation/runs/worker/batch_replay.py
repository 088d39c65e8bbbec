"""Replays the open units of a batch run: finishes those with stored answers, records what others wait for."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from evaluation.core.prefixes import Prefixes
from evaluation.core.types import Chat, GroupResult, Model, ModelAt, Reply, Request
from evaluation.engines.core import judge_group
from evaluation.gateway.batches import WINDOW
from evaluation.gateway.budget import worst_cost
from evaluation.gateway.embeddings import Embeddings, UnitEmbedder
from evaluation.gateway.ledger import STORED_STATES, CallUsed, call_key, stored_reply
from evaluation.gateway.prices import BATCH_SHARE
from evaluation.gateway.writer import DatabaseThread
from evaluation.knowledge.core.retrieval import texts_to_embed
from evaluation.models.runs import Attempt, ModelCall, Run, Unit
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.worker.batch_rows import PENDING, Files, Question
from evaluation.runs.worker.placebo_chat import placebo_chat
from evaluation.runs.worker.process_units import Plan, gateway_open
from evaluation.runs.worker.replay import Lookups, StoredVectors, replay_together, sample_index
from evaluation.runs.worker.unit_budget import WorstCase, funds_of, unit_fits
from evaluation.runs.worker.units import JudgedUnit, UnitWriter, Work
from labeling.models.chats import Chat as ChatRow

UNITS = 400


class NotYet(Exception):
    """A unit needs an answer that is not stored yet."""


@dataclass(frozen=True, slots=True)
class _StoredAnswer:
    """What is known about a question: its reply, and this run's units that asked it; no reply means pending.

    `paid` is the handle for those units.
    """

    reply: Reply | None
    asked_by: frozenset[int] = frozenset()
    paid: CallUsed | None = None


@dataclass(slots=True)
class _StoredOnly:
    """A Model that answers from the store; any other question is recorded and stops its unit.

    Engines finish parallel questions before they pass an exception on, so all of them are recorded.
    """

    run: Run
    plan: Plan
    work: Work
    lookups: Lookups[_StoredAnswer]
    given_up: Mapping[str, Reply]
    prefixes: dict[ModelAt, Prefixes]
    placebo_chat: Chat | None
    embedder: StoredVectors
    questions: list[Question] = field(default_factory=list)

    async def complete(self, request: Request) -> Reply:
        setup = self.plan.groups[self.work.group].setup
        sample = sample_index(request, replicate=self.run.replicate, setup=setup)
        key = call_key(request, sample=sample)
        stored = await self.lookups.get(key)
        if stored is not None and stored.reply is not None:
            ours = stored.paid if self.work.unit_id in stored.asked_by else None
            return replace(stored.reply, call=self._paid(request, ours)) if ours else stored.reply
        if key in self.given_up:
            return self.given_up[key]
        if stored is None:
            self.questions.append(Question(request, key, sample, self.work.unit_id))
        raise NotYet

    async def find(self, request: Request) -> Reply | None:
        """Return the stored answer to a question, None without one."""
        setup = self.plan.groups[self.work.group].setup
        key = call_key(request, sample=sample_index(request, replicate=self.run.replicate, setup=setup))
        stored = await self.lookups.get(key)
        return self.given_up.get(key) if stored is None or stored.reply is None else stored.reply

    def _paid(self, request: Request, used: CallUsed) -> CallUsed:
        """Return the handle of an answer that this unit asked for, with how much of its prompt repeats."""
        characters, repeated = self.prefixes.setdefault(request.at, Prefixes()).add(request.messages)
        return replace(used, prompt_chars=characters, repeated_chars=repeated)


def wave(run: Run, plan: Plan, *, lease_id: int, given_up: Mapping[str, Reply]) -> Files:
    """Replay every open unit once, some hundred at a time; return the requests recorded.

    Units that still wait are open again afterwards.
    """
    files, last = Files(run, plan.endpoint, plan.prices, plan.profiles), 0
    opening = None if run.budget_usd is None else _Opening(run, plan)
    prefixes: dict[ModelAt, Prefixes] = {}
    while works := _take(run, lease_id, after=last):
        last = works[-1].unit_id
        lookups = Lookups(partial(_fetch, run.pk))
        placebos = [_placebo_chat(plan, work) for work in works]
        _embed(plan, works, placebos)
        embedder = StoredVectors(endpoint=plan.endpoint.id, model=plan.embedding_model)
        models = [
            _StoredOnly(run, plan, work, lookups, given_up, prefixes, placebo, embedder)
            for work, placebo in zip(works, placebos, strict=True)
        ]
        results = replay_together(_judge(model) for model in models)
        asking = [model for model in models if model.questions]
        if opening:
            asking = opening.choose(asking)
            files.over_budget = files.over_budget or opening.refused
        files.add([one for model in asking for one in model.questions])
        _put_away(run, plan, lease_id, list(zip(works, results, strict=True)))
    return files


class _Opening:
    """Chooses the units of a wave that ask: open ones first, others if the budget suffices to finish them."""

    def __init__(self, run: Run, plan: Plan) -> None:
        self._run, self._plan = run, plan
        # What units whose requests are pending may cost later is not known before they return.
        self._new_units = not run.batches.filter(state__in=PENDING).exists()
        self._later = Decimal(0)  # what the chosen units may cost after this wave
        self._chosen = 0
        self.refused = False

    def choose(self, models: Sequence[_StoredOnly]) -> list[_StoredOnly]:
        """Return the units that may ask now."""
        cases = replay_together(self._worst(model) for model in models)
        if fault := next((one for one in cases if isinstance(one, BaseException)), None):
            raise fault
        now = [self._cost(model) for model in models]
        order = sorted(zip(models, cases, now, strict=True), key=lambda row: row[1].stored == 0)
        funds, asked, chosen = funds_of(self._run.pk, mean=True), Decimal(0), []
        for model, worst, cost in order:
            held, alone = asked + self._later, self._chosen == 0
            fits = self._new_units and unit_fits(worst=worst, funds=funds, held=held, alone=alone)
            if not worst.stored and not fits:
                self.refused = True
                continue
            chosen.append(model)
            asked, self._later = asked + cost, self._later + max(worst.total - cost, Decimal(0))
            self._chosen += 1
        return chosen

    async def _worst(self, model: _StoredOnly) -> WorstCase:
        keys = [criterion.key for criterion in self._plan.groups[model.work.group].criteria]
        plan = self._plan
        worst = WorstCase(plan.prices, keys, model.find, share=BATCH_SHARE, profiles=plan.profiles)
        await _judge(model, by=worst)
        return worst

    def _cost(self, model: _StoredOnly) -> Decimal:
        costs = (worst_cost(one.request, self._plan.prices) or Decimal(0) for one in model.questions)
        return sum(costs, Decimal(0)) * BATCH_SHARE


def _placebo_chat(plan: Plan, work: Work) -> Chat | None:
    """Return the chat whose briefs a placebo debate uses; None for any other run."""
    placebo = plan.groups[work.group].setup.ablation == "placebo_briefs"
    return placebo_chat(run_id=plan.run_id, chat_id=work.chat_id) if placebo else None


def _embed(plan: Plan, works: Sequence[Work], placebos: Sequence[Chat | None]) -> None:
    """Ask for the vectors of these units that are not stored, one request after the other, at full price."""
    if not plan.embedding_model:
        return

    async def together(database: DatabaseThread) -> None:
        async with gateway_open(plan, database) as gateway:
            embeddings = Embeddings(gateway, plan.embedding_model)
            for work, placebo in zip(works, placebos, strict=True):
                embedder = UnitEmbedder(embeddings, plan.run_id, work.unit_id)
                for chat in filter(None, (work.chat, placebo)):
                    await embedder.embed(texts_to_embed(chat, plan.groups[work.group].criteria))

    with DatabaseThread() as database:
        asyncio.run(together(database))


async def _judge(model: _StoredOnly, *, by: Model | None = None) -> GroupResult:
    group = model.plan.groups[model.work.group]
    return await judge_group(
        chat=model.work.chat,
        criteria=group.criteria,
        setup=group.setup,
        model=by or model,
        fence_secret=model.plan.fence_secret,
        other_chat=model.placebo_chat,
        audit=model.plan.audit,
        embedder=model.embedder,
    )


@transaction.atomic
def _take(run: Run, lease_id: int, *, after: int) -> list[Work]:
    """Lease the next open units without pending requests, in plan order. A replay does not count as a try."""
    pending = Attempt.objects.filter(unit=OuterRef("pk"), ended_at=None, batch__state__in=PENDING)
    rows = Unit.objects.filter(~Exists(pending), run=run, state=Unit.State.OPEN, pk__gt=after).order_by("id")
    if connection.features.has_select_for_update_skip_locked:
        rows = rows.select_for_update(skip_locked=True, of=("self",))
    units = list(rows[:UNITS])
    taken = Unit.objects.filter(pk__in=[unit.pk for unit in units])
    taken.update(state=Unit.State.LEASED, lease_id=lease_id)
    chats = ChatRow.objects.in_bulk({unit.chat_id for unit in units})
    return [Work(unit.pk, unit.chat_id, core_chat(chats[unit.chat_id]), unit.group) for unit in units]


@transaction.atomic
def _put_away(
    run: Run, plan: Plan, lease_id: int, judged: Sequence[tuple[Work, GroupResult | BaseException]]
) -> None:
    """Save finished units and return waiting ones."""
    waiting, finished = [], []
    for work, result in judged:
        if isinstance(result, NotYet):
            waiting.append(work.unit_id)
        elif isinstance(result, BaseException):
            raise result
        else:
            finished.append(JudgedUnit(run.pk, lease_id, work, result))
    UnitWriter(plan.criterion_ids).finish(finished)
    left = Unit.objects.filter(pk__in=waiting, lease_id=lease_id, state=Unit.State.LEASED)
    left.update(state=Unit.State.OPEN, lease=None)


def _fetch(run_id: int, keys: Sequence[str]) -> dict[str, _StoredAnswer]:
    """Return what is stored under these keys, and what a batch is asking."""
    calls = {call.pk: call for call in ModelCall.objects.filter(key__in=keys)}
    units_by_call: dict[int, set[int]] = {}
    ours = Attempt.objects.filter(run=run_id, call__in=calls, unit__isnull=False)
    for call_id, unit_id in ours.values_list("call_id", "unit_id"):
        units_by_call.setdefault(call_id, set()).add(unit_id or 0)
    since = timezone.now() - WINDOW
    pending = Attempt.objects.filter(
        call__in=calls, ended_at=None, batch__state__in=PENDING, sent_at__gt=since
    )
    stored = {calls[pk].key: _StoredAnswer(None) for pk in pending.values_list("call_id", flat=True)}
    for call in calls.values():
        if call.state in STORED_STATES:
            stored[call.key] = _StoredAnswer(
                stored_reply(call), frozenset(units_by_call.get(call.pk, ())), _used(call)
            )
    return stored


def _used(call: ModelCall) -> CallUsed:
    return CallUsed(
        call_id=call.pk,
        reused=False,
        prompt_tokens=call.prompt_tokens or 0,
        cached_tokens=call.cached_tokens or 0,
        completion_tokens=call.completion_tokens or 0,
    )
