"""Weeks that a process remembers: a page asks for less the second time, and shows every change at once."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.monitoring.services import audits_work
from evaluation.day_counts.services import days_recount
from evaluation.models.judges import Judge
from evaluation.models.runs import Verdict
from labeling.models.labels import Consensus
from labeling.models.people import Role
from labeling.models.rubric import Rubric
from tests.factories.audited_nights import MONDAY, a_night
from tests.factories.production import Judged, labelled_set, production_day
from tests.factories.rows import make_rubric, make_user
from tests.factories.verdicts import make_judge

pytestmark = pytest.mark.django_db


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite")


@pytest.fixture
def judge(rubric: Rubric) -> Judge:
    return make_judge(rubric)


@pytest.fixture
def lead() -> Client:
    caches["documents"].clear()
    return signed_in(Role.LEAD)


def signed_in(role: Role) -> Client:
    client = Client()
    client.force_login(make_user(role.value, role))
    return client


def document(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get(reverse("api_monitoring")).json()
    return found


def estimated_anew(client: Client) -> dict[str, Any]:
    """The same document without a remembered week."""
    caches["documents"].clear()
    return document(client)


def shows_change(client: Client, before: dict[str, Any]) -> bool:
    """Whether the document has changed, and is the one that is estimated anew."""
    after = document(client)
    return after != before and after == estimated_anew(client)


def test_a_remembered_week_is_not_read_again_and_is_the_same(
    rubric: Rubric, judge: Judge, lead: Client
) -> None:
    a_night(rubric, judge)
    audits_work()
    with CaptureQueriesContext(connection) as first:
        found = document(lead)
    with CaptureQueriesContext(connection) as again:
        assert document(lead) == found
    assert len(again) < len(first)
    read = " ".join(query["sql"] for query in again)
    assert "auditcount" not in read and "daycount" not in read
    assert document(lead) == estimated_anew(lead)


def test_another_night_changes_its_week_and_leaves_the_others(
    rubric: Rubric, judge: Judge, lead: Client
) -> None:
    a_night(rubric, judge)
    audits_work()
    before = document(lead)
    a_night(rubric, judge, MONDAY + timedelta(days=7))
    audits_work()
    assert shows_change(lead, before)
    assert document(lead)["criteria"][0]["points"][0] == before["criteria"][0]["points"][0]


def test_labels_of_the_audit_change_the_page(rubric: Rubric, judge: Judge, lead: Client) -> None:
    _, chats = a_night(rubric, judge)
    before = document(lead)
    audits_work()
    assert shows_change(lead, before)
    before = document(lead)
    Consensus.objects.filter(chat__in=chats[20:30]).update(state="false")
    audits_work()
    assert shows_change(lead, before)


def test_curated_labels_change_the_page(rubric: Rubric, judge: Judge, lead: Client) -> None:
    production_day(MONDAY, {"refund": Judged(400, 90, 10)}, judge=judge, rubric=rubric)
    before = document(lead)
    labelled_set(rubric, judge, holdout=0)
    assert shows_change(lead, before)


def test_other_counts_change_the_page(rubric: Rubric, judge: Judge, lead: Client) -> None:
    run = production_day(MONDAY, {"refund": Judged(400, 90, 10)}, judge=judge, rubric=rubric)
    before = document(lead)
    row = Verdict.objects.filter(run=run, value=True).earliest("pk")
    Verdict.objects.filter(pk=row.pk).update(value=False)
    days_recount(run.pk)
    assert shows_change(lead, before)


def test_chats_that_arrive_later_change_the_sizes(rubric: Rubric, judge: Judge, lead: Client) -> None:
    production_day(
        MONDAY, {"refund": Judged(400, 90, 10), "tip": Judged(50, 10, 10)}, judge=judge, rubric=rubric
    )
    before = document(lead)
    production_day(MONDAY, {"tip": Judged(300, 0, 0)}, judge=judge, rubric=rubric)
    assert shows_change(lead, before)


def test_authors_and_leads_do_not_share_weeks(rubric: Rubric, judge: Judge, lead: Client) -> None:
    labelled_set(rubric, judge, holdout=30)
    production_day(MONDAY, {"refund": Judged(400, 90, 10)}, judge=judge, rubric=rubric)
    author = signed_in(Role.AUTHOR)
    labels = [
        one["criteria"][0]["points"][0]["curated_labels"]["labels"]
        for one in (document(lead), document(author), document(lead))
    ]
    assert labels == [60, 30, 60]
