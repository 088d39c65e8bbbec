"""Baselines on real Celery workers: trained there, and again after a kill -9."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client

from alignment.baselines.queries import baselines as selectors
from alignment.models.baselines import BaselineTraining
from alignment.models.reports import Report
from bench._workers import Workers
from evaluation.models.runs import WorkerLease
from labeling.models.chats import Chat
from tests.factories.baselines import HTMX, url
from tests.factories.compared_runs import HUMAN, Compared, make_compared, text_of
from tests.factories.workers import wait_until, workers_with

pytestmark = pytest.mark.django_db(transaction=True)

CHATS, WORDS, KNOWN = 200, 3_000, 20_000


@pytest.fixture
def compared(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Compared:
    """Chats so long that each criterion takes a second to learn."""
    monkeypatch.setattr(selectors, "SMALL_CHATS", 0)
    found = make_compared(chats=CHATS)
    random = np.random.default_rng(1)
    chats = list(Chat.objects.all())
    for chat in chats:
        said = " ".join(f"w{word}" for word in random.integers(0, KNOWN, WORDS))
        chat.messages = [{"n": 1, "role": "user", "content": said}]
    Chat.objects.bulk_update(chats, ["messages"])
    return found


def training() -> BaselineTraining | None:
    return BaselineTraining.objects.first()


def is_learning() -> bool:
    """One criterion is learned, others are not."""
    row = training()
    return row is not None and row.state == "working" and 0 < row.done < row.total


@contextmanager
def learning(compared: Compared, lead: Client, kind: str, folder: Path) -> Iterator[Workers]:
    """Workers of whom one has learned the first criterion, and nobody has stored a thing."""
    assert lead.post(url(compared)).status_code == 202
    # The task of this process reaches no worker of another broker: mark it as not enqueued.
    BaselineTraining.objects.update(rung_at=None)
    with workers_with(kind, "http://127.0.0.1:9", folder) as workers:
        wait_until(is_learning, "the first criterion")
        yield workers
        wait_until(lambda: training() is None, "the training")
        workers.stop()
    assert "are trained again: their worker died" in workers.log.read_text()
    assert not WorkerLease.objects.exists()


def left_behind() -> BaselineTraining:
    """What a worker that was killed left: its try, and no answer."""
    row = training()
    assert row is not None
    assert (row.state, row.tries) == ("working", 1)
    assert not Report.objects.filter(kind=Report.Kind.BASELINES).exists()
    return row


@pytest.mark.flow
@pytest.mark.heavy
def test_after_a_kill_of_all_workers_others_train_and_the_page_shows_the_figures(
    compared: Compared, lead: Client, tmp_path: Path
) -> None:
    with learning(compared, lead, "filesystem", tmp_path) as workers:
        workers.kill()
        left_behind()
        workers.start()
    assert "Traceback" not in workers.log.read_text()
    found: Any = lead.get(url(compared)).json()
    assert (found["used"], [one["key"] for one in found["criteria"]]) == (CHATS, list(HUMAN))
    assert "Bag of words, balanced" in text_of(lead.get(url(compared, "alignment:baselines"), headers=HTMX))


@pytest.mark.flow
@pytest.mark.heavy
def test_after_a_kill_of_the_process_that_trains_another_one_does(
    compared: Compared, lead: Client, tmp_path: Path
) -> None:
    with learning(compared, lead, "valkey", tmp_path):
        lease = left_behind().lease
        assert lease is not None
        os.kill(lease.pid, signal.SIGKILL)
    assert lead.get(url(compared)).json()["used"] == CHATS
