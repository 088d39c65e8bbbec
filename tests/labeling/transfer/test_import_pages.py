"""Imports on pages: every format, odd columns, problems before anything is written, undo."""

import io
import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.models.prompts import ArticleVersion, KnowledgeArticle
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.imports import DataImport, ImportedRow
from labeling.models.labels import Consensus, Label, LabelRevision
from labeling.models.people import AuditEvent, Rater, Role
from labeling.models.rubric import Criterion, Rubric
from labeling.transfer.services.work import check_work, imports_sweep, store_work
from tests.factories.imports import Importer, csv_file, jsonl_file, xlsx_file, zip_file
from tests.factories.rows import make_chat, make_rubric, make_set, make_user
from tests.files import chat

pytestmark = pytest.mark.django_db

GERMAN = (
    ("Vorgang", "Wer", "Nachricht", "Wann", "Thema"),
    ("A-1", "Kunde", "Wo ist mein Paket?", "17.11.2026 09:12", "Versand"),
    ("A-2", "Kunde", "Ich möchte etwas zurückgeben.", "17.11.2026 09:13", "Rückgabe"),
    ("A-1", "Berater X", "Es kommt morgen an.", "17.11.2026 09:14", "Versand"),
    ("A-2", "Berater X", "Gern. Das geht 30 Tage lang.", "17.11.2026 09:15", "Rückgabe"),
)
COLUMNS = {"Wer": "speaker", "Nachricht": "text", "Wann": "time", "Thema": "topic", "Vorgang": "id"}


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.IMPORT_DIR = tmp_path / "imports"
    return tmp_path / "imports"


@pytest.fixture
def lead(client: Client) -> Importer:
    client.force_login(make_user("ines", Role.LEAD))
    return Importer(client)


def rows_in_all() -> tuple[int, ...]:
    return tuple(
        model._default_manager.count()
        for model in (
            Chat,
            ChatSet,
            ChatSetMember,
            Topic,
            Label,
            Rater,
            Rubric,
            Criterion,
            Run,
            KnowledgeArticle,
        )
    )


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (csv_file(*GERMAN, delimiter=";", encoding="cp1252"), "old windows.csv"),
        (csv_file(*GERMAN, encoding="utf-8-sig"), "excel.csv"),
        (csv_file(*GERMAN, delimiter="\t", encoding="utf-16"), "unicode text.txt"),
        (xlsx_file(*GERMAN), "book.xlsx"),
        (jsonl_file(*(dict(zip(GERMAN[0], row, strict=True)) for row in GERMAN[1:])), "rows.jsonl"),
        (json.dumps([dict(zip(GERMAN[0], row, strict=True)) for row in GERMAN[1:]]).encode(), "rows.json"),
    ],
    ids=["semicolon-cp1252", "comma-bom", "tab-utf16", "xlsx", "jsonl", "json"],
)
def test_messages_in_rows_with_odd_columns_become_chats(lead: Importer, data: bytes, name: str) -> None:
    make_rubric("polite", name="Support")
    row = lead.send("chats", data, name)
    form = {"set": "new", "new_set": "November", "rubric": "Support", "share_dev": "100"}
    row = lead.check(row, COLUMNS, speakers={"Berater X": "assistant"}, **form)
    assert (row.state, row.problems) == ("checked", [])
    assert Chat.objects.count() == 0
    row = lead.start(row)
    assert (row.state, row.result["created"]) == ("done", 2)
    first = Chat.objects.get(external_id="A-1")
    assert [(one["role"], one["content"]) for one in first.messages] == [
        ("user", "Wo ist mein Paket?"),
        ("assistant", "Es kommt morgen an."),
    ]
    assert first.messages[0]["created_at"] == "2026-11-17T09:12:00Z"
    assert Topic.objects.filter(key="Rückgabe").exists()
    assert ChatSetMember.objects.filter(chat_set__name="November", split="dev").count() == 2
    event = AuditEvent.objects.get(verb="chats imported")
    assert (event.actor and event.actor.username, event.detail["file"]) == ("ines", row.file_name)


def test_the_next_file_with_the_same_columns_is_mapped_as_the_last_one(lead: Importer) -> None:
    lead.check(lead.send("chats", csv_file(*GERMAN)), COLUMNS, speakers={"Berater X": "assistant"})
    again = lead.send("chats", csv_file(*GERMAN))
    assert again.mapping["columns"] == COLUMNS
    assert again.mapping["speakers"]["Berater X"] == "assistant"
    assert "As chosen for the last file with these columns" in lead.page(again)


