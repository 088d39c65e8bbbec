"""Nights of production whose judged chats went to raters, as a random audit."""

from collections import Counter
from datetime import date, time, timedelta
from typing import Any

from django.utils import timezone

from evaluation.models.judges import Judge
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import Chat
from labeling.models.labels import Consensus, LabelingJob
from labeling.models.rubric import Rubric
from labeling.models.sampling import SampledChat, SampleDraw, SamplePlan
from tests.factories.production import Judged, production_day

MONDAY = timezone.localdate() - timedelta(days=timezone.localdate().weekday() + 7)


def audited_night(
    run: Run, day: date, chats: list[Chat], *, suspects: frozenset[int] = frozenset()
) -> SampleDraw:
    """The night of a run: these chats went to raters, as a random part of the judged ones."""
    assert run.chat_set is not None
    rubric = run.chat_set.rubric
    settings = {"rubric": rubric, "chats": 100, "starts_at": time(2), "first_day": day, "audit_share": 0.5}
    plan, _ = SamplePlan.objects.get_or_create(name="Nightly", defaults=settings)
    job = LabelingJob.objects.create(chat_set=run.chat_set, name=f"{day}")
    sizes = Counter(Chat.objects.filter(started_at__date=day).values_list("topic__key", flat=True))
    draw = SampleDraw.objects.create(
        plan=plan,
        day=day,
        seed=1,
        settings={},
        strata=[{"topic": key, "size": n, "n": 1, "probability": 0.5} for key, n in sizes.items()],
        chat_set=run.chat_set,
        job=job,
    )
    NightlyRun.objects.create(draw=draw, run=run, tried_at=timezone.now())
    given = {chat.pk for chat in chats}
    judged = list(run.run_chats.values_list("chat", "chat__topic__key"))
    SampledChat.objects.bulk_create(
        SampledChat(
            draw=draw,
            chat_id=chat,
            stratum=topic,
            probability=0.5,
            audit_probability=0.1,
            label_probability=0.3 if chat in suspects else 0.1,
            label_source="audit" if chat in given else "",
        )
        for chat, topic in judged
    )
    return draw


def judged_chats(run: Run, *, passed: bool, topic: str = "refund") -> list[Chat]:
    rows = Verdict.objects.filter(run=run, value=passed, chat__topic__key=topic)
    return list(Chat.objects.filter(pk__in=rows.values("chat")).order_by("pk"))


def labelled(rubric: Rubric, chats: list[Chat], passes: Any) -> None:
    Consensus.objects.bulk_create(
        Consensus(chat=chat, criterion=row, state="true" if good else "false")
        for chat, good in zip(chats, passes, strict=True)
        for row in rubric.criteria.all()
    )


def a_night(rubric: Rubric, judge: Judge, day: date = MONDAY, **about: Any) -> tuple[Run, list[Chat]]:
    """400 of 1,000 chats judged, 300 passed; raters fail 12 of 60 passed and pass 4 of 20 failed ones."""
    run = production_day(day, {"refund": Judged(1000, 300, 100)}, judge=judge, rubric=rubric, **about)
    chats = judged_chats(run, passed=True)[:60] + judged_chats(run, passed=False)[:20]
    audited_night(run, day, chats)
    labelled(rubric, chats, [n >= 12 for n in range(60)] + [n < 4 for n in range(20)])
    return run, chats
