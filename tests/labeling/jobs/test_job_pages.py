"""A lead's pages of labelling jobs: the list, opening one, one job, closing and starting it."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater, Role, User
from labeling.rating.services.leases import assignment_next, assignment_skip
from labeling.rating.services.submission import assignment_submit
from tests.factories.labelling_job import (
    Desk,
    answer_all,
    expire,
    gold_set_of,
    grow,
    make_desk,
    user_of,
    work_through,
)
from tests.factories.pages import page_text
from tests.factories.rows import analyze, make_chat, make_set, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


def new_url(desk: Desk) -> str:
    return f"{reverse('labeling:job_new')}?set={desk.chat_set.pk}"


def job_url(job: LabelingJob, act: str = "detail") -> str:
    return reverse(f"labeling:job_{act}", args=[job.pk])


def filled(desk: Desk, **more: Any) -> dict[str, Any]:
    """The form as a lead fills it in."""
    plain = {
        "name": "November",
        "overlap": "1",
        "raters": [str(desk.rater.user_id)],
        "criteria": [str(criterion.pk) for criterion in desk.criteria],
        "order": "topic",
    }
    return plain | more


def calibration_set(desk: Desk) -> ChatSet:
    made = make_set(desk.rubric, make_chat("round-1"), name="round")
    made.kind = ChatSet.Kind.CALIBRATION
    made.save()
    return made


# ---------- the list ----------


def test_the_list_says_how_far_each_job_is_who_labels_and_what_is_overdue(desk: Desk, lead: Client) -> None:
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    LabelingJob.objects.update(due_at=timezone.now() - timedelta(days=1))
    response = lead.get(reverse("labeling:job_list"))
    (row,) = response.context["list"].jobs
    assert (row.name, row.submitted, row.wanted, row.overdue) == ("October", 1, 3, True)
    page = page_text(response)
    assert all(words in page for words in ("mara, rater-2", "1 of 3", "overdue", job_url(desk.job)))


def test_an_empty_list_leads_to_opening_a_job(lead: Client) -> None:
    assert reverse("labeling:job_new") in page_text(lead.get(reverse("labeling:job_list")))
    assert reverse("labeling:import_new") in page_text(lead.get(reverse("labeling:job_new")))


def test_labelling_is_in_the_bar_of_a_lead_and_of_nobody_else(
    desk: Desk, lead: Client, author_user: User
) -> None:
    entry = f'<a href="{reverse("labeling:job_list")}" aria-current="page">Labelling</a>'
    assert entry in page_text(lead.get(job_url(desk.job)))
    author = Client()
    author.force_login(author_user)
    assert ">Labelling</a>" not in page_text(author.get(reverse("labeling:set_list")))


# ---------- finished ----------


def submitted(desk: Desk, *, value: bool = True, chats: int = 3) -> None:
    for rater in desk.raters:
        for _ in range(chats):
            answer_all(assignment := desk.taken(rater), value=value)
            assignment_submit(assignment=assignment, rater=rater)
        value = not value


def test_a_finished_job_says_close_and_adjudicate(lead: Client) -> None:
    desk = make_desk(overlap=2)
    assert "All labels are in." not in page_text(lead.get(job_url(desk.job)))
    submitted(desk)
    page = page_text(lead.get(job_url(desk.job)))
    assert "All labels are in." in page
    assert "then adjudicate 6 answers on which raters are tied" in " ".join(page.split())
    assert f'href="{reverse("labeling:adjudication_queue")}?job={desk.job.pk}&amp;kind=unresolved"' in page
    assert "close and adjudicate" in page_text(lead.get(reverse("labeling:job_list")))
    closed = page_text(lead.post(job_url(desk.job, "close"), follow=True))
    assert "6 answers are unresolved." in closed
    assert "close and adjudicate" not in page_text(lead.get(reverse("labeling:job_list")))


def test_a_finished_job_without_ties_says_close(lead: Client) -> None:
    desk = make_desk(raters=1)
    submitted(desk)
    page = " ".join(page_text(lead.get(job_url(desk.job))).split())
    assert "All labels are in.</b> Close the job." in page


# ---------- too few raters ----------


def test_who_has_too_few_raters_is_led_to_people(desk: Desk, lead: Client) -> None:
    said = f'Only 2 accounts can label. <a href="{reverse("labeling:people")}">Add raters</a>'
    assert said not in " ".join(page_text(lead.get(new_url(desk))).split())
    refused = page_text(lead.post(new_url(desk), filled(desk, overlap="3")))
    assert said in " ".join(refused.split())
    size = f"{reverse('labeling:job_new_size')}?set={desk.chat_set.pk}"
    assert said in " ".join(page_text(lead.post(size, filled(desk, overlap="3"))).split())


# ---------- opening ----------


def test_a_lead_opens_a_job_and_the_raters_find_it_in_their_queue(
    desk: Desk, lead: Client, lead_user: User
) -> None:
    newcomer = make_user("nora", Role.RATER)
    choose = page_text(lead.get(reverse("labeling:job_new")))
    assert f'<option value="{desk.chat_set.pk}">' in choose
    form = lead.get(new_url(desk)).context["form"]
    assert [user.username for user in form.fields["raters"].queryset] == ["mara", "nora", "rater-2"]
    given = filled(
        desk,
        overlap="2",
        raters=[str(newcomer.pk), str(desk.rater.user_id)],
        criteria=[str(desk.criteria[0].pk)],
        due_on="2099-11-27",
        seed="5",
    )
    answer = lead.post(new_url(desk), given, follow=True)
    assert "November opened" in page_text(answer)
    job = LabelingJob.objects.get(name="November")
    assert (job.overlap, job.created_by, job.assignments.count(), job.seed) == (2, lead_user, 6, 5)
    assert job.due_at is not None
    assert timezone.localtime(job.due_at).strftime("%Y-%m-%d %H:%M") == "2099-11-27 23:59"
    assert {rater.name for rater in job.raters.all()} == {"mara", "nora"}
    rater = Client()
    rater.force_login(newcomer)
    assert "November" in page_text(rater.get(reverse("labeling:queue")))


def test_a_group_a_share_gold_chats_and_a_round_can_be_chosen(desk: Desk, lead: Client) -> None:
    everybody = Group.objects.get(name=Role.RATER)
    given = filled(
        desk,
        raters=[],
        group=str(everybody.pk),
        overlap="2",
        overlap_percent="50",
        gold_set=str(gold_set_of(desk, chats=2).pk),
        gold_percent="10",
        calibration_set=str(calibration_set(desk).pk),
        order="random",
    )
    page = page_text(lead.post(new_url(desk), given, follow=True))
    assert "November waits for its calibration round" in page
    job = LabelingJob.objects.get(name="November")
    assert (job.group, job.overlap_share, job.gold_rate, job.order) == (everybody, 0.5, 0.1, "random")
    assert (job.state, job.assignments.filter(kind="normal").count()) == ("waiting", 5)


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"overlap": "2"}, "overlap", "need 2 raters"),
        ({"overlap": "0"}, "overlap", "greater than or equal to 1"),
        ({"name": ""}, "name", "This field is required"),
        ({"raters": []}, "raters", "Choose raters"),
        ({"criteria": []}, "criteria", "This field is required"),
        ({"raters": ["999999"]}, "raters", "not one of the available choices"),
        ({"overlap_percent": "50"}, "overlap_percent", "no chat gets a second label"),
        ({"due_on": "2020-01-01"}, "due_on", "in the past"),
        ({"gold_percent": "10"}, "gold_set", "need a set and a rate"),
        ({"seed": "-1"}, "seed", "greater than or equal to 0"),
    ],
    ids=str,
)
def test_a_job_that_could_not_be_done_is_refused_at_the_field(
    desk: Desk, lead: Client, change: dict[str, Any], field: str, message: str
) -> None:
    answer = lead.post(new_url(desk), filled(desk, **change))
    assert message in str(answer.context["form"].errors[field])
    page = page_text(answer)
    assert message in page
    assert "Not opened." in page
    assert LabelingJob.objects.count() == 1


def test_the_size_beside_the_form_says_chats_labels_and_what_does_not_fit(desk: Desk, lead: Client) -> None:
    url = f"{reverse('labeling:job_new_size')}?set={desk.chat_set.pk}"

    def size(**change: Any) -> Any:
        return lead.post(url, filled(desk, **change))

    both = [str(rater.user_id) for rater in desk.raters]
    counted = size(raters=both, overlap="2").context["size"]
    assert (counted.chats, counted.labels, counted.raters, counted.each) == (3, 6, 2, 3)
    assert size(raters=both, overlap="2", overlap_percent="33").context["size"].labels == 4
    assert "need at least 3 raters" in page_text(size(raters=both, overlap="3"))
    assert "Choose raters or a group" in page_text(size(raters=[]))
    assert "Labels per chat: " in page_text(size(overlap="none"))
    assert Assignment.objects.filter(job__name="November").count() == 0


@pytest.mark.parametrize("given", ["", "999999", "x", "²", "9" * 30])
def test_a_set_that_is_none_has_no_size_and_no_form(lead: Client, given: str) -> None:
    query = {"set": given}
    assert lead.get(reverse("labeling:job_new"), query).status_code == (404 if given else 200)
    assert lead.post(reverse("labeling:job_new_size", query=query)).status_code == 404


def test_the_size_is_counted_with_hundreds_of_raters_chosen(desk: Desk, lead: Client) -> None:
    """By POST: a server refuses an address that is as long as that."""
    raters = Group.objects.get(name=Role.RATER)
    people = User.objects.bulk_create(User(username=f"rater {n}") for n in range(300))
    for person in people:
        person.groups.add(raters)
    page = page_text(lead.get(new_url(desk)))
    url = f"{reverse('labeling:job_new_size')}?set={desk.chat_set.pk}"
    assert f'hx-post="{url}"' in page
    assert lead.get(url).status_code == 405
    given = filled(desk, raters=[str(person.pk) for person in people], overlap="20")
    assert lead.post(url, given).context["size"].raters == 300


# ---------- one job ----------


def test_a_job_shows_progress_by_rater_set_and_topic_who_is_in_work_and_what_was_skipped(
    lead: Client,
) -> None:
    desk = make_desk(chats=4, raters=3)
    answer_all(done := desk.taken())
    assignment_submit(assignment=done, rater=desk.rater)
    held = desk.taken()
    expire(held)
    skipped = desk.taken(desk.raters[1])
    assignment_skip(assignment=skipped, rater=desk.raters[1], reason="other: two chats <in> one")
    response = lead.get(job_url(desk.job))
    page = response.context["page"]
    assert (page.submitted, page.wanted) == (1, 4)
    assert [(row.name, row.submitted, row.in_work, row.skipped) for row in page.raters] == [
        ("mara", 1, 1, 0),
        ("rater-2", 0, 0, 1),
        ("rater-3", 0, 0, 0),
    ]
    ((topic),) = page.topics
    assert (topic.chats, topic.submitted, topic.in_work, topic.wanted) == (4, 1, 1, 4)
    assert [(row.role, row.submitted, row.wanted) for row in page.sets] == [("asked", 1, 4)]
    text = page_text(response)
    assert "Something else: two chats &lt;in&gt; one" in text
    assert "expired" in text
    assert held.chat.external_id in text


def test_holdout_chats_are_counted_for_all_leads_and_named_to_those_who_may_see_them(
    desk: Desk, lead: Client
) -> None:
    assignment_skip(assignment=desk.taken(), rater=desk.rater, reason="too_long")
    desk.taken()
    desk.chat_set.members.update(split="holdout")
    page = lead.get(job_url(desk.job)).context["page"]
    assert (len(page.skipped), len(page.in_work), page.skipped_total) == (1, 1, 1)
    Group.objects.get(name=Role.LEAD).permissions.remove(Permission.objects.get(codename="see_holdout"))
    response = lead.get(job_url(desk.job))
    assert (len(response.context["page"].skipped), len(response.context["page"].in_work)) == (0, 0)
    assert response.context["page"].skipped_total == 1
    progress = lead.get(reverse("api_job", args=[desk.job.pk])).json()["progress"]
    assert (progress["skipped"], progress["skipped_total"]) == ([], 1)


def test_a_refused_job_leaves_no_rater_behind(desk: Desk, lead: Client) -> None:
    newcomer = make_user("nora", Role.RATER)
    lead.post(new_url(desk), filled(desk, raters=[str(newcomer.pk)], overlap="2"))
    body = {"name": "November", "set": desk.chat_set.name, "raters": ["nora"], "overlap": 2}
    refused = lead.post(reverse("api_jobs"), body, content_type="application/json")
    assert refused.status_code == 400
    assert not Rater.objects.filter(user=newcomer).exists()


def test_gold_chats_are_counted_apart_from_the_labels_wanted(desk: Desk, lead: Client) -> None:
    job = desk.opened(gold_set=gold_set_of(desk, chats=3), gold_rate=0.5, raters=[desk.rater])
    gold = [row.kind for row in work_through(job, desk.rater)].count("gold")
    assert gold
    page = lead.get(job_url(job)).context["page"]
    assert (page.submitted, page.wanted) == (3, 3)
    assert [(row.submitted, row.gold) for row in page.raters] == [(3 + gold, gold)]
    assert [(row.role, row.submitted, row.wanted) for row in page.sets] == [
        ("asked", 3, 3),
        ("gold", gold, None),
    ]


def test_a_waiting_job_is_started_by_its_button_once_somebody_finished_the_round(
    desk: Desk, lead: Client
) -> None:
    job = desk.opened(calibration_set=calibration_set(desk))
    assert job.calibration is not None
    assert "0 of 2</strong> raters finished it" in page_text(lead.get(job_url(job)))
    refused = page_text(lead.post(job_url(job, "start"), follow=True))
    assert "Not started. No rater has finished" in refused
    list(work_through(job.calibration, desk.rater))
    assert lead.get(job_url(job.calibration)).context["page"].wanted == 2
    page = page_text(lead.post(job_url(job, "start"), follow=True))
    assert "Job November started. Round not finished by rater-2." in page
    assert "<small>not finished by rater-2</small>" in page
    assert assignment_next(rater=desk.rater, job=job)


def test_a_job_is_closed_by_its_button_and_a_round_that_is_waited_for_is_not(
    desk: Desk, lead: Client
) -> None:
    job = desk.opened(calibration_set=calibration_set(desk))
    assert job.calibration is not None
    assert "Close the job" not in page_text(lead.get(job_url(job.calibration)))
    refused = page_text(lead.post(job_url(job.calibration, "close"), follow=True))
    assert "Not closed. November waits for this round" in refused
    page = page_text(lead.post(job_url(job, "close"), follow=True))
    assert "November closed" in page
    assert "Close the job" not in page
    assert set(LabelingJob.objects.exclude(pk=desk.job.pk).values_list("state", flat=True)) == {"closed"}


def test_no_get_closes_or_starts_a_job(desk: Desk, lead: Client) -> None:
    for act in ("close", "start"):
        assert lead.get(job_url(desk.job, act)).status_code == 405


def test_for_authors_and_raters_the_pages_do_not_exist(desk: Desk, author_user: User) -> None:
    for user in (author_user, user_of(desk.rater)):
        client = Client()
        client.force_login(user)
        for url in (
            reverse("labeling:job_list"),
            new_url(desk),
            f"{reverse('labeling:job_new_size')}?set={desk.chat_set.pk}",
            job_url(desk.job),
            job_url(desk.job, "close"),
            job_url(desk.job, "start"),
        ):
            for response in (client.get(url), client.post(url)):
                assert response.status_code == 404, url
    assert LabelingJob.objects.get().state == "open"


@pytest.mark.heavy
def test_the_pages_take_the_same_number_of_queries_at_100_and_10000_chats(desk: Desk, lead: Client) -> None:
    urls = (
        reverse("labeling:job_list"),
        new_url(desk),
        job_url(desk.job),
    )
    counts: list[list[int]] = []
    for size in (100, 10_000):
        grow(desk, to=size)
        analyze()
        counts.append([])
        for url in urls:
            lead.get(url)
            with CaptureQueriesContext(connection) as queries:
                assert lead.get(url).status_code == 200
            counts[-1].append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.heavy
def test_the_list_takes_the_same_number_of_queries_for_1_and_60_jobs(desk: Desk, lead: Client) -> None:
    counts = []
    for more in (0, 59):
        for _ in range(more):
            desk.opened()
        with CaptureQueriesContext(connection) as queries:
            page = lead.get(reverse("labeling:job_list"))
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert len(page.context["list"].jobs) == 50
    assert "Page 1 of 2" in page_text(page)