def test_a_new_set_without_a_name_is_refused_instead_of_storing_chats_without_a_set(lead: Importer) -> None:
    make_rubric("polite", name="Support")
    row = lead.send("chats", csv_file(*GERMAN))
    form = {"set": "new", "new_set": "", "rubric": "Support"}
    row = lead.check(row, COLUMNS, speakers={"Berater X": "assistant"}, **form)
    assert row.state == "draft"
    assert "Name the chat set" in lead.page(row)
    assert '<option value="new" selected>' in lead.page(row)


def test_chats_stored_before_the_first_rubric_join_a_set_with_the_same_file(lead: Importer) -> None:
    """Nothing but an import puts chats into a set: the second import of the file must offer it."""
    row = lead.send("chats", csv_file(*GERMAN), "may.csv")
    assert "Create a rubric" in lead.page(row)
    lead.start(lead.check(row, COLUMNS, speakers={"Berater X": "assistant"}))
    make_rubric("polite", name="Support")
    again = lead.send("chats", csv_file(*GERMAN), "may.csv")
    assert again.options["set"] == "may"
    form = {"set": "new", "new_set": "may", "rubric": "Support"}
    again = lead.start(lead.check(again, COLUMNS, speakers={"Berater X": "assistant"}, **form))
    assert again.result["unchanged"] == 2
    assert ChatSetMember.objects.filter(chat_set__name="may").count() == 2


def test_the_preview_shows_the_chats_and_no_row_is_written(lead: Importer) -> None:
    rows = [("chat", "customer", "bot"), *((f"c{n}", f"Hello <b>{n}</b>", "Hi") for n in range(12))]
    row = lead.send("chats", csv_file(*rows))
    page = lead.page(row)
    assert "The first 10\n              chats" in page
    assert "c9" in page and "c10" not in page
    assert "<b>9</b>" not in page
    assert Chat.objects.count() == 0


def with_sheet(rows: str) -> bytes:
    """A workbook with this XML in its sheet, and an entity that would grow to a megabyte."""
    whole = zipfile.ZipFile(io.BytesIO(xlsx_file(("id", "customer"), ("a", "Hi"))))
    files: dict[str, str | bytes] = {name: whole.read(name) for name in whole.namelist()}
    entities = f'<!DOCTYPE x [<!ENTITY a "{"A" * 1000}"><!ENTITY b "{"&a;" * 1000}">]>' if "&" in rows else ""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return zip_file(files | {"xl/worksheets/sheet1.xml": f"{entities}{sheet}"})


