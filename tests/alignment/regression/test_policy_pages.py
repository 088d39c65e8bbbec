"""Gate policies: visible to all who see judges, revised by leads, never overwritten."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from alignment.models.regressions import Policy
from alignment.regression.core import GatePolicy
from alignment.regression.queries.policy_page import LIMITS
from alignment.regression.services.policies import policy_ensure, policy_in_force, policy_revise
from common.problems import InputProblem
from labeling.models.people import AuditEvent, User
from tests.factories.compared_runs import text_of
from tests.factories.page_text import words_of

pytestmark = pytest.mark.django_db

LIST, EDIT = "/regressions/policies/", "/regressions/policies/new/"


def filled(client: Client, **changes: Any) -> dict[str, Any]:
    """The form as the page shows it, with changes; None takes a check away."""
    form = client.get(EDIT).context["form"]
    given = {name: form[name].value() for name in form.fields} | {"reason": "We know more"} | changes
    return {name: value for name, value in given.items() if value not in (None, False)}


def test_every_limit_is_named_in_words() -> None:
    named = [limit.name for group in LIMITS for limit in group.limits]
    assert sorted(named) == sorted(set(GatePolicy().as_json()) - {"name", "version"})


def test_before_anybody_chose_the_start_values_are_shown_and_not_stored(author: Client, lead: Client) -> None:
    shown = words_of(author.get(LIST))
    assert "Current policy: start values, version 2" in shown
    assert "Loss to rule out 8 points" in shown
    assert "Revise policy" not in shown
    assert lead.get(EDIT).status_code == 200
    assert not Policy.objects.exists()


def test_a_lead_revises_it_and_every_version_says_what_changed_and_why(lead: Client, author: Client) -> None:
    answer = lead.post(EDIT, filled(lead, floor="0.8", authors_release="on", confirm=None), follow=True)
    assert "start values, version 3, applies to new tests." in words_of(answer)
    newest = policy_in_force()
    assert (newest.parameters["floor"], newest.parameters["confirm"]) == (0.8, False)
    shown = words_of(author.get(LIST))
    for words in (
        "Minimum TPR and TNR if worse than the champion: 70% → 80%",
        "Authors may release candidates that passed: no → yes",
        "We know more",
        "version 3, current",
    ):
        assert words in shown
    assert AuditEvent.objects.filter(verb="policy revised", object_id=newest.pk).exists()


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"floor": "1.5"}, "floor", "less than or equal to 0.999"),
        ({"floor": ""}, "floor", "required"),
        ({"floor": "nan"}, "floor", "number"),
        ({"single_minimum": "0"}, "single_minimum", "greater than or equal to 1"),
        ({"reason": " ", "floor": "0.8"}, "reason", "Enter a reason"),
        ({}, "__all__", "No limit was changed"),
    ],
)
def test_a_limit_that_makes_no_sense_is_said_at_its_field(
    lead: Client, changes: dict[str, Any], field: str, message: str
) -> None:
    answer = lead.post(EDIT, filled(lead, **changes))
    assert list(answer.context["form"].errors) == [field]
    assert message in text_of(answer)
    assert not Policy.objects.filter(version=3).exists()


def test_two_leads_do_not_overwrite_each_other(lead: Client, lead_user: User) -> None:
    given = filled(lead, floor="0.8")
    policy_revise(changes={"floor": 0.6}, reason="First", by=lead_user)
    answer = lead.post(EDIT, given)
    assert "the policy has changed: start values v3 is current" in text_of(answer).lower()
    assert policy_in_force().parameters["floor"] == 0.6


def test_a_policy_may_get_a_name_and_goes_on_under_it(lead: Client, lead_user: User) -> None:
    policy_ensure(GatePolicy(name="strict", version=7, floor=0.9))
    lead.post(EDIT, filled(lead, name="strict"))
    assert (policy_in_force().name, policy_in_force().version) == ("strict", 8)


def test_what_a_file_brought_along_for_one_test_is_not_in_force(lead_user: User) -> None:
    policy_ensure(GatePolicy(name="strict", floor=0.9))
    assert policy_in_force().name == "start values"
    mine = policy_revise(changes={"floor": 0.75}, reason="Chosen", by=lead_user)
    policy_ensure(GatePolicy(name="stricter", floor=0.95))
    assert policy_in_force() == mine


def test_a_revision_takes_the_number_after_one_that_a_file_has_brought_along(lead_user: User) -> None:
    current = policy_in_force()
    brought = policy_ensure(GatePolicy(version=current.version + 1, floor=0.9))

    revised = policy_revise(changes={"floor": 0.75}, reason="Chosen", by=lead_user)

    assert (revised.name, revised.version) == (brought.name, brought.version + 1)


def test_a_revision_without_a_change_is_refused(lead_user: User) -> None:
    with pytest.raises(InputProblem, match="no limit was changed"):
        policy_revise(changes={"floor": 0.7}, reason="For the sake of it", by=lead_user)


def test_only_leads_revise(author: Client) -> None:
    assert author.get(EDIT).status_code == 404
    assert author.post(EDIT, {"floor": "0.1", "reason": "No"}).status_code == 404
    assert author.get(reverse("alignment:policy_list")).status_code == 200
