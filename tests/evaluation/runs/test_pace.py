"""The time that calls need is estimated from the pace of earlier runs like it."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.judges import Judge
from evaluation.models.runs import Attempt, ModelCall, Run
from evaluation.runs.queries.pace import FEWEST, RUNS, calls_a_second
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice
from tests.factories.runs import always, answering, evaluate, point_at, workspace

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2026, 1, 5, tzinfo=UTC)
Second = float
DRY = ("--set", "calibration", "--engine", "direct", "--criteria", "brief", "--dry-run")
LIKE = {"model": "m", "endpoint": "https://a"}


def judge_of(engine: str = "direct", **config: str) -> Judge:
    mark = f"{engine}{config}"
    row, _ = Judge.objects.get_or_create(
        fingerprint=mark[:64], defaults={"name": mark, "engine": engine, "config": LIKE | config}
    )
    return row


def run_of(
    judge: Judge, spans: Sequence[tuple[Second, Second]], *, outcome: str = "answered", **fields: Any
) -> Run:
    """A run whose calls were sent and answered so many seconds after the start."""
    run = Run.objects.create(judge=judge, calls=len(spans), state=Run.State.DONE, **fields)
    for n, (sent, ended) in enumerate(spans):
        call = ModelCall.objects.create(
            key=f"{run.pk}-{n}", endpoint="e", model="m", role="judge", settings={}, parts=[]
        )
        at = [START + timedelta(seconds=second) for second in (sent, ended)]
        Attempt.objects.create(call=call, run=run, number=1, sent_at=at[0], ended_at=at[1], outcome=outcome)
    return run


def side_by_side(seconds: int, *, slots: int = 4, start: float = 0.0) -> list[tuple[Second, Second]]:
    """So many calls of one second at a time, for so many seconds."""
    return [(start + n, start + n + 1) for n in range(seconds) for _ in range(slots)]


def test_it_is_the_answers_of_a_second_in_which_calls_were_under_way() -> None:
    run_of(judge_of(), side_by_side(10))
    assert calls_a_second(judge_of()) == pytest.approx(4.0)


def test_pauses_do_not_count() -> None:
    run_of(judge_of(), [*side_by_side(5), *side_by_side(5, start=3600)])
    assert calls_a_second(judge_of()) == pytest.approx(4.0)


def test_two_runs_that_shared_the_endpoint_are_one_pace() -> None:
    for _ in range(2):
        run_of(judge_of(), side_by_side(10, slots=2))
    assert calls_a_second(judge_of()) == pytest.approx(4.0)


def test_requests_that_came_to_nothing_take_their_time_and_are_no_answers() -> None:
    run_of(judge_of(), side_by_side(10))
    run_of(judge_of(), side_by_side(10, start=10), outcome="rate_limited")
    assert calls_a_second(judge_of()) == pytest.approx(2.0)


def test_only_runs_of_the_same_engine_model_endpoint_and_calls_in_flight_count() -> None:
    for judge in (judge_of("debate"), judge_of(model="n"), judge_of(endpoint="https://b")):
        run_of(judge, side_by_side(10))
    run_of(judge_of(), side_by_side(10), options={"max_in_flight": 2})
    run_of(judge_of(), side_by_side(10), mode=Run.Mode.BATCH)
    assert calls_a_second(judge_of()) is None
    assert calls_a_second(judge_of(), max_in_flight=2) == pytest.approx(4.0)


def test_a_few_answers_are_nothing_to_go_by() -> None:
    run_of(judge_of(), side_by_side(FEWEST - 1, slots=1))
    assert calls_a_second(judge_of()) is None


def test_it_costs_the_same_for_many_runs_as_for_a_few() -> None:
    counts = []
    for more in (RUNS, 4 * RUNS):
        for _ in range(more):
            run_of(judge_of(), side_by_side(2))
        with CaptureQueriesContext(connection) as queries:
            calls_a_second(judge_of())
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_an_estimate_gives_the_time_once_there_is_an_earlier_run(settings: Settings) -> None:
    chat_set = workspace("polite", "brief", chats=12)

    def seconds(**run: Any) -> float | None:
        choice = JudgeSpec("direct", grouping="criterion")
        wanted = RunChoice(criteria=("brief",), **run)
        return estimate_for(chat_set=chat_set, judge=choice, run=wanted, endpoint=current_endpoint()).seconds

    with answering(settings, always(True)):
        assert seconds() is None
        evaluate("--set", "calibration", "--engine", "direct", "--criteria", "polite")
        assert (seconds() or 0) > 0
        assert seconds(mode=Run.Mode.BATCH) is None
        assert seconds(options={"max_in_flight": 2}) is None
        assert evaluate(*DRY).answer["seconds"] == pytest.approx(seconds(), rel=0.01)
        call_command("evaluate", *DRY, stdout=(said := io.StringIO()))
        assert "(h:mm:ss) at the pace of similar runs" in said.getvalue()
    point_at(settings, "http://127.0.0.1:9/v1")
    assert seconds() is None  # another endpoint
