"""Every page gives the same numbers of labels for a criterion, each with its decision."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from alignment.models.regressions import Policy
from alignment.regression.core import GatePolicy
from alignment.regression.services.policies import policy_revise
from alignment.reports.core.status import StatusPolicy
from alignment.statistics.label_needs import START_VALUES
from labeling.models.people import User
from tests.factories.compared_runs import Compared, urls
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db

# Of 40 chats raters answer True on 20.
WORDS = "20 more for a status, 60 for ±6 points, 60 for the gate"


def test_the_numbers_of_the_policies_are_those_of_the_plan() -> None:
    status, gate = StatusPolicy(), GatePolicy()
    assert (status.minimum_true, status.minimum_false) == (
        START_VALUES.status_true,
        START_VALUES.status_false,
    )
    assert gate.single_minimum == START_VALUES.gate_alone


def test_report_criterion_report_plan_and_api_agree(compared: Compared, lead: Client) -> None:
    run = compared.run.pk
    plan = reverse("alignment:label_plan", args=[run], query={"criterion": "polite"})
    for url in (urls(compared)["report"], urls(compared)["criterion report"], plan):
        assert WORDS in words_of(lead.get(url))
    (entry, *_) = [
        one
        for one in lead.get(reverse("api_label_plan", args=[run])).json()["criteria"]
        if one["key"] == "polite"
    ]
    assert entry["more_labels"] == WORDS
    missing = {one["decision"]: one["missing_chats"] for one in entry["decisions"]}
    assert (missing["status"], missing["badge"], missing["gate_alone"]) == (20, 60, 60)


def test_the_start_form_and_the_criterion_page_agree_on_a_split(compared: Compared, lead: Client) -> None:
    champion, candidate = a_version(polite()), a_version(polite(), text="# Objective\nAnother text")
    promote(champion)
    run = run_of(champion, compared.chat_set)
    words = "40 more for a status, 80 for ±6 points, 80 for the gate"  # dev: 10 of each
    chosen: dict[str, Any] = {"criterion": "polite", "version": candidate.number, "split": "dev"}
    chosen["set"] = compared.chat_set.pk
    form = words_of(lead.get(reverse("alignment:regression_estimate"), chosen))
    report = words_of(lead.get(reverse("alignment:report_run", args=[run.pk]) + "?split=dev"))
    page = words_of(lead.get(reverse("alignment:criterion_detail", args=["polite"])))
    for shown in (form, report, page):
        assert words in shown


def test_a_revised_gate_policy_changes_the_number_for_the_gate(
    compared: Compared, lead: Client, lead_user: User
) -> None:
    policy_revise(changes={"single_minimum": 150}, reason="stricter", by=lead_user)
    assert Policy.objects.revised() is not None
    plan = reverse("alignment:label_plan", args=[compared.run.pk], query={"criterion": "polite"})
    for url in (urls(compared)["report"], plan):
        assert "20 more for a status, 60 for ±6 points, 110 for the gate" in words_of(lead.get(url))
