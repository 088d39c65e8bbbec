"""Start of a regression test from the page: estimate, power, repeated submissions."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from alignment.models.regressions import HoldoutOpening, RegressionTest
from alignment.regression.services import starts as regression_starts
from alignment.regression.services.policies import policy_revise
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import profile_save
from evaluation.knowledge.services import knowledge_import
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Attempt, Run
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import Role, User
from tests.factories.compared_runs import text_of
from tests.factories.gate_reference import (
    CHATS,
    carried_out,
    champion_of,
    judging,
    make_golden,
    version_of,
)
from tests.factories.page_text import words_of
from tests.factories.rows import make_rubric, make_user
from tests.factories.runs import MODEL, answering
from tests.stub_endpoint import StubEndpoint

pytestmark = pytest.mark.django_db(transaction=True)

NEW, ESTIMATE = "/regressions/new/", "/regressions/new/estimate/"


@pytest.fixture
def stub(settings: Settings, tmp_path: Path) -> Iterator[StubEndpoint]:
    prices = tmp_path / "prices.json"
    prices.write_text(f'{{"{MODEL}": {{"input": 1, "output": 2}}}}')
    with answering(settings, judging(champion=2), prices=str(prices)) as endpoint:
        yield endpoint


def build_golden() -> ChatSet:
    """Two criteria with a champion each, and a new version of each."""
    chat_set = make_golden("polite", "exact")
    for key in ("polite", "exact"):
        version_of(key)
    return chat_set


def choose(golden: ChatSet, **fields: Any) -> dict[str, Any]:
    return {"criterion": "polite", "version": 2, "set": golden.pk, "split": "dev", **fields}


def of_judge(golden: ChatSet, **fields: Any) -> dict[str, Any]:
    named = JudgeProfile.objects.filter(name="reflecting").first()
    profile = named or profile_save(name="reflecting", choice=JudgeSpec("reflection"))
    return {"kind": "judge", "candidate_profile": profile.pk, "set": golden.pk, "split": "dev", **fields}


def held_out(chat_set: ChatSet) -> None:
    ChatSetMember.objects.filter(chat_set=chat_set, position__lte=20).update(split="holdout")


def started(client: Client, given: dict[str, Any]) -> RegressionTest:
    answer = client.post(NEW, given)
    assert answer.status_code == 302, answer.context["form"].errors
    return RegressionTest.objects.latest("id")


# ---------- what it would take ----------


def test_the_estimate_is_what_the_test_then_asks(golden: ChatSet, stub: StubEndpoint, lead: Client) -> None:
    given = choose(golden, noise="on", budget_usd="5")
    told = lead.get(ESTIMATE, given)
    found = told.context["estimate"]
    assert [(name, run.calls) for name, run in found.runs] == [
        ("Champion", CHATS),
        ("Candidate", CHATS),
        ("Champion again", CHATS),
    ]
    assert stub.count == 0
    assert not Run.objects.exists()
    assert "Within" in text_of(told)
    test = carried_out(started(lead, given))
    assert (stub.count, test.result) == (found.calls, "pass")
    paid = sum(cost or 0 for cost in Attempt.objects.values_list("cost_usd", flat=True))
    assert 0 < paid <= found.cost_usd


def test_stored_answers_are_shown_as_reused(golden: ChatSet, stub: StubEndpoint, lead: Client) -> None:
    carried_out(started(lead, choose(golden)))
    version_of(mark="Look three times.")
    found = lead.get(ESTIMATE, choose(golden, version=3)).context["estimate"]
    assert [(run.calls, run.reused) for _, run in found.runs] == [(0, CHATS), (CHATS, 0)]
    before = stub.count
    carried_out(started(lead, choose(golden, version=3)))
    assert stub.count - before == found.calls


@pytest.mark.heavy
def test_the_time_is_estimated_from_earlier_runs_and_not_guessed(golden: ChatSet, lead: Client) -> None:
    first = lead.get(ESTIMATE, choose(golden))
    assert first.context["estimate"].seconds is None
    assert "Time, about no earlier run of this engine and model –" in words_of(first)
    carried_out(started(lead, choose(golden)))
    version_of(mark="Look three times.")
    told = lead.get(ESTIMATE, choose(golden, version=3, noise="on"))
    found = told.context["estimate"]
    assert found.seconds == sum(run.seconds for _, run in found.runs) > 0
    assert "at the pace of earlier runs of this engine and model" in words_of(told)
    slower = profile_save(name="reflecting", choice=JudgeSpec("reflection"))
    assert (
        lead.get(ESTIMATE, of_judge(golden, candidate_profile=slower.pk)).context["estimate"].seconds is None
    )


@pytest.mark.heavy
def test_a_whole_judge_pays_once_for_what_both_sides_ask(
    golden: ChatSet, stub: StubEndpoint, lead: Client
) -> None:
    """Engine auto that debates only the tier context asks subjective criteria as direct does."""
    golden.rubric.criteria.filter(key="exact").update(tier="subjective")
    choice = JudgeSpec("auto", auto_debates="context")
    auto = profile_save(name="debate of context", choice=choice)
    given = of_judge(golden, candidate_profile=auto.pk)
    found = lead.get(ESTIMATE, given).context["estimate"]
    assert [(name, run.calls, run.reused) for name, run in found.runs] == [
        ("Champion", 2 * CHATS, 0),
        ("Candidate", 3 * CHATS, CHATS),
    ]
    carried_out(started(lead, given))
    assert stub.count == found.calls


def test_it_says_on_how_many_labels_and_what_so_many_show(golden: ChatSet, lead: Client) -> None:
    told = words_of(lead.get(ESTIMATE, choose(golden)))
    assert "With 110 labelled chats a loss of 6 points is mostly found" in told
    assert "Polite 55 55 –" in told
    whole = words_of(lead.get(ESTIMATE, of_judge(golden)))
    assert "With 110 labelled chats a loss of 6 points of one criterion is" in whole
    held_out(golden)
    few = words_of(lead.get(ESTIMATE, choose(golden, split="holdout")))
    assert "20 labelled chats are too few to pass. Label 80 more for the gate, 100 in all." in few


def test_the_embedded_model_is_called_what_it_is(golden: ChatSet, lead: Client, settings: Settings) -> None:
    assert "weak judge" not in words_of(lead.get(ESTIMATE, choose(golden)))
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    told = words_of(lead.get(ESTIMATE, choose(golden)))
    assert "weak judge. It reads only the Objective, down to the first blank line" in told


def test_the_holdout_is_opened_knowingly_and_on_record(
    golden: ChatSet, stub: StubEndpoint, author: Client, author_user: User
) -> None:
    held_out(golden)
    assert "uses the holdout" not in words_of(author.get(ESTIMATE, choose(golden)))
    first = words_of(author.get(ESTIMATE, choose(golden, split="holdout")))
    assert "This test uses the holdout. It has not been used for this criterion yet." in first
    carried_out(started(author, choose(golden, split="holdout")))
    opening = HoldoutOpening.objects.get()
    assert (opening.criterion.key, opening.by) == ("polite", author_user)
    again = words_of(author.get(ESTIMATE, choose(golden, split="")))
    assert "It was used 1 time for Polite, last on" in again
    policy_revise(changes={"openings_warning": 1}, reason="Rare", by=make_user("ina", Role.LEAD))
    assert "Frequent use makes" in words_of(author.get(ESTIMATE, choose(golden, split="holdout")))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"criterion": ""}, "Choose a criterion and a version"),
        ({"set": ""}, "Choose a chat set to see the estimate."),
        ({"version": 1}, "Choose a criterion and a version"),
        ({"split": "holdout"}, "No chats in split &#x27;holdout&#x27;"),
        ({"budget_usd": "0.0001"}, "Above the budget"),
    ],
)
def test_what_cannot_be_counted_says_what_is_missing(
    golden: ChatSet, lead: Client, fields: dict[str, Any], said: str
) -> None:
    assert said in text_of(lead.get(ESTIMATE, choose(golden, **fields)))


def test_a_version_that_says_what_the_champion_says_is_refused_before_and_at_the_start(
    golden: ChatSet, lead: Client
) -> None:
    same = champion_of()
    same.pk, same.number = None, 3
    same.save()
    for answer in (
        lead.get(ESTIMATE, choose(golden, version=3)),
        lead.post(NEW, choose(golden, version=3)),
    ):
        assert "ersion 3 of Polite has the same text as its champion" in text_of(answer)
    assert not Run.objects.exists()


# ---------- the start ----------


def test_a_test_is_started_as_chosen_and_enqueued(golden: ChatSet, author: Client, author_user: User) -> None:
    test = started(author, choose(golden, noise="on", budget_usd="2.50"))
    assert (test.candidate, test.created_by, test.state) == (version_of(), author_user, "running")
    assert test.noise_run is not None
    assert test.profile is not None and test.profile.is_default
    runs = Run.objects.order_by("id")
    assert [str(run.budget_usd) for run in runs] == ["2.5000"] * 3
    assert all(run.options["on_worker"] and run.rung_at for run in runs)
    assert [run.purpose for run in runs] == ["regression", "regression", "noise"]


def test_a_second_press_of_the_button_starts_no_second_test(golden: ChatSet, lead: Client) -> None:
    token = lead.get(NEW).context["form"]["form_token"].value()
    given = choose(golden, form_token=token)
    first, second = lead.post(NEW, given), lead.post(NEW, given, follow=True)
    test = RegressionTest.objects.get()
    assert first.headers["Location"] == second.redirect_chain[0][0] == f"/regressions/{test.pk}/"
    assert f"already started regression test {test.pk}" in text_of(second)
    assert Run.objects.count() == 2


def test_two_presses_in_the_same_moment_start_one_test(
    golden: ChatSet, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = choose(golden, form_token="one form")
    lead.post(NEW, given)
    looks, look = iter([None]), regression_starts._started
    # The second looks before the first has stored its test, and may store none of its own.
    monkeypatch.setattr(regression_starts, "_started", lambda wish: next(looks, look(wish)))
    assert lead.post(NEW, given).headers["Location"] == f"/regressions/{RegressionTest.objects.get().pk}/"
    assert Run.objects.count() == 2


def test_another_choice_or_a_reopened_form_starts_another_test(golden: ChatSet, lead: Client) -> None:
    for changes in ({}, {"noise": "on"}, {"form_token": "another form"}):
        started(lead, choose(golden, form_token="one form") | changes)
    assert RegressionTest.objects.count() == 3


def test_the_address_chooses_and_the_newest_version_is_offered(golden: ChatSet, lead: Client) -> None:
    version_of(mark="Look three times.")
    form = lead.get(NEW, {"criterion": "polite"}).context["form"]
    assert [number for number, _ in form.fields["version"].choices] == [3, 2]
    assert (form["criterion"].value(), form["set"].value(), form["split"].value()) == (
        "polite",
        golden.pk,
        "dev",
    )
    assert lead.get(NEW, {"criterion": "polite", "version": "2"}).context["form"]["version"].value() == "2"


def test_a_criterion_without_a_second_version_leads_to_the_editor(golden: ChatSet, lead: Client) -> None:
    make_rubric("rare", name="Another")
    page = text_of(lead.get(NEW, {"criterion": "rare"}))
    assert "No version except the champion" in page
    assert reverse("alignment:prompt_edit", args=["rare"]) in page


def test_the_whole_judge_goes_with_every_draft_where_that_is_asked(golden: ChatSet, lead: Client) -> None:
    test = started(lead, of_judge(golden, drafts="on"))
    prompts = test.candidate_run.judge.prompts.values_list("prompt_version__number", flat=True)
    assert (test.kind, list(prompts)) == ("judge", [2, 2])
    assert test.candidate_profile is not None and test.candidate_profile.name == "reflecting"


@pytest.mark.heavy
def test_todays_knowledge_is_compared_with_a_finished_run(
    golden: ChatSet, stub: StubEndpoint, lead: Client, tmp_path: Path
) -> None:
    older = carried_out(started(lead, of_judge(golden))).baseline_run
    (tmp_path / "articles").mkdir()
    (tmp_path / "articles" / "fees.md").write_text("# Fees\nA fee is one dollar.\n")
    knowledge_import(folder=tmp_path / "articles")
    golden.rubric.criteria.update(articles="all")
    default = older.judge.profile
    assert default is not None
    given = of_judge(golden, candidate_profile=default.pk, baseline_run=older.pk)
    found = lead.get(ESTIMATE, given).context["estimate"]
    assert [(name, run.calls) for name, run in found.runs] == [("Candidate", 2 * CHATS)]
    before = stub.count
    test = carried_out(started(lead, given))
    assert (stub.count - before, test.baseline_run, test.result) == (found.calls, older, "pass")
    page = words_of(lead.get(reverse("alignment:regression_detail", args=[test.pk])))
    assert "Nothing to release: new runs already use this candidate." in page


@pytest.mark.heavy
def test_the_champion_asked_again_keeps_to_the_terms_of_the_test_not_of_an_old_baseline(
    golden: ChatSet, lead: Client
) -> None:
    older = carried_out(started(lead, of_judge(golden))).baseline_run
    Run.objects.filter(pk=older.pk).update(mode="batch", budget_usd=None, options={"on_worker": False})
    given = of_judge(golden, baseline_run=older.pk, noise="on", budget_usd="2.50", form_token="another")
    assert lead.get(ESTIMATE, given).context["estimate"].noise.budget_usd == 2.5
    noise = started(lead, given).noise_run
    assert noise is not None
    assert (noise.mode, noise.budget_usd, noise.options["on_worker"]) == ("live", Decimal("2.5"), True)


@pytest.mark.parametrize("field", ["criterion", "version", "set", "split", "policy", "profile", "budget_usd"])
def test_what_cannot_be_chosen_is_said_at_its_field(golden: ChatSet, lead: Client, field: str) -> None:
    answer = lead.post(NEW, choose(golden) | {field: "-7"})
    assert field in answer.context["form"].errors
    assert not Run.objects.exists()


def test_only_leads_choose_another_policy_than_the_one_in_force(
    golden: ChatSet, lead: Client, author: Client, lead_user: User
) -> None:
    easy = policy_revise(changes={"authors_release": True}, reason="Small team", by=lead_user)
    policy_revise(changes={"authors_release": False}, reason="No longer", by=lead_user)
    assert easy not in author.get(NEW).context["form"].fields["policy"].queryset
    answer = author.post(NEW, choose(golden, policy=easy.pk))
    assert "policy" in answer.context["form"].errors
    assert not Run.objects.exists()
    assert started(lead, choose(golden, policy=easy.pk)).policy == easy


def test_nonsense_in_the_address_chooses_nothing(golden: ChatSet, lead: Client) -> None:
    nonsense = {"criterion": "x", "version": "9" * 40, "set": "9" * 40, "kind": "carrier pigeon"}
    assert lead.get(NEW, nonsense).status_code == 200
    assert lead.get(ESTIMATE, nonsense).status_code == 200


def test_raters_start_nothing(golden: ChatSet, client: Client, rater_user: User) -> None:
    client.force_login(rater_user)
    for answer in (client.get(NEW), client.post(NEW, choose(golden)), client.get(ESTIMATE, choose(golden))):
        assert answer.status_code == 404
    assert not Run.objects.exists()


@pytest.mark.heavy
def test_the_form_asks_as_few_queries_for_many_versions_as_for_one(golden: ChatSet, lead: Client) -> None:
    counts = []
    for more in (0, 12):
        for n in range(more):
            version_of(mark=f"Look {n} times.")
        with CaptureQueriesContext(connection) as queries:
            lead.get(NEW, {"criterion": "polite"})
        counts.append(len(queries))
    assert counts[0] == counts[1]
