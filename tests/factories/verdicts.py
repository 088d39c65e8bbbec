"""Judges, runs and verdicts as rows, for tests of pages that only read them."""

import hashlib

from django.utils import timezone

from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.runs import Run, Unit, Verdict
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.rubric import Criterion, Rubric

HOSTED = {"endpoint": "http://localhost/v1", "model": "judge-model"}


def make_judge(rubric: Rubric, *, name: str = "direct, judge-model", **config: object) -> Judge:
    judge = Judge.objects.create(
        fingerprint=hashlib.sha256(f"{name}{config}".encode()).hexdigest(),
        name=name,
        engine="direct",
        config=HOSTED | config,
    )
    prompts = champions_ensure(criteria=rubric.criteria.all(), by=None)
    for group, row in enumerate(rubric.criteria.all()):
        JudgePrompt.objects.create(
            judge=judge,
            criterion=row,
            criterion_version=row.versions.get(),
            prompt_version=prompts[row.pk],
            group=group,
        )
    return judge


def make_run(judge: Judge, chat_set: ChatSet, **fields: object) -> Run:
    return Run.objects.create(judge=judge, chat_set=chat_set, **({"state": "done"} | fields))


def add_verdicts(run: Run, count: int) -> None:
    """So many chats, each with a verdict; every tenth is unparsed."""
    topic, _ = Topic.objects.get_or_create(key="t", defaults={"name": "t"})
    first = Chat.objects.count()
    chats = Chat.objects.bulk_create(
        Chat(external_id=f"x{n}", topic=topic, messages=[], content_hash="", message_count=0, char_count=0)
        for n in range(first, first + count)
    )
    units = Unit.objects.bulk_create(Unit(run=run, chat=chat, group=0, state="done") for chat in chats)
    criterion, now = Criterion.objects.get(key="polite"), timezone.now()
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            chat=chat,
            criterion=criterion,
            unit=unit,
            state="unparsed" if n % 10 == 0 else "read",
            value=None if n % 10 == 0 else True,
            stored_at=now,
        )
        for n, (chat, unit) in enumerate(zip(chats, units, strict=True))
    )
    Run.objects.filter(pk=run.pk).update(units_total=count, units_done=count)
