"""Exports of Langfuse and OpenTelemetry on the import page and by command."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from labeling.ingest.services.chats import ingest_sweep
from labeling.models.chats import Chat, ChatSet
from labeling.models.imports import DataImport
from labeling.models.ingest import IngestSettings
from labeling.models.people import Role
from tests.factories.imports import Importer
from tests.factories.rows import make_rubric, make_user

pytestmark = pytest.mark.django_db
EXPORTS = Path(__file__).parent / "exports"
FILES = [("langfuse", "langfuse_session.json"), ("otel", "otel_spans.jsonl")]


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.IMPORT_DIR = tmp_path / "imports"
    return tmp_path / "imports"


@pytest.fixture
def lead(client: Client) -> Importer:
    client.force_login(make_user("ines", Role.LEAD))
    return Importer(client)


@pytest.mark.parametrize(("form", "name"), FILES)
def test_an_export_becomes_chats_of_a_set(lead: Importer, form: str, name: str) -> None:
    make_rubric("polite")
    row = lead.send(form, (EXPORTS / name).read_bytes(), name=name)
    page = lead.page(row)
    assert "shows the first chats" in page and "Speakers" not in page
    row = lead.check(row, set="new", new_set="Traces", rubric="Test rubric")
    assert row.problem_count == 0 and row.result["created"] > 0, row.problems
    assert "Preview" in lead.page(row)
    row = lead.start(row)
    assert row.state == DataImport.State.DONE, row.error
    assert set(Chat.objects.values_list("source", flat=True)) == {form}
    assert ChatSet.objects.get().members.count() == row.result["created"]


@pytest.mark.parametrize(("form", "name"), FILES)
def test_the_command_imports_an_export_once(form: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for created in (True, False):
        call_command("import_chats", str(EXPORTS / name), format=form, json=True)
        answer = json.loads(capsys.readouterr().out)
        assert (answer["created"] > 0) is created
    assert set(Chat.objects.values_list("source", flat=True)) == {form}


def test_a_broken_export_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    good = {"id": "t1", "timestamp": "2026-01-02T03:04:05Z", "input": "Hi", "output": "Hello"}
    path.write_text(json.dumps(good) + "\n{broken\n")
    with pytest.raises(CommandError, match="line 2"):
        call_command("import_chats", str(path), format="langfuse")
    assert not Chat.objects.exists()


def test_the_file_goes_once_it_is_imported_where_redaction_is_on(lead: Importer) -> None:
    IngestSettings.objects.create(redact=["email"])
    line = {"id": "c1", "messages": [{"role": "user", "content": "I am ann@example.com"}]}
    row = lead.take("chats", json.dumps([line]).encode(), name="chats.json")
    assert Chat.objects.get().messages[0]["content"] == "I am [email 1]"
    ingest_sweep()
    row.refresh_from_db()
    assert not row.path.exists()
    assert "ann@example.com" not in json.dumps([row.columns, row.problems])
