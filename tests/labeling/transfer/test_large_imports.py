"""Large imports: others write in between, a worker that dies leaves no half, undo is work of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client

from labeling.chats.services import chats as chats_service
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet, ChatSetMember, ChatWords, Split
from labeling.models.imports import DataImport, ImportedRow
from labeling.models.people import AuditEvent, Role
from labeling.models.rubric import Criterion
from labeling.transfer.services import undo as undo_service
from labeling.transfer.services.work import imports_sweep, store_work, undo_work
from tests.factories.imports import Importer, jsonl_file
from tests.factories.rows import make_chat, make_rubric, make_user
from tests.files import chat

pytestmark = pytest.mark.django_db(transaction=True)

CHATS = 1500
SHARES = {"share_train": "1", "share_dev": "1", "share_holdout": "1"}
# A worker's work in a process of its own, on the database of the test.
WORKER = """
import sys, django
django.setup()
from django.conf import settings
from django.db import connection
connection.settings_dict["NAME"] = sys.argv[1]
settings.IMPORT_DIR = sys.argv[2]
from labeling.transfer.services.work import store_work
store_work(int(sys.argv[3]))
"""


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.IMPORT_DIR = tmp_path / "imports"
    return tmp_path / "imports"


@pytest.fixture
def lead(client: Client) -> Importer:
    make_rubric("polite")
    client.force_login(make_user("ines", Role.LEAD))
    return Importer(client)


def checked(lead: Importer, count: int, **form: Any) -> DataImport:
    """An import of that many chats that waits for a worker to write it."""
    data = jsonl_file(
        *(chat(id=f"c-{n}", messages=[{"role": "user", "content": f"Text {n}"}]) for n in range(count))
    )
    form = {"set": "new", "new_set": "Big", "rubric": "Test rubric", **SHARES} | form
    row = lead.check(lead.send("chats", data, "chats.jsonl"), **form)
    assert (row.state, row.problems) == ("checked", [])
    DataImport.objects.filter(pk=row.pk).update(state=DataImport.State.IMPORTING)
    row.refresh_from_db()
    return row


def worker_killed_in_the_middle(row: DataImport, folder: Path) -> int:
    """Let a worker write, kill it with SIGKILL when a part is written; return how many chats there are."""
    command = [sys.executable, "-c", WORKER, str(connection.settings_dict["NAME"]), str(folder), str(row.pk)]
    worker = subprocess.Popen(command, env=os.environ | {"DJANGO_SETTINGS_MODULE": "lace_site.settings"})
    try:
        ends = time.monotonic() + 60
        while Chat.objects.count() < CHATS // 10:
            assert time.monotonic() < ends and worker.poll() is None, "the worker wrote nothing, or all of it"
            time.sleep(0.002)
        worker.send_signal(signal.SIGKILL)
    finally:
        worker.kill()
        worker.wait()
    return Chat.objects.count()


def test_a_worker_killed_while_it_writes_is_followed_by_one_that_completes_the_import(
    lead: Importer, folder: Path
) -> None:
    row = checked(lead, CHATS)
    written = worker_killed_in_the_middle(row, folder)
    assert 0 < written < CHATS
    # Each chat is there with its words and its place in the set, and hidden until its split is known.
    assert ChatWords.objects.count() == ChatSetMember.objects.count() == written
    assert set(ChatSetMember.objects.values_list("split", flat=True)) == {Split.HOLDOUT}
    DataImport.objects.update(rung_at=None)
    imports_sweep()
    row.refresh_from_db()
    assert row.rung_at is not None, "the sweep has sent the work to another worker"
    store_work(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("done", "")
    assert (row.result["created"], row.result["unchanged"]) == (CHATS, 0)
    assert row.result["notes"] == [f"chats added to the set 'Big': {CHATS:,}"]
    assert Chat.objects.count() == ChatSetMember.objects.count() == CHATS
    for split in Split:
        assert abs(ChatSetMember.objects.filter(split=split).count() - CHATS / 3) < CHATS / 10
    assert ImportedRow.objects.filter(model="labeling.chat").count() == CHATS
    assert AuditEvent.objects.filter(verb="chats imported").count() == 1
    # All of it can be undone, what the first worker wrote, too.
    undo_service.undo(row=row, by=row.by)
    assert not Chat.objects.exists() and not ImportedRow.objects.exists() and not ChatSet.objects.exists()


def test_an_import_that_fails_half_way_removes_what_it_wrote(
    lead: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = checked(lead, 6)
    monkeypatch.setattr(chats_service, "BATCH", (2, 100_000))
    make_chat("c-4")  # somebody else's, with other messages, since the check
    store_work(row.pk)
    row.refresh_from_db()
    assert row.state == "checked" and "already exists with other messages" in row.error
    assert "Nothing was written" in row.error
    assert [one.external_id for one in Chat.objects.all()] == ["c-4"]
    assert not ChatSet.objects.exists() and not ImportedRow.objects.exists()


def test_no_job_begins_on_a_set_that_an_import_writes_to(lead: Importer) -> None:
    row = checked(lead, 2)
    store_work(row.pk)
    DataImport.objects.update(state=DataImport.State.IMPORTING)
    criteria = list(Criterion.objects.all())
    with pytest.raises(ValidationError, match="import is writing"):
        job_open(chat_set=ChatSet.objects.get(), name="x", criteria=criteria, overlap=1, by=None)


def test_a_large_import_is_undone_by_a_worker_with_progress(
    lead: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_service, "ROWS_IN_REQUEST", 3)
    row = checked(lead, 5)
    store_work(row.pk)
    row = lead.undo(row)
    assert row.undoing and Chat.objects.count() == 5
    page = lead.page(row)
    assert "Undoing" in page and "Cancel" not in page
    undo_work(row.pk)
    row = DataImport.objects.get()
    assert (row.state, row.undone_by_id, row.error) == ("undone", row.by_id, "")
    assert not row.undoing and not Chat.objects.exists() and not ImportedRow.objects.exists()
    assert AuditEvent.objects.get(verb="import undone").detail["created"] == 5
    undo_work(row.pk)  # a second message finds nothing to do
    assert AuditEvent.objects.filter(verb="import undone").count() == 1


def test_an_undo_that_something_depends_on_by_now_says_so(
    lead: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_service, "ROWS_IN_REQUEST", 3)
    row = checked(lead, 5)
    store_work(row.pk)
    row = lead.undo(row)
    Chat.objects.filter(external_id="c-3").update(variant="other")
    undo_work(row.pk)
    row.refresh_from_db()
    assert row.state == "done" and not row.undoing
    assert row.error == "Not undone. Changed since the import: c-3."
    assert Chat.objects.count() == 5
