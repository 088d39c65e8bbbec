"""Stored reports of whatever run, and short ways to them."""

from collections.abc import Mapping
from http import HTTPStatus

from django.core.cache import caches
from django.test import Client
from django.urls import reverse

from alignment.comparison.queries.cached_documents import subject_of
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope, part_of
from alignment.models.reports import Report, ReportRefresh
from alignment.reports.worker import refresh_work, report_store
from evaluation.models.runs import Run
from labeling.models.people import User
from tests.factories.compared_runs import Compared, urls


def stored_reports(run: Run, users: Mapping[str, User]) -> dict[str, int]:
    """The ids of a report that authors can see, and of the one with few holdout chats."""
    found = {}
    for name, person in (("report_id", "author"), ("holdout_report", "lead")):
        scope = requested_scope(run.chat_set, run, {}, users[person])
        assert scope is not None
        row = report_store(scope, share=True)
        assert row is not None
        found[name] = row.pk
    return found


def stored(client: Client, compared: Compared, query: str = "", *, page: str = "api_run") -> int:
    """The id of the report that this person shares with this query."""
    answer = client.post(urls(compared)[page] + query)
    assert answer.status_code == HTTPStatus.CREATED, answer.content
    found: int = answer.json()["id"]
    return found


def forget_documents() -> None:
    """Delete what is stored and forget what is remembered: the next reader finds nothing computed."""
    Report.objects.all().delete()
    caches["documents"].clear()


def refreshed(run: Run) -> None:
    """A worker computes the report of a run, as it does when the run has ended or labels have changed."""
    scope = Scope(run.chat_set, run)
    row = ReportRefresh.objects.create(
        run=run, part=part_of(scope), subject=subject_of(scope, Report.Kind.REPORT)
    )
    assert refresh_work(row.pk) == run


def page_of(number: int) -> str:
    return reverse("alignment:report_stored", args=[number])


def status(client: Client, number: int) -> int:
    """What page, table and API answer alike."""
    names = (
        "alignment:report_stored",
        "alignment:report_table",
        "api_stored_report",
        "api_stored_report_csv",
    )
    (code,) = {client.get(reverse(name, args=[number])).status_code for name in names}
    return code
