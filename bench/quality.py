"""The quality pages over 184,500 labels: thirty raters on each chat, a size that published sets have."""

import random
from collections.abc import Iterator
from datetime import timedelta

from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from bench import Figure, Time, time_figures, timed
from bench._child import in_child
from bench.raters import filled_job
from bench.report import open_page
from labeling.models.labels import Assignment, Label, LabelingJob
from labeling.models.people import User
from tests.with_postgres import postgres

CHATS, RATERS, RATERS_A_CHAT = 6_150, 300, 30
PAGES = ("overview", "pairs", "team")
SECONDS = 1.0
AGREE = 0.85  # of the answers are the chat's own
MS_A_CHAT = (5_000, 90_000)


def figures() -> Iterator[Figure]:
    """Of the set and of a job, on either database; the second time each is opened."""
    yield from pages_opened("SQLite", {})
    with postgres() as url:
        yield from pages_opened("PostgreSQL", {"DATABASE_URL": url})


def pages_opened(database: str, environment: dict[str, str]) -> Iterator[Figure]:
    """Each page's times."""
    for page, spent in in_child("quality", "timed_pages", {}, environment).items():
        name = f"{database}, {page} of {CHATS * RATERS_A_CHAT:,} labels"
        yield from time_figures(name, Time(**spent), limit=SECONDS)


# ---------- in a process of their own ----------


def timed_pages() -> dict[str, dict[str, float]]:
    """Seconds by page, as a lead opens it."""
    job = labelled_job()
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("lead"))
    found = {}
    for page in PAGES:
        for about, url in (
            ("set", reverse(f"quality:set_{page}", args=[job.chat_set_id])),
            ("job", reverse(f"quality:{page}", args=[job.pk])),
        ):
            open_page(client, url)
            spent = timed(lambda url=url: open_page(client, url))  # type: ignore[misc]
            found[f"{page} of a {about}"] = {"wall": spent.wall, "cpu": spent.cpu}
    return found


def labelled_job() -> LabelingJob:
    """A job in which thirty raters have submitted each chat."""
    job = filled_job(chats=CHATS, raters=RATERS, name="quality")
    draw, now = random.Random(7), timezone.now()
    raters = list(job.raters.values_list("pk", flat=True))
    job.assignments.all().delete()
    rows = Assignment.objects.bulk_create(
        Assignment(
            job=job, chat_id=chat, slot=slot, position=position, rater_id=rater, state="submitted",
            submitted_at=now, active_ms=draw.randint(*MS_A_CHAT),
        )
        for position, chat in enumerate(job.chat_set.members.values_list("chat", flat=True), 1)
        for slot, rater in enumerate(draw.sample(raters, RATERS_A_CHAT), 1)
    )  # fmt: skip
    criterion = job.criteria.order_by("pk")[0]
    version = criterion.versions.get()
    Label.objects.bulk_create(
        Label(
            chat_id=row.chat_id, criterion=criterion, rater_id=row.rater_id or 0, version=version,
            assignment=row, value=(draw.random() < AGREE) is (row.position % 3 != 0), state="submitted",
            given_at=now + timedelta(seconds=row.position),
        )
        for row in rows
    )  # fmt: skip
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")  # as its own housekeeper does a minute later
    return job
