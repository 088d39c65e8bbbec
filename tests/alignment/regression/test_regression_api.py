"""API of regression tests and policies: start, estimate, read, control, release; errors by field."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from alignment.models.regressions import HoldoutOpening, Policy, RegressionTest
from alignment.regression.queries.tests import regression_answer
from alignment.regression.services.policies import policy_revise
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import profile_save
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import User
from tests.factories.compared_runs import Compared
from tests.factories.decided_tests import body_of, make_test
from tests.factories.gate_reference import (
    CHATS,
    MARK,
    carried_out,
    champion_of,
    judging,
    version_of,
)
from tests.factories.gate_verdicts import verdicts
from tests.factories.runs import answering
from tests.factories.workers import purge_tasks
from tests.stub_endpoint import StubEndpoint

pytestmark = pytest.mark.django_db(transaction=True)

ROUTES = {
    ("/regressions/", "get"),
    ("/regressions/", "post"),
    ("/regressions/estimate/", "post"),
    ("/regressions/{test_id}/", "get"),
    ("/regressions/{test_id}/pause/", "post"),
    ("/regressions/{test_id}/resume/", "post"),
    ("/regressions/{test_id}/cancel/", "post"),
    ("/regressions/{test_id}/release/", "post"),
    ("/policies/", "get"),
    ("/policies/", "post"),
}
OTHER = "Look three times."


@pytest.fixture
def stub(settings: Settings) -> Iterator[StubEndpoint]:
    purge_tasks()
    with answering(settings, judging(wrong={MARK: 1, OTHER: 20})) as endpoint:
        yield endpoint


def post(client: Client, name: str, body: dict[str, Any] | None = None, *args: Any) -> Any:
    return client.post(reverse(name, args=args), body or {}, content_type="application/json")


def start(client: Client, **body: Any) -> Any:
    fields = {"set": "golden", "criterion": "polite"} | body
    chosen = {name: value for name, value in fields.items() if value is not None}
    return post(client, "api_regressions", chosen)


def look(client: Client, test_id: int) -> Any:
    return client.get(reverse("api_regression", args=[test_id])).json()


def test_the_estimate_covers_both_judges_and_is_not_stored(golden: ChatSet, author: Client) -> None:
    body = {"set": "golden", "criterion": "polite", "noise": True}
    answer = post(author, "api_regression_estimate", body)
    estimate = answer.json()
    assert answer.status_code == 200
    assert (estimate["calls"], estimate["reused"], estimate["confirming_calls"]) == (3 * CHATS, 0, CHATS)
    assert [run["calls"] for run in estimate["runs"].values()] == [CHATS] * 3
    assert estimate["labelled"] == [
        {"criterion": "polite", "true": 55, "false": 55, "blocks": True, "more_labels": ""}
    ]
    assert (estimate["cost_usd"], estimate["opens_holdout"], estimate["opened"]) == (None, False, None)
    assert estimate["seconds"] is None
    assert "With 110 labelled chats" in estimate["sight"]
    assert not Run.objects.exists()


def test_a_test_is_accepted_processed_and_answered_as_by_regress(
    golden: ChatSet, author: Client, stub: StubEndpoint
) -> None:
    answer = start(author)
    assert answer.status_code == 202, answer.json()
    begun = answer.json()
    assert (begun["state"], begun["gate"], begun["version"], begun["criteria"]) == ("running", None, 2, [])
    assert [(run["what"], run["units"], run["units_done"]) for run in begun["runs"]] == [
        ("Champion", CHATS, 0),
        ("Candidate", CHATS, 0),
    ]
    test = carried_out(RegressionTest.objects.get())
    done = look(author, test.pk)
    answered = regression_answer(test)
    assert {name: done[name] for name in answered} == answered
    assert (done["state"], done["gate"], done["released"]) == ("done", "pass", None)
    assert (begun["seconds_left"], done["seconds_left"]) == (None, None)
    assert [run["calls"] for run in done["runs"]] == [CHATS, CHATS]
    assert stub.count == 2 * CHATS
    version_of(mark=OTHER)
    estimate = post(author, "api_regression_estimate", {"set": "golden", "criterion": "polite"}).json()
    assert estimate["calls"] == CHATS and estimate["seconds"] > 0


def test_the_same_client_id_starts_no_second_test(golden: ChatSet, author: Client, lead: Client) -> None:
    mark = str(uuid4())
    first, second = start(author, client_id=mark), start(author, client_id=mark)
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["test"] == second.json()["test"]
    assert start(lead, client_id=mark).status_code == 202
    assert RegressionTest.objects.count() == 2


def test_a_use_of_the_holdout_is_recorded(golden: ChatSet, author: Client) -> None:
    ChatSetMember.objects.filter(position__lte=20).update(split="holdout")
    body = {"set": "golden", "criterion": "polite", "split": "holdout"}
    first = post(author, "api_regression_estimate", body).json()
    assert (first["opens_holdout"], first["opened"]) == (True, None)
    start(author, split="holdout")
    assert HoldoutOpening.objects.count() == 1
    opened = post(author, "api_regression_estimate", body).json()["opened"]
    assert (opened["criterion"], opened["times"], opened["often"]) == ("polite", 1, False)


def test_a_whole_judge_is_tested_with_named_prompts(golden: ChatSet, lead: Client) -> None:
    profile_save(name="reflecting", choice=JudgeSpec("reflection"))
    answer = start(lead, criterion=None, candidate_profile="reflecting", prompts={"polite": 2}, split="")
    assert answer.status_code == 202, answer.json()
    test = RegressionTest.objects.get()
    assert (test.kind, test.split, answer.json()["criterion"]) == ("judge", "", None)
    assert test.candidate_run.judge.prompts.get().prompt_version.number == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"set": "nowhere"}, "set"),
        ({"set": None}, "set"),
        ({"criterion": "rude"}, "criterion"),
        ({"criterion": None}, "criterion"),
        ({"candidate_profile": "default"}, "criterion"),
        ({"criterion": None, "candidate_profile": "nobody's"}, "candidate_profile"),
        ({"criterion": None, "candidate_profile": "default", "baseline_run": 10**9}, "baseline_run"),
        ({"criterion": None, "candidate_profile": "default", "version": 2}, "version"),
        ({"criterion": None, "candidate_profile": "default"}, "detail"),  # the same judge
        ({"version": 9}, "version"),
        ({"version": 1}, "detail"),  # the champion
        ({"prompts": {"polite": 2}}, "prompts"),
        ({"split": "train"}, "split"),
        ({"split": "holdout"}, "detail"),
        ({"profile": "nobody's"}, "profile"),
        ({"policy": 10**9}, "policy"),
        ({"budget_usd": "0"}, "budget_usd"),
        ({"budget_usd": "1"}, "detail"),  # no price file
        ({"client_id": "x"}, "client_id"),
        ({"nosie": True}, "nosie"),
    ],
)
def test_invalid_input_is_refused_by_field_and_no_test_starts(
    golden: ChatSet, lead: Client, body: dict[str, Any], field: str
) -> None:
    answer = start(lead, **body)
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert not RegressionTest.objects.exists()
    assert not Run.objects.exists()


def test_only_leads_choose_a_policy_that_is_not_in_force(
    golden: ChatSet, lead: Client, author: Client, lead_user: User
) -> None:
    easy = policy_revise(changes={"authors_release": True}, reason="Small team", by=lead_user)
    strict = policy_revise(changes={"authors_release": False}, reason="No longer", by=lead_user)
    refused = start(author, policy=easy.pk)
    assert (refused.status_code, list(refused.json())) == (400, ["policy"])
    assert not RegressionTest.objects.exists()
    assert start(author, policy=strict.pk).status_code == 202
    assert start(lead, policy=easy.pk, noise=True).status_code == 202


def test_a_test_is_paused_resumed_and_cancelled(golden: ChatSet, author: Client) -> None:
    test_id = start(author).json()["test"]
    answers = [
        post(author, f"api_regression_{name}", None, test_id)
        for name in ("pause", "pause", "resume", "cancel", "resume")
    ]
    assert [answer.status_code for answer in answers] == [200, 409, 200, 200, 409]
    assert {run["state"] for run in answers[0].json()["runs"]} == {"paused"}
    assert answers[1].json() == {
        "detail": f"regression test {test_id} has no running run to pause",
        "code": "refused",
    }
    assert (answers[3].json()["state"], answers[4].json()["code"]) == ("cancelled", "refused")


def test_a_budget_without_a_price_is_refused_on_resume(golden: ChatSet, author: Client) -> None:
    test_id = start(author).json()["test"]
    post(author, "api_regression_pause", None, test_id)
    answer = post(author, "api_regression_resume", {"budget_usd": "1"}, test_id)
    assert (answer.status_code, list(answer.json())) == (400, ["budget_usd"])
    assert {run["state"] for run in look(author, test_id)["runs"]} == {"paused"}


def test_a_pass_is_released_by_authors_only_if_the_policy_allows_it(
    golden: ChatSet, author: Client, lead: Client
) -> None:
    test_id = start(author).json()["test"]
    assert post(lead, "api_regression_release", None, test_id).status_code == 409  # not over
    carried_out(RegressionTest.objects.get())
    assert post(author, "api_regression_release", None, test_id).status_code == 404
    answer = post(lead, "api_regression_release", None, test_id)
    assert (answer.status_code, answer.json()["released"]["overridden"]) == (200, False)
    assert champion_of().number == 2
    assert post(lead, "api_regression_release", None, test_id).status_code == 409


@pytest.mark.heavy
def test_a_fail_is_released_only_by_override_with_a_reason(
    golden: ChatSet, author: Client, lead: Client
) -> None:
    version_of(mark=OTHER)
    test_id = start(author).json()["test"]  # of version 3, the newest
    assert carried_out(RegressionTest.objects.get()).result == "fail"
    for body in ({}, {"override": True}, {"override": True, "reason": " "}):
        assert post(lead, "api_regression_release", body, test_id).status_code == 409
    assert post(lead, "api_regression_release", {"overide": True}, test_id).status_code == 400
    fields = {"override": True, "reason": "The law says so"}
    assert post(author, "api_regression_release", fields, test_id).status_code == 404
    released = post(lead, "api_regression_release", fields, test_id).json()["released"]
    assert (released["reason"], released["overridden"]) == ("The law says so", True)


@pytest.mark.heavy
def test_the_list_is_filtered_and_takes_the_same_number_of_queries_for_1_and_40(
    compared: Compared, lead: Client
) -> None:
    body, counts = body_of(verdicts(right=99)), []
    for more in (1, 39):
        for _ in range(more):
            make_test(compared, body=body)
        with CaptureQueriesContext(connection) as queries:
            listed = lead.get(reverse("api_regressions")).json()["results"]
        counts.append(len(queries))
    assert (counts[0], len(listed)) == (counts[1], 40)
    assert lead.get(reverse("api_regressions") + "?state=pass").json()["results"] == []


# ---------- policies ----------


def test_policies_are_read_by_authors_and_revised_by_leads(db: None, author: Client, lead: Client) -> None:
    fields = {"parameters": {"floor": 0.8}, "reason": "We know more"}
    assert post(author, "api_policies", fields).status_code == 404
    answer = post(lead, "api_policies", fields)
    assert (answer.status_code, answer.json()["version"], answer.json()["in_force"]) == (201, 3, True)
    listed = author.get(reverse("api_policies")).json()
    assert [(row["version"], row["in_force"], row["parameters"]["floor"]) for row in listed] == [
        (3, True, 0.8),
        (2, False, 0.7),
    ]
    stale = post(lead, "api_policies", fields | {"base": listed[1]["id"]})
    assert (stale.status_code, stale.json()["code"]) == (409, "changed")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"parameters": {"floor": 2}, "reason": "x"}, "floor"),
        ({"parameters": {"flor": 0.8}, "reason": "x"}, "flor"),
        ({"parameters": {"floor": "0.8"}, "reason": "x"}, "floor"),
        ({"parameters": {"name": "x" * 121}, "reason": "x"}, "name"),
        ({"parameters": {"floor": 0.8}, "reason": ""}, "reason"),
        ({"parameters": {}, "reason": "x"}, "detail"),
        ({"reason": "x"}, "parameters"),
        ({"parameters": {"floor": 0.8}, "reason": "x", "forse": True}, "forse"),
    ],
)
def test_an_invalid_limit_is_refused_by_field(
    db: None, lead: Client, body: dict[str, Any], field: str
) -> None:
    answer = post(lead, "api_policies", body)
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert not Policy.objects.filter(version=3).exists()


def test_the_schema_describes_every_route_without_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    from drf_spectacular.generators import SchemaGenerator

    from alignment import api_urls

    patterns = [
        entry for entry in api_urls.urlpatterns if str(entry.pattern).startswith(("regressions", "policies"))
    ]
    paths = SchemaGenerator(patterns=patterns).get_schema(public=True)["paths"]
    assert {(path, method) for path, methods in paths.items() for method in methods} == ROUTES
    assert capsys.readouterr().err == ""
