"""A judge's view of a desk's chats."""

import hashlib

from django.utils import timezone

from evaluation.day_counts.services import days_recount
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.runs import Run, RunChat, Verdict
from tests.factories.labelling_job import Desk


def judge_of(name: str, *, profile: JudgeProfile | None = None, **config: str) -> Judge:
    """An imported judge; equal names are the same one."""
    fingerprint = hashlib.sha256(name.encode()).hexdigest()
    defaults = {"kind": "imported", "name": name, "config": config, "profile": profile}
    return Judge.objects.get_or_create(fingerprint=fingerprint, defaults=defaults)[0]


def judge_desk(
    desk: Desk,
    *,
    name: str = "outside judge",
    value: bool = False,
    text: str = "Because of turn 2.",
    state: str = "done",
    profile: JudgeProfile | None = None,
) -> Run:
    """A run with a verdict on every chat and criterion of the desk."""
    run = Run.objects.create(
        judge=judge_of(name, profile=profile),
        chat_set=desk.chat_set,
        state=state,
        error=f"{text} (error)",
        finished_at=timezone.now(),
    )
    RunChat.objects.bulk_create(RunChat(run=run, chat=chat, split="dev") for chat in desk.chats)
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            chat=chat,
            criterion=criterion,
            state="read",
            value=value,
            rationale=text,
            explanation=f"{text} (explanation)",
            stored_at=timezone.now(),
        )
        for chat in desk.chats
        for criterion in desk.criteria
    )
    days_recount(run.pk)
    return run
