"""Stored reports of whatever run, and short ways to them."""

from collections.abc import Mapping

from django.test import Client
from django.urls import reverse

from alignment.comparison.queries.requested_scope import requested_scope
from alignment.reports.queries.reports import stored_report
from evaluation.models.runs import Run
from labeling.models.people import User
from tests.factories.compared_runs import Compared, urls


def stored_reports(run: Run, users: Mapping[str, User]) -> dict[str, int]:
    """The ids of a report that authors can see, and of the one with few holdout chats."""
    found = {}
    for name, person in (("report_id", "author"), ("holdout_report", "lead")):
        scope = requested_scope(run.chat_set, run, {}, users[person])
        assert scope is not None
        row = stored_report(scope)
        assert row is not None
        found[name] = row.pk
    return found


def stored(client: Client, compared: Compared, query: str = "", *, page: str = "api_run") -> int:
    """The id of the report that is stored for this person and query."""
    found: int = client.get(urls(compared)[page] + query).json()["id"]
    return found


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
