"""The page Export: every format from a page, for leads and authors, each what they may see."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.exports.core import EXPORTS
from labeling.models.chats import ChatSet
from labeling.models.people import AuditEvent, Role, User
from tests.factories.rows import make_user
from tests.files import chat, criterion, label, rubric, run, verdict, write_json, write_jsonl

SECRET = "CANARY of the holdout"


@pytest.fixture
def chat_set(db: None, tmp_path: Path) -> ChatSet:
    """Chat h is holdout; its text, labels and verdicts contain the SECRET."""
    run("import_rubric", write_json(tmp_path / "rubric.json", rubric(criterion())))
    chats = [chat("h", SECRET, split="holdout"), chat("d", "Hi", split="dev")]
    run("import_chats", write_jsonl(tmp_path / "chats.jsonl", *chats), "--set", "Returns & refunds")
    labels = [label("h", rationale=SECRET), label("d", value=False)]
    run("import_labels", write_jsonl(tmp_path / "labels.jsonl", *labels))
    verdicts = [verdict("h", rationale=SECRET), verdict("d", value=False)]
    run(
        "import_verdicts",
        write_jsonl(tmp_path / "verdicts.jsonl", *verdicts),
        *("--set", "Returns & refunds"),
    )
    return ChatSet.objects.get()


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def download(client: Client, chat_set: ChatSet, what: str, kind: str, **query: str) -> bytes:
    response = client.get(reverse("alignment:export_file", args=[chat_set.pk, what, kind]), query)
    assert response.status_code == 200, (what, kind)
    assert response["Cache-Control"] == "private, no-store"
    assert response["Content-Disposition"].startswith("attachment")
    return b"".join(response)


def read(content: bytes, kind: str) -> str:
    """The text of a download, of all files in it."""
    if kind not in ("zip", "xlsx"):
        return content.decode()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return "\n".join(archive.read(name).decode() for name in archive.namelist())


def test_a_lead_gets_everything_and_an_author_nothing_of_the_holdout(chat_set: ChatSet) -> None:
    lead, author = browser(make_user("ines", Role.LEAD)), browser(make_user("otto", Role.AUTHOR))
    with_secret = set()
    for what, export in EXPORTS.items():
        for kind in export.kinds:
            if SECRET in read(download(lead, chat_set, what, kind), kind):
                with_secret.add(what)
            if export.leads:
                url = reverse("alignment:export_file", args=[chat_set.pk, what, kind])
                assert author.get(url).status_code == 404
                continue
            text = read(download(author, chat_set, what, kind), kind)
            assert SECRET not in text, (what, kind)
            if kind == "jsonl" and what not in ("adjudications", "session_scores"):
                ids = [line.get("chat_id", line.get("id")) for line in map(json.loads, text.splitlines())]
                assert ids == ["d"], what
    assert with_secret == {"chats", "labels", "verdicts", "revisions", "label_studio", "argilla"}


def test_the_page_names_files_by_set_and_day_and_logs_them(chat_set: ChatSet) -> None:
    lead = make_user("ines", Role.LEAD)
    response = browser(lead).get(reverse("alignment:export_file", args=[chat_set.pk, "labels", "csv"]))
    name = f"returns-refunds-labels-{timezone.now():%Y-%m-%d}.csv"
    assert response["Content-Disposition"] == f'attachment; filename="{name}"'
    event = AuditEvent.objects.get(verb="set exported")
    assert (event.actor, event.object_id) == (lead, chat_set.pk)
    assert event.detail == {"what": "labels", "format": "csv"}


def test_the_page_chooses_set_and_run_and_links_every_format(chat_set: ChatSet) -> None:
    client = browser(make_user("ines", Role.LEAD))
    page = client.get(
        reverse("alignment:export_page"), {"set": str(chat_set.pk), "run": "1"}
    ).content.decode()
    for what, export in EXPORTS.items():
        for kind in export.kinds:
            assert f"/export/{chat_set.pk}/{what}/{kind}/" in page
    other = client.get(reverse("alignment:export_page"), {"set": str(chat_set.pk), "run": "x" * 30})
    assert other.status_code == 200
    assert "Returns &amp; refunds" in page


def test_the_download_equals_the_command(chat_set: ChatSet, tmp_path: Path) -> None:
    client = browser(make_user("ines", Role.LEAD))
    for what in ("chats", "labels", "verdicts"):
        path = tmp_path / what
        run("export", what, "--set", chat_set.name, "-o", path)
        assert download(client, chat_set, what, "jsonl") == path.read_bytes()


def test_an_empty_workspace_says_what_to_do_first(db: None) -> None:
    page = browser(make_user("ines", Role.LEAD)).get(reverse("alignment:export_page")).content.decode()
    assert "No chat sets yet" in page
    assert "Take in archive" in page
