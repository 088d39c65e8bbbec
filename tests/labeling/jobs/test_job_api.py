"""API of labelling jobs: permissions, names, refusals by field, and a rater's next chat."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater, User
from tests.factories.labelling_job import Desk, make_desk, user_of, work_through
from tests.factories.rows import make_chat, make_set

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def lead(lead_user: User) -> Client:
    return signed_in(lead_user)


def rater_client(rater: Rater) -> Client:
    return signed_in(user_of(rater))


def post(client: Client, route: str, *args: Any, **body: Any) -> Any:
    return client.post(reverse(route, args=args), body, content_type="application/json")


def open_job(client: Client, **body: Any) -> Any:
    plain = {"name": "November", "set": "calibration", "raters": ["mara", "rater-2"], "overlap": 2}
    return post(client, "api_jobs", **plain | body)


def test_a_job_is_opened_listed_read_and_closed(desk: Desk, lead: Client) -> None:
    opened = open_job(lead, criteria=["polite"], order="random", seed=4, due_at="2099-01-01T00:00:00Z")
    assert opened.status_code == 201, opened.json()
    job = LabelingJob.objects.get(name="November")
    assert opened.json() == {
        "id": job.pk,
        "name": "November",
        "set": "calibration",
        "state": "open",
        "overlap": 2,
        "overlap_share": None,
        "raters": ["mara", "rater-2"],
        "group": "",
        "due_at": "2099-01-01T00:00:00Z",
        "submitted": 0,
        "wanted": 6,
        "unreachable": 0,
    }
    listed = lead.get(reverse("api_jobs")).json()
    assert [row["name"] for row in listed["results"]] == ["November", "October"]
    list(work_through(job, desk.rater))
    detail = lead.get(reverse("api_job", args=[job.pk])).json()
    assert (detail["criteria"], detail["order"], detail["seed"]) == (["polite"], "random", 4)
    assert [row["submitted"] for row in detail["progress"]["raters"]] == [3, 0]
    for _ in range(2):
        closed = post(lead, "api_job_close", job.pk)
        assert (closed.status_code, closed.json()["state"]) == (200, "closed")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"set": "nowhere"}, "set"),
        ({"criteria": ["nonsense"]}, "criteria"),
        ({"criteria": []}, "criteria"),
        ({"raters": ["nobody"]}, "raters"),
        ({"raters": []}, "raters"),
        ({"group": "nobody"}, "group"),
        ({"overlap": 3}, "overlap"),
        ({"overlap_share": 7.0}, "overlap_share"),
        ({"order": "name"}, "order"),
        ({"due_at": "2020-01-01T00:00:00Z"}, "due_at"),
        ({"gold_rate": 0.1}, "gold_set"),
        ({"gold_set": "nowhere"}, "gold_set"),
        ({"calibration_set": "calibration"}, "calibration_set"),
    ],
    ids=str,
)
def test_an_invalid_job_is_refused_by_field_and_not_stored(
    desk: Desk, lead: Client, body: dict[str, Any], field: str
) -> None:
    answer = open_job(lead, **body)
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert LabelingJob.objects.count() == 1


def test_a_job_starts_after_the_first_finished_round_and_lists_who_is_missing(
    desk: Desk, lead: Client
) -> None:
    made = make_set(desk.rubric, make_chat("round-1"), name="round")
    ChatSet.objects.filter(pk=made.pk).update(kind="calibration")
    job = LabelingJob.objects.get(pk=open_job(lead, calibration_set="round").json()["id"])
    assert job.calibration is not None
    refused = post(lead, "api_job_start", job.pk)
    assert (refused.status_code, refused.json()["code"]) == (409, "refused")
    assert post(lead, "api_job_close", job.calibration.pk).status_code == 409
    list(work_through(job.calibration, desk.rater))
    started = post(lead, "api_job_start", job.pk)
    assert (started.json()["state"], started.json()["missing"]) == ("open", ["rater-2"])
    assert lead.get(reverse("api_job", args=[job.pk])).json()["progress"]["missing"] == ["rater-2"]
    late = rater_client(desk.raters[1])
    refused = post(late, "api_job_next", job.pk)
    assert (refused.status_code, refused.json()["code"]) == (409, "round_first")
    (row,) = [row for row in late.get(reverse("api_queue")).json()["jobs"] if row["id"] == job.pk]
    assert row["held_up"]
    page = late.post(reverse("labeling:next", args=[job.pk]), follow=True).content.decode()
    assert "Finish the calibration round of this job first" in page
    assert "After its calibration round" in page


def test_repeating_the_request_for_the_next_chat_returns_the_same_chat(desk: Desk) -> None:
    client = rater_client(desk.rater)
    first = post(client, "api_job_next", desk.job.pk, ahead=False).json()
    assert first["url"] == reverse("labeling:rate", args=[first["assignment"]])
    ahead = post(client, "api_job_next", desk.job.pk).json()
    assert ahead["assignment"] != first["assignment"]
    assert post(client, "api_job_next", desk.job.pk).json() == ahead
    assert post(client, "api_job_next", desk.job.pk, ahead=False).json() == first


def test_with_an_empty_queue_the_next_chat_is_null(desk: Desk) -> None:
    list(work_through(desk.job, desk.rater))
    answer = post(rater_client(desk.rater), "api_job_next", desk.job.pk)
    assert (answer.status_code, answer.json()) == (200, {"assignment": None, "url": None})


def test_members_of_the_group_get_a_chat_and_former_members_get_404(desk: Desk, lead: Client) -> None:
    team = Group.objects.create(name="night shift")
    user = user_of(desk.raters[1])
    user.groups.add(team)
    job = open_job(lead, raters=[], group="night shift", overlap=1).json()["id"]
    assert post(signed_in(user), "api_job_next", job).json()["assignment"]
    user.groups.remove(team)
    assert post(signed_in(user), "api_job_next", job).status_code == 404


def test_others_get_404(desk: Desk, lead: Client, author_user: User) -> None:
    for client in (signed_in(author_user), rater_client(desk.rater)):
        for route, args in (
            ("api_jobs", []),
            ("api_job", [desk.job.pk]),
            ("api_job_close", [desk.job.pk]),
            ("api_job_start", [desk.job.pk]),
        ):
            url = reverse(route, args=args)
            assert client.get(url).status_code == 404
            assert client.post(url, {}, content_type="application/json").status_code == 404
    assert post(lead, "api_job_next", desk.job.pk).status_code == 404
    desk.job.raters.remove(desk.raters[1])
    assert post(rater_client(desk.raters[1]), "api_job_next", desk.job.pk).status_code == 404
    assert not Assignment.objects.filter(state="leased").exists()
    assert LabelingJob.objects.get().state == "open"


def test_a_rater_sees_neither_gold_chats_nor_other_raters(desk: Desk) -> None:
    answer = post(rater_client(desk.rater), "api_job_next", desk.job.pk)
    assert set(answer.json()) == {"assignment", "url"}


@pytest.mark.heavy
def test_the_list_takes_the_same_number_of_queries_for_1_and_20_jobs(desk: Desk, lead: Client) -> None:
    counts = []
    for more in (0, 19):
        for _ in range(more):
            desk.opened()
        with CaptureQueriesContext(connection) as queries:
            lead.get(reverse("api_jobs"))
        counts.append(len(queries))
    assert counts[0] == counts[1]
