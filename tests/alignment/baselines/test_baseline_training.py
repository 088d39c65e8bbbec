"""Training of the bag of words by a worker: queue, leases, progress."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from alignment.baselines import worker as runner
from alignment.baselines.core import out_of_fold
from alignment.baselines.queries import baselines as selectors
from alignment.baselines.worker import TRAININGS, training_work, trainings_waiting
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import part_of, scope_of_part
from alignment.models.baselines import BaselineTraining
from alignment.models.reports import Report
from alignment.tasks import train
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leases import MOST_TRIES, lease_begin
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.baselines import HTMX, document, url
from tests.factories.compared_runs import HUMAN, Compared, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def large(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> Compared:
    """As if forty chats were too many to wait for."""
    monkeypatch.setattr(selectors, "SMALL_CHATS", 39)
    return compared


def test_what_takes_long_is_left_to_a_worker(large: Compared, lead: Client) -> None:
    waiting = lead.post(url(large))
    assert (waiting.status_code, waiting.json()["state"]) == (202, "open")
    assert "Waiting for a worker." in text_of(lead.post(url(large, "alignment:baselines"), headers=HTMX))
    row = BaselineTraining.objects.get()
    train(row.pk)
    assert not BaselineTraining.objects.exists()
    assert not WorkerLease.objects.exists()
    assert [one["key"] for one in document(lead, large)["criteria"]] == list(HUMAN)


def test_while_it_is_computed_the_page_says_how_far_it_is(
    large: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def beaten(labelled: Any, *, seed: int, beat: Any) -> dict[str, Any]:
        beat()
        beat()
        seen.append(lead.post(url(large)).json())
        seen.append(text_of(lead.post(url(large, "alignment:baselines"), headers=HTMX)))
        return out_of_fold(labelled, seed=seed, beat=lambda: None)

    monkeypatch.setattr(selectors, "out_of_fold", beaten)
    lead.post(url(large))
    train(BaselineTraining.objects.get().pk)
    assert (seen[0]["state"], seen[0]["done"], seen[0]["total"]) == ("working", 1, 3)
    assert "Computing: 1 of 3 criteria." in seen[1]


def test_it_is_asked_for_once_however_often_the_page_asks(large: Compared, lead: Client) -> None:
    for _ in range(3):
        lead.post(url(large))
    row = BaselineTraining.objects.get()
    lease = lease_begin(None)
    BaselineTraining.objects.update(state="working", lease=lease)
    training_work(row.pk)  # another worker is on it
    assert not Report.objects.filter(kind=Report.Kind.BASELINES).exists()


def test_an_unknown_rater_is_not_found_and_trains_nobody(large: Compared, lead: Client) -> None:
    assert lead.post(url(large, query="?against=rater:nobody")).status_code == 400
    assert not BaselineTraining.objects.exists()


def test_what_a_dead_worker_held_is_waiting_again_and_what_a_living_one_holds_is_not(
    large: Compared, lead: Client
) -> None:
    lead.post(url(large))
    lease = lease_begin(None)
    BaselineTraining.objects.update(state="working", lease=lease)
    assert trainings_waiting() == []
    WorkerLease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    BaselineTraining.objects.update(rung_at=None)
    row = BaselineTraining.objects.get()
    assert trainings_waiting() == [row.pk]
    WorkerLease.objects.all().delete()  # the reaper may have been quicker
    BaselineTraining.objects.update(state="working", lease=None)
    assert trainings_waiting() == [row.pk]


@pytest.mark.parametrize("reaped", [True, False], ids=["reaped", "not reaped yet"])
def test_who_looks_on_takes_back_what_a_dead_worker_held(large: Compared, lead: Client, reaped: bool) -> None:
    lead.post(url(large))
    lease = lease_begin(None)
    BaselineTraining.objects.update(state="working", lease=lease, done=1, total=3)
    assert lead.post(url(large)).json()["state"] == "working"
    WorkerLease.objects.update(pid=2**22 + 1)  # more than there can be
    if reaped:
        WorkerLease.objects.all().delete()
    before = timezone.now()
    page = text_of(lead.post(url(large, "alignment:baselines"), headers=HTMX))
    assert "Waiting for a worker." in page and "Computing" not in page
    rung_at = BaselineTraining.objects.get().rung_at
    assert rung_at is not None and rung_at > before


def test_a_task_that_a_dead_worker_took_is_not_waited_for(large: Compared, lead: Client) -> None:
    lead.post(url(large))
    BaselineTraining.objects.update(state="working", lease=None, rung_at=timezone.now())
    assert trainings_waiting() == [BaselineTraining.objects.get().pk]


def test_a_task_in_the_queue_is_not_repeated_but_a_lost_one_is(large: Compared, lead: Client) -> None:
    lead.post(url(large))
    BaselineTraining.objects.update(rung_at=timezone.now())
    assert trainings_waiting() == []
    BaselineTraining.objects.update(rung_at=timezone.now() - timedelta(minutes=1))
    assert len(trainings_waiting()) == 1


def test_a_training_that_always_fails_ends_and_is_tried_again_an_hour_later(
    large: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **more: Any) -> None:
        raise RuntimeError("broken")

    lead.post(url(large))
    row = BaselineTraining.objects.get()
    with monkeypatch.context() as patched:
        patched.setattr(runner, "answers_document", broken)
        for _ in range(MOST_TRIES):
            with pytest.raises(RuntimeError):
                training_work(row.pk)
        training_work(row.pk)
    row.refresh_from_db()
    assert (row.state, trainings_waiting()) == ("failed", [])
    assert lead.post(url(large)).status_code == 503
    assert "could not be computed" in text_of(lead.post(url(large, "alignment:baselines"), headers=HTMX))
    BaselineTraining.objects.update(asked_at=timezone.now() - timedelta(hours=2))
    assert lead.post(url(large)).status_code == 202


def test_labels_that_change_meanwhile_leave_nothing_waiting(large: Compared, lead: Client) -> None:
    lead.post(url(large))
    Criterion.objects.filter(key="polite").update(labels_seq=1000)
    train(BaselineTraining.objects.get().pk)
    assert not BaselineTraining.objects.exists()
    assert document(lead, large)["used"] == 40


def test_a_worker_trains_on_the_part_that_was_asked_about(compared: Compared, author_user: User) -> None:
    query = {"split": "dev", "topic": "delivery", "since": "2026-01-01", "against": "rater:anna"}
    scope = requested_scope(compared.chat_set, compared.run, query, author_user)
    assert scope is not None
    assert scope_of_part(compared.run, json.loads(json.dumps(part_of(scope)))) == scope


def test_the_page_of_a_criterion_waits_as_the_report_does(large: Compared, lead: Client) -> None:
    part = url(large, "alignment:baselines", query="?criterion=polite")
    assert "Compute baselines" in text_of(lead.get(part, headers=HTMX))
    assert not BaselineTraining.objects.exists()
    waiting = text_of(lead.post(part, headers=HTMX))
    assert "Waiting for a worker." in waiting and f'hx-get="{part}"' in waiting
    train(BaselineTraining.objects.get().pk)
    assert "Polite" in text_of(lead.get(part, headers=HTMX))


def test_a_training_that_ended_meanwhile_is_enqueued_without_harm() -> None:
    assert TRAININGS.enqueue(404)


def test_a_cancelled_training_stops_before_the_next_criterion(
    large: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead.post(url(large))
    page = url(large, "alignment:baselines")
    learned: list[str] = []

    def beaten(labelled: Any, *, seed: int, beat: Any) -> dict[str, Any]:
        beat()
        learned.append("one")
        assert "Cancel" in text_of(lead.get(page, headers=HTMX))
        cancelled = text_of(lead.post(page, {"cancel": "1"}, headers=HTMX))
        assert "Not computed yet." in cancelled
        beat()
        learned.append("two")
        return out_of_fold(labelled, seed=seed, beat=lambda: None)

    monkeypatch.setattr(selectors, "out_of_fold", beaten)
    training_work(BaselineTraining.objects.get().pk)
    assert learned == ["one"]
    assert not BaselineTraining.objects.exists()
    assert not WorkerLease.objects.exists()
    assert trainings_waiting() == []


def test_the_time_left_follows_from_the_criteria_learned_so_far(large: Compared, lead: Client) -> None:
    lead.post(url(large))
    row = BaselineTraining.objects.get()
    assert row.seconds_left is None
    row.state, row.done, row.total = BaselineTraining.State.WORKING, 2, 6
    row.rung_at = timezone.now() - timedelta(seconds=60)
    row.save()
    assert row.seconds_left == pytest.approx(120, abs=2)
    page = text_of(lead.get(url(large, "alignment:baselines"), headers=HTMX))
    assert "Computing: 2 of 6 criteria." in page
    assert re.search(r"About (2 min 0|1 min 59|2 min 1) s left", page)
