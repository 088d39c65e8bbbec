"""API of raters: permissions, answers, errors."""

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from labeling.models.labels import Assignment, Label
from labeling.models.people import Role
from labeling.rating.services.leases import assignment_skip
from tests.factories.api_calls import label_url, put, signed_in
from tests.factories.labelling_job import Desk, answer_all, expire, make_desk, user_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def rater(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


# ---------- what works ----------

ROUTES = {
    ("/adjudication/", "get"),
    ("/adjudication/{chat_number}/{criterion_key}/", "get"),
    ("/adjudication/{chat_number}/{criterion_key}/", "put"),
    ("/adjudication/{chat_number}/{criterion_key}/", "delete"),
    ("/sets/{set_id}/dawid-skene/{criterion_key}/", "get"),
    ("/labels/", "get"),
    ("/sets/", "post"),
    ("/rubrics/", "get"),
    ("/rubrics/", "post"),
    ("/rubrics/{rubric_id}/", "get"),
    ("/rubrics/{rubric_id}/", "post"),
    ("/criteria/{key}/change/", "post"),
    ("/chats/", "post"),
    ("/incoming/", "get"),
    ("/incoming/", "patch"),
    ("/sets/", "get"),
    ("/sets/{set_id}/export/{what}.{kind}", "get"),
    ("/jobs/", "get"),
    ("/jobs/", "post"),
    ("/jobs/{job_id}/", "get"),
    ("/jobs/{job_id}/raters/", "post"),
    ("/sets/{set_id}/", "get"),
    ("/sets/{set_id}/", "patch"),
    ("/jobs/{job_id}/start/", "post"),
    ("/jobs/{job_id}/next/", "post"),
    ("/jobs/{job_id}/close/", "post"),
    ("/queue/", "get"),
    ("/assignments/{assignment_id}/", "get"),
    ("/assignments/{assignment_id}/labels/{criterion_key}/", "put"),
    ("/assignments/{assignment_id}/labels/{criterion_key}/", "delete"),
    ("/assignments/{assignment_id}/submit/", "post"),
    ("/assignments/{assignment_id}/skip/", "post"),
    ("/assignments/{assignment_id}/guideline/", "get"),
    ("/assignments/{assignment_id}/notes/", "post"),
    ("/notes/", "get"),
    ("/notes/{note_id}/settle/", "post"),
    ("/rubrics/{rubric_id}/guidelines/", "get"),
    ("/rubrics/{rubric_id}/guidelines/", "post"),
    ("/rubrics/{rubric_id}/guidelines/{number}/decide/", "post"),
    ("/rubrics/{rubric_id}/guidelines/{number}/undo/", "post"),
    ("/criteria/{key}/versions/", "get"),
    ("/criteria/{key}/versions/", "post"),
    ("/criteria/{key}/versions/{number}/decide/", "post"),
    ("/criteria/{key}/versions/{number}/undo/", "post"),
    ("/workspace/", "get"),
    ("/workspace/", "patch"),
    ("/workspace/log/", "get"),
    ("/assignments/{assignment_id}/extend/", "post"),
}


def test_a_saved_answer_comes_back_with_its_evidence(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    part = {"message": 1, "start": 0, "end": 5, "quote": "Where"}
    saved = put(rater, label_url(assignment), value=False, rationale="Rude.", turns=[2], evidence=[part])
    assert saved.status_code == 200, saved.json()
    assert saved.json() == {
        "criterion": "polite",
        "value": False,
        "state": "draft",
        "version": 1,
        "revision": 1,
        "rationale": "Rude.",
        "turns": [1, 2],
        "evidence": [part, {"message": 2}],
        "post_reveal": False,
    }
    shown = rater.get(reverse("api_assignment", args=[assignment.pk])).json()
    assert shown["labels"] == [saved.json()]
    assert shown["chat"]["id"] == "chat-1"
    assert [row["key"] for row in shown["criteria"]] == ["polite", "correct"]
    assert set(shown) == {
        *("id", "state", "job", "lease_expires_at", "revealed_at", "chat", "criteria", "labels", "notes")
    }
    assert set(shown["chat"]) == {"id", "topic", "messages"}


def test_null_is_not_applicable_and_delete_clears(desk: Desk, rater: Client) -> None:
    url = label_url(desk.taken(), "correct")
    assert put(rater, url, value=None).json()["value"] is None
    for _ in range(2):
        assert rater.delete(url).status_code == 204
    assert Label.objects.get().state == "cleared"


def test_submit_and_skip_lead_to_the_next_chat(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    answer_all(assignment)
    following = reverse("labeling:next", args=[desk.job.pk])
    for _ in range(2):
        done = rater.post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")
        assert (done.status_code, done.json()) == (
            200,
            {"id": assignment.pk, "state": "submitted", "next": following},
        )
    skip = reverse("api_skip", args=[desk.taken().pk])
    done = rater.post(skip, {"reason": "too_long"}, content_type="application/json")
    assert (done.status_code, done.json()["state"]) == (200, "skipped")


def test_the_queue_shows_only_own_progress(desk: Desk, rater: Client) -> None:
    answer_all(assignment := desk.taken())
    rater.post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")
    (job,) = rater.get(reverse("api_queue")).json()["jobs"]
    assert (job["name"], job["set"], job["done"], job["total"]) == ("October", "calibration", 1, 3)
    (other,) = signed_in(user_of(desk.raters[1])).get(reverse("api_queue")).json()["jobs"]
    assert (other["done"], other["total"]) == (0, 2)


def test_the_lease_is_shown_and_can_be_extended(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    Assignment.objects.filter(pk=assignment.pk).update(lease_expires_at=timezone.now() + timedelta(minutes=2))
    url = reverse("api_assignment", args=[assignment.pk])
    before = rater.get(url).json()["lease_expires_at"]
    answer = rater.post(reverse("api_extend", args=[assignment.pk]))
    assert (answer.status_code, set(answer.json())) == (200, {"expires_at"})
    assert rater.get(url).json()["lease_expires_at"] == answer.json()["expires_at"] > before
    assert datetime.fromisoformat(answer.json()["expires_at"]) > timezone.now() + timedelta(minutes=59)


# ---------- who may ----------


def routes(assignment: Assignment) -> list[tuple[str, str]]:
    return [
        ("GET", reverse("api_assignment", args=[assignment.pk])),
        ("PUT", label_url(assignment)),
        ("DELETE", label_url(assignment)),
        ("POST", reverse("api_submit", args=[assignment.pk])),
        ("POST", reverse("api_skip", args=[assignment.pk])),
        ("POST", reverse("api_extend", args=[assignment.pk])),
    ]


def test_an_assignment_of_another_rater_does_not_exist(desk: Desk) -> None:
    other = signed_in(user_of(desk.raters[1]))
    for method, url in routes(desk.taken()):
        assert other.generic(method, url, "{}", content_type="application/json").status_code == 404, url
    assert not Label.objects.exists()


@pytest.mark.parametrize("role", [Role.AUTHOR, Role.LEAD])
def test_users_who_may_not_label_get_404(desk: Desk, role: Role) -> None:
    client = signed_in(make_user("somebody", role))
    for method, url in [("GET", reverse("api_queue")), *routes(desk.taken())]:
        assert client.generic(method, url, "{}", content_type="application/json").status_code == 404, url


def test_every_route_requires_the_sign_in(desk: Desk) -> None:
    for method, url in [("GET", reverse("api_queue")), *routes(desk.taken())]:
        assert Client().generic(method, url).status_code == 403, url


def test_changes_need_the_csrf_token(desk: Desk) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user_of(desk.rater))
    for method, url in routes(desk.taken())[1:]:
        answer = client.generic(method, url, "{}", content_type="application/json")
        assert (answer.status_code, "CSRF" in answer.json()["detail"]) == (403, True), url


# ---------- what is refused ----------


@pytest.mark.parametrize(
    "body",
    [
        {"value": "yes"},
        {"value": 1},
        {"value": None},
        {"client_id": "seven"},
        {"rationale": "x" * 10_001},
        {"turns": [9]},
        {"turns": "all"},
        {"evidence": [{"message": 1, "start": 5, "end": 1}]},
        {"evidence": [{"start": 5}]},
        {"version": 7},
        {"active_ms": -1},
    ],
    ids=str,
)
def test_an_invalid_answer_is_refused_by_field(desk: Desk, rater: Client, body: dict[str, Any]) -> None:
    answer = put(rater, label_url(desk.taken()), **body)
    field = "evidence" if "turns" in body and body["turns"] == [9] else next(iter(body))
    assert (answer.status_code, set(answer.json())) == (400, {field})
    assert not Label.objects.exists()


def test_a_missing_value_is_no_answer(desk: Desk, rater: Client) -> None:
    url = label_url(desk.taken())
    answer = rater.put(url, json.dumps({"client_id": str(uuid.uuid4())}), content_type="application/json")
    assert (answer.status_code, set(answer.json())) == (400, {"value"})


@pytest.mark.parametrize("body", ["", "[", "[]", "7", "null", '{"value": NaN}', '{"rationale": "a\\u0000b"}'])
def test_broken_json_is_a_400(desk: Desk, rater: Client, body: str) -> None:
    assert rater.put(label_url(desk.taken()), body, content_type="application/json").status_code == 400


def test_a_criterion_outside_the_job_is_a_404(desk: Desk, rater: Client) -> None:
    desk.job.criteria.remove(desk.criteria[1])
    assignment = desk.taken()
    assert put(rater, label_url(assignment, "correct")).status_code == 404
    assert put(rater, label_url(assignment, "nonsense")).status_code == 404


def test_submitting_too_early_lists_unanswered_criteria(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment))
    answer = rater.post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")
    assert answer.status_code == 409
    assert (answer.json()["code"], answer.json()["criteria"]) == ("unanswered", ["correct"])


def test_a_skipped_chat_accepts_no_answers(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    assignment_skip(assignment=assignment, rater=desk.rater, reason="too_long")
    answer = put(rater, label_url(assignment))
    assert (answer.status_code, answer.json()["code"]) == (409, "skipped")


def test_an_answer_after_the_lease_is_a_409_and_the_draft_stays(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    put(rater, label_url(assignment), value=False, rationale="Rude.")
    expire(assignment)
    Assignment.objects.exclude(pk=assignment.pk).filter(state="open").delete()
    taken = desk.taken(desk.raters[1])
    assert taken.chat_id == assignment.chat_id
    calls = [
        put(rater, label_url(assignment), value=True),
        rater.delete(label_url(assignment)),
        rater.post(reverse("api_submit", args=[assignment.pk]), content_type="application/json"),
        rater.post(reverse("api_extend", args=[assignment.pk])),
    ]
    assert {(call.status_code, call.json()["code"]) for call in calls} == {(409, "lease_lost")}
    (kept,) = rater.get(reverse("api_assignment", args=[assignment.pk])).json()["labels"]
    assert (kept["value"], kept["rationale"], kept["revision"]) == (False, "Rude.", 1)


@pytest.mark.parametrize(
    "body", [{}, {"reason": "bored"}, {"reason": "other"}, {"reason": "other", "text": " "}]
)
def test_skipping_needs_a_reason(desk: Desk, rater: Client, body: dict[str, str]) -> None:
    assignment = desk.taken()
    answer = rater.post(reverse("api_skip", args=[assignment.pk]), body, content_type="application/json")
    assert answer.status_code == 400
    assignment.refresh_from_db()
    assert assignment.state == "leased"


def test_the_schema_describes_every_route_without_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    from drf_spectacular.generators import SchemaGenerator

    import labeling.api_urls

    paths = SchemaGenerator(patterns=labeling.api_urls.urlpatterns).get_schema(public=True)["paths"]
    assert {(path, method) for path, methods in paths.items() for method in methods} == ROUTES
    assert capsys.readouterr().err == ""
