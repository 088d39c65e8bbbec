"""A batch costs half, and its run keeps to the budget."""

from decimal import Decimal
from pathlib import Path

import pytest
from pytest_django import Settings

from evaluation.models.runs import Attempt
from tests.factories.batches import DIRECT, batching
from tests.factories.runs import MODEL, always, evaluate, the_run, workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.json"
    path.write_text(f'{{"{MODEL}": {{"input": 1000, "output": 2000}}}}')
    return str(path)


def test_a_batch_costs_half(settings: Settings, prices: str) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True), prices=prices):
        half = evaluate(*DIRECT, "--batch").answer["cost_usd"]
        foretold = evaluate(*DIRECT, "--batch", "--replicate", "1", "--dry-run").answer["cost_usd"]
        live = evaluate(*DIRECT, "--replicate", "1").answer["cost_usd"]
        full = evaluate(*DIRECT, "--replicate", "2", "--dry-run").answer["cost_usd"]
    assert half == pytest.approx(live / 2)
    assert half > 0
    assert foretold == pytest.approx(full / 2)


def test_a_budget_pauses_a_batch_run_before_too_much_is_sent(settings: Settings, prices: str) -> None:
    workspace("polite", chats=3)
    with batching(settings, always(True), prices=prices) as stub:
        ended = evaluate(*DIRECT, "--batch", "--budget", "0.01")
        assert (ended.code, stub.steps) == (3, [])
        assert "the budget" in ended.error
        assert evaluate("--resume", str(the_run().pk), "--budget", "1000").code == 0
    run = the_run()
    assert run.committed_usd == run.cost_usd
    assert run.cost_usd and run.cost_usd < 1000


def test_what_a_budget_has_no_room_for_waits_until_money_is_freed(settings: Settings, prices: str) -> None:
    workspace("polite", chats=4)
    with batching(settings, always(True), prices=prices) as stub:
        evaluate(*DIRECT, "--batch", "--limit", "1", "--budget", "1000", "--replicate", "9")
        worst = Attempt.objects.get().reserved_usd
        assert worst is not None
        budget = (worst * Decimal("2.5")).quantize(Decimal("0.0001"))
        assert evaluate(*DIRECT, "--batch", "--budget", str(budget)).code == 0
        sizes = [len(stub._requests(batch)) for batch in stub.batches.values()][1:]
    assert sizes[0] == 2
    assert sum(sizes) == 4
    assert the_run().committed_usd == the_run().cost_usd


def test_a_batch_the_endpoint_does_not_take_pauses_the_run(settings: Settings, prices: str) -> None:
    workspace("polite", chats=2)
    with batching(settings, always(True), prices=prices) as stub:
        stub.behaviour.ends = "failed"
        ended = evaluate(*DIRECT, "--batch", "--budget", "100")
        assert ended.code == 4
        assert "rejected the batch (token_limit_exceeded)" in ended.error
        assert the_run().committed_usd == 0
        stub.behaviour.ends = "completed"
        assert evaluate("--resume", str(the_run().pk)).code == 0
