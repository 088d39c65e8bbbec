"""A run's budget: a request's worst case is set aside before it leaves; at the cap the run pauses."""

import json
import threading
import uuid
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from common.problems import InputProblem
from evaluation.gateway import retries, throttle
from evaluation.gateway.budget import BUDGET_REACHED, budget_recount, settle
from evaluation.gateway.current import current_endpoint
from evaluation.gateway.throttle import shared
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.runs import Attempt, ModelCall, Run, WorkerLease
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.worker.execute import run_execute, run_reopen
from tests.factories.runs import MODEL, answering, block, workspace
from tests.stub_endpoint import Answer, StubReply

pytestmark = pytest.mark.django_db(transaction=True)
CHATS, SLOTS = 20, 4


@pytest.fixture
def prices(tmp_path: Path) -> str:
    """A token of an answer costs a tenth of a cent, one of a prompt a thousandth of that."""
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({MODEL: {"input": 1, "output": 1000}}))
    return str(path)


def using(prompt: int, completion: int) -> Answer:
    """Good answers with this many tokens."""
    choice = {"message": {"content": block({"polite": True}).text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    body = json.dumps({"choices": [choice], "usage": usage}).encode()
    return lambda asked: StubReply(raw=body)


def planned(budget: str | None) -> Run:
    """A run over so many chats, four calls at once."""
    return run_start(
        chat_set=workspace("polite", chats=CHATS),
        judge=JudgeSpec(engine="direct"),
        run=RunChoice(budget_usd=None if budget is None else Decimal(budget)),
        endpoint=current_endpoint(),
    )


def worked_off(run: Run) -> Run:
    return run_execute(run, on_unit=lambda failed: None, max_in_flight=SLOTS)


def test_at_its_budget_a_run_pauses_below_it_and_goes_on_with_a_higher_one(
    settings: Settings, prices: str
) -> None:
    with answering(settings, using(1000, 50), prices=prices) as stub:
        run = worked_off(planned("1"))
        assert run.state == "paused"
        assert run.error == f"{BUDGET_REACHED} $1 is reached"
        assert 0 < run.units_done < CHATS
        assert run.cost_usd is not None and 0 < run.cost_usd <= 1
        assert run.committed_usd == run.cost_usd == Decimal("0.051") * stub.count
        assert not Attempt.objects.filter(ended_at=None).exists()
        Run.objects.filter(pk=run.pk).update(budget_usd=Decimal(100))
        run = worked_off(run_reopen(Run.objects.select_related("judge").get(pk=run.pk)))
        assert stub.count == CHATS
    assert (run.state, run.error, run.units_done) == ("done", "", CHATS)


def test_what_another_worker_has_set_aside_is_waited_for(settings: Settings, prices: str) -> None:
    with answering(settings, using(1000, 50), prices=prices) as stub:
        run = planned("2")
        now, reserved = timezone.now(), Decimal("1.9999")
        lease = WorkerLease.objects.create(
            token=uuid.uuid4(),
            run=run,
            worker="elsewhere",
            beat_at=now,
            expires_at=now + timedelta(seconds=60),
        )
        first = run.units.order_by("id")[0]
        run.units.filter(pk=first.pk).update(state="leased", lease=lease)
        call = ModelCall.objects.create(
            key="k", endpoint="e", model=MODEL, role="direct", settings={}, parts=[]
        )
        attempt = Attempt.objects.create(
            call=call, run=run, unit=first, number=1, sent_at=now, reserved_usd=reserved
        )

        def free() -> None:
            with transaction.atomic():
                Attempt.objects.filter(pk=attempt.pk).update(ended_at=timezone.now(), cost_usd=0)
                settle([(run.pk, reserved, Decimal(0))])
            connection.close()

        timer = threading.Timer(1.0, free)
        timer.start()
        worked_off(run)
        timer.join()
        assert stub.count == CHATS - 1
    assert (run.state, run.units_done, run.error) == ("running", CHATS - 1, "")


def test_no_request_leaves_whose_worst_case_does_not_fit(settings: Settings, prices: str) -> None:
    with answering(settings, using(10, 10), prices=prices) as stub:
        run = worked_off(planned("0.01"))
        assert stub.count == 0
    assert (run.state, run.units_done, run.committed_usd) == ("paused", 0, Decimal(0))
    assert not Attempt.objects.exists()


def test_an_endpoint_that_takes_more_than_the_worst_case_overshoots_by_its_calls_in_flight_only(
    settings: Settings, prices: str
) -> None:
    with answering(settings, using(1000, 5000), prices=prices):
        run = worked_off(planned("20"))
    dearest = max(cost or 0 for cost in Attempt.objects.values_list("cost_usd", flat=True))
    assert run.state == "paused"
    assert run.cost_usd is not None and run.cost_usd > 20
    assert run.cost_usd <= 20 + SLOTS * dearest


def test_a_budget_without_a_price_is_refused_before_anything_is_planned_or_sent(settings: Settings) -> None:
    with answering(settings, using(10, 10)) as stub:
        with pytest.raises(InputProblem, match="price file"):
            planned("5")
        assert not Run.objects.exists()
        assert stub.count == 0


def test_a_price_that_is_gone_stops_a_planned_run_before_anything_is_sent(
    settings: Settings, prices: str
) -> None:
    with answering(settings, using(10, 10), prices=prices) as stub:
        run = planned("5")
        settings.LACE_PRICES = ""
        with pytest.raises(InputProblem, match="price file"):
            worked_off(run)
        assert stub.count == 0


def test_without_a_budget_nothing_is_set_aside(settings: Settings, prices: str) -> None:
    with answering(settings, using(10, 10), prices=prices):
        run = worked_off(planned(None))
    assert (run.state, run.committed_usd) == ("done", Decimal(0))
    assert not Attempt.objects.exclude(reserved_usd=None).exists()


def test_what_an_unknown_outcome_may_have_cost_stays_set_aside(settings: Settings, prices: str) -> None:
    with answering(settings, using(10, 10), prices=prices):
        run = planned("100")
    call = ModelCall.objects.create(key="k", endpoint="e", model=MODEL, role="direct", settings={}, parts=[])
    ended = {"call": call, "run": run, "sent_at": timezone.now(), "ended_at": timezone.now()}
    reserved = Decimal("0.5")
    for number, (outcome, paid) in enumerate(
        [
            ("unknown_maybe_billed", None),
            ("timeout", None),
            ("connection", None),
            ("server_error", None),
            ("answered", Decimal("0.2")),
        ]
    ):
        Attempt.objects.create(**ended, number=number, outcome=outcome, cost_usd=paid, reserved_usd=reserved)
    with transaction.atomic():
        budget_recount(run.pk)
    run.refresh_from_db()
    assert run.committed_usd == Decimal("1.7")


BROKEN = {
    "broken off": StubReply(close=True),
    "timed out": StubReply(hang=True),
    "too big": StubReply(raw=b"x" * 1_100_000),
    "compressed": StubReply(raw=b"x", headers={"Content-Encoding": "gzip"}),
    "failed in the middle": StubReply("half of", finish_reason="error"),
}


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(throttle, "PATIENCE", 0.5)
    monkeypatch.setattr(throttle, "PROBE_SECONDS", 0.1)
    monkeypatch.setattr(shared, "FIRST_PATIENCE", 0.5)


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("how", BROKEN)
def test_an_answer_lost_on_its_way_keeps_its_reservation(settings: Settings, prices: str, how: str) -> None:
    reply = BROKEN[how]
    if how == "failed in the middle":  # a proxy that reports no usage either
        choice = {"message": {"content": "half of"}, "finish_reason": "error"}
        reply = StubReply(raw=json.dumps({"choices": [choice]}).encode())
    with answering(settings, lambda body: reply, prices=prices) as stub:
        settings.LACE_REQUEST_TIMEOUT = 0.3
        run = worked_off(planned("3"))
        sent = stub.count
    reserved = [one.reserved_usd or Decimal(0) for one in Attempt.objects.all()]
    assert sent == len(reserved) > 0
    assert run.committed_usd == sum(reserved) <= 3
    assert run.cost_usd == 0


@pytest.mark.usefixtures("short_waits")
def test_a_request_that_never_left_costs_nothing(settings: Settings, prices: str) -> None:
    with answering(settings, using(10, 10), prices=prices):
        run = planned("3")
    run = worked_off(run)  # nobody listens there any more
    assert run.committed_usd == 0
    assert set(Attempt.objects.values_list("outcome", "cost_usd")) == {("connection", Decimal(0))}
