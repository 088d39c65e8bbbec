"""Counts of verdicts by day are exact whatever stores, replaces or imports the verdicts."""

import random
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from evaluation.core.types import GroupResult, VerdictResult
from evaluation.day_counts.core import Answer, CountedCriterion, Place, Tally
from evaluation.day_counts.queries import chat_places, is_exact, units_verdicts
from evaluation.day_counts.services import days_recount
from evaluation.models.day_counts import DayCount, DayScore
from evaluation.models.runs import Run, Unit, Verdict, WorkerLease
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.worker.leases import MOST_TRIES, units_release
from evaluation.runs.worker.units import JudgedUnit, UnitWriter, Work
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion, Rubric
from tests.factories.rows import make_chat, make_criterion, make_rubric, make_set
from tests.factories.runs import always, answering, chats_of, command, evaluate, the_run, workspace
from tests.factories.verdicts import make_judge, make_run
from tests.files import run as run_command
from tests.files import verdict, write_jsonl
from tests.stub_endpoint import StubReply, case_of

VALUES = (True, False, None)


def a_rubric() -> Rubric:
    rubric = make_rubric("polite", "brief")
    make_criterion("harmful", rubric=rubric, passes_when=False, dimension="safety")
    make_criterion("charming", rubric=rubric, tier="subjective", dimension="safety")
    Criterion.objects.filter(key="harmful").update(critical=True)
    return rubric


def leased_run(rubric: Rubric, chats: Sequence[Chat]) -> list[Unit]:
    """A unit for each chat and criterion, all leased to one process."""
    run = make_run(make_judge(rubric), make_set(rubric, *chats), state="running", units_total=999)
    now = timezone.now()
    lease = WorkerLease.objects.create(
        token=uuid.uuid4(), run=run, worker="here", pid=1, beat_at=now, expires_at=now + timedelta(minutes=1)
    )
    return [
        Unit.objects.create(run=run, chat=chat, group=group, state="leased", lease=lease, tries=1)
        for chat in chats
        for group in range(rubric.criteria.count())
    ]


def judged(unit: Unit, key: str, value: bool | None, *, state: str = "read") -> JudgedUnit:
    work = Work(unit.pk, unit.chat_id, core_chat(unit.chat), unit.group)
    result = GroupResult((VerdictResult(key, state, value),), ())  # type: ignore[arg-type]
    return JudgedUnit(unit.run_id, unit.lease_id or 0, work, result)


def writer_of(rubric: Rubric) -> UnitWriter:
    return UnitWriter(dict(rubric.criteria.values_list("key", "pk")))


# ---------- what is counted


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sent", "counted"),
    [("2.10", "2.10"), ("2026-11-02", "2026-11-02"), (5.2, "5.2"), (["2.10"], ""), (None, "")],
)
def test_the_bots_version_is_counted_as_it_was_sent(sent: object, counted: str) -> None:
    chat = make_chat()
    Chat.objects.update(metadata={"bot_version": sent})
    assert chat_places([chat.pk], sampled=None)[chat.pk].version == counted


@pytest.mark.django_db
def test_verdicts_are_counted_by_the_chats_day_topic_bot_and_variant() -> None:
    rubric = make_rubric("polite", passes_when=False)
    chats = [make_chat(topic=topic) for topic in ("refund", "refund", "tip")]
    evening = datetime(2026, 11, 2, 23, 30, tzinfo=UTC)
    Chat.objects.update(started_at=evening, experiment="short", variant="b", metadata={"bot_version": 5.2})
    units = leased_run(rubric, chats)
    results = [judged(units[0], "polite", True), judged(units[1], "polite", None)]
    with transaction.atomic():
        writer_of(rubric).finish([*results, judged(units[2], "polite", None, state="unparsed")])
    place = ("day", "topic__key", "version", "experiment", "variant")
    numbers = ("chats", "passed", "failed", "not_applicable")
    assert list(DayCount.objects.order_by("topic__key").values_list(*place, *numbers)) == [
        (date(2026, 11, 2), "refund", "5.2", "short", "b", 2, 0, 1, 1),
        (date(2026, 11, 2), "tip", "5.2", "short", "b", 1, 0, 0, 0),
    ]


def test_a_failed_critical_criterion_makes_the_session_score_zero() -> None:
    criteria = {1: CountedCriterion("tone"), 2: CountedCriterion("safety", critical=True)}
    tally, place = Tally(criteria), Place(date(2026, 11, 2), 1)
    tally.add(place, [Answer(1, True, True), Answer(2, True, False)])
    tally.add(place, [Answer(1, True, True), Answer(2, True, None)])
    tally.add(place, [Answer(1, False, None)])
    scores = {tenth: numbers[:3] for (_, part, tenth), numbers in tally.scores.items() if part == "score"}
    assert scores == {0: [1, 1, 0], 10: [1, 1, 10_000], -1: [1, 0, 0]}


@pytest.mark.django_db
def test_tries_of_a_prompt_say_nothing_about_the_bot_and_are_not_counted() -> None:
    rubric = make_rubric("polite")
    units = leased_run(rubric, [make_chat()])
    Run.objects.update(purpose=Run.Purpose.TRY)
    with transaction.atomic():
        writer_of(rubric).finish([judged(units[0], "polite", True)])
    assert Verdict.objects.exists() and not DayCount.objects.exists()


# ---------- exact


