"""Short versions of `bench/chaos`: workers killed, workers too slow, a chat that kills its worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from bench._chaos import die_on, kill_repeatedly, late_finishers, state
from bench._endpoint import Server, endpoint
from bench._workers import Workers, broker
from evaluation.models.runs import Attempt, Verdict
from evaluation.runs.worker.leases import POISON
from evaluation.tasks import process_units
from tests.factories.runs import environment, point_at, workspace
from tests.factories.workers import BROKER, launched, not_enqueued, purge_tasks

pytestmark = pytest.mark.django_db(transaction=True)
KILLS, SLOTS, CHATS = 2, 4, 60


@pytest.fixture
def server(settings: Settings) -> Iterator[Server]:
    purge_tasks()
    with endpoint(latency=0.2) as server:
        point_at(settings, server.base_url)
        yield server


@pytest.mark.flow
@pytest.mark.heavy
def test_killed_workers_lose_nothing_and_the_run_ends_by_itself(server: Server, tmp_path: Path) -> None:
    run = not_enqueued(launched(workspace("polite", chats=CHATS)))
    log = tmp_path / "workers.log"
    with broker(BROKER, tmp_path) as settings:
        workers = Workers(environment(server.base_url, **settings), log=log)
        try:
            found = kill_repeatedly(run, workers, server, kills=KILLS)
        finally:
            workers.kill()
    assert (found.state, found.lost, found.doubled, found.off_record) == ("done", 0, 0, 0), log.read_text()
    assert found.repeated <= found.unknown
    assert found.repeated <= KILLS * SLOTS


@pytest.mark.flow
@pytest.mark.heavy
def test_who_finishes_late_writes_nothing_and_nothing_is_asked_again(
    server: Server, settings: Settings
) -> None:
    settings.LACE_MAX_IN_FLIGHT = 20
    server.set(latency=2.0)
    run = launched(workspace("polite", chats=20))
    assert late_finishers(run, server, units=20) == 0
    process_units(run.pk)
    run.refresh_from_db()
    assert (run.state, Verdict.objects.count()) == ("done", 20)
    assert server.counts()["requests"] == Attempt.objects.count() == 20


@pytest.mark.flow
@pytest.mark.heavy
def test_a_chat_that_kills_its_worker_is_parked_and_the_others_are_judged(
    server: Server, tmp_path: Path
) -> None:
    run = not_enqueued(launched(workspace("polite", chats=6)))
    poison = run.units.order_by("id")[2]
    with (
        broker("filesystem", tmp_path) as settings,
        Workers(environment(server.base_url, **settings), log=tmp_path / "workers.log") as workers,
    ):
        deaths = die_on(run, poison, until=lambda: state(run) != "running")
        log = workers.log.read_text()
    run.refresh_from_db()
    assert (run.state, run.units_done, run.units_failed, run.error) == (
        "done_with_failures",
        5,
        1,
        POISON,
    ), log
    assert deaths == 3
    assert Verdict.objects.get(state="failed").chat_id == poison.chat_id
