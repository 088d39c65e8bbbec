"""The rater's queue, the way to the next chat, and the rating page without its script."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.labels import Assignment
from labeling.models.people import Role
from labeling.selectors.queue import queue_for
from labeling.services.labelling import assignment_skip, assignment_submit
from tests.factories import make_chat, make_user
from tests.labeling.desk import Desk, answer_all, grow, make_desk, user_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def rater(desk: Desk) -> Client:
    client = Client()
    client.force_login(user_of(desk.rater))
    return client


def submit_next(desk: Desk) -> Assignment:
    answer_all(assignment := desk.taken())
    return assignment_submit(assignment=assignment, rater=desk.rater)


def test_the_queue_offers_the_first_chat_and_then_to_resume(desk: Desk, rater: Client) -> None:
    following = reverse("labeling:next", args=[desk.job.pk])
    page = rater.get(reverse("labeling:queue")).content.decode()
    assert "3 chats left in October" in page
    assert f'href="{following}"' in page
    assert "Start" in page
    opened = rater.get(following)
    assignment = Assignment.objects.get(state="leased")
    assert opened["Location"] == reverse("labeling:rate", args=[assignment.pk])
    answer_all(assignment)
    page = rater.get(reverse("labeling:queue")).content.decode()
    assert "with 2 of 2 answered" in page
    assert "Resume" in page


def test_a_submitted_chat_can_be_opened_again_from_the_queue(desk: Desk, rater: Client) -> None:
    done = submit_next(desk)
    page = rater.get(reverse("labeling:queue")).content.decode()
    assert f'href="{reverse("labeling:rate", args=[done.pk])}"' in page
    assert "<b>1</b> of 3" in page


def test_with_nothing_left_the_next_chat_is_the_queue_and_says_so(desk: Desk, rater: Client) -> None:
    while desk.job.assignments.filter(state="open").exists():
        submit_next(desk)
    page = rater.get(reverse("labeling:next", args=[desk.job.pk]), follow=True)
    assert page.redirect_chain[-1][0] == reverse("labeling:queue")
    assert "Nothing left for you in October." in page.content.decode()
    assert "All done" in page.content.decode()


def test_minutes_left_follow_the_raters_own_pace(desk: Desk) -> None:
    assert queue_for(rater=desk.rater).jobs[0].minutes_left is None
    submit_next(desk)
    Assignment.objects.filter(state="submitted").update(active_ms=90_000)
    (job,) = queue_for(rater=desk.rater).jobs
    assert (job.done, job.total, job.minutes_left) == (1, 3, 3)


def test_the_queue_of_another_rater_is_apart(desk: Desk) -> None:
    submit_next(desk)
    (job,) = queue_for(rater=desk.raters[1]).jobs
    assert (job.done, job.total, job.assignment) == (0, 2, None)


def test_a_skipped_chat_is_out_of_the_raters_count_and_in_the_others(desk: Desk) -> None:
    assignment_skip(assignment=desk.taken(), rater=desk.rater, reason="too_long")
    assert queue_for(rater=desk.rater).jobs[0].total == 2
    assert queue_for(rater=desk.raters[1]).jobs[0].total == 3


def test_the_queue_takes_the_same_number_of_queries_at_40_and_4000_chats(rater: Client, desk: Desk) -> None:
    counts = []
    submit_next(desk)
    desk.taken()
    for size in (40, 4000):
        grow(desk, to=size)
        rater.get(reverse("labeling:queue"))
        with CaptureQueriesContext(connection) as queries:
            rater.get(reverse("labeling:queue"))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_queue_takes_the_same_number_of_queries_for_1_and_5_jobs(rater: Client, desk: Desk) -> None:
    from labeling.services.jobs import job_open
    from labeling.services.labelling import assignment_next

    counts = []
    desk.taken()
    for more in (0, 4):
        for n in range(more):
            job = job_open(
                chat_set=desk.chat_set,
                name=f"Job {n}",
                criteria=desk.criteria,
                raters=desk.raters,
                overlap=1,
                by=None,
            )
            assignment_next(rater=desk.rater, job=job)
        rater.get(reverse("labeling:queue"))
        with CaptureQueriesContext(connection) as queries:
            rater.get(reverse("labeling:queue"))
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("role", [Role.AUTHOR, Role.LEAD])
def test_who_may_not_label_has_no_queue_and_no_rating_page(desk: Desk, role: Role) -> None:
    client = Client()
    client.force_login(make_user("somebody", role))
    assignment = desk.taken()
    for url in (
        reverse("labeling:queue"),
        reverse("labeling:next", args=[desk.job.pk]),
        reverse("labeling:rate", args=[assignment.pk]),
    ):
        assert client.get(url).status_code == 404, url


def test_the_rating_page_and_the_job_of_others_do_not_exist(desk: Desk) -> None:
    stranger = Client()
    stranger.force_login(user_of(desk.raters[1]))
    assert stranger.get(reverse("labeling:rate", args=[desk.taken().pk])).status_code == 404
    desk.job.raters.remove(desk.raters[1])
    assert stranger.get(reverse("labeling:next", args=[desk.job.pk])).status_code == 404


def test_without_signing_in_every_page_leads_to_the_sign_in(desk: Desk) -> None:
    url = reverse("labeling:rate", args=[desk.taken().pk])
    assert Client().get(url)["Location"] == f"{reverse('login')}?next={url}"


def test_a_skipped_chat_leads_back_to_the_queue(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    assignment_skip(assignment=assignment, rater=desk.rater, reason="too_long")
    page = rater.get(reverse("labeling:rate", args=[assignment.pk]), follow=True)
    assert "You skipped this chat." in page.content.decode()


def test_the_rating_page_shows_the_chat_without_script_and_hidden_characters(
    desk: Desk, rater: Client
) -> None:
    chat = make_chat(
        "strange", messages=[("user", "pay\u202eyap \u200bnow <script>alert(1)</script>"), ("tool", "")]
    )
    Assignment.objects.filter(position=1).update(chat=chat)
    response = rater.get(reverse("labeling:rate", args=[desk.taken().pk]))
    page = response.content.decode()
    assert "JavaScript is switched off" in page
    assert 'title="RIGHT-TO-LEFT OVERRIDE"' in page
    assert 'title="ZERO WIDTH SPACE"' in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "no-store" in response["Cache-Control"]
