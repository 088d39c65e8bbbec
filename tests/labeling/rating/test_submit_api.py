"""Submitting with what the tab shows: its answers, the guideline that was read, the active time."""

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from labeling.models.labels import Assignment, Label, LabelRevision
from labeling.people.services.tokens import token_create
from labeling.rating.services.leases import assignment_next
from labeling.rubric.services.guidelines import guideline_write
from tests.factories.api_calls import label_url, put, signed_in
from tests.factories.labelling_job import Desk, answer_all, make_desk, user_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def rater(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


def submit(client: Client, assignment: Assignment, **body: Any) -> Any:
    url = reverse("api_submit", args=[assignment.pk])
    return client.post(url, json.dumps(body), content_type="application/json")


# ---------- the answers that the tab shows (R24) ----------


def test_a_chat_is_submitted_with_the_answers_that_the_tab_shows(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment))
    put(rater, label_url(assignment, "correct"))
    done = submit(rater, assignment, revisions={"polite": 1, "correct": 1})
    assert (done.status_code, done.json()["state"]) == (200, "submitted")


def test_an_answer_that_another_tab_changed_is_not_submitted_unseen(desk: Desk, rater: Client) -> None:
    answer_all(assignment := desk.taken())
    put(rater, label_url(assignment), value=False)
    refused = submit(rater, assignment, revisions={"polite": 1, "correct": 1})
    assert (refused.status_code, refused.json()["code"], refused.json()["criteria"]) == (
        409,
        "stale",
        ["polite"],
    )
    assert not Label.objects.filter(state="submitted").exists()
    assert submit(rater, assignment, revisions={"polite": 2, "correct": 1}).status_code == 200


def test_an_answer_that_another_tab_added_or_withdrew_is_not_submitted_either(
    desk: Desk, rater: Client
) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment))
    assert submit(rater, assignment, revisions={"polite": 0}).json()["code"] == "stale"
    rater.delete(label_url(assignment))
    assert submit(rater, assignment, revisions={"polite": 1}).json()["criteria"] == ["polite"]
    assert submit(rater, assignment, revisions={"polite": 0}).json()["code"] == "unanswered"


def test_every_field_is_optional(desk: Desk, rater: Client) -> None:
    answer_all(assignment := desk.taken())
    done = rater.generic("POST", reverse("api_submit", args=[assignment.pk]))
    assert (done.status_code, done.json()["state"]) == (200, "submitted")


def test_criteria_without_a_revision_are_not_compared(desk: Desk, rater: Client) -> None:
    answer_all(assignment := desk.taken())
    assert submit(rater, assignment, revisions={}).status_code == 200


def test_an_answer_to_a_retired_criterion_does_not_block_submitting(desk: Desk, rater: Client) -> None:
    answer_all(assignment := desk.taken())
    desk.criteria[0].state = "retired"
    desk.criteria[0].save()
    assert submit(rater, assignment, revisions={"polite": 7, "correct": 1}).status_code == 200


def test_repeating_a_submit_returns_the_same_answer(desk: Desk, rater: Client) -> None:
    answer_all(assignment := desk.taken())
    body = {"revisions": {"polite": 1, "correct": 1}, "active_ms": 1000}
    first, second = (submit(rater, assignment, **body) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert Assignment.objects.get(pk=assignment.pk).active_ms == 1000
    assert LabelRevision.objects.filter(state="submitted").count() == 2


# ---------- the guideline that was read ----------


def test_the_assignment_stores_the_guideline_that_the_tab_showed(desk: Desk, rater: Client) -> None:
    for n, text in enumerate(("Read.", "Read all.")):
        guideline_write(rubric=desk.rubric, text=text, reason="Asked for", base=n, by=None)
    kept = []
    for body in ({"guideline": 1}, {"guideline": None}, {}):
        answer_all(assignment := desk.taken())
        assert submit(rater, assignment, **body).status_code == 200
        kept.append(Assignment.objects.values_list("guideline__number", flat=True).get(pk=assignment.pk))
    assert kept == [1, None, 2]


def test_one_small_answer_has_new_texts_and_the_lease(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    url = reverse("api_assignment_guideline", args=[assignment.pk])
    guideline_write(rubric=desk.rubric, text="Read.", reason="Asked for", base=0, by=None)
    guidance = rater.get(url).json()
    assert (guidance["number"], [row["new"] for row in guidance["changes"]]) == (1, [1])
    assert [(row["key"], row["version"]) for row in guidance["criteria"]] == [("polite", 1), ("correct", 1)]
    assert (
        guidance["lease_expires_at"]
        == rater.get(reverse("api_assignment", args=[assignment.pk])).json()["lease_expires_at"]
    )
    assert "chat" not in guidance


# ---------- the time ----------


def test_the_time_since_the_last_answer_counts_too(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment), active_ms=4000)
    put(rater, label_url(assignment, "correct"), active_ms=3000)
    submit(rater, assignment, active_ms=2000)
    assert Assignment.objects.get(pk=assignment.pk).active_ms == 9000
    assert sorted(Label.objects.values_list("active_ms", flat=True)) == [3000, 4000]


def test_active_time_is_limited_to_the_time_of_the_lease(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    Assignment.objects.filter(pk=assignment.pk).update(taken_at=timezone.now() - timedelta(minutes=9))
    for key in ("polite", "correct"):
        put(rater, label_url(assignment, key), active_ms=3_600_000)
    submit(rater, assignment, active_ms=3_600_000)
    total = Assignment.objects.get(pk=assignment.pk).active_ms
    assert 540_000 <= total <= 610_000  # a minute of grace for the browser's clock
    assert sum(Label.objects.values_list("active_ms", flat=True)) <= total


def test_active_time_is_limited_to_the_columns_range(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment))
    most = 2**31 - 1
    Assignment.objects.update(active_ms=most - 5, taken_at=timezone.now() - timedelta(days=60))
    Label.objects.update(active_ms=most - 1)
    assert put(rater, label_url(assignment), active_ms=3_600_000).status_code == 200
    assert Label.objects.get().active_ms == Assignment.objects.get(pk=assignment.pk).active_ms == most


# ---------- what is refused ----------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("revisions", [1]),
        ("revisions", "polite"),
        ("revisions", {"polite": "new"}),
        ("revisions", {"polite": -1}),
        ("revisions", {"polite": None}),
        ("revisions", {"polite": 1, "nonsense": 0}),
        ("guideline", "newest"),
        ("guideline", -1),
        ("guideline", 1),
        ("guideline", 10**30),
        ("active_ms", -1),
        ("active_ms", 3_600_001),
        ("active_ms", "long"),
        ("active_ms", None),
    ],
)
def test_an_invalid_body_is_refused_by_field_and_the_chat_stays_open(
    desk: Desk, rater: Client, field: str, value: Any
) -> None:
    answer_all(assignment := desk.taken())
    refused = submit(rater, assignment, **{field: value})
    assert (refused.status_code, set(refused.json())) == (400, {field})
    assert not Label.objects.filter(state="submitted").exists()