BAD = {
    "csv: too many cells": (csv_file(("id", "customer"), ("a", "Hi"), ("b", "x", "y")), [3]),
    "csv: a quotation mark that stays open": (b'id,customer\na,Hi\nb,"open\nc,Hi\n', [3]),
    "csv: UTF-8 with one wrong byte": (
        b"id,customer\n" + "a,Größe\n".encode() * 5000 + b"b,\xe4\n",
        [5002],
    ),
    "csv: a cell of 10 MB": (csv_file(("id", "customer"), ("a", "x" * 10_000_000), ("b", "Hi")), [2]),
    "csv: half of UTF-16": ("id,customer\na,Hi\nb,Yo\n".encode("utf-16")[:-1], [3]),
    "csv: NUL": (b"id,customer\na,Hi\nb,x\x01\x00y\n", None),
    "jsonl: broken lines": (jsonl_file(chat("a"), "{oops", chat("b"), '{"id": 1e999}'), [2, 4]),
    "jsonl: deep": (jsonl_file(chat("a"), '{"x":' + "[" * 100 + "]" * 100 + "}"), [2]),
    "jsonl: large number": (jsonl_file(chat("a"), '{"x": ' + "9" * 5000 + "}"), [2]),
    "jsonl: NUL": (
        jsonl_file(chat("a"), '{"id": "x", "messages": [{"role": "user", "content": "\\u0000"}]}'),
        [2],
    ),
    "json: a record that is none": (json.dumps([chat("a"), 3]).encode(), [2]),
    "json: cut off": (json.dumps([chat("a"), chat("b")]).encode()[:-9], [2]),
    "xlsx: unknown speaker": (xlsx_file(("id", "role", "text"), ("a", "user", "Hi"), ("a", "zz", "Hi")), [3]),
    "unknown role": (jsonl_file(chat("a"), {"id": "b", "messages": [{"role": "boss", "content": "x"}]}), [2]),
    "no messages": (jsonl_file(chat("a"), {"id": "b", "messages": []}), [2]),
    "twice with other messages": (jsonl_file(chat("a"), chat("a", "Other")), [2]),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_lists_its_problems_and_nothing_is_written(lead: Importer, case: str) -> None:
    data, numbers = BAD[case]
    before = rows_in_all()
    if numbers is None:
        answer = lead.post_file("chats", data)
        assert answer.status_code == 200 and b"Not taken." in answer.content
        assert DataImport.objects.count() == 0
        return
    row = lead.check(lead.send("chats", data))
    assert row.state == "checked"
    assert [problem["number"] for problem in row.problems] == numbers
    assert row.problem_count == len(numbers)
    assert "Problems" in lead.page(row)
    row = lead.start(row)
    assert row.state == "checked"
    assert rows_in_all() == before


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"", "chats", "is empty"),
        (b"\x7fELF\x00\x01binary\x00", "chats", "no text, Excel or ZIP file"),
        (b"PK\x03\x04 broken", "chats", "damaged"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "chats", "no text, Excel or ZIP file"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "chats", "password"),
        (with_sheet('<row r="1"><c r="A1" t="s"><v>999</v></c></row>'), "chats", "damaged"),
        (
            with_sheet('<row r="1"><c r="A1" t="inlineStr"><is><t>&b;</t></is></c></row>'),
            "chats",
            "cannot be read",
        ),
        (zip_file({"a.md": "# A"}), "chats", "holds knowledge"),
        (zip_file({"a.txt": "A"}), "knowledge", "no .md file"),
        (zip_file({"a.md": b"0" * 20_000_000}), "knowledge", "100 times its size"),
        (zip_file({"xl/workbook.xml": "<x/>", "xl/vbaProject.bin": "x"}), "chats", "macros"),
        (zip_file({"xl/workbook.xml": "<x/>"}), "chats", "cannot be read"),
        (b"id,text\n", "chats", "no rows below the header"),
        (("," * 600 + "\n1\n").encode(), "chats", "columns"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,  # a ZIP holds the time
)
def test_a_file_that_cannot_be_read_is_refused_and_not_kept(
    lead: Importer, folder: Path, data: bytes, kind: str, message: str
) -> None:
    if b"," * 600 in data:
        data = data.replace(b"," * 600, b"a," * 600 + b"z")
    answer = lead.post_file(kind, data)
    assert message in answer.content.decode()
    assert DataImport.objects.count() == 0
    assert list(folder.glob("*")) == []


def test_entries_of_a_zip_file_cannot_leave_it(lead: Importer) -> None:
    files = {"ok/returns.md": "# Returns\n30 days.", "../../evil.md": "# Evil", "/abs.md": "# Abs"}
    row = lead.check(lead.send("knowledge", zip_file(files), "kb.zip"))
    assert [problem["number"] for problem in row.problems] == [2, 3]
    row = lead.start(row, skip="")
    assert list(KnowledgeArticle.objects.values_list("key", flat=True)) == ["ok/returns"]
    assert ArticleVersion.objects.get().title == "Returns"


def test_rows_with_problems_can_be_left_out(lead: Importer) -> None:
    row = lead.check(lead.send("chats", jsonl_file(chat("a"), "{oops", chat("b"))))
    row = lead.start(row, skip="")
    assert (row.state, row.result["created"]) == ("done", 2)


def test_a_file_that_breaks_off_is_never_imported_in_part(lead: Importer) -> None:
    row = lead.check(lead.send("chats", json.dumps([chat("a"), chat("b")]).encode()[:-9]))
    row = lead.start(row, skip="")
    assert (row.state, Chat.objects.count()) == ("checked", 0)


def test_the_same_file_twice_changes_nothing(lead: Importer) -> None:
    data = csv_file(*GERMAN)
    for created, unchanged in ((2, 0), (0, 2)):
        row = lead.check(lead.send("chats", data), COLUMNS, speakers={"Berater X": "assistant"})
        row = lead.start(row)
        assert (row.result["created"], row.result["unchanged"]) == (created, unchanged)
    assert Chat.objects.count() == 2


def test_a_formula_cell_is_its_value_and_our_own_guard_is_taken_off(lead: Importer) -> None:
    data = csv_file(("id", "customer"), ("a", "'=1+1"), ("b", "'tis fine"), ("c", "=2+2"))
    lead.take("chats", data)
    texts = {one.external_id: one.messages[0]["content"] for one in Chat.objects.all()}
    assert texts == {"a": "=1+1", "b": "'tis fine", "c": "=2+2"}


