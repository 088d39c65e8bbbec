"""The ledger says what a run asked and paid, by engine, model, role and criterion."""

from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from evaluation.gateway import retries
from evaluation.models.runs import Attempt, ModelCall
from evaluation.runs.queries.costs import run_costs
from evaluation.runs.queries.ledger import run_ledger
from evaluation.templatetags.runs import usd
from labeling.models.people import User
from tests.factories.rows import make_criterion, make_set
from tests.factories.runs import (
    MODEL,
    always,
    answering,
    chats_of,
    evaluate,
    rubric_of,
    the_run,
    workspace,
)
from tests.stub_endpoint import StubReply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.json"
    path.write_text(f'{{"{MODEL}": {{"input": 1, "output": 2}}}}')
    return str(path)


def test_rows_go_by_engine_model_and_role_and_add_up_to_the_run(settings: Settings, prices: str) -> None:
    rubric = rubric_of("polite")
    make_criterion("wrong_fact", rubric=rubric, tier="context", passes_when=False)
    make_set(rubric, *chats_of(3))
    with answering(settings, always(True), prices=prices):
        evaluate("--set", "calibration", "--engine", "auto")
    run = the_run()
    ledger = run_ledger(run)
    assert [(row.engine, row.model, row.role, row.sums.calls) for row in ledger.rows] == [
        ("debate", MODEL, "customer", 3),
        ("debate", MODEL, "judge", 3),
        ("debate", MODEL, "support", 3),
        ("direct", MODEL, "direct", 3),
    ]
    total = ledger.total
    assert (total.calls, total.reused, total.attempts) == (run.calls, run.reused, 12)
    assert (total.prompt_tokens, total.completion_tokens) == (run.prompt_tokens, run.completion_tokens)
    assert total.cost_usd == run.cost_usd
    assert total.cost_usd and total.cost_usd > 0


def test_criteria_asked_together_share_the_bill(settings: Settings, prices: str) -> None:
    rubric = rubric_of("polite", "brief")
    make_criterion("wrong_fact", rubric=rubric, tier="context")
    make_set(rubric, *chats_of(2))
    with answering(settings, always(True), prices=prices):
        evaluate("--set", "calibration", "--engine", "direct")
    ledger = run_ledger(the_run())
    shares = {row.criterion: (row.together_with, row.cost_usd) for row in ledger.criteria}
    assert shares["polite"] == shares["brief"]
    assert (shares["polite"][0], shares["wrong_fact"][0]) == (1, 0)
    assert sum(cost or 0 for _, cost in shares.values()) == ledger.total.cost_usd


def test_an_unknown_price_is_no_cost_of_zero(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "direct")
    ledger = run_ledger(the_run())
    assert ledger.total.cost_usd is None
    assert [row.cost_usd for row in ledger.criteria] == [None]


def test_answers_that_were_there_cost_nothing(settings: Settings, prices: str) -> None:
    workspace("polite", chats=2)
    with answering(settings, always(True), prices=prices):
        evaluate("--set", "calibration", "--engine", "direct")
        evaluate("--set", "calibration", "--engine", "direct")
    ledger = run_ledger(the_run())
    assert (ledger.total.calls, ledger.total.reused, ledger.total.cost_usd) == (0, 2, Decimal(0))


def test_requests_of_unknown_cost_are_listed_apart_with_their_worst_case(
    settings: Settings, prices: str
) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True), prices=prices):
        evaluate("--set", "calibration", "--engine", "direct")
    run, call = the_run(), ModelCall.objects.get()
    before = run_ledger(run)
    lost = Attempt(call=call, run=run, number=2, sent_at=timezone.now(), outcome="unknown_maybe_billed")
    lost.reserved_usd = Decimal("0.5")
    lost.save()
    after = run_ledger(run)
    assert (after.costs.unknown_requests, after.costs.unknown_usd) == (1, Decimal("0.5"))
    assert after.total.cost_usd == before.total.cost_usd
    Attempt.objects.create(call=call, run=run, number=3, sent_at=timezone.now())
    assert run_costs(run.pk).unknown_usd is None


def test_a_second_try_is_one_call_with_two_requests(settings: Settings, prices: str) -> None:
    workspace("polite", chats=1)
    replies = iter([StubReply(status=500), None])

    def answer(body):
        return next(replies) or always(True)(body)

    with answering(settings, answer, prices=prices):
        assert evaluate("--set", "calibration", "--engine", "direct").code == 0
    total = run_ledger(the_run()).total
    assert (total.calls, total.attempts) == (1, 2)


@pytest.mark.heavy
def test_the_number_of_queries_does_not_grow_with_the_run(
    settings: Settings, prices: str, django_assert_num_queries
) -> None:
    workspace("polite", "brief", chats=5)
    with answering(settings, always(True), prices=prices):
        evaluate("--set", "calibration", "--engine", "debate", "--grouping", "criterion")
    run = the_run()
    with django_assert_num_queries(4):
        run_ledger(run)


def test_page_command_and_api_agree_on_known_and_unknown_cost(
    settings: Settings, prices: str, client: Client, lead_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)
    workspace("polite", chats=2)
    broken = StubReply(raw=b"x" * 1_100_000)

    def answer(body):
        return broken if "case c1:" in body["messages"][-1]["content"] else always(True)(body)

    with answering(settings, answer, prices=prices):
        answered = evaluate("--set", "calibration", "--engine", "direct", "--budget", "5").answer
    run, names = the_run(), ("cost_usd", "unknown_cost_requests", "unknown_cost_usd")
    reserved = Attempt.objects.get(outcome="too_big").reserved_usd
    assert reserved is not None and run.cost_usd is not None
    assert answered["unknown_cost_requests"] == 1
    assert answered["unknown_cost_usd"] == pytest.approx(float(reserved))
    assert run.committed_usd == run.cost_usd + reserved
    client.force_login(lead_user)
    body = client.get(f"/api/runs/{run.pk}/").json()
    assert [body[name] for name in names] == [answered[name] for name in names]
    page = " ".join(client.get(f"/runs/{run.pk}/").content.decode().split())
    assert f"up to {usd(reserved)} more for 1 request of unknown cost" in page
    assert (
        f"1 request without a known cost may have been billed in addition: at most {usd(reserved)}." in page
    )
