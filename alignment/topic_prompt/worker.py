"""Asks the model for topics of chats, several at a time, within the day's budget."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from alignment.models.topic_prompt import TopicAnswer, TopicPrompt
from alignment.topic_prompt.core import read_topic
from alignment.topic_prompt.queries import (
    ROLE,
    Asked,
    answers_open,
    asked_of,
    chats_waiting,
    fingerprint_of,
)
from common.problems import InputProblem
from evaluation.core.types import Reply
from evaluation.gateway.budget import budget_check, worst_cost
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.ledger import CallUsed, attempts_mark_lost
from evaluation.gateway.model import GatewayModel
from evaluation.gateway.throttle import EndpointDown
from evaluation.gateway.writer import DatabaseThread
from evaluation.models.runs import Attempt, ModelCall, WorkerLease
from evaluation.runs.worker.leased_rows import LeasedRows
from evaluation.runs.worker.leases import MOST_TRIES, LeaseLost
from evaluation.runs.worker.plan import EndpointChanged
from evaluation.runs.worker.process_units import Plan, gateway_open
from evaluation.runs.worker.single_calls import leased, question_plan
from labeling.chats.services.chats import topics_ensure
from labeling.models.chats import Chat, ChatSetMember, Topic

log = logging.getLogger(__name__)

GIVE = "alignment.tasks.give_topics"
# No chat is begun later than this after the start of a time slice.
SLICE_SECONDS = 45.0
PATIENCE = 30.0
CHATS_AT_ONCE = 500  # the slots run dry at the end of each lot
TRY_AGAIN = timedelta(seconds=60)
PROBLEM_LENGTH = 500
POISON = f"switched off: its worker process died {MOST_TRIES} times"
BUDGET = "today's budget is used up: topics are given again tomorrow"


class _Rows(LeasedRows[TopicPrompt]):
    model = TopicPrompt
    task = GIVE
    open_state = TopicPrompt.State.OPEN
    working_state = TopicPrompt.State.ASKING

    def fail(self, row: TopicPrompt) -> None:
        TopicPrompt.objects.filter(pk=row.pk).update(
            active=False, tries=0, problem=POISON, problem_at=timezone.now()
        )
        answers_open().delete()

    def log_death(self, row: TopicPrompt) -> None:
        attempts_mark_lost(
            ids=list(
                Attempt.objects.filter(call__role=ROLE, ended_at=None, run=None).values_list("pk", flat=True)
            )
        )
        log.warning("topics are asked for again: their worker died")

    def waiting(self) -> list[int]:
        """Return the row if there is work, and nothing stopped it within the last minute."""
        row = TopicPrompt.objects.filter(id=1).first()
        if row is None or (row.state == self.open_state and not has_work(row)):
            return []
        return super().waiting()


ROWS = _Rows()


def has_work(row: TopicPrompt) -> bool:
    """Return whether a chat waits, and nothing stopped the work within the last minute."""
    if row.problem_at is not None and row.problem_at > timezone.now() - TRY_AGAIN:
        return False
    return answers_open().exists() or (row.active and chats_waiting().exists())


def topics_sweep() -> None:
    """Enqueue the work if chats wait."""
    ROWS.sweep()


def topics_work(row_id: int) -> None:
    """Give topics for one time slice, and enqueue the next if chats are left."""
    with ROWS.work(row_id) as (row, lease):
        if row is not None:
            _work(row, lease)
    after = TopicPrompt.objects.filter(pk=row_id).first()
    if row is not None and after is not None and has_work(after):
        ROWS.enqueue(row_id)


@dataclass(frozen=True, slots=True)
class Question:
    """A chat to ask about; `given` is its known topic in a measurement."""

    chat: int
    messages: list[dict[str, Any]]
    given: str


def _work(row: TopicPrompt, lease: WorkerLease) -> None:
    problem = ""
    try:
        asked = asked_of(row)
        plan = question_plan(asked.request, max_in_flight=settings.LACE_MAX_IN_FLIGHT)
        budget_check(budget=row.budget_usd, models=plan.models, prices=plan.prices)
        with DatabaseThread() as database:
            slice_ = _Slice(row, asked, plan, database)
            asyncio.run(slice_.run(lease.pk))
        problem = slice_.problem
    except LeaseLost:
        log.warning("the topic prompt was taken over")
        return
    except (EndpointDown, EndpointChanged, InputProblem, EmbeddedModelError) as trouble:
        problem = " ".join(str(trouble).split())
    TopicPrompt.objects.filter(pk=row.pk).update(
        tries=0, problem=problem[:PROBLEM_LENGTH], problem_at=timezone.now() if problem else None
    )


class _Slice:
    """One time slice of a prompt."""

    def __init__(self, row: TopicPrompt, asked: Asked, plan: Plan, database: DatabaseThread) -> None:
        self._row, self._asked, self._plan, self._database = row, asked, plan, database
        self._mark = fingerprint_of(row)
        self._left = _budget_left(row)
        self._until = time.monotonic() + SLICE_SECONDS
        self.problem = ""

    async def run(self, lease_id: int) -> None:
        """Ask until nothing waits, the time is over, or something stops it."""
        async with gateway_open(self._plan, self._database, seconds=PATIENCE) as gateway:
            await leased(self._all(GatewayModel(gateway, None, None)), self._database, lease_id)

    async def _all(self, model: GatewayModel) -> None:
        slots = asyncio.Semaphore(self._plan.max_in_flight)
        while not self._stops:
            items = await self._database.do(partial(_items, self._row, self._mark))
            if not items:
                return
            results = await asyncio.gather(
                *(self._one(item, model, slots) for item in items), return_exceptions=True
            )
            for result in results:
                if isinstance(result, EndpointDown):
                    self.problem = " ".join(str(result).split())
                elif isinstance(result, BaseException):
                    raise result

    @property
    def _stops(self) -> bool:
        return bool(self.problem) or time.monotonic() > self._until

    async def _one(self, item: Question, model: GatewayModel, slots: asyncio.Semaphore) -> None:
        async with slots:
            if self._stops:
                return
            request = self._asked.about(item.messages)
            worst = worst_cost(request, self._plan.prices, profile=self._plan.profiles.get(request.at))
            reserved = (worst or Decimal(0)) if self._left is not None else Decimal(0)
            if self._left is not None:
                if reserved > self._left:
                    self.problem = BUDGET
                    return
                self._left -= reserved
            try:
                reply = await model.complete(request)
            except EndpointDown as down:
                self.problem = " ".join(str(down).split())
                raise
            topic = read_topic(reply.text, self._asked.topics) if reply.state == "answered" else None
            cost = await self._database.do(partial(answer_store, item, self._mark, reply, topic))
            if self._left is not None and cost is not None:
                self._left += reserved - cost


def _budget_left(row: TopicPrompt) -> Decimal | None:
    """Return what may still be spent today; None without a limit."""
    if row.budget_usd is None:
        return None
    return row.budget_usd - (row.spent_usd if row.spent_on == timezone.localdate() else Decimal(0))


def _items(row: TopicPrompt, mark: str) -> Sequence[Question]:
    """Return the chats to ask about next: those of a measurement, then those without a topic, newest first.

    A change of the prompt meanwhile ends the slice.
    """
    now = TopicPrompt.objects.get(pk=row.pk)
    if fingerprint_of(now) != mark:
        return ()
    rows = (
        answers_open().filter(fingerprint=mark).values_list("chat", "chat__messages", "given")[:CHATS_AT_ONCE]
    )
    items = [Question(*values) for values in rows]
    if items or not now.active:
        return items
    chats = chats_waiting().order_by("-created_at").values_list("pk", "messages")[:CHATS_AT_ONCE]
    return [Question(chat, messages, "") for chat, messages in chats]


@transaction.atomic
def answer_store(item: Question, mark: str, reply: Reply, topic: str | None) -> Decimal | None:
    """Store an answer, its cost, and the chat's topic unless a sample took the chat meanwhile.

    Returns the cost; None if it is unknown.
    """
    used = reply.call
    call = ModelCall.objects.get(pk=used.call_id) if isinstance(used, CallUsed) else None
    state = TopicAnswer.State.READ if topic is not None else TopicAnswer.State.UNREADABLE
    if reply.state != "answered":
        state = TopicAnswer.State.FAILED
    cost = _cost(call)
    TopicAnswer.objects.update_or_create(
        chat_id=item.chat,
        fingerprint=mark,
        defaults={"given": item.given, "answer": topic or "", "state": state, "call": call},
    )
    if not item.given:
        key = topic or Topic.UNKNOWN
        members = ChatSetMember.objects.filter(chat=item.chat)
        if not members.exists():
            open_chat = Chat.objects.filter(pk=item.chat, topic_by=Chat.TopicBy.NONE, sampled_at=None)
            open_chat.update(topic=topics_ensure([key])[key], topic_by=Chat.TopicBy.PROMPT)
    today = timezone.localdate()
    earlier = Q(spent_on=None) | ~Q(spent_on=today)
    TopicPrompt.objects.filter(earlier).update(spent_on=today, spent_usd=0)
    TopicPrompt.objects.update(spent_usd=F("spent_usd") + (cost or 0))
    return cost


def _cost(call: ModelCall | None) -> Decimal | None:
    """Return what the day pays for a call: nothing for an answer that another chat or day has paid for."""
    if call is None:
        return None
    paid = TopicAnswer.objects.filter(call=call).exists()
    today = call.answered_at is not None and timezone.localdate(call.answered_at) == timezone.localdate()
    return call.cost_usd if today and not paid else Decimal(0)
