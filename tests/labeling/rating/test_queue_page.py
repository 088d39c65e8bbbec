"""The rater's queue, the way to the next chat, and the rating page without its script."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.jobs.services import job_close
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Assignment
from labeling.models.people import Role, Workspace
from labeling.models.rubric import Criterion
from labeling.rating.queries.queue import job_progress, queue_for
from labeling.rating.services.leases import assignment_skip
from labeling.rating.services.submission import assignment_submit
from labeling.transfer.services.labels import labels_import
from tests.factories.labelling_job import Desk, answer_all, grow, make_desk, user_of
from tests.factories.pages import page_text
from tests.factories.rows import make_chat, make_user
from tests.files import write_jsonl

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
    page = page_text(rater.get(reverse("labeling:queue")))
    assert "3 chats left in October" in page
    assert page.count(f'method="post" action="{following}"') == 2  # at the top and beside the job
    assert "Start" in page
    opened = rater.post(following)
    assignment = Assignment.objects.get(state="leased")
    assert opened["Location"] == reverse("labeling:rate", args=[assignment.pk])
    answer_all(assignment)
    page = page_text(rater.get(reverse("labeling:queue")))
    assert "with 2 of 2 answered" in page
    assert "Resume" in page


def test_an_import_over_a_draft_leaves_it_counted_as_answered(desk: Desk, rater: Client) -> None:
    answer_all(desk.taken())
    given = {"chat_id": "chat-1", "criterion": "polite", "rater": "mara", "value": False}
    with TemporaryDirectory() as folder:
        labels_import(path=write_jsonl(Path(folder, "labels.jsonl"), given), replace_accounts=True)
    assert "with 2 of 2 answered" in page_text(rater.get(reverse("labeling:queue")))


def test_drafts_of_an_earlier_round_with_the_chat_do_not_count_as_answered(desk: Desk) -> None:
    submit_next(desk)
    again = desk.opened()
    assert desk.taken(job=again).chat == desk.chats[0]
    assert [job.answered for job in queue_for(rater=desk.rater).jobs if job.assignment] == [0]


def test_retired_criteria_are_neither_asked_nor_counted(desk: Desk, rater: Client) -> None:
    answer_all(desk.taken())
    Criterion.objects.filter(key="polite").update(state="retired")
    assert "with 1 of 1 answered" in page_text(rater.get(reverse("labeling:queue")))


def test_reading_takes_no_chat(desk: Desk, rater: Client) -> None:
    """A prefetched, pasted or embedded address must not lease anything."""
    following = reverse("labeling:next", args=[desk.job.pk])
    for method in (rater.get, rater.head):
        assert method(following).status_code == 405
    assert not Assignment.objects.filter(state="leased").exists()


def test_a_rater_sees_topic_and_id_of_a_chat_and_not_its_title(desk: Desk, rater: Client) -> None:
    topic = Topic.objects.create(key="order_cancel", name="order_cancel")
    Chat.objects.update(topic=topic, metadata={"title": "The wrong order cancelled"})
    submitted, leased = submit_next(desk), desk.taken()
    queue = page_text(rater.get(reverse("labeling:queue")))
    assert "<strong>chat 2, Order cancel</strong>" in queue
    assert '<th scope="row" class="mono">chat-1</th><td>Order cancel</td>' in queue
    rate = page_text(rater.get(reverse("labeling:rate", args=[leased.pk])))
    assert 'Order cancel <span class="dim xs">chat chat-2, 2 turns' in rate
    assert "The wrong order cancelled" not in queue + rate
    for row in (submitted, leased):
        chat = rater.get(reverse("api_assignment", args=[row.pk])).json()["chat"]
        assert (chat.keys(), chat["topic"]) == ({"id", "topic", "messages"}, "order_cancel")


def test_a_submitted_chat_can_be_opened_again_from_the_queue(desk: Desk, rater: Client) -> None:
    done = submit_next(desk)
    page = page_text(rater.get(reverse("labeling:queue")))
    assert f'href="{reverse("labeling:rate", args=[done.pk])}"' in page
    assert "<b>1</b> of 3" in page


def test_with_nothing_left_the_next_chat_is_the_queue_and_says_so(desk: Desk, rater: Client) -> None:
    while desk.job.assignments.filter(state="open").exists():
        submit_next(desk)
    page = rater.post(reverse("labeling:next", args=[desk.job.pk]), follow=True)
    assert page.redirect_chain[-1][0] == reverse("labeling:queue")
    assert "No chats left for you in October." in page_text(page)
    assert "All done" in page_text(page)


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


@pytest.mark.heavy
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
    assert counts[0] >= counts[1]


def test_with_many_chats_to_go_their_number_is_read_off_the_order_instead_of_counted(desk: Desk) -> None:
    grow(desk, to=4000)
    submit_next(desk)
    held = desk.taken()
    with CaptureQueriesContext(connection) as queries:
        progress = job_progress(job=desk.job, rater=desk.rater)
    assert (progress.done, progress.total) == (1, 4000)
    assert not any("DISTINCT" in query["sql"] for query in queries)
    # Others have done most: where the work of all stands counts, not where this rater does.
    desk.job.assignments.filter(state="open", position__lte=3000).update(
        state="submitted", rater=desk.raters[1]
    )
    assert job_progress(job=desk.job, rater=desk.rater).total == 1 + 1 + 1000
    # Few are left: they are counted, also those behind this rater.
    desk.job.assignments.filter(state="open", position__lte=3900).update(
        state="submitted", rater=desk.raters[1]
    )
    desk.job.assignments.filter(position=3950).update(state="submitted", rater=desk.raters[1])
    assert job_progress(job=desk.job, rater=desk.rater).total == 1 + 1 + 99
    assert desk.taken() == held


def test_the_queue_shows_every_open_job_and_of_the_closed_ones_the_last_five(desk: Desk) -> None:
    for number in range(8):
        job_close(job=desk.opened(name=f"closed {number}"), by=None)
    for number in range(7):
        desk.opened(name=f"open {number}")
    names = [row.name for row in queue_for(rater=desk.rater).jobs]
    assert names == [
        *(f"open {number}" for number in reversed(range(7))),
        "October",
        *(f"closed {number}" for number in reversed(range(3, 8))),
    ]


@pytest.mark.heavy
def test_the_queue_takes_the_same_number_of_queries_for_1_and_5_jobs(rater: Client, desk: Desk) -> None:
    from labeling.jobs.services import job_open
    from labeling.rating.services.leases import assignment_next

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
        for response in (client.get(url), client.post(url)):
            assert response.status_code == 404, url


def test_the_rating_page_and_the_job_of_others_do_not_exist(desk: Desk) -> None:
    stranger = Client()
    stranger.force_login(user_of(desk.raters[1]))
    assert stranger.get(reverse("labeling:rate", args=[desk.taken().pk])).status_code == 404
    desk.job.raters.remove(desk.raters[1])
    assert stranger.post(reverse("labeling:next", args=[desk.job.pk])).status_code == 404


def test_without_signing_in_every_page_leads_to_the_sign_in(desk: Desk) -> None:
    url = reverse("labeling:rate", args=[desk.taken().pk])
    assert Client().get(url)["Location"] == f"{reverse('account_login')}?next={url}"


def test_who_was_signed_out_lands_on_a_page_that_can_be_read(desk: Desk) -> None:
    signed_out = Client().post(reverse("labeling:next", args=[desk.job.pk]))
    assert signed_out["Location"] == reverse("account_login")


def stored_under(desk: Desk, assignment: Assignment) -> str:
    """The name of the browser's storage for this chat."""
    assert assignment.rater is not None
    client = Client()
    client.force_login(user_of(assignment.rater))
    page = client.get(reverse("labeling:rate", args=[assignment.pk]))
    secret = bytes(Workspace.current().fence_secret)
    assert secret.hex() not in page_text(page)
    return str(page.context["state"]["store"])


