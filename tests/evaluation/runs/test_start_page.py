"""Starting a run from the page: what it will take is shown first, and only leads may."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profile_save
from evaluation.models.judges import Judge
from evaluation.models.runs import ModelCall, Run
from evaluation.runs.services import starts
from labeling.models.chats import ChatSet
from labeling.models.people import User
from tests.factories.page_text import words_of
from tests.factories.rows import make_chat, make_criterion, make_set
from tests.factories.runs import MODEL, always, answering, chats_of, rubric_of, workspace
from tests.stub_endpoint import StubEndpoint

pytestmark = pytest.mark.django_db

NEW, ESTIMATE = "/runs/new/", "/runs/new/estimate/"


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.json"
    path.write_text(f'{{"{MODEL}": {{"input": 1, "output": 2}}}}')
    return str(path)


@pytest.fixture
def stub(settings: Settings, prices: str) -> Iterator[StubEndpoint]:
    with answering(settings, always(True), prices=prices) as endpoint:
        yield endpoint


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def choose(chat_set: ChatSet, **fields: Any) -> dict[str, Any]:
    profile = profile_save(name="mine", choice=JudgeSpec("direct"))
    return {"set": chat_set.pk, "profile": profile.pk, "mode": "live", **fields}


def test_the_estimate_says_what_it_will_take_and_asks_nobody(lead: Client, stub: StubEndpoint) -> None:
    chosen = choose(workspace("polite", "clear", chats=3), budget_usd="100")
    page = lead.get(ESTIMATE, chosen)
    found = page.context["estimate"]
    assert (found.chats, found.units, found.calls, found.reused) == (3, 3, 3, 0)
    assert found.cost_usd > 0
    assert "Within" in page.content.decode()
    assert stub.count == 0
    assert not Run.objects.exists()
    assert not Judge.objects.exists()


def test_direct_and_auto_are_offered_with_the_cost_of_both(lead: Client, stub: StubEndpoint) -> None:
    rubric = rubric_of("polite")
    make_criterion("brief", rubric=rubric, tier="subjective")
    chosen = choose(make_set(rubric, *chats_of(3)))
    page = lead.get(ESTIMATE, chosen)
    own, other = page.context["estimate"], page.context["other"]
    assert (own.calls, other.engine, other.estimate.calls) == (6, "auto", 12)
    assert other.estimate.expected_cost_usd > own.expected_cost_usd
    assert "debates context and subjective criteria: 12 calls" in words_of(page)
    chosen["profile"] = profile_save(name="both", choice=JudgeSpec("auto")).pk
    mirrored = lead.get(ESTIMATE, chosen).context
    assert (mirrored["estimate"].calls, mirrored["other"].estimate.calls) == (12, 6)
    chosen["profile"] = profile_save(name="all", choice=JudgeSpec("debate")).pk
    assert lead.get(ESTIMATE, chosen).context["other"] is None


def test_a_budget_that_is_too_small_is_said_before_the_start(lead: Client, stub: StubEndpoint) -> None:
    page = lead.get(ESTIMATE, choose(workspace("polite"), budget_usd="0.0001"))
    assert "Above the budget" in page.content.decode()


def test_an_unknown_price_is_a_dash_and_no_promise(
    lead: Client, stub: StubEndpoint, settings: Settings
) -> None:
    settings.LACE_PRICES = ""
    page = lead.get(ESTIMATE, choose(workspace("polite"), budget_usd="1")).content.decode()
    assert "no price known" in page
    assert "$0" not in page
    assert "A budget needs a price" in page


def test_without_a_set_the_estimate_says_what_to_choose(lead: Client) -> None:
    page = lead.get(ESTIMATE, {"set": ""}).content.decode()
    assert "Choose a chat set" in page
    assert "<html" not in page


def test_what_cannot_be_planned_is_said_in_words(lead: Client, stub: StubEndpoint) -> None:
    chosen = choose(workspace("polite"), split="holdout")
    assert "No chats in split" in lead.get(ESTIMATE, chosen).content.decode()
    assert "Not started" in lead.post(NEW, chosen).content.decode()
    assert not Run.objects.exists()


def test_start_plans_the_run_as_chosen(
    lead: Client,
    lead_user: User,
    stub: StubEndpoint,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    chat_set = workspace("polite", "clear", chats=4)
    chosen = choose(
        chat_set,
        limit="2",
        engine="reflection",
        knowledge="none",
        samples="3",
        budget_usd="1.50",
        criteria=["clear"],
        replicate="2",
        max_in_flight="5",
        audit="10",
    )
    with django_capture_on_commit_callbacks() as rung:
        response = lead.post(NEW, chosen)
    run = Run.objects.select_related("judge__profile").get()
    assert response.headers["Location"] == reverse("evaluation:run_detail", args=[run.pk])
    assert len(rung) == 1
    assert (run.units_total, run.replicate, run.budget_usd) == (2, 2, Decimal("1.5"))
    assert (run.started_by, run.state) == (lead_user, "running")
    assert (run.options["criteria"], run.options["audit"], run.options["max_in_flight"]) == (
        ["clear"],
        0.1,
        5,
    )
    assert (run.options["profile"], run.judge.profile and run.judge.profile.name) == ("mine", "mine")
    assert (run.judge.engine, run.judge.config["samples"]) == ("reflection", 3)
    assert run.judge.config["knowledge"]["mode"] == "none"


def test_a_second_press_of_the_button_starts_no_second_run(lead: Client, stub: StubEndpoint) -> None:
    token = lead.get(NEW).context["form"]["form_token"].value()
    chosen = choose(workspace("polite"), form_token=token)
    first, second = lead.post(NEW, chosen), lead.post(NEW, chosen, follow=True)
    run = Run.objects.get()
    assert first.headers["Location"] == second.redirect_chain[0][0] == f"/runs/{run.pk}/"
    assert f"already started run {run.pk}" in second.content.decode()


def test_two_presses_in_the_same_moment_start_one_run(
    lead: Client, stub: StubEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = choose(workspace("polite"), form_token="one form")
    lead.post(NEW, chosen)
    looks = iter([None])
    look = starts._started
    # The second looks before the first has stored its run, and may store none of its own.
    monkeypatch.setattr(starts, "_started", lambda run: next(looks, look(run)))
    assert lead.post(NEW, chosen).headers["Location"] == f"/runs/{Run.objects.get().pk}/"


def test_another_choice_or_a_reopened_form_starts_another_run(lead: Client, stub: StubEndpoint) -> None:
    chosen = choose(workspace("polite"), form_token="one form")
    for changes in ({}, {"limit": "1"}, {"form_token": "another form"}):
        lead.post(NEW, chosen | changes)
    assert Run.objects.count() == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("set", ""),
        ("limit", "0"),
        ("profile", "999999"),
        ("samples", "12"),
        ("budget_usd", "-1"),
        ("budget_usd", "0"),
        ("mode", "carrier pigeon"),
        ("criteria", ["nothing"]),
        ("audit", "101"),
        ("replicate", "-1"),
    ],
)
def test_what_cannot_be_chosen_is_said_at_its_field(
    lead: Client, stub: StubEndpoint, field: str, value: Any
) -> None:
    response = lead.post(NEW, choose(workspace("polite")) | {field: value})
    assert list(response.context["form"].errors) == [field]
    assert not Run.objects.exists()


def test_a_criterion_of_another_rubric_is_refused_at_the_criteria(lead: Client, stub: StubEndpoint) -> None:
    mine = workspace("polite")
    rubric_of("strange", name="Another rubric")
    response = lead.post(NEW, choose(mine, criteria=["strange"]))
    assert list(response.context["form"].errors) == ["criteria"]


def test_address_and_default_choose_beforehand(lead: Client) -> None:
    chosen = choose(workspace("polite"))
    offered = default_profile()
    assert offered is not None
    assert lead.get(NEW).context["form"]["profile"].value() == offered.pk
    form = lead.get(NEW, {"set": chosen["set"], "profile": chosen["profile"]}).context["form"]
    assert (form["set"].value(), form["profile"].value()) == (str(chosen["set"]), str(chosen["profile"]))


def test_nonsense_in_the_address_chooses_nothing(lead: Client) -> None:
    assert lead.get(NEW, {"set": "x", "profile": "9" * 40}).status_code == 200
    assert lead.get(ESTIMATE, {"set": "9" * 40, "profile": "x", "samples": "y"}).status_code == 200


@pytest.mark.parametrize("who", ["rater_user", "author_user"])
def test_only_leads_start_runs(client: Client, who: str, request: pytest.FixtureRequest) -> None:
    chosen = choose(workspace("polite"))
    client.force_login(request.getfixturevalue(who))
    assert client.get(NEW).status_code == 404
    assert client.post(NEW, chosen).status_code == 404
    assert client.get(ESTIMATE, chosen).status_code == 404
    assert not Run.objects.exists()


@pytest.mark.heavy
def test_the_form_asks_as_few_queries_for_many_sets_as_for_one(lead: Client) -> None:
    rubric = workspace("polite").rubric
    lead.get(NEW)
    with CaptureQueriesContext(connection) as few:
        lead.get(NEW)
    for n in range(20):
        make_set(rubric, make_chat(), name=f"set {n}")
    with CaptureQueriesContext(connection) as many:
        lead.get(NEW)
    assert len(many) == len(few)


def test_the_set_is_offered_with_the_size_of_its_splits(lead: Client) -> None:
    make_set(rubric_of("polite"), *chats_of(3), name="calibration")
    assert "calibration: 3 chats, dev" in lead.get(NEW).content.decode()


def test_an_estimate_leaves_no_call_behind(lead: Client, stub: StubEndpoint) -> None:
    lead.get(ESTIMATE, choose(workspace("polite")))
    assert not ModelCall.objects.exists()


def test_the_only_chat_set_is_chosen_already(lead: Client, stub: StubEndpoint) -> None:
    chat_set = workspace("polite", chats=1)
    chosen = f'<option value="{chat_set.pk}" selected>'
    assert chosen in lead.get(NEW).content.decode()
    make_set(chat_set.rubric, name="other")
    assert chosen not in lead.get(NEW).content.decode()
    assert "Choose a chat set." in words_of(lead.post(NEW, {"mode": "live"}))
