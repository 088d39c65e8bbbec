"""Experiments: chats of units in variants, judged by a night's run."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from django.utils import timezone

from alignment.experiments.worker import count_work, experiments_sweep
from alignment.models.experiments import (
    Experiment,
    ExperimentDay,
    ExperimentMetric,
    ExperimentRun,
    ExperimentVariant,
)
from evaluation.day_counts.services import days_recount
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.rubric import Criterion, Rubric


class UnitChats(NamedTuple):
    """The judged chats of a unit on a day, and how many of them passed every criterion."""

    unit: str
    chats: int
    passed: int


def units(name: str, *, passing: int, failing: int) -> list[UnitChats]:
    """Units with one chat each."""
    return [UnitChats(f"{name}{n}", 1, int(n < passing)) for n in range(passing + failing)]


def judged_night(
    day: date,
    variants: Mapping[str, Sequence[UnitChats]],
    *,
    judge: Judge,
    rubric: Rubric,
    experiment: str = "greeting",
    kind: str = "sample",
    probability: float | None = None,
) -> Run:
    """A finished run over the chats of a day; `probability`: of each one to be in the sample."""
    chat_set = ChatSet.objects.create(name=f"{day} {Run.objects.count()}", kind=kind, rubric=rubric)
    now = timezone.now()
    run = Run.objects.create(judge=judge, chat_set=chat_set, state="done", finished_at=now)
    planned = [
        (variant, one.unit, number < one.passed)
        for variant, some in variants.items()
        for one in some
        for number in range(one.chats)
    ]
    chats = _chats(day, [(variant, unit) for variant, unit, _ in planned], experiment)
    RunChat.objects.bulk_create(RunChat(run=run, chat=one) for one in chats)
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=chat_set, chat=one, position=at, inclusion_probability=probability)
        for at, one in enumerate(chats, 1)
    )
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            chat=chat,
            criterion=row,
            state="read",
            value=passed == row.versions.get().passes_when,
            rationale='It gives no next step. [m2: "on its way"]',
            stored_at=now,
        )
        for row in rubric.criteria.all()
        for chat, (_, _, passed) in zip(chats, planned, strict=True)
    )
    days_recount(run.pk)
    return run


def counted(key: str = "greeting") -> Experiment:
    """The experiment, once the workers have seen the new runs."""
    experiments_sweep()
    for pk in Experiment.objects.filter(state="due").values_list("pk", flat=True):
        count_work(pk)
    return Experiment.objects.get(key=key)


def stored_experiment(run: Run, chats: Sequence[Chat], *, text: str) -> dict[str, Any]:
    """The id and the key of an experiment with two variants and a failing result on each of these chats."""
    row = Experiment.objects.create(
        key=f"{text}-experiment", state="idle", sampled=True, counted_at=timezone.now()
    )
    day, criterion = date(2026, 11, 2), Criterion.objects.get(key="polite")
    for name in ("a", "b"):
        place = {"experiment": row, "variant": f"{text}-{name}"}
        ExperimentVariant.objects.create(
            chats=4, units=4, judged_units=4, first_day=day, last_day=day, **place
        )
        sums = {"chats": 4, "failed": 4, "units": 4, "n": 4, "n_squared": 4}
        ExperimentDay.objects.create(criterion=criterion, day=day, **place, **sums)
    ExperimentMetric.objects.bulk_create(
        ExperimentMetric(
            experiment=row,
            run=run,
            chat=chat,
            criterion=criterion,
            unit=f"{text}-unit-{at}",
            variant=f"{text}-{'ab'[at % 2]}",
            at=timezone.now(),
            day=day,
            passed=False,
            sampled=True,
        )
        for at, chat in enumerate(chats)
    )
    ExperimentRun.objects.create(
        run=run, experiment=row, ended_at=run.finished_at or run.created_at, added=True
    )
    return {"experiment_id": row.pk, "experiment_key": row.key}


def _chats(day: date, places: Sequence[tuple[str, str]], experiment: str) -> list[Chat]:
    row, _ = Topic.objects.get_or_create(key="refund", defaults={"name": "Refund"})
    said = ((1, "user", "Where is my order?"), (2, "assistant", "It is on its way."))
    messages = [{"n": n, "role": role, "content": content} for n, role, content in said]
    first = Chat.objects.count()
    return Chat.objects.bulk_create(
        [
            Chat(
                external_id=f"e{number}",
                topic=row,
                started_at=datetime.combine(day, time(12), UTC),
                messages=messages,
                content_hash=f"{number}",
                message_count=2,
                char_count=40,
                experiment=experiment,
                variant=variant,
                unit_id=unit,
            )
            for number, (variant, unit) in enumerate(places, first)
        ]
    )
