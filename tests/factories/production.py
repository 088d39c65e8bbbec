"""Days of production: chats by topic, a sample of them judged."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from django.utils import timezone

from evaluation.day_counts.services import days_recount
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Consensus
from labeling.models.rubric import Rubric
from labeling.models.sampling import SampleDraw
from tests.factories.rows import make_chat, make_set
from tests.factories.verdicts import make_run


class Judged(NamedTuple):
    """Chats of a topic, and how many of them the judge passed and failed on every criterion."""

    chats: int
    passed: int
    failed: int


def production_day(
    day: date,
    topics: Mapping[str, Judged],
    *,
    judge: Judge,
    rubric: Rubric,
    **chat: Any,
) -> Run:
    """A night's run over a sample of a day's chats; without any sampled one no run has verdicts."""
    chat_set = ChatSet.objects.create(name=f"{day} {Run.objects.count()}", kind="sample", rubric=rubric)
    judged: dict[Chat, bool] = {}
    for key, numbers in topics.items():
        chats = _chats(day, key, numbers.chats, **chat)[: numbers.passed + numbers.failed]
        judged |= {one: number < numbers.passed for number, one in enumerate(chats)}
    return _judge(chat_set, judged, judge=judge)


def judged_sample(draw: SampleDraw, passed: Mapping[str, int], *, judge: Judge) -> Run:
    """A run over a plan's sample; of each topic so many chats pass on every criterion."""
    judged: dict[Chat, bool] = {}
    left = dict(passed)
    for row in draw.chats.select_related("chat").order_by("pk"):
        judged[row.chat] = left[row.stratum] > 0
        left[row.stratum] -= 1
    assert draw.chat_set is not None
    return _judge(draw.chat_set, judged, judge=judge)


def _judge(chat_set: ChatSet, judged: Mapping[Chat, bool], *, judge: Judge) -> Run:
    run = Run.objects.create(judge=judge, chat_set=chat_set, state="done", finished_at=timezone.now())
    criteria = [(row, row.versions.get().passes_when) for row in chat_set.rubric.criteria.all()]
    RunChat.objects.bulk_create(RunChat(run=run, chat=chat) for chat in judged)
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            chat=chat,
            criterion=row,
            state="read",
            value=passes == passes_when,
            rationale='It gives no next step. [m2: "on its way"]',
            stored_at=timezone.now(),
        )
        for chat, passes in judged.items()
        for row, passes_when in criteria
    )
    days_recount(run.pk)
    return run


def labelled_set(rubric: Rubric, judge: Judge, *, holdout: int) -> Run:
    """A curated set of 60 chats whose labels and verdicts agree on 54; some of them are holdout."""
    chats = [make_chat() for _ in range(60)]
    chat_set = make_set(rubric, *chats, name="curated")
    criterion = rubric.criteria.get()
    run = make_run(judge, chat_set)
    for number, chat in enumerate(chats):
        split = "holdout" if number < holdout else "dev"
        ChatSetMember.objects.filter(chat=chat).update(split=split)
        RunChat.objects.create(run=run, chat=chat, split=split)
        human = number % 3 != 0
        Consensus.objects.create(chat=chat, criterion=criterion, state="true" if human else "false")
        value = human if number % 10 else not human
        Verdict.objects.create(
            run=run, chat=chat, criterion=criterion, state="read", value=value, stored_at=chat.created_at
        )
    return run


def _chats(day: date, topic: str, count: int, **chat: Any) -> list[Chat]:
    row, _ = Topic.objects.get_or_create(key=topic, defaults={"name": topic.capitalize()})
    said = ((1, "user", "Where is my order?"), (2, "assistant", "It is on its way."))
    messages = [{"n": n, "role": role, "content": content} for n, role, content in said]
    first = Chat.objects.count()
    chats = [
        Chat(
            external_id=f"p{number}",
            topic=row,
            started_at=datetime.combine(day, time(12), UTC),
            messages=messages,
            content_hash=f"{number}",
            message_count=2,
            char_count=40,
            **chat,
        )
        for number in range(first, first + count)
    ]
    return Chat.objects.bulk_create(chats)
