"""What workspace and criterion ask of an answer: evidence, a comment on everything."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models.labels import Assignment, Label
from labeling.models.people import Workspace
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline
from tests.factories.api_calls import label_url, put, signed_in
from tests.factories.labelling_job import Desk, answer_all, make_desk, user_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def rater(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


def rule(**rules: bool) -> None:
    Workspace.current()
    Workspace.objects.update(**rules)


def submit(rater: Client, assignment: Assignment) -> Any:
    return rater.post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")


def test_a_false_without_evidence_cannot_be_submitted_where_evidence_is_asked(
    desk: Desk, rater: Client
) -> None:
    rule(evidence_on_false=True)
    assignment = desk.taken()
    answer_all(assignment, value=False)
    put(rater, label_url(assignment, "polite"), value=False, turns=[2])
    refused = submit(rater, assignment)
    assert refused.status_code == 409
    assert refused.json() == {
        "detail": "Missing: evidence on correct.",
        "code": "incomplete",
        "criteria": ["correct"],
        "evidence": ["correct"],
        "comment": [],
    }
    assert not Label.objects.filter(state="submitted").exists()
    put(rater, label_url(assignment, "correct"), value=True)
    assert submit(rater, assignment).status_code == 200


def test_every_answer_needs_its_comment_where_comments_are_asked(desk: Desk, rater: Client) -> None:
    rule(comment_required=True)
    assignment = desk.taken()
    put(rater, label_url(assignment, "polite"), rationale="Thanked twice.")
    put(rater, label_url(assignment, "correct"), value=None, rationale="  \n ")
    refused = submit(rater, assignment)
    assert (refused.json()["code"], refused.json()["comment"]) == ("incomplete", ["correct"])
    put(rater, label_url(assignment, "correct"), value=None, rationale="No fact was asked for.")
    assert submit(rater, assignment).status_code == 200


def test_a_criterion_that_lacks_both_is_named_once(desk: Desk, rater: Client) -> None:
    rule(evidence_on_false=True, comment_required=True)
    assignment = desk.taken()
    answer_all(assignment, value=False)
    lacking = submit(rater, assignment).json()
    assert lacking["criteria"] == lacking["evidence"] == lacking["comment"] == ["polite", "correct"]


def test_a_draft_may_lack_what_a_submitted_answer_may_not(desk: Desk, rater: Client) -> None:
    rule(evidence_on_false=True, comment_required=True)
    assert put(rater, label_url(desk.taken()), value=False).status_code == 200


def test_a_correction_keeps_to_the_rules_too(desk: Desk, rater: Client) -> None:
    rule(evidence_on_false=True)
    assignment = desk.taken()
    answer_all(assignment)
    submit(rater, assignment)
    refused = put(rater, label_url(assignment), value=False)
    assert (refused.status_code, refused.json()["code"]) == (409, "incomplete")
    assert put(rater, label_url(assignment), value=False, turns=[2]).status_code == 200


@pytest.mark.parametrize("passes_when", [True, False])
def test_a_criterion_may_ask_for_evidence_with_its_failing_answer_alone(
    desk: Desk, rater: Client, passes_when: bool
) -> None:
    Criterion.objects.filter(key="polite").update(evidence_on_fail=True)
    CriterionVersion.objects.filter(criterion__key="polite").update(passes_when=passes_when)
    assignment = desk.taken()
    answer_all(assignment, value=not passes_when)
    refused = submit(rater, assignment)
    assert (refused.status_code, refused.json()["evidence"]) == (409, ["polite"])
    put(rater, label_url(assignment, "polite"), value=passes_when)
    assert submit(rater, assignment).status_code == 200
    corrected = put(rater, label_url(assignment, "polite"), value=not passes_when)
    assert (corrected.status_code, corrected.json()["evidence"]) == (409, ["polite"])


def test_a_criterion_that_does_not_apply_needs_no_evidence(desk: Desk, rater: Client) -> None:
    Criterion.objects.update(evidence_on_fail=True)
    assignment = desk.taken()
    answer_all(assignment)
    put(rater, label_url(assignment, "correct"), value=None)
    assert submit(rater, assignment).status_code == 200


def test_without_rules_the_value_is_enough(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    answer_all(assignment, value=False)
    assert submit(rater, assignment).status_code == 200


def test_a_submitted_chat_carries_the_guideline_in_force(desk: Desk, rater: Client) -> None:
    for number in (1, 2):
        newest = RubricGuideline.objects.create(
            rubric=desk.rubric, number=number, text=f"Be fair, {number}.", reason="First."
        )
    assignment = desk.taken()
    answer_all(assignment)
    submit(rater, assignment)
    assert Assignment.objects.get(pk=assignment.pk).guideline == newest


def test_the_active_time_is_kept_by_criterion_and_by_chat(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment, "polite"), active_ms=1500)
    put(rater, label_url(assignment, "polite"), value=False, active_ms=500)
    put(rater, label_url(assignment, "correct"), active_ms=700)
    times = dict(Label.objects.values_list("criterion__key", "active_ms"))
    assert times == {"polite": 2000, "correct": 700}
    assert Assignment.objects.get(pk=assignment.pk).active_ms == 2700
