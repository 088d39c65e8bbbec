"""Reads of the topic prompt: what it asks, which chats wait for it, and how well it agrees."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from alignment.models.topic_prompt import TopicAnswer, TopicPrompt
from alignment.topic_prompt.core import (
    PromptAgreement,
    TopicLine,
    answer_room,
    prompt_agreement,
    topic_messages,
    topics_checked,
)
from common.problems import FieldProblem, InputProblem
from evaluation.core.hashing import canonical, text_hash
from evaluation.core.types import Request
from evaluation.endpoints.queries import model_profile
from evaluation.gateway.current import current_endpoint, endpoint_at
from evaluation.gateway.embedded import EmbeddedModelError
from evaluation.gateway.endpoints import endpoint_name
from evaluation.judges.core.sampling_defaults import default_sampling
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import model_of
from labeling.models.chats import Chat, ChatSetMember
from labeling.models.people import Workspace

# A chat without a new message for so long is asked about; nights sample chats of at most a week ago.
QUIET = timedelta(minutes=15)
OLDEST = timedelta(days=7)
ROLE = "topic"
UNREADABLE = "unreadable answer"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the prompt asks, and whom: the request without its messages."""

    request: Request
    topics: tuple[TopicLine, ...]
    secret: bytes

    def about(self, messages: Sequence[dict[str, Any]]) -> Request:
        """Return the request about a chat."""
        return replace(self.request, messages=topic_messages(self.topics, messages, secret=self.secret))


@dataclass(frozen=True, slots=True)
class PromptState:
    """The topic prompt as pages and the API show it.

    `waiting`: chats without a topic that it will be asked about. `given`: topics that it gave in the last 7
    days, `unknown` of them. `measuring`: chats left of a measurement. `stale`: answers of an earlier prompt.
    """

    row: TopicPrompt
    endpoint: str
    model: str
    waiting: int
    given: int
    unknown: int
    measuring: int
    agreement: PromptAgreement
    stale: int

    @property
    def spent_today(self) -> Decimal:
        """US dollars spent today."""
        return self.row.spent_usd if self.row.spent_on == timezone.localdate() else Decimal(0)


def fingerprint_of(row: TopicPrompt) -> str:
    """Return the address of what is asked: answers of one fingerprint are comparable."""
    asked = topic_messages(topics_of_row(row), (), secret=b"")[0].text if row.topics else ""
    return text_hash(canonical([row.endpoint, row.model, asked]))


def topics_of_row(row: TopicPrompt) -> tuple[TopicLine, ...]:
    """Return the list of topics as it is stored."""
    return tuple(TopicLine(one["key"], one["description"]) for one in row.topics)


def asked_of(row: TopicPrompt) -> Asked:
    """Return what is asked as things are. Raises InputProblem or EmbeddedModelError for wrong settings."""
    try:
        topics = topics_checked(row.topics)
    except FieldProblem as problem:
        raise InputProblem(str(problem)) from None
    endpoint = endpoint_at(row.endpoint) if row.endpoint else current_endpoint()
    choice = JudgeSpec("direct", endpoint=row.endpoint, formatter=row.model)
    model = model_of("formatter", choice=choice, endpoint=endpoint)
    profile = model_profile(endpoint=endpoint.id, model=model)
    sampling = default_sampling(role="judge", profile=profile, endpoint=endpoint.id, model=model)
    request = Request(
        role=ROLE,
        step=1,
        messages=(),
        model=model,
        temperature=sampling.temperature,
        max_tokens=answer_room(reasons=bool(profile.reasons)),
        top_p=None,
        seed=None,
        endpoint=endpoint.id,
        reasoning_effort=sampling.reasoning_effort,
    )
    return Asked(request, topics, bytes(Workspace.current().fence_secret))


def chats_waiting(*, now: datetime | None = None) -> QuerySet[Chat]:
    """Return the chats that wait for a topic: neither sampled nor in a set, and quiet for a while."""
    now = now or timezone.now()
    rows = Chat.objects.filter(
        topic_by=Chat.TopicBy.NONE, sampled_at=None, text_deleted_at=None, created_at__gte=now - OLDEST
    )
    members = ChatSetMember.objects.filter(chat=OuterRef("pk"))
    quiet = rows.alias(at=Coalesce("last_at", "created_at")).filter(at__lte=now - QUIET)
    return quiet.exclude(Exists(members.order_by()))


def chats_with_topic() -> QuerySet[Chat]:
    """Return the chats whose topic their sender or a person gave, the newest first."""
    rows = Chat.objects.filter(topic_by=Chat.TopicBy.GIVEN, text_deleted_at=None)
    return rows.exclude(topic__key="unknown").order_by("-pk")


def answers_open() -> QuerySet[TopicAnswer]:
    """Return the chats of a measurement that are not asked about yet."""
    rows = TopicAnswer.objects.filter(state=TopicAnswer.State.OPEN, chat__text_deleted_at=None)
    return rows.order_by("pk")


def prompt_state() -> PromptState:
    """Return the topic prompt with its counts; the number of queries does not depend on chats."""
    row = TopicPrompt.current()
    answers = TopicAnswer.objects.filter(at__gte=timezone.now() - OLDEST, given="")
    known = Q(state=TopicAnswer.State.READ) & ~Q(answer="unknown")
    counts = answers.aggregate(all=Count("pk"), known=Count("pk", filter=known))
    mark = fingerprint_of(row)
    measured = TopicAnswer.measured(mark).exclude(state=TopicAnswer.State.OPEN).order_by()
    pairs = measured.values_list("given", "answer").annotate(n=Count("pk"))
    keys = [one.key for one in topics_of_row(row)]
    earlier = TopicAnswer.objects.exclude(given="").exclude(fingerprint=mark)
    endpoint, model = _names(row)
    return PromptState(
        row=row,
        endpoint=endpoint,
        model=model,
        waiting=chats_waiting().count() if row.active else 0,
        given=counts["all"],
        unknown=counts["all"] - counts["known"],
        measuring=answers_open().filter(fingerprint=mark).count(),
        agreement=prompt_agreement(pairs, keys, unreadable=UNREADABLE),
        stale=earlier.count(),
    )


def _names(row: TopicPrompt) -> tuple[str, str]:
    """Return endpoint and model by name; what cannot be resolved stays as it was chosen."""
    try:
        request = asked_of(row).request
    except (InputProblem, EmbeddedModelError):
        return (endpoint_name(row.endpoint) if row.endpoint else "the server's own"), row.model
    return endpoint_name(request.endpoint), request.model


def prompt_json(found: PromptState) -> dict[str, Any]:
    """Return the prompt as JSON."""
    row, agreement = found.row, found.agreement
    interval = agreement.interval
    return {
        "active": row.active,
        "endpoint": row.endpoint,
        "model": row.model,
        "topics": row.topics,
        "budget_usd": row.budget_usd,
        "spent_today_usd": found.spent_today,
        "problem": row.problem,
        "waiting": found.waiting,
        "answered_7_days": found.given,
        "unknown_7_days": found.unknown,
        "measuring": found.measuring,
        "agreement": {
            "chats": agreement.chats,
            "value": agreement.value,
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
            "topics": [
                {
                    "topic": one.topic,
                    "chats": one.chats,
                    "agreed": one.agreed,
                    "others": [{"answer": answer, "chats": n} for answer, n in one.others],
                }
                for one in agreement.topics
            ],
        },
    }
