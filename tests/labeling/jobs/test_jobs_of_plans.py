"""A job a night: finished ones of sample plans are found by plan, and fill no list or picker."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.adjudication.forms import AdjudicationFilterForm
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import User
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import yesterday
from tests.factories.labelling_job import Desk, make_desk
from tests.factories.nights import make_plan
from tests.factories.pages import page_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


@pytest.fixture
def plan(desk: Desk, lead_user: User) -> SamplePlan:
    return make_plan(desk.chat_set.rubric, by=lead_user, name="Every night")


def night(plan: SamplePlan, desk: Desk, *, ago: int, left: str = "submitted", closed: bool = False) -> Any:
    """The job of a night with one chat, in this state."""
    day = yesterday() - timedelta(days=ago)
    state = LabelingJob.State.CLOSED if closed else LabelingJob.State.OPEN
    chat_set = ChatSet.objects.create(
        name=f"Labels {day}", rubric=plan.rubric, kind=ChatSet.Kind.SAMPLE, sampling={"plan": plan.pk}
    )
    job = LabelingJob.objects.create(chat_set=chat_set, name=f"Every night {day}", state=state)
    chat = desk.chat_set.members.earliest("pk").chat
    Assignment.objects.create(job=job, chat=chat, slot=1, position=1, state=left)
    SampleDraw.objects.create(plan=plan, day=day, seed=1, settings={}, job=job)
    return job


def test_lists_and_pickers_show_nightly_jobs_with_labels_to_come_alone(
    desk: Desk, plan: SamplePlan, lead: Client
) -> None:
    finished, to_label = night(plan, desk, ago=3), night(plan, desk, ago=2, left="open")
    closed = night(plan, desk, ago=1, left="open", closed=True)
    listed = [to_label.pk, desk.job.pk]
    for name in ("labeling:job_list", "quality:list"):
        page = lead.get(reverse(name))
        assert [row.id for row in page.context["list"].jobs] == listed
        (row,) = page.context["list"].plans
        assert (row.jobs, row.not_closed, row.newest) == (3, 2, yesterday() - timedelta(days=1))
        assert f'href="?plan={plan.pk}"' in page_text(page)
    picker: Any = AdjudicationFilterForm({}).fields["job"]
    assert [row.pk for row in picker.queryset] == listed
    chosen: Any = AdjudicationFilterForm({"job": str(finished.pk)}).fields["job"]
    assert [row.pk for row in chosen.queryset] == [to_label.pk, finished.pk, desk.job.pk]
    assert closed.pk not in listed


@pytest.mark.parametrize("name", ["labeling:job_list", "quality:list"])
def test_the_jobs_of_a_plan_are_searched_newest_first(
    name: str, desk: Desk, plan: SamplePlan, lead: Client
) -> None:
    older, newer = night(plan, desk, ago=3), night(plan, desk, ago=2, left="open")
    page = lead.get(reverse(name), {"plan": str(plan.pk)})
    assert [row.id for row in page.context["list"].jobs] == [newer.pk, older.pk]
    found = lead.get(reverse(name), {"plan": str(plan.pk), "q": str(yesterday() - timedelta(days=3))})
    assert [row.id for row in found.context["list"].jobs] == [older.pk]
    assert "No such job." in page_text(lead.get(reverse(name), {"plan": str(plan.pk), "q": "none"}))
    for unknown in ("0", "x", "9" * 30):
        assert lead.get(reverse(name), {"plan": unknown}).status_code == 404


@pytest.mark.parametrize("name", ["labeling:job_list", "quality:list"])
def test_a_year_of_nights_needs_no_more_queries(
    name: str, desk: Desk, plan: SamplePlan, lead: Client
) -> None:
    counts = []
    for ago in (range(1, 3), range(3, 60)):
        for one in ago:
            night(plan, desk, ago=one)
        lead.get(reverse(name))
        for query in ({}, {"plan": plan.pk}):
            with CaptureQueriesContext(
                connection,
            ) as queries:
                lead.get(reverse(name), query)
            counts.append(len(queries))
    assert counts[:2] == counts[2:]
