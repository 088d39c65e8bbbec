"""The pages of an experiment of 60 nights among 5,000,000 verdicts, on PostgreSQL, and counting it."""

from collections.abc import Iterator
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from alignment.experiments.queries.counting import new_runs
from alignment.experiments.worker import count_work, experiments_sweep
from alignment.models.experiments import Experiment, ExperimentMetric
from bench import Figure, timed
from bench._child import in_child
from bench._production import stored_nights
from evaluation.day_counts.services import days_recount
from evaluation.models.runs import Run, Verdict
from labeling.models.people import Role
from tests.factories.rows import make_user
from tests.with_postgres import postgres

NIGHTS, EXPERIMENT_NIGHTS = 500, 60
SECONDS, TIMES = 0.3, 40
CHATS_SQL = """
UPDATE labeling_chat SET experiment = 'greeting', variant = CASE id %% 2 WHEN 0 THEN 'a' ELSE 'b' END,
    unit_id = 'u' || id %% 40000
WHERE id IN (SELECT chat_id FROM evaluation_verdict WHERE run_id >= %s)"""


def figures() -> Iterator[Figure]:
    """The 95th percentile of each page, and seconds to count."""
    with postgres() as url:
        found = in_child("experiments", "timed_experiment", {"nights": NIGHTS}, {"DATABASE_URL": url})
    for name, seconds in found["p95"].items():
        yield Figure(f"experiment, {name}, {found['verdicts']:,} verdicts, p95", seconds, SECONDS, "s")
    yield Figure(f"first count of {found['rows']:,} rows", found["first"], 300.0, "s")
    yield Figure("count after one more night", found["night"], 30.0, "s")


def timed_experiment(nights: int) -> dict[str, Any]:
    """Seconds by page."""
    call_command("migrate", verbosity=0)
    last = stored_nights(nights)
    first = last - min(EXPERIMENT_NIGHTS, nights) + 1
    with connection.cursor() as cursor:
        cursor.execute(CHATS_SQL, [first])
    for run in range(first, last + 1):
        days_recount(run)
    Run.objects.filter(pk=last).update(state="running")
    first_count = timed(_counted).wall
    Run.objects.filter(pk=last).update(state="done")
    night = timed(_counted).wall
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    client = Client(headers={"host": "localhost"})
    client.force_login(make_user("ines", Role.LEAD))
    row = Experiment.objects.get()
    pages = {
        "list": reverse("experiments:list"),
        "page": reverse("experiments:detail", args=[row.pk]),
        "failing chats": reverse("experiments:detail", args=[row.pk]) + "?criterion=k1&variant=b",
        "metric rows": reverse("api_experiment_metrics", args=[row.key]) + "?cursor=200000",
    }
    p95 = {}
    for name, url in pages.items():
        if client.get(url).status_code != 200:
            raise RuntimeError(f"{url} does not open")
        spent = sorted(timed(lambda url=url: client.get(url)).wall for _ in range(TIMES))  # type: ignore[misc]
        p95[name] = spent[int(0.95 * TIMES) - 1]
    counts = {"verdicts": Verdict.objects.count(), "rows": ExperimentMetric.objects.count()}
    return {"p95": p95, "first": first_count, "night": night, **counts}


def _counted() -> None:
    while new_runs().exists() or Experiment.objects.exclude(state="idle").exists():
        experiments_sweep()
        for pk in list(Experiment.objects.filter(state="due").values_list("pk", flat=True)):
            count_work(pk)