def test_labels_may_have_a_column_for_each_criterion(lead: Importer) -> None:
    make_rubric("polite", "brief")
    make_chat("c1"), make_chat("c2")
    data = csv_file(
        ("Conversation ID", "Annotator", "Polite", "brief"),
        ("c1", "Mara", "yes", "no"),
        ("c2", "Mara", "1", ""),
    )
    row = lead.take("labels", data)
    assert row.result["created"] == 3
    assert set(Label.objects.values_list("chat__external_id", "criterion__key", "value")) == {
        ("c1", "polite", True),
        ("c1", "brief", False),
        ("c2", "polite", True),
    }
    assert Consensus.objects.count() == 3
    row = lead.undo(row)
    assert row.state == "undone"
    counts = (Label.objects.count(), LabelRevision.objects.count(), Consensus.objects.count())
    assert counts == (0, 0, 0)
    assert Rater.objects.filter(name="Mara").count() == 0


def test_every_wrong_label_is_listed_with_its_row(lead: Importer) -> None:
    make_rubric("polite")
    make_chat("c1")
    head = ("chat_id", "criterion", "rater", "value")
    data = csv_file(
        head,
        ("c1", "polite", "Mara", "true"),
        ("nope", "polite", "Mara", "true"),
        ("c1", "rude", "Mara", "true"),
        ("c1", "polite", "Mara", "maybe"),
        ("c1", "polite", "", "true"),
        ("c1", "polite", "Mara", "false"),
    )
    row = lead.check(lead.send("labels", data))
    assert [(one["number"], one["field"]) for one in row.problems] == [
        (3, "chat_id"),
        (4, "criterion"),
        (5, "value"),
        (6, "rater"),
        (7, "rater"),
    ]
    assert Label.objects.count() == Rater.objects.count() == 0


def test_undo_gives_a_revised_label_its_earlier_answer_back(lead: Importer) -> None:
    make_rubric("polite")
    make_chat("c1")
    head = ("chat_id", "criterion", "rater", "value")
    lead.take("labels", csv_file(head, ("c1", "polite", "Mara", "true")))
    second = lead.take("labels", csv_file(head, ("c1", "polite", "Mara", "false")))
    assert Label.objects.get().value is False
    assert lead.undo(second).state == "undone"
    label = Label.objects.get()
    assert (label.value, label.revision) == (True, 1)
    assert LabelRevision.objects.count() == 1
    assert Consensus.objects.get().state == "true"


def test_a_rubric_comes_from_a_table_and_can_be_undone(lead: Importer) -> None:
    data = xlsx_file(
        ("Criterion", "Group", "Tier", "Question", "Description", "Critical"),
        ("polite", "Good manners", "simple", "Was it polite?", "True when polite.", "no"),
        ("solved", "Answers", "context", "Was it solved?", "True when solved.", True),
    )
    row = lead.take("rubric", data, "rubric.xlsx", rubric_name="Returns desk")
    rubric = Rubric.objects.get(name="Returns desk")
    assert list(rubric.criteria.values_list("key", "dimension__name", "critical")) == [
        ("polite", "Good manners", False),
        ("solved", "Answers", True),
    ]
    assert lead.undo(row).state == "undone"
    assert (Rubric.objects.count(), Criterion.objects.count()) == (0, 0)


def test_a_rubric_names_every_wrong_criterion(lead: Importer) -> None:
    head = ("key", "tier", "question", "definition")
    data = csv_file(
        head, ("Polite!", "simple", "Q?", "D."), ("ok", "hard", "Q?", "D."), ("fine", "simple", "", "D.")
    )
    row = lead.check(lead.send("rubric", data), rubric_name="Support")
    assert [one["number"] for one in row.problems] == [2, 3, 4]
    assert Rubric.objects.count() == 0


def test_verdicts_become_a_run_and_undo_deletes_it(lead: Importer) -> None:
    rubric = make_rubric("polite")
    chats = [make_chat("c1"), make_chat("c2")]
    chat_set = make_set(rubric, *chats)
    data = csv_file(("chat_id", "criterion", "model", "verdict"), ("c1", "polite", "gpt", "TRUE"))
    row = lead.take("verdicts", data, set=str(chat_set.pk))
    assert (Run.objects.count(), Verdict.objects.count()) == (1, 1)
    assert lead.undo(row).state == "undone"
    assert (Run.objects.count(), Verdict.objects.count()) == (0, 0)


