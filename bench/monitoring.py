"""The monitoring pages at 5,000,000 verdicts with a random audit, on PostgreSQL: p95 of each page."""

import importlib
import os
from collections.abc import Iterator
from typing import Any

from django.core.cache import caches
from django.core.management import call_command
from django.test import Client

from alignment.models.audits import AuditCount
from alignment.monitoring.queries.audits import night_labels
from alignment.monitoring.services import audit_count
from bench import Figure, timed
from bench._child import in_child
from bench._production import CHATS, CRITERIA, stored_nights
from evaluation.day_counts.services import days_recount
from evaluation.models.runs import Verdict
from labeling.models.people import Role
from tests.factories.rows import make_user
from tests.with_postgres import postgres

VERDICTS = int(os.environ.get("LACE_BENCH_VERDICTS", "5000000"))
SECONDS, TIMES = 0.3, 40
FIRST_SECONDS = 2.0  # nothing is remembered yet
PAGES = {
    "weeks": "/monitoring/",
    "26 weeks": "/monitoring/?weeks=26",
    "days": "/monitoring/?step=day&weeks=8",
    "criterion": "/monitoring/criteria/k0/",
    "criterion, 26 weeks": "/monitoring/criteria/k0/?weeks=26",
    "topic": "/monitoring/criteria/k0/?topic=topic-1",
    "chats of a point": "/monitoring/criteria/k0/?topic=topic-0&page=2",
    "Home's part": "/monitoring/home/",
    "JSON": "/api/monitoring/",
    "JSON of a criterion": "/api/monitoring/k0/",
    "CSV": "/monitoring/rates.csv",
}


def figures() -> Iterator[Figure]:
    """The 95th percentile of each page."""
    nights = VERDICTS // (CHATS * CRITERIA)
    with postgres() as url:
        found = in_child("monitoring", "timed_pages", {"nights": nights}, {"DATABASE_URL": url})
    for name, (p95, cpu) in found["pages"].items():
        yield Figure(f"{name}, {found['verdicts']:,} verdicts, p95", p95, SECONDS, "s")
        yield Figure(f"{name}, median CPU", cpu, SECONDS, "s")
    for name, seconds in found["changed"].items():
        yield Figure(f"{name}, after new labels of a night", seconds, SECONDS, "s")
    for name, seconds in found["first"].items():
        yield Figure(f"{name}, first opening of a process", seconds, FIRST_SECONDS, "s")
    yield Figure("recount of one night", found["recount"], 1.0, "s")
    yield Figure("audit of one night", found["audit"], 1.0, "s")


def timed_pages(nights: int) -> dict[str, Any]:
    """Seconds by page: p95 on the clock and median of the CPU."""
    call_command("migrate", verbosity=0)
    last = stored_nights(nights)
    if not AuditCount.objects.exists():
        raise RuntimeError("no audit was counted")
    importlib.import_module("lace_site.wsgi")  # the pages as a web server has loaded them
    client = Client(headers={"host": "localhost"})
    client.force_login(make_user("ines", Role.LEAD))
    return {
        **measured(client),
        "changed": {name: _changed_seconds(client, PAGES[name]) for name in ("weeks", "26 weeks", "days")},
        "first": {name: _first_seconds(client, PAGES[name]) for name in ("weeks", "26 weeks", "days")},
        "recount": timed(lambda: days_recount(last)).wall,
        "audit": timed(_newest_night_counted).wall,
    }


def measured(client: Client) -> dict[str, Any]:
    """Open each page many times."""
    pages = {}
    for name, url in PAGES.items():
        answer = client.get(url)
        if answer.status_code != 200 or (
            answer.headers["Content-Type"] == "text/html" and not answer.content
        ):
            raise RuntimeError(f"{url} does not open")
        spent = [timed(lambda url=url: client.get(url)) for _ in range(TIMES)]  # type: ignore[misc]
        p95 = sorted(one.wall for one in spent)[int(0.95 * TIMES) - 1]
        pages[name] = (p95, sorted(one.cpu for one in spent)[TIMES // 2])
    return {"pages": pages, "verdicts": Verdict.objects.count()}


def _changed_seconds(client: Client, url: str) -> float:
    client.get(url)
    spent = []
    for _ in range(TIMES // 4):
        _newest_night_counted()
        spent.append(timed(lambda: client.get(url)).wall)
    return sorted(spent)[int(0.95 * len(spent))]


def _first_seconds(client: Client, url: str) -> float:
    caches["documents"].clear()
    return timed(lambda: client.get(url)).wall


def _newest_night_counted() -> None:
    audit_count(night_labels()[-1])