@pytest.mark.parametrize("body", ["[", "[]", "7", "null", '{"active_ms": NaN}'])
def test_broken_json_is_a_400(desk: Desk, rater: Client, body: str) -> None:
    answer_all(assignment := desk.taken())
    url = reverse("api_submit", args=[assignment.pk])
    assert rater.post(url, body, content_type="application/json").status_code == 400


def test_more_than_two_hundred_pieces_of_evidence_are_refused_before_they_are_read(
    desk: Desk, rater: Client
) -> None:
    assignment = desk.taken()
    many = [{"message": 1, "start": 0, "end": 1}] * 201
    refused = put(rater, label_url(assignment), evidence=many)
    assert (refused.status_code, set(refused.json())) == (400, {"evidence"})
    assert put(rater, label_url(assignment), evidence=many[:200]).status_code == 200


# ---------- withdrawing ----------


def clear(client: Client, assignment: Assignment, **query: Any) -> Any:
    url = label_url(assignment)
    return client.delete(f"{url}?{'&'.join(f'{name}={value}' for name, value in query.items())}")


def test_withdrawing_an_outdated_answer_is_refused_even_when_it_is_gone(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment))
    assert clear(rater, assignment, revision=7).json()["code"] == "stale"
    assert clear(rater, assignment, revision=1).status_code == 204
    late = clear(rater, assignment, revision=1)
    assert (late.status_code, late.json()["code"], late.json()["answer"]) == (409, "stale", None)


def test_withdrawing_from_a_skipped_chat_is_refused(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    rater.post(
        reverse("api_skip", args=[assignment.pk]), {"reason": "too_long"}, content_type="application/json"
    )
    assert clear(rater, assignment).json()["code"] == "skipped"


def test_a_repeated_withdrawal_keeps_a_newer_answer(desk: Desk, rater: Client) -> None:
    assignment, client_id = desk.taken(), uuid.uuid4()
    put(rater, label_url(assignment))
    assert clear(rater, assignment, client_id=client_id).status_code == 204
    put(rater, label_url(assignment), value=False)
    assert clear(rater, assignment, client_id=client_id).status_code == 204
    assert Label.objects.get().value is False


# ---------- where an answer comes from ----------


def test_a_label_stores_whether_it_came_from_the_page_or_a_token(desk: Desk, rater: Client) -> None:
    made = token_create(user=user_of(desk.rater), name="script", scopes=["label_chats"], days=None)
    script = Client(headers={"authorization": f"Token {made.secret}"})
    assignment = desk.taken()
    put(script, label_url(assignment))
    put(rater, label_url(assignment, "correct"))
    submit(rater, assignment)
    assert sources() == {"polite": "api", "correct": "screen"}
    put(script, label_url(assignment, "correct"), value=False)
    assert sources() == {"polite": "api", "correct": "api"}


def test_replaced_labels_store_where_the_new_answers_were_submitted(desk: Desk, rater: Client) -> None:
    answer_all(first := desk.taken())
    submit(rater, first)
    Label.objects.update(source="import")
    second = assignment_next(rater=desk.rater, job=desk.opened())
    assert second is not None
    answer_all(second, value=False)
    assert sources() == {"polite": "import", "correct": "import"}
    submit(rater, second)
    assert sources() == {"polite": "screen", "correct": "screen"}


def sources() -> dict[str, str]:
    return dict(Label.objects.values_list("criterion__key", "source"))
