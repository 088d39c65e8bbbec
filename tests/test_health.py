"""/readyz and the status line of pages: what is wrong with the site, and to whom it is said."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from common.memory import memory as cache
from evaluation.models.runs import WorkerHeartbeat
from evaluation.runs.worker.heartbeats import heartbeat
from labeling.models.people import User
from labeling.people.services.tokens import token_create

pytestmark = pytest.mark.django_db
SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="a file on a disk")

QUEUES = ("judge", "default")


@pytest.fixture(autouse=True)
def well(settings: Settings, tmp_path: Path) -> Path:
    """A site of which every part is well; its folder."""
    cache.clear()
    settings.SITE_DIR = tmp_path
    settings.BROKER_DIR = tmp_path / "broker"
    settings.CELERY_BROKER_URL = "filesystem://localhost"
    (tmp_path / "broker" / "queue").mkdir(parents=True)
    for queue in QUEUES:
        heartbeat(name=f"{queue}@here", queues=[queue])
    return tmp_path


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def ready(client: Client, **headers: str) -> tuple[int, dict[str, Any]]:
    cache.clear()
    answer = client.get("/readyz", headers=headers or None)
    return answer.status_code, answer.json()


def part(client: Client, name: str) -> tuple[int, str, str]:
    """The code, and the state and text of a part; the whole is as bad as that part."""
    code, body = ready(client)
    found = body["parts"][name]
    assert body["status"] == found["state"]
    return code, found["state"], found["text"]


def message(folder: Path, queue: str, *, minutes: int) -> None:
    file = folder / "broker" / "queue" / f"1_a.{queue}.msg"
    file.write_text("{}")
    os.utime(file, (time.time() - 60 * minutes,) * 2)


# ---------- who is told ----------


def test_strangers_get_one_word(client: Client, rater_user: User, author_user: User) -> None:
    assert ready(client) == (200, {"status": "ok"})
    for user in (rater_user, author_user):
        client.force_login(user)
        assert ready(client) == (200, {"status": "ok"})


def test_leads_get_every_part(lead: Client) -> None:
    code, body = ready(lead)
    assert (code, body["status"]) == (200, "ok")
    parts = [*(["disk"] if connection.vendor == "sqlite" else []), "broker"]
    parts += [f"{what} {queue}" for what in ("queue", "worker") for queue in QUEUES]
    assert list(body["parts"]) == ["database", "migrations", *parts]


def test_a_token_gets_the_parts_only_with_the_right(client: Client, lead_user: User) -> None:
    for scopes, told in ((["manage_labeling"], True), (["see_judge"], False)):
        secret = token_create(user=lead_user, name=scopes[0], scopes=scopes, days=1).secret
        assert ("parts" in ready(client, authorization=f"Token {secret}")[1]) is told
    assert ready(client, authorization="Token unknown") == (200, {"status": "ok"})


# ---------- where pages cannot be served ----------


@SQLITE
def test_a_missing_table_of_users_is_unready(client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE labeling_user RENAME TO moved_users")
    try:
        assert ready(client) == (503, {"status": "unready"})
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE moved_users RENAME TO labeling_user")


@SQLITE
def test_a_database_that_cannot_be_written_is_unready(lead: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    try:
        code, state, text = part(lead, "database")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = OFF")
    assert (code, state) == (503, "unready")
    assert text.startswith("The database cannot be written: ")


def test_tables_of_an_older_version_are_degraded(lead: Client) -> None:
    rows = MigrationRecorder(connection).migration_qs.filter(app="evaluation")
    newest = rows.order_by("-name").first()
    assert newest is not None
    rows.filter(name=newest.name).delete()
    text = "Tables of an older version (evaluation): run manage.py migrate"
    assert part(lead, "migrations") == (200, "degraded", text)


@SQLITE
def test_a_full_disk_is_unready(lead: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.disk.LEAST_FREE", 2**62)
    assert part(lead, "disk") == (503, "unready", "The database cannot be written: disk full")


def test_the_check_leaves_one_row_and_writes_once_in_ten_seconds(client: Client) -> None:
    cache.clear()
    client.get("/readyz")
    with CaptureQueriesContext(connection) as captured:
        client.get("/readyz")
    assert not [query for query in captured if query["sql"].startswith("INSERT")]
    ready(client)
    assert WorkerHeartbeat.objects.filter(queues=[]).count() == 1


# ---------- where work waits ----------


def test_a_missing_broker_folder_is_degraded(lead: Client, well: Path) -> None:
    (well / "broker" / "queue").rmdir()
    code, state, text = part(lead, "broker")
    assert (code, state) == (200, "degraded")
    assert "is missing" in text


@pytest.mark.parametrize("queue", QUEUES)
def test_a_message_that_nobody_takes_is_degraded(lead: Client, well: Path, queue: str) -> None:
    message(well, queue, minutes=4)
    assert ready(lead)[1]["status"] == "ok"
    message(well, queue, minutes=6)
    text = f"A message of the queue {queue} has waited for 6 minutes"
    assert part(lead, f"queue {queue}") == (200, "degraded", text)


def test_a_silent_worker_is_degraded(lead: Client) -> None:
    ago = timezone.now() - timedelta(seconds=130)
    WorkerHeartbeat.objects.filter(name="judge@here").update(beat_at=ago)
    text = "No worker has been heard of for 2 minutes (queue judge)"
    assert part(lead, "worker judge") == (200, "degraded", text)
    heartbeat(name="judge2@here", queues=["judge"])
    text = "1 of 2 workers of the queue judge are not heard of"
    assert part(lead, "worker judge") == (200, "degraded", text)


def test_a_queue_without_workers_is_degraded(lead: Client) -> None:
    WorkerHeartbeat.objects.filter(name="default@here").delete()
    assert part(lead, "worker default") == (200, "degraded", "No worker is running (queue default)")


@pytest.mark.parametrize("state", ["restarting", "given up"])
def test_a_child_that_serve_lost_is_degraded(lead: Client, well: Path, state: str) -> None:
    children = [{"name": "web", "state": "running"}, {"name": "judge1", "state": state}]
    told = well / "serve.json"
    told.write_text(json.dumps({"pid": os.getpid(), "children": children}))
    assert part(lead, "serve") == (200, "degraded", f"Processes that ended: judge1: {state}")
    told.write_text(json.dumps({"pid": 2**22 + 1, "children": children}))  # more than there can be
    assert "serve" not in ready(lead)[1]["parts"]


# ---------- the status line ----------


def test_leads_read_on_every_page_what_is_wrong(lead: Client, rater_user: User, author_user: User) -> None:
    assert "Site status" not in lead.get("/runs/").content.decode()
    cache.clear()
    WorkerHeartbeat.objects.all().delete()
    page = lead.get("/runs/").content.decode()
    assert "Site status" in page
    assert "No worker is running (queue judge)." in page
    for user, url in ((rater_user, "/queue/"), (author_user, "/runs/")):
        lead.force_login(user)
        assert "Site status" not in lead.get(url, follow=True).content.decode()


def test_the_status_line_costs_one_query_in_ten_seconds(lead: Client) -> None:
    lead.get("/runs/")
    with CaptureQueriesContext(connection) as kept:
        lead.get("/runs/")
    cache.clear()
    with CaptureQueriesContext(connection) as asked:
        lead.get("/runs/")
    assert len(asked) - len(kept) == 1
