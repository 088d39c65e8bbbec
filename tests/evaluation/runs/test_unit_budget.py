"""Under a budget, units that were opened are finished before others open."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from pytest_django import Settings

from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.runs import Attempt, Run
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.worker.execute import run_execute, run_reopen
from evaluation.runs.worker.leases import lease_begin
from evaluation.runs.worker.unit_budget import WorstCase, funds_of, unit_fits
from labeling.models.chats import ChatSet
from tests.factories.batches import batching, stepped
from tests.factories.runs import MODEL, always, answering, block, the_run, workspace
from tests.stub_endpoint import Answer, Body, StubReply, asked_keys, asked_text

pytestmark = pytest.mark.django_db(transaction=True)
CHATS = 30
DEBATE = JudgeSpec(engine="debate")


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({MODEL: {"input": 1, "output": 1000}}))
    return str(path)


def using(share: float) -> Answer:
    """Good answers that use this share of their limit."""

    def answer(body: Body) -> StubReply:
        text = block(dict.fromkeys(asked_keys(body), True)).text
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": int(body["max_tokens"] * share)}
        return StubReply(raw=json.dumps({"choices": [choice], "usage": usage}).encode())

    return answer


def worst_unit(chat_set: ChatSet) -> Decimal:
    """The highest cost of one chat's debate."""
    estimate = estimate_for(chat_set=chat_set, judge=DEBATE, run=RunChoice(), endpoint=current_endpoint())
    assert estimate.cost_usd is not None
    return estimate.cost_usd / CHATS


def planned(chat_set: ChatSet, budget: Decimal, mode: Run.Mode = Run.Mode.LIVE) -> Run:
    choice = RunChoice(budget_usd=budget.quantize(Decimal("0.0001")), mode=mode)
    return run_start(chat_set=chat_set, judge=DEBATE, run=choice, endpoint=current_endpoint())


def worked_off(run: Run, *, slots: int = 16) -> Run:
    return run_execute(run, on_unit=lambda failed: None, max_in_flight=slots)


@pytest.mark.parametrize(("share", "least"), [(1.0, 12), (0.25, 11), (0.1, 7)])
def test_a_small_budget_buys_finished_debates(
    settings: Settings, prices: str, share: float, least: int
) -> None:
    chat_set = workspace("polite", chats=CHATS)
    with answering(settings, using(share), prices=prices) as stub:
        budget = 13 * worst_unit(chat_set) * Decimal(share)
        run = worked_off(planned(chat_set, budget * Decimal("1.01")))
        assert stub.count == 3 * run.units_done
    assert least <= run.units_done <= 13
    assert (run.state, run.error.startswith("the budget of")) == ("paused", True)
    assert run.cost_usd is not None and run.committed_usd == run.cost_usd <= budget * Decimal("1.01")


def test_a_unit_whose_briefs_are_stored_needs_money_for_its_last_call_only(
    settings: Settings, prices: str
) -> None:
    chat_set = workspace("polite", chats=CHATS)
    with answering(settings, using(1.0), prices=prices) as stub:
        run = planned(chat_set, 100 * worst_unit(chat_set))

        def until_the_judge(body: Body) -> StubReply:
            return using(1.0)(body) if "Answers to argue for" in asked_text(body) else StubReply(status=402)

        stub.answer = until_the_judge
        assert worked_off(run, slots=2).state == "paused"
        briefs = Attempt.objects.filter(outcome="answered").count()
        assert briefs >= 2
        spent = the_run().committed_usd
        Run.objects.filter(pk=run.pk).update(budget_usd=spent + worst_unit(chat_set) * Decimal("0.6"))
        stub.answer, before = using(1.0), stub.count
        run = worked_off(run_reopen(the_run()), slots=2)
        assert (run.state, run.units_done, stub.count - before) == ("paused", 1, 1)


def test_a_batch_run_opens_only_debates_that_it_can_finish(settings: Settings, prices: str) -> None:
    chat_set = workspace("polite", chats=CHATS)
    with batching(settings, using(0.25), prices=prices) as stub:
        budget = 13 * worst_unit(chat_set) / 4 / 2  # at half the price
        run = planned(chat_set, budget * Decimal("1.01"), Run.Mode.BATCH)
        stepped(run)
        run.refresh_from_db()
        assert len(stub.asked) == 3 * run.units_done
    assert 11 <= run.units_done <= 13
    assert (run.state, run.error.startswith("the budget of")) == ("paused", True)


def test_two_processes_share_the_money(settings: Settings, prices: str) -> None:
    chat_set = workspace("polite", chats=CHATS)
    worst = WorstCase({}, [], total=Decimal("0.4"), dearest=Decimal("0.2"))
    with answering(settings, using(1.0), prices=prices):
        run = planned(chat_set, Decimal(1))
    for others in (0, 1):
        lease_begin(run.pk)
        funds = funds_of(run.pk)
        assert (funds.left, funds.share) == (Decimal(1), 1 / Decimal(1 + others))
        assert unit_fits(worst=worst, funds=funds, held=Decimal("0.4"), alone=False) is (others == 0)


def test_a_sufficient_budget_changes_nothing(settings: Settings, prices: str) -> None:
    chat_set = workspace("polite", chats=CHATS)
    with answering(settings, always(True), prices=prices) as stub:
        run = worked_off(planned(chat_set, 2 * CHATS * worst_unit(chat_set)))
        assert stub.count == 3 * CHATS
    assert (run.state, run.units_done) == ("done", CHATS)
