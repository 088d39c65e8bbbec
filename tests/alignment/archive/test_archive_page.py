"""Leads make an archive on the page, in the background, and take one into an empty workspace."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from alignment.archive.worker import archive_path, archive_work, archives_sweep
from alignment.models.archives import WorkspaceArchive
from labeling.models.chats import Chat
from labeling.models.people import AuditEvent, Role, User
from tests.factories.archives import emptied, manifest_in
from tests.factories.labelling_job import make_desk
from tests.factories.rows import make_chat, make_rubric, make_set, make_user
from tests.files import run

PAGE = "/export/"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def lead(db: None) -> Iterator[User]:
    make_set(make_rubric("polite"), make_chat("c1"), make_chat("c2"))
    yield make_user("ines", Role.LEAD)
    for row in WorkspaceArchive.objects.all():
        archive_path(row.pk).unlink(missing_ok=True)


@pytest.mark.django_db(transaction=True)
def test_a_worker_makes_it_and_the_page_offers_it(lead: User, tmp_path: Path) -> None:
    client = signed_in(lead)
    client.post(reverse("alignment:archive_make"))
    client.post(reverse("alignment:archive_make"))
    row = WorkspaceArchive.objects.get()
    assert "Waiting for a worker" in client.get(PAGE).content.decode()
    archive_work(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("done", "")
    assert row.done == row.total > 0
    assert archive_path(row.pk).stat().st_mode & 0o077 == 0
    assert "Download archive" in client.get(reverse("alignment:archive_state")).content.decode()
    response = client.get(reverse("alignment:archive_file", args=[row.pk]))
    copy = tmp_path / "copy.zip"
    copy.write_bytes(b"".join(response))
    assert manifest_in(copy)["tables"]["labeling.Chat"]["rows"] == 2
    assert response["Cache-Control"] == "private, no-store"
    assert list(AuditEvent.objects.order_by("pk").values_list("verb", flat=True))[-2:] == [
        "archive requested",
        "archive downloaded",
    ]


@pytest.mark.django_db(transaction=True)
def test_the_newest_archive_alone_is_kept(lead: User) -> None:
    first, second = (WorkspaceArchive.objects.create(by=lead) for _ in range(2))
    for row in (first, second):
        archive_work(row.pk)
    assert not archive_path(first.pk).exists()
    assert list(WorkspaceArchive.objects.values_list("pk", flat=True)) == [second.pk]
    signed_in(lead).post(reverse("alignment:archive_delete", args=[second.pk]))
    assert not WorkspaceArchive.objects.exists()
    assert not archive_path(second.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_a_disk_that_fails_is_named_on_the_page(
    lead: User, settings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    settings.LACE_ARCHIVE_DIR = tmp_path / "file"  # type: ignore[attr-defined]
    row = WorkspaceArchive.objects.create(by=lead)
    archive_work(row.pk)
    row.refresh_from_db()
    assert row.state == "failed"
    assert "The archive could not be made" in signed_in(lead).get(PAGE).content.decode()


@pytest.mark.django_db(transaction=True)
def test_the_sweep_finds_an_archive_that_nobody_makes(lead: User) -> None:
    row = WorkspaceArchive.objects.create(by=lead)
    archives_sweep()
    row.refresh_from_db()
    assert row.rung_at is not None


@pytest.mark.django_db
def test_a_lead_who_still_has_to_label_gets_none() -> None:
    desk = make_desk(chats=2, raters=1)
    both = desk.rater.user
    assert both is not None
    make_user("ines", Role.LEAD)
    both.groups.add(User.objects.get(username="ines").groups.get())
    client = signed_in(both)
    page = client.post(reverse("alignment:archive_make"), follow=True).content.decode()
    assert "you still have 2 chats to label" in page
    assert not WorkspaceArchive.objects.exists()


@pytest.mark.django_db
def test_an_empty_workspace_takes_it_in_and_a_full_one_refuses(lead: User, tmp_path: Path) -> None:
    path = tmp_path / "workspace.zip"
    run("export_archive", "-o", path)
    assert AuditEvent.objects.get(verb="archive exported").detail["file"] == "workspace.zip"
    page = upload(signed_in(lead), path.read_bytes())
    assert "This workspace is not empty: it has 2 chats." in page
    emptied()
    client = signed_in(make_user("new", Role.LEAD))
    assert "is no ZIP file" in upload(client, b"Hello")
    assert not Chat.objects.exists()
    assert "Taken in:" in upload(client, path.read_bytes())
    assert Chat.objects.count() == 2
    assert client.get(PAGE).status_code == 200, "the lead stays signed in"


def upload(client: Client, content: bytes) -> str:
    file = SimpleUploadedFile("workspace.zip", content, "application/zip")
    response = client.post(reverse("alignment:archive_take"), {"archive": file}, follow=True)
    return response.content.decode()