def test_undo_removes_chats_set_and_topics(lead: Importer) -> None:
    make_rubric("polite", name="Support")
    before = rows_in_all()
    form = {"set": "new", "new_set": "N", "rubric": "Support", "share_dev": "50", "share_holdout": "50"}
    row = lead.take("chats", jsonl_file(*(chat(f"c{n}", topic="refund") for n in range(30))), **form)
    assert rows_in_all() != before
    row = lead.undo(row)
    assert row.state == "undone"
    assert rows_in_all() == before
    assert ImportedRow.objects.count() == 0
    assert AuditEvent.objects.filter(verb="import undone").count() == 1


def test_undo_is_refused_with_the_reason_while_labels_depend_on_it(lead: Importer) -> None:
    make_rubric("polite")
    row = lead.take("chats", jsonl_file(chat("c1")))
    lead.take("labels", csv_file(("chat_id", "criterion", "rater", "value"), ("c1", "polite", "Mara", "yes")))
    assert "In use by now: 1 label." in lead.page(row)
    assert lead.undo(row).state == "done"
    assert Chat.objects.count() == 1


def test_undo_names_what_has_changed_since(lead: Importer) -> None:
    row = lead.take("chats", jsonl_file(chat("c1", topic="refund"), chat("c2")))
    lead.take("chats", jsonl_file(chat("c1", topic="promo")))
    assert "Changed since the import: c1." in lead.page(row)
    assert lead.undo(row).state == "done"


def test_undo_is_refused_where_a_later_version_follows(lead: Importer) -> None:
    first = lead.take("knowledge", zip_file({"returns.md": "# Returns\n30 days."}), "kb.zip")
    lead.take("knowledge", zip_file({"returns.md": "# Returns\n14 days."}), "kb.zip")
    assert "1 later article version" in lead.page(first)
    assert lead.undo(first).state == "done"


def test_a_file_is_kept_private_and_under_a_name_of_ours(lead: Importer, folder: Path) -> None:
    row = lead.send("chats", jsonl_file(chat("a")), "../../etc/pass<wd>.jsonl")
    assert row.file_name == "passwd.jsonl"
    assert stat.S_IMODE(os.stat(row.path).st_mode) == 0o600
    assert row.path.parent.parent == folder


def test_a_file_over_the_limit_is_refused(lead: Importer, settings: Any, folder: Path) -> None:
    settings.LACE_IMPORT_MB = 1
    answer = lead.post_file("chats", b"id,customer\n" + b"a,b\n" * 300_000)
    assert "larger than 1 MB" in answer.content.decode()
    assert DataImport.objects.count() == 0


def test_a_worker_that_died_is_followed_by_another_one(lead: Importer) -> None:
    row = lead.check(lead.send("chats", jsonl_file(chat("a"))))
    lead.client.post(reverse("labeling:import_start", args=[row.pk]))
    DataImport.objects.update(rung_at=None)  # the broker lost the message
    imports_sweep()
    assert DataImport.objects.get().rung_at is not None
    store_work(row.pk)
    store_work(row.pk)
    assert (DataImport.objects.get().state, Chat.objects.count()) == ("done", 1)


def test_cancel_before_a_worker_begins_goes_back(lead: Importer) -> None:
    row = lead.check(lead.send("chats", jsonl_file(chat("a"))))
    lead.client.post(reverse("labeling:import_start", args=[row.pk]))
    lead.client.post(reverse("labeling:import_cancel", args=[row.pk]))
    store_work(row.pk)
    row.refresh_from_db()
    assert (row.state, Chat.objects.count()) == ("checked", 0)


def test_cancel_while_a_worker_writes_keeps_nothing(lead: Importer, folder: Path) -> None:
    row = lead.check(lead.send("chats", jsonl_file(*(chat(f"c{n}") for n in range(5)))))
    lead.client.post(reverse("labeling:import_start", args=[row.pk]))
    (row.folder / "cancel").touch()
    store_work(row.pk)
    row.refresh_from_db()
    assert (row.state, Chat.objects.count()) == ("checked", 0)
    assert "Nothing was written" in lead.page(row)


def test_every_template_can_be_imported_as_it_is(lead: Importer) -> None:
    for kind in ("chats", "rubric", "knowledge"):
        for form in ("csv", "xlsx", "jsonl"):
            data = lead.client.get(reverse("labeling:import_template", args=[kind, form])).content
            row = lead.send(kind, data, f"{kind}.{form}")
            row = lead.check(row, rubric_name="Support")
            assert (row.state, row.problems) == ("checked", []), (kind, form)


def test_a_check_survives_a_second_message(lead: Importer) -> None:
    row = lead.check(lead.send("chats", jsonl_file(chat("a"))))
    check_work(row.pk)
    row.refresh_from_db()
    assert row.state == "checked"
