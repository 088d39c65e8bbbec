"""A run of the simulated judge in one transaction leaves the rows that a worker's run leaves."""

from typing import Any

import pytest
from django.db.models import QuerySet

from alignment.demo_workspace.queries import composed_chats, demo_answers
from alignment.demo_workspace.services.demo_workspace import demo_begin, demo_ensure, jsonl
from alignment.demo_workspace.services.simulated_runs import Memory, run_simulate
from evaluation.day_counts.queries import is_exact, stored_tally
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import EngineName, JudgeSpec
from evaluation.models.runs import Attempt, ModelCall, Run, Unit, UnitCall, Verdict
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.worker.execute import run_execute
from labeling.chats.services.chats import chats_import
from labeling.models.chats import Chat, ChatSet

pytestmark = pytest.mark.django_db(transaction=True)

RUN = (
    *("state", "error", "units_done", "units_failed", "calls", "reused", "prompt_tokens", "cached_tokens"),
    *("completion_tokens", "cost_usd", "committed_usd", "verdict_counts"),
)
CALL = ("call__model", "call__role", "call__settings", "call__parts", "call__state", "call__reply")
COUNTED = ("call__prompt_tokens", "call__completion_tokens", "call__cost_usd", "call__latency_ms")
ATTEMPT = ("number", "outcome", "status", "prompt_tokens", "completion_tokens", "cost_usd", "reserved_usd")


@pytest.fixture
def chat_set() -> ChatSet:
    """Six chats of the demo, hostile ones among them; a call of an earlier test would answer theirs."""
    assert not ModelCall.objects.exists(), "rows of an earlier test were left behind"
    first_day = demo_begin()
    demo_ensure(first_day=first_day)
    lines = [chat.as_line() for chat in composed_chats(first_day=first_day, count=4)]
    with jsonl(lines, name="chats.jsonl") as path:
        chats_import(path=path, set_name="Few", rubric_name="", origin=Chat.Origin.DEMO)
    few = ChatSet.objects.get(name="Few")
    hostile = ChatSet.objects.get(name="demo").members.filter(chat__external_id__in=("demo-21", "demo-24"))
    for place, member in enumerate(hostile, 10):
        few.members.create(chat=member.chat, position=place)
    return few


def started(chat_set: ChatSet, replicate: int, engine: EngineName, grouping: str) -> Run:
    """Another replicate asks everything anew, and the simulated judge answers the same."""
    return run_start(
        chat_set=chat_set,
        judge=JudgeSpec(engine, grouping=grouping),  # type: ignore[arg-type]
        run=RunChoice(replicate=replicate, budget_usd=9),  # type: ignore[arg-type]
        endpoint=current_endpoint(),
    )


def fields_of(model: Any, *but: str) -> list[str]:
    return [field.name for field in model._meta.concrete_fields if field.name not in ("id", "run", *but)]


def left(rows: QuerySet[Any], *names: str) -> list[tuple[Any, ...]]:
    return sorted(rows.values_list(*names), key=repr)


def everything(run: Run) -> dict[str, Any]:
    """What a run leaves, without ids and times."""
    run.refresh_from_db()
    of_unit = {"unit__chat", "unit__group"}
    return {
        "run": [getattr(run, name) for name in RUN],
        "units": left(run.units.all(), *fields_of(Unit, "lease", "finished_at")),
        "verdicts": left(run.verdicts.all(), *fields_of(Verdict, "unit", "stored_at"), *of_unit),
        "calls": left(
            UnitCall.objects.filter(unit__run=run),
            *("role", "step", "window", "sample", "reused", *of_unit, *CALL, *COUNTED),
        ),
        "attempts": left(Attempt.objects.filter(run=run), *ATTEMPT, *of_unit),
        "days": (stored_tally(run.pk).counts, stored_tally(run.pk).scores),
    }


@pytest.mark.parametrize(
    ("engine", "grouping"),
    [("direct", "rubric"), ("direct", "auto"), ("reflection", "rubric"), ("debate", "auto")],
)
def test_it_leaves_what_a_worker_leaves(chat_set: ChatSet, engine: EngineName, grouping: str) -> None:
    worker = started(chat_set, 0, engine, grouping)
    run_execute(worker, on_unit=lambda failed: None)
    simulated = run_simulate(started(chat_set, 1, engine, grouping), answers=demo_answers())
    by_worker, by_us = everything(worker), everything(simulated)
    for name in by_worker:
        assert by_us[name] == by_worker[name], name
    assert is_exact(simulated.pk)
    assert simulated.finished_at is not None


def test_a_question_that_was_answered_is_not_asked_again(chat_set: ChatSet) -> None:
    first, second = (
        run_simulate(started(chat_set, 0, "direct", "auto"), answers=demo_answers()) for _ in range(2)
    )
    assert (second.calls, second.reused) == (0, first.calls + first.reused)
    assert second.verdict_counts == first.verdict_counts


def test_a_model_that_changed_answers_otherwise_on_its_criterion_alone(chat_set: ChatSet) -> None:
    before = started(chat_set, 0, "direct", "auto")
    after = started(chat_set, 1, "direct", "auto")
    key = "understood_every_request"
    run_simulate(before, answers=demo_answers())
    run_simulate(after, answers=demo_answers().drifted(key, miss=1.0, alarm=1.0))
    differs = {
        criterion
        for (chat, criterion, value) in left(before.verdicts.all(), "chat", "criterion__key", "value")
        if (chat, criterion, value) not in left(after.verdicts.all(), "chat", "criterion__key", "value")
    }
    assert differs == {key}


def test_chats_that_are_asked_again_get_the_same_answer_from_memory(chat_set: ChatSet) -> None:
    memory: Memory = {}
    first, second = (
        run_simulate(started(chat_set, number, "direct", "auto"), answers=demo_answers(), memory=memory)
        for number in (0, 1)
    )
    by_first, by_second = everything(first), everything(second)
    for name in by_first:
        assert by_second[name] == by_first[name], name
    assert second.calls