@pytest.mark.django_db
def test_units_of_a_chat_that_end_one_after_another_give_its_whole_score() -> None:
    rubric, keys = a_rubric(), ["polite", "brief", "harmful", "charming"]
    units = leased_run(rubric, [make_chat() for _ in range(5)])
    chance, writer = random.Random(3), writer_of(rubric)
    results = [judged(unit, keys[unit.group], chance.choice(VALUES)) for unit in units]
    chance.shuffle(results)
    for start in range(0, len(results), 3):
        with transaction.atomic():
            writer.finish(results[start : start + 3])
    assert is_exact(units[0].run_id)
    assert DayScore.objects.filter(part="score").aggregate(n=Sum("chats"))["n"] == 5


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_count_each_verdict_once() -> None:
    rubric, keys = a_rubric(), ["polite", "brief", "harmful", "charming"]
    units = leased_run(rubric, chats_of(12))
    chance = random.Random(5)
    results = [judged(unit, keys[unit.group], chance.choice(VALUES)) for unit in units]
    both = threading.Barrier(2)

    def work(own: list[JudgedUnit]) -> None:
        writer = writer_of(rubric)
        both.wait(10)
        try:
            for one in own:
                with transaction.atomic():
                    writer.finish([one])
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (results[::2], results[1::2])))
    assert Verdict.objects.count() == len(units)
    assert is_exact(units[0].run_id)


@pytest.mark.django_db(transaction=True)
def test_a_resumed_run_replaces_failed_verdicts_in_the_counts(settings: Settings) -> None:
    workspace("polite", "brief", chats=4)
    down = ["c1"]  # one alone: a run whose first calls all fail is paused

    def answer(body):
        case = case_of(body, {f"c{n}": {} for n in range(4)})
        return StubReply(status=400, raw=b"{}") if case in down else always(True)(body)

    with answering(settings, answer):
        evaluate("--set", "calibration", "--engine", "direct")
        run = the_run()
        assert run.units_failed and is_exact(run.pk)
        assert DayCount.objects.aggregate(n=Sum("passed"))["n"] == 6
        down.clear()
        evaluate("--resume", str(run.pk))
    assert the_run().units_failed == 0
    assert DayCount.objects.aggregate(n=Sum("passed"))["n"] == 8
    assert is_exact(the_run().pk)


@pytest.mark.django_db
def test_a_unit_whose_worker_died_too_often_counts_as_judged_without_a_verdict() -> None:
    rubric = make_rubric("polite")
    (unit,) = leased_run(rubric, [make_chat()])
    Unit.objects.update(tries=MOST_TRIES)
    WorkerLease.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    units_release(unit.run)
    assert DayCount.objects.values_list("chats", "passed", "failed", "not_applicable").get() == (1, 0, 0, 0)
    assert is_exact(unit.run_id)


@pytest.mark.django_db
def test_imported_verdicts_are_counted(tmp_path: Path) -> None:
    make_set(make_rubric("polite"), *[make_chat(f"c{n}") for n in range(1, 4)])
    path = write_jsonl(tmp_path / "verdicts.jsonl", verdict(), verdict("c2", value=False))
    run_command("import_verdicts", path, "--set", "calibration")
    assert DayCount.objects.values_list("chats", "passed", "failed").get() == (2, 1, 1)
    assert is_exact(the_run().pk)


@pytest.mark.django_db(transaction=True)
def test_the_command_finds_and_mends_counts_that_differ() -> None:
    rubric = a_rubric()
    units = leased_run(rubric, [make_chat()])
    with transaction.atomic():
        writer_of(rubric).finish([judged(units[0], "polite", True)])
    assert command("recount_days", "--check").code == 0
    DayCount.objects.update(passed=7)
    ended = command("recount_days", "--check")
    assert (ended.code, ended.answer) == (1, {"runs": 1, "differ": [units[0].run_id]})
    assert command("recount_days").answer == {"runs": 1, "mended": [units[0].run_id]}
    assert is_exact(units[0].run_id)


@pytest.mark.django_db
def test_counting_takes_the_same_queries_for_any_number_of_units() -> None:
    rubric = a_rubric()
    units = leased_run(rubric, [make_chat() for _ in range(12)])
    keys = ["polite", "brief", "harmful", "charming"]
    taken = []
    for start, end in ((0, 4), (4, 28)):
        results = [judged(unit, keys[unit.group], True) for unit in units[start:end]]
        with (
            transaction.atomic(),
            CaptureQueriesContext(
                connection,
            ) as queries,
        ):
            writer_of(rubric).finish(results)
        taken.append(len(queries))
    assert taken[0] == taken[1]
    days_recount(units[0].run_id)
    assert is_exact(units[0].run_id)


@pytest.mark.django_db
@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="counts the steps of SQLite's machine")
def test_the_verdicts_of_a_batch_are_found_without_reading_the_whole_run() -> None:
    rubric = make_rubric("polite")
    units = leased_run(rubric, [make_chat() for _ in range(200)])
    run, batch = units[0].run_id, [unit.pk for unit in units[:5]]
    steps = []
    for some in (units[:10], units[10:]):
        with transaction.atomic():
            writer_of(rubric).finish([judged(unit, "polite", True) for unit in some])
        steps.append(steps_of(lambda: len(units_verdicts(run, batch))))
    assert steps[1] <= 2 * steps[0]


def steps_of(query: Callable[[], int]) -> int:
    """How many steps of SQLite's machine a query takes."""
    steps: list[int] = []
    connection.ensure_connection()
    connection.connection.set_progress_handler(lambda: steps.append(1), 1)
    try:
        query()
    finally:
        connection.connection.set_progress_handler(None, 1)
    return len(steps)
