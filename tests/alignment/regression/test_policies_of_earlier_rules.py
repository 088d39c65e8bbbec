"""Policies of the gate's earlier rules: they load, keep their tests, and decide no new test."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from alignment.models.regressions import Policy
from alignment.regression.core import GatePolicy
from alignment.regression.queries.tests import gate_policy, regression_answer
from alignment.regression.services.policies import policy_ensure, policy_in_force
from labeling.models.people import User
from tests.factories.compared_runs import Compared
from tests.factories.decided_tests import make_test
from tests.factories.page_text import words_of

pytestmark = pytest.mark.django_db

carry_over = import_module("alignment.migrations.0015_gate_policies_with_one_margin").carry_over
EARLIER: dict[str, Any] = {
    "name": "start values",
    "version": 1,
    "family_alpha": 0.025,
    "pooled_alpha": 0.025,
    "bound_alpha": 0.05,
    "pooled_margin": 0.02,
    "largest_drop": 0.08,
    "class_alpha": 0.05,
    "class_minimum": 30,
    "single_alpha": 0.05,
    "single_minimum": 100,
    "single_margin": 0.1,
    "single_many": 300,
    "single_margin_many": 0.05,
    "floor": 0.7,
    "ceiling_gap": 0.1,
    "largest_left_out": 0.05,
    "confirm": True,
    "authors_release": False,
    "openings_warning": 5,
}


STILL_USED = {
    name: value
    for name, value in EARLIER.items()
    if name not in ("class_minimum", "single_many", "single_margin_many")
}


def earlier(*, by: User | None = None, **limits: Any) -> Policy:
    """A policy as it was stored under the earlier rules."""
    parameters = EARLIER | limits
    return Policy.objects.create(
        name=parameters["name"], version=parameters["version"], parameters=parameters, created_by=by
    )


def test_the_start_values_are_a_new_version(db: None) -> None:
    earlier()
    assert policy_in_force().parameters == STILL_USED | {"version": 2, "single_margin": 0.08}


def test_an_earlier_policy_loads_and_its_test_keeps_answer_and_version(
    compared: Compared, lead: Client
) -> None:
    old = earlier()
    test = make_test(
        compared,
        policy=old,
        body={"gate": "inconclusive", "reasons": ["polite: too few"], "more_labels": 90, "criteria": []},
    )
    assert gate_policy(old).floor == 0.7
    assert regression_answer(test)["policy_version"] == "start values, version 1"
    shown = words_of(lead.get(reverse("alignment:regression_detail", args=[test.pk])))
    for words in ("start values version 1", "polite: too few", "About 90 more labelled chats are needed"):
        assert words in shown


def test_the_page_of_policies_says_what_the_new_version_changed(lead: Client) -> None:
    earlier()
    policy_in_force()
    shown = words_of(lead.get(reverse("alignment:policy_list")))
    for words in (
        "Current policy: start values, version 2",
        "Loss to rule out: 10 points → 8 points",
        "Smaller loss to rule out: 5 points → none",
    ):
        assert words in shown


def test_a_version_number_that_a_file_used_for_other_limits_is_not_taken(db: None) -> None:
    policy_ensure(GatePolicy(floor=0.9))
    assert (policy_in_force().version, policy_in_force().parameters["floor"]) == (3, 0.7)


def test_the_policy_in_force_goes_on_as_a_new_version_under_the_new_rules(lead_user: User) -> None:
    earlier()
    revised = earlier(by=lead_user, version=2, floor=0.8)
    carry_over(apps, None)
    now = policy_in_force()
    assert (now.version, now.created_by) == (3, lead_user)
    assert now.parameters == STILL_USED | {"version": 3, "floor": 0.8, "single_margin": 0.08}
    revised.refresh_from_db()
    assert revised.parameters == EARLIER | {"version": 2, "floor": 0.8}


def test_margins_that_a_lead_chose_go_on_as_the_stricter_one(lead_user: User) -> None:
    earlier(by=lead_user, version=2, single_margin_many=0.04)
    carry_over(apps, None)
    assert policy_in_force().parameters["single_margin"] == 0.04


def test_an_open_test_is_decided_under_the_new_version_and_a_decided_one_keeps_its_own(
    compared: Compared, lead_user: User
) -> None:
    old = earlier()
    done = make_test(
        compared, policy=old, body={"gate": "pass", "reasons": ["polite: harmless"], "criteria": []}
    )
    going = make_test(compared, policy=old)
    carry_over(apps, None)
    done.refresh_from_db()
    going.refresh_from_db()
    assert (done.policy, going.policy.version) == (old, 2)
    assert going.policy == policy_in_force()


def test_without_earlier_policies_nothing_is_carried_over(db: None) -> None:
    current = policy_in_force()
    carry_over(apps, None)
    assert list(Policy.objects.all()) == [current]