def test_what_a_browser_keeps_belongs_to_one_chat_one_rater_and_one_workspace(desk: Desk) -> None:
    first, other = desk.taken(), desk.taken(desk.raters[1])
    names = [stored_under(desk, first), stored_under(desk, other)]
    assert stored_under(desk, first) == names[0]
    Assignment.objects.filter(pk=first.pk).update(rater=desk.raters[1])
    first.refresh_from_db()
    names.append(stored_under(desk, first))
    Workspace.objects.update(fence_secret=b"another database".ljust(32))
    names.append(stored_under(desk, first))
    assert len(set(names)) == 4
    assert all(re.fullmatch("[0-9]+-[0-9a-f]{16}", name) for name in names)


def test_a_skipped_chat_leads_back_to_the_queue(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    assignment_skip(assignment=assignment, rater=desk.rater, reason="too_long")
    page = rater.get(reverse("labeling:rate", args=[assignment.pk]), follow=True)
    assert "You skipped this chat." in page_text(page)


def test_the_rating_page_shows_the_chat_without_script_and_hidden_characters(
    desk: Desk, rater: Client
) -> None:
    chat = make_chat(
        "strange", messages=[("user", "pay\u202eyap \u200bnow <script>alert(1)</script>"), ("tool", "")]
    )
    Assignment.objects.filter(position=1).update(chat=chat)
    response = rater.get(reverse("labeling:rate", args=[desk.taken().pk]))
    page = page_text(response)
    assert "JavaScript is off" in page
    assert 'title="RIGHT-TO-LEFT OVERRIDE"' in page
    assert 'title="ZERO WIDTH SPACE"' in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "no-store" in response["Cache-Control"]
