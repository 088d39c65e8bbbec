"""Suggestions on real Celery workers: asked there, taken over after a kill -9, never paid twice."""

from pathlib import Path

import pytest
from django.utils import timezone

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.services import SuggestionChoice, suggestion_start
from alignment.prompts.suggestions.worker import SUGGESTIONS
from alignment.tasks import suggest
from evaluation.models.runs import Attempt, ModelCall, WorkerLease
from evaluation.runs.worker.leases import MOST_TRIES, lease_begin
from evaluation.runs.worker.stored_questions import POISON
from labeling.models.people import User
from tests.factories.suggestions import Disputes, answer_with, drafts, revised
from tests.factories.workers import wait_until, workers_with
from tests.stub_endpoint import StubEndpoint, StubReply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def waiting(reviser: StubEndpoint, disputes: Disputes, author_user: User) -> Suggestion:
    """Requested, and marked as not enqueued, because its task went to a broker without workers."""
    row = suggestion_start(criterion=disputes.criterion, choice=SuggestionChoice(), by=author_user)
    Suggestion.objects.update(rung_at=None)
    return row


def is_state(row: Suggestion, state: str) -> bool:
    row.refresh_from_db()
    return row.state == state


@pytest.mark.flow
@pytest.mark.heavy
def test_a_worker_asks_and_after_a_kill_another_asks_the_very_same(
    waiting: Suggestion, reviser: StubEndpoint, disputes: Disputes, tmp_path: Path
) -> None:
    good = drafts(disputes)
    reviser.answer = lambda body: StubReply(good(body).text, hang=reviser.count == 1)
    with workers_with("filesystem", reviser.base_url, tmp_path) as workers:
        wait_until(lambda: reviser.count == 1, "the first request")
        workers.kill()
        assert is_state(waiting, "asking")
        disputes.chat("Parcel three")  # what is shown does not change on the way
        Suggestion.objects.update(rung_at=None)
        workers.start()
        wait_until(lambda: is_state(waiting, "done"), "the answer")
        workers.stop()
    assert "Traceback" not in workers.log.read_text()
    assert reviser.requests[0] == reviser.requests[1]
    assert sorted(Attempt.objects.values_list("outcome", flat=True)) == ["answered", "unknown_maybe_billed"]
    assert ModelCall.objects.get() == waiting.call
    assert not WorkerLease.objects.exists()


def test_an_answer_that_was_stored_before_the_worker_died_is_not_paid_for_again(
    waiting: Suggestion, reviser: StubEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """The process is gone once the answer is committed."""

    def killed(*args: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("evaluation.runs.worker.stored_questions.StoredQuestions._answered", killed)
        with pytest.raises(Killed):
            suggest(waiting.pk)
    assert ModelCall.objects.get().state == "answered"
    suggest(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.reused, reviser.count) == ("done", False, 1)


def test_what_a_dead_worker_held_is_open_again_and_what_a_living_one_holds_is_not(
    waiting: Suggestion,
) -> None:
    lease = lease_begin(None)
    Suggestion.objects.update(state="asking", lease=lease)
    assert SUGGESTIONS.waiting() == []
    WorkerLease.objects.update(pid=2**22 + 1)
    assert SUGGESTIONS.waiting() == [waiting.pk]
    Suggestion.objects.update(state="asking", lease=lease)
    WorkerLease.objects.all().delete()  # as the reaper of runs does
    assert SUGGESTIONS.waiting() == [waiting.pk]


@pytest.mark.parametrize("wanted", ["asking", "cancelled"])
@pytest.mark.parametrize("reaped", [True, False], ids=["reaped", "not reaped yet"])
def test_the_request_of_a_worker_that_died_is_closed_though_nobody_asks_again(
    waiting: Suggestion, wanted: str, reaped: bool
) -> None:
    lease = lease_begin(None)
    Suggestion.objects.update(state=wanted, lease=lease)
    frozen = waiting.request or {}
    call = ModelCall.objects.create(
        key=waiting.question, endpoint="e", model=frozen["model"], role="reviser", settings={}, parts=[]
    )
    sent = Attempt.objects.create(call=call, number=1, sent_at=timezone.now(), reserved_usd=1)
    SUGGESTIONS.waiting()
    sent.refresh_from_db()
    assert (sent.outcome, sent.ended_at) == ("sent", None)
    WorkerLease.objects.update(pid=2**22 + 1)
    if reaped:
        WorkerLease.objects.all().delete()
    SUGGESTIONS.waiting()
    sent.refresh_from_db()
    assert sent.outcome == "unknown_maybe_billed"
    assert sent.ended_at is not None


def test_a_suggestion_that_kills_its_worker_fails_at_last(waiting: Suggestion, reviser: StubEndpoint) -> None:
    Suggestion.objects.update(tries=MOST_TRIES)
    suggest(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.error, reviser.count) == ("failed", POISON, 0)


def test_two_tasks_ask_once(waiting: Suggestion, reviser: StubEndpoint) -> None:
    for _ in range(2):
        suggest(waiting.pk)
    assert reviser.count == 1


def test_a_late_finisher_whose_lease_was_taken_back_writes_nothing(
    waiting: Suggestion, reviser: StubEndpoint, disputes: Disputes, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = answer_with(revised(disputes.champion.text))
    reviser.answer = lambda body: StubReply(text)
    settle = SUGGESTIONS._settle

    def late(row: Suggestion, lease: WorkerLease, **what: object) -> None:
        Suggestion.objects.update(state="open", lease=None)
        settle(row, lease, **what)  # type: ignore[arg-type]

    monkeypatch.setattr(SUGGESTIONS, "_settle", late)
    suggest(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.text) == ("open", "")
