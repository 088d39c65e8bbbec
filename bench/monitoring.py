"""The monitoring pages at 5,000,000 verdicts of two years, on PostgreSQL: p95 of each page."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from bench import Figure, timed
from bench._child import in_child
from evaluation.day_counts.services import days_recount
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.people import Role
from labeling.models.rubric import Criterion
from tests.factories.rows import make_rubric, make_user
from tests.factories.verdicts import make_judge
from tests.with_postgres import postgres

NIGHTS, CHATS, CRITERIA, TOPICS = 715, 500, 14, 12
ALL_CHATS = 3  # of which one is judged
SECONDS, TIMES = 0.3, 40
PAGES = {
    "weeks": "/monitoring/",
    "26 weeks": "/monitoring/?weeks=26",
    "days": "/monitoring/?step=day&weeks=8",
    "criterion": "/monitoring/criteria/k0/",
    "Home's part": "/monitoring/home/",
}
CHATS_SQL = """
INSERT INTO labeling_chat (external_id, topic_id, started_at, messages, content_hash, message_count,
    char_count, source, experiment, variant, unit_id, cluster, metadata, redactions, origin, created_at)
SELECT 'p' || night || '-' || n, %s + floor({topics} * power((n * 37 %% 500) / 500.0, 2))::int,
    %s + night * interval '1 day', '[]', '', 0, 0, '', '', '', '', '', '{{}}', '[]', 'api', now()
FROM generate_series(0, {nights} - 1) night, generate_series(0, {chats} - 1) n"""
VERDICTS_SQL = """
INSERT INTO evaluation_verdict (run_id, chat_id, criterion_id, state, value, first_state, rationale,
    explanation, read_by, contradicts, sided_with, quotes, quotes_verified, quotes_close, first_brief,
    flags, stored_at)
SELECT %s + night, chat.id, criterion.id, 'read', (chat.id * 7 + criterion.id) %% 9 > 0, '', '', 'It waits.',
    'rules', false, '', 0, 0, 0, '', '[]', now()
FROM generate_series(0, {nights} - 1) night
JOIN labeling_chat chat ON chat.id %% {all_chats} = 0
    AND chat.id BETWEEN {first} + night * {chats} AND {first} - 1 + (night + 1) * {chats}
CROSS JOIN labeling_criterion criterion"""


def figures() -> Iterator[Figure]:
    """The 95th percentile of each page."""
    with postgres() as url:
        found = in_child("monitoring", "timed_pages", {"nights": NIGHTS}, {"DATABASE_URL": url})
    for name, seconds in found["p95"].items():
        yield Figure(f"monitoring, {name}, {found['verdicts']:,} verdicts, p95", seconds, SECONDS, "s")
    yield Figure("recount of one night", found["recount"], 1.0, "s")


def timed_pages(nights: int) -> dict[str, Any]:
    """Seconds by page."""
    call_command("migrate", verbosity=0)
    last = stored_nights(nights)
    client = Client(headers={"host": "localhost"})
    client.force_login(make_user("ines", Role.LEAD))
    p95 = {}
    for name, url in PAGES.items():
        if client.get(url).status_code != 200:
            raise RuntimeError(f"{url} does not open")
        spent = sorted(timed(lambda url=url: client.get(url)).wall for _ in range(TIMES))  # type: ignore[misc]
        p95[name] = spent[int(0.95 * TIMES) - 1]
    recount = timed(lambda: days_recount(last)).wall
    return {"p95": p95, "recount": recount, "verdicts": Verdict.objects.count()}


def stored_nights(nights: int) -> int:
    """A run a night over a third of its chats; returns the last run."""
    rubric = make_rubric(*(f"k{n}" for n in range(CRITERIA)))
    judge = make_judge(rubric)
    topics = Topic.objects.bulk_create(Topic(key=f"topic-{n}", name=f"Topic {n}") for n in range(TOPICS))
    begin = timezone.now().replace(hour=12) - timedelta(days=nights)
    sets = ChatSet.objects.bulk_create(
        ChatSet(name=f"Night {n}", kind="sample", rubric=rubric) for n in range(nights)
    )
    runs = Run.objects.bulk_create(Run(judge=judge, chat_set=one, state="done") for one in sets)
    size = {"nights": nights, "chats": CHATS * ALL_CHATS, "topics": TOPICS, "all_chats": ALL_CHATS}
    Criterion.objects.exclude(rubric=rubric).delete()
    with connection.cursor() as cursor:
        cursor.execute(CHATS_SQL.format(**size), [topics[0].pk, begin])
        first = Chat.objects.earliest("pk").pk  # a night's chats have ids one after another
        cursor.execute(VERDICTS_SQL.format(**size, first=first), [runs[0].pk])
        cursor.execute("VACUUM ANALYZE")
    for run in runs:
        days_recount(run.pk)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return runs[-1].pk
