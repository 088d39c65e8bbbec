"""A run paused at its budget goes on with a larger one: from the command line, over HTTP, from the page."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from common.problems import InputProblem
from evaluation.models.runs import Run
from evaluation.runs.services.control import run_resume
from evaluation.tasks import process_units
from labeling.models.people import User
from tests.factories.runs import MODEL, always, answering, the_run, workspace
from tests.factories.workers import control, launched, purge_tasks

pytestmark = pytest.mark.django_db(transaction=True)
SMALL = Decimal("0.0001")


@pytest.fixture(autouse=True)
def priced(settings: Settings, tmp_path: Path) -> Any:
    """An endpoint that answers, at a known price."""
    path = tmp_path / "prices.json"
    path.write_text(f'{{"{MODEL}": {{"input": 1, "output": 1000}}}}')
    purge_tasks()
    with answering(settings, always(True), prices=str(path)) as stub:
        yield stub


def paused(budget: Decimal | None = SMALL) -> Run:
    """A run that a worker had to leave at its budget."""
    run = launched(workspace("polite", chats=2), budget_usd=budget)
    process_units(run.pk)
    run.refresh_from_db()
    assert (run.state, run.units_done) == ("paused", 0)
    return run


def went_on() -> bool:
    process_units(the_run().pk)
    return the_run().state == "done"


def test_run_control_takes_a_larger_budget() -> None:
    run = paused()
    assert control(run, "pause", "--budget", "1000").code == 2
    assert control(run, "resume", "--budget", "-1").code == 2
    resumed = control(run, "resume", "--budget", "1000")
    assert (resumed.code, resumed.answer["state"], resumed.answer["budget_usd"]) == (0, "running", 1000.0)
    assert went_on()


def test_the_api_takes_a_larger_budget(client: Client, lead_user: User) -> None:
    url = reverse("api_run_resume", args=[paused().pk])
    client.force_login(lead_user)
    for wrong in ("much", "0", "-1"):
        refused = client.post(url, {"budget_usd": wrong}, content_type="application/json")
        assert (refused.status_code, list(refused.json())) == (400, ["budget_usd"])
    assert the_run().state == "paused"
    answer = client.post(url, {"budget_usd": "1000"}, content_type="application/json").json()
    assert (answer["state"], answer["budget_usd"]) == ("running", 1000.0)
    assert went_on()


def test_the_page_takes_a_larger_budget(client: Client, lead_user: User) -> None:
    run = paused()
    client.force_login(lead_user)
    page = client.get(reverse("evaluation:run_detail", args=[run.pk])).content.decode()
    assert "Resume with a larger budget" in page
    assert 'name="budget_usd" value="0.0001"' in page
    url = reverse("evaluation:run_act", args=[run.pk, "resume"])
    assert (
        "the budget is not an amount"
        in client.post(url, {"budget_usd": "much"}, follow=True).content.decode()
    )
    assert the_run().state == "paused"
    client.post(url, {"budget_usd": "1000"})
    assert went_on()


def test_what_is_spent_already_is_counted_though_there_was_no_budget(settings: Settings) -> None:
    run = launched(workspace("polite", chats=2))
    process_units(run.pk)
    Run.objects.update(state="paused")
    spent = the_run().cost_usd
    assert spent and the_run().committed_usd == 0
    with pytest.raises(InputProblem, match="has already spent"):
        run_resume(run=run, by=None, budget_usd=spent)
    assert (the_run().state, the_run().budget_usd) == ("paused", None)
    assert run_resume(run=run, by=None, budget_usd=spent + 1).committed_usd == spent


def test_a_budget_no_price_can_keep_is_refused(settings: Settings) -> None:
    run = paused()
    settings.LACE_PRICES = ""
    with pytest.raises(InputProblem, match="price file"):
        run_resume(run=run, by=None, budget_usd=Decimal(5))
    assert (the_run().state, the_run().budget_usd) == ("paused", SMALL)
