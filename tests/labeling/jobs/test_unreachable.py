"""Labels that nobody can give: counted per job, the raters marked, and leads add others."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from labeling.jobs.queries.jobs import job_rows
from labeling.jobs.queries.unreachable import unreachable_labels
from labeling.jobs.services import job_close
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import AuditEvent, Rater, Role, User
from labeling.people.services.roles import rater_for
from labeling.rating.services.leases import assignment_next, assignment_skip
from tests.factories.labelling_job import Desk, grow, make_desk, user_of, work_through
from tests.factories.pages import page_text
from tests.factories.rows import make_chat, make_set, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


def missing(job: LabelingJob) -> int:
    return unreachable_labels(jobs=[job]).get(job.pk, 0)


def shown(job: LabelingJob) -> int:
    (row,) = job_rows(jobs=LabelingJob.objects.filter(pk=job.pk))
    return row.unreachable


def no_rater(rater: Rater) -> None:
    user_of(rater).groups.clear()


def inactive(rater: Rater) -> None:
    User.objects.filter(pk=user_of(rater).pk).update(is_active=False)


@pytest.mark.parametrize("leave", [no_rater, inactive])
def test_labels_of_a_rater_who_left_cannot_be_given_where_every_rater_is_needed(leave: Any) -> None:
    desk = make_desk(chats=6, raters=2, overlap=2)
    assert missing(desk.job) == 0
    list(work_through(desk.job, desk.raters[0]))
    assert missing(desk.job) == 0
    leave(desk.raters[1])
    assert shown(desk.job) == missing(desk.job) == 6
    job_close(job=desk.job, by=None)
    desk.job.refresh_from_db()
    assert shown(desk.job) == missing(desk.job) == 0


def test_a_rater_to_spare_gives_the_labels_of_one_who_left() -> None:
    desk = make_desk(chats=4, raters=3, overlap=2)
    no_rater(desk.raters[2])
    assert missing(desk.job) == 0


def test_a_lease_of_a_rater_who_left_counts_as_free_and_one_of_another_as_coming() -> None:
    desk = make_desk(chats=2, raters=2, overlap=2)
    desk.taken(desk.raters[0])
    held = desk.taken(desk.raters[1])
    no_rater(desk.raters[1])
    assert missing(desk.job) == 2  # the second label of both chats
    assert held.chat_id in {row.pk for row in desk.chats}


def test_a_chat_that_all_raters_skipped_cannot_be_labelled() -> None:
    desk = make_desk(chats=2, raters=2, overlap=1)
    first = desk.taken(desk.raters[0])
    assignment_skip(assignment=first, rater=desk.raters[0], reason="too_long")
    assert missing(desk.job) == 0
    second = next(row for row in held(desk, desk.raters[1]) if row.chat_id == first.chat_id)
    assignment_skip(assignment=second, rater=desk.raters[1], reason="too_long")
    assert shown(desk.job) == missing(desk.job) == 1


def held(desk: Desk, rater: Rater) -> list[Assignment]:
    """The chats the rater gets one after another, at most two at a time."""
    rows = [assignment_next(rater=rater, job=desk.job, ahead=ahead) for ahead in (False, True)]
    return [row for row in rows if row is not None]


def test_a_chat_whose_judges_view_the_raters_saw_in_another_job_is_out_of_their_reach() -> None:
    desk = make_desk(chats=2, raters=1)
    other = desk.opened(name="Before")
    done = desk.taken(job=other)
    rows = Assignment.objects.filter(pk=done.pk)
    rows.update(state="submitted", lease_token=None, lease_expires_at=None, revealed_at=timezone.now())
    assert missing(desk.job) == 1


def test_a_lost_lease_leaves_its_rater_for_the_chat() -> None:
    desk = make_desk(chats=1, raters=1)
    taken = desk.taken()
    rows = Assignment.objects.filter(pk=taken.pk)
    rows.update(state="skipped", skip_reason="lease expired", lease_token=None, lease_expires_at=None)
    Assignment.objects.create(job=desk.job, chat=taken.chat, slot=1, position=1)
    assert missing(desk.job) == 0


def test_a_calibration_round_misses_the_labels_of_a_rater_who_left_or_skipped() -> None:
    desk = make_desk(raters=3)
    first = make_set(desk.rubric, *(make_chat() for _ in range(2)), name="round")
    ChatSet.objects.filter(pk=first.pk).update(kind="calibration")
    first.refresh_from_db()
    job = desk.opened(chat_set=first, name="Round")
    assert missing(job) == 0
    taken = desk.taken(desk.raters[1], job=job)
    assignment_skip(assignment=taken, rater=desk.raters[1], reason="too_long")
    assert missing(job) == 1
    list(work_through(job, desk.raters[0]))
    no_rater(desk.raters[2])
    assert missing(job) == 3


def test_members_of_the_group_count_before_their_first_chat() -> None:
    desk = make_desk(chats=2, raters=2, overlap=2)
    desk.job.group = make_user("new", Role.RATER).groups.get()
    desk.job.save()
    no_rater(desk.raters[1])
    assert missing(desk.job) == 0
    User.objects.filter(username="new").update(is_active=False)
    assert missing(desk.job) == 2


# ---------- pages and API ----------


def test_the_job_says_how_many_and_marks_the_raters(lead: Client) -> None:
    desk = make_desk(chats=6, raters=3, overlap=3)
    no_rater(desk.raters[1])
    inactive(desk.raters[2])
    page = page_text(lead.get(f"/jobs/{desk.job.pk}/"))
    assert "12 labels nobody can give." in page
    assert "no longer a rater" in page
    assert "account inactive" in page
    for url in ("/jobs/", f"/sets/{desk.chat_set.pk}/"):
        assert "12 labels nobody can give" in page_text(lead.get(url))
    answer = lead.get(f"/api/jobs/{desk.job.pk}/").json()
    assert answer["unreachable"] == 12
    raters = {row["name"]: row["unavailable"] for row in answer["progress"]["raters"]}
    assert raters == {"mara": "", "rater-2": "no longer a rater", "rater-3": "account inactive"}
    assert lead.get("/api/jobs/").json()["results"][0]["unreachable"] == 12


def test_a_lead_adds_raters_and_the_labels_can_be_given(lead: Client, lead_user: User) -> None:
    desk = make_desk(chats=6, raters=2, overlap=2)
    no_rater(desk.raters[1])
    new = make_user("fresh", Role.RATER)
    url = f"/jobs/{desk.job.pk}/raters/"
    assert "nobody can give" in page_text(
        lead.post(url, {"raters": [user_of(desk.raters[1]).pk]}, follow=True)
    )
    assert desk.job.raters.count() == 2
    page = page_text(lead.post(url, {"raters": [new.pk]}, follow=True))
    assert "Added to October: fresh." in page
    assert "nobody can give" not in page
    assert assignment_next(rater=rater_for(user=new), job=desk.job) is not None
    event = AuditEvent.objects.get(verb="raters added")
    assert (event.actor, event.detail["raters"]) == (lead_user, ["fresh"])


def test_the_api_adds_raters_once_and_refuses_a_closed_job_and_unknown_names(lead: Client) -> None:
    desk = make_desk()
    make_user("fresh", Role.RATER)
    url = f"/api/jobs/{desk.job.pk}/raters/"

    def add(name: str) -> Any:
        return lead.post(url, {"raters": [name]}, content_type="application/json")

    for _ in range(2):
        assert add("fresh").json()["raters"] == ["fresh", "mara", "rater-2"]
    assert AuditEvent.objects.filter(verb="raters added").count() == 1
    assert add("nobody").status_code == 400
    job_close(job=desk.job, by=None)
    make_user("late", Role.RATER)
    assert add("late").status_code == 409
    assert not Rater.objects.filter(name="late").exists()


def test_added_raters_join_the_calibration_round(lead: Client) -> None:
    desk = make_desk()
    first = make_set(desk.rubric, make_chat(), name="round")
    ChatSet.objects.filter(pk=first.pk).update(kind="calibration")
    first.refresh_from_db()
    job = desk.opened(calibration_set=first)
    new = make_user("fresh", Role.RATER)
    lead.post(f"/jobs/{job.pk}/raters/", {"raters": [new.pk]})
    round_job = job.calibration
    assert round_job is not None
    round_job.refresh_from_db()
    assert (round_job.overlap, round_job.raters.count()) == (3, 3)
    assert assignment_next(rater=rater_for(user=new), job=round_job) is not None


def test_the_list_takes_the_same_number_of_queries_with_many_jobs_and_chats(lead: Client) -> None:
    desk = make_desk(chats=3, raters=2, overlap=2)
    no_rater(desk.raters[1])
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            assert lead.get("/jobs/").status_code == 200
        counts.append(len(queries))
        grow(desk, to=30)
        for _ in range(4):
            desk.opened()
    assert counts[0] == counts[1]
