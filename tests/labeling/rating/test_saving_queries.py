"""What saving and submitting ask of the database: few statements, and as many for many criteria."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories.api_calls import label_url, put, signed_in
from tests.factories.labelling_job import answer_all, make_desk, user_of

pytestmark = pytest.mark.django_db

PLACE = {"message": 1, "start": 0, "end": 5}


def asked(work: Callable[[], Any]) -> list[str]:
    """The statements of a call, without the beginnings and ends of transactions."""
    with CaptureQueriesContext(connection) as queries:
        assert work().status_code == 200
    every = [query["sql"] for query in queries]
    return [sql for sql in every if not sql.startswith(("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT"))]


@pytest.mark.parametrize("criteria", [2, 20])
def test_saving_takes_eleven_statements_and_reads_no_messages(criteria: int) -> None:
    desk = make_desk(keys=["polite", *(f"k{n}" for n in range(criteria - 1))])
    rater, url = signed_in(user_of(desk.rater)), label_url(desk.taken())
    first = asked(lambda: put(rater, url, active_ms=900))
    again = asked(lambda: put(rater, url, value=False, version=1, revision=1, rationale="Rude."))
    assert [len(first), len(again)] == [11, 11]
    assert not [sql for sql in [*first, *again] if '"messages"' in sql]


def test_only_evidence_makes_the_messages_be_read() -> None:
    desk = make_desk()
    rater, url = signed_in(user_of(desk.rater)), label_url(desk.taken())
    found = asked(lambda: put(rater, url, evidence=[PLACE]))
    assert len([sql for sql in found if '"messages"' in sql]) == 1
    assert len(found) == 12


def test_submitting_asks_alike_for_two_and_twenty_criteria_and_changes_waiting_labels_in_one_statement() -> (
    None
):
    counts = []
    desk = make_desk(keys=[f"k{n}" for n in range(20)])
    rater = signed_in(user_of(desk.rater))
    for criteria in (desk.criteria[:2], desk.criteria):
        desk.job.criteria.set(criteria)
        answer_all(assignment := desk.taken())
        url = reverse("api_submit", args=[assignment.pk])
        found = asked(lambda url=url: rater.post(url, content_type="application/json"))  # type: ignore[misc]
        assert not [sql for sql in found if "CASE" in sql]
        assert not [sql for sql in found if '"messages"' in sql]
        counts.append(len(found))
    assert counts[0] == counts[1] <= 26
