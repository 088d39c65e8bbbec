"""A night's sample out of a million chats of one day, on PostgreSQL, with its chat set."""

import os
import random
from collections.abc import Iterator
from datetime import datetime, time
from itertools import islice

from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from bench import Figure, peak_mb, timed
from bench._child import in_child
from common.sql import insert_rows
from labeling.models.chats import Chat, Topic
from labeling.models.sampling import SampledChat
from labeling.sampling.queries import yesterday
from labeling.sampling.services import draw_night
from tests.factories.nights import make_plan
from tests.factories.rows import make_rubric
from tests.with_postgres import postgres

CHATS = int(os.environ.get("LACE_BENCH_CHATS", "1000000"))
TOPICS, SAMPLE, AT_ONCE = 40, 500, 10_000
SECONDS = 5.0
GROWTH_MB = 64.0


def figures() -> Iterator[Figure]:
    """The first night, and the next plan's, which leaves out the chats of the first."""
    with postgres() as url:
        found = in_child("nightly_sample", "timed_nights", {}, {"DATABASE_URL": url})
    for name, seconds in found["seconds"].items():
        yield Figure(f"{SAMPLE} of {CHATS:,} chats, {name}", seconds, SECONDS, "s")
    yield Figure("peak memory of both", found["mb"], GROWTH_MB, "MB more")


def timed_nights() -> dict[str, object]:
    """Seconds by night, and the memory that they took."""
    call_command("migrate", verbosity=0)
    stored_chats()
    rubric = make_rubric("polite")
    first = make_plan(rubric, by=None, name="First", chats=SAMPLE, minimum=10)
    second = make_plan(rubric, by=None, name="Second", chats=SAMPLE, rule="sqrt")
    before, seconds = peak_mb(), {}
    for name, plan in (("first plan", first), ("second plan", second)):
        spent = timed(lambda plan=plan: draw_night(plan=plan, day=yesterday(), spreads={}))  # type: ignore[misc]
        seconds[name] = spent.wall
    if (sampled := SampledChat.objects.count()) != 2 * SAMPLE:
        raise RuntimeError(f"{sampled} chats sampled, not {2 * SAMPLE}")
    return {"seconds": seconds, "mb": peak_mb() - before}


def stored_chats() -> None:
    """Chats of yesterday in topics of very different sizes, with texts as long as real ones."""
    topics = Topic.objects.bulk_create(Topic(key=f"topic {n}", name=f"Topic {n}") for n in range(TOPICS))
    chosen = random.Random(7)
    weights = [1 / (n + 1) for n in range(TOPICS)]
    at = timezone.make_aware(datetime.combine(yesterday(), time(12)))
    messages = [
        {"n": n, "role": role, "content": "Where is my order? It should have come on Monday. " * 4}
        for n, role in enumerate(("user", "assistant") * 3, 1)
    ]
    own = {"messages": messages, "content_hash": "0" * 64, "message_count": 6, "char_count": 1_200} | {
        "created_at": at,
        "metadata": {},
        "redactions": [],
    }
    fields = [field for field in Chat._meta.concrete_fields if not field.primary_key]
    plain = {field.name: own.get(field.name, field.get_default()) for field in fields}
    rows = (
        [*(plain | {"external_id": f"chat-{n}", "topic": topic.pk}).values()]
        for n, topic in enumerate(chosen.choices(topics, weights, k=CHATS))
    )
    while some := list(islice(rows, AT_ONCE)):
        insert_rows(Chat, [field.name for field in fields], some)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE labeling_chat")
