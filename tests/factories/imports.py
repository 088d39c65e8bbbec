"""Files that a lead imports on pages, and the steps of one import without a browser and a worker."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import openpyxl
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from labeling.models.imports import DataImport
from labeling.models.people import User
from labeling.transfer.queries.data_imports import import_kinds
from labeling.transfer.services.data_imports import data_import_create
from labeling.transfer.services.work import check_work, store_work


def csv_file(*rows: Sequence[Any], delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    """The bytes of a CSV file; the first row is the header."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    return buffer.getvalue().encode(encoding)


def xlsx_file(*rows: Sequence[Any]) -> bytes:
    """The bytes of an Excel workbook."""
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row in rows:
        sheet.append(list(row))
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def zip_file(files: Mapping[str, str | bytes]) -> bytes:
    """The bytes of a ZIP file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def jsonl_file(*lines: Any) -> bytes:
    """The bytes of a JSON Lines file; text is a line as it is."""
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()


class Importer:
    """A lead at the pages of imports."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def send(self, kind: str, data: bytes, name: str = "data.csv") -> DataImport:
        """Send a file; it must be taken."""
        answer = self.post_file(kind, data, name)
        assert answer.status_code == 302, re.findall("Not taken.*", answer.content.decode())
        return DataImport.objects.latest("pk")

    def post_file(self, kind: str, data: bytes, name: str = "data.csv") -> Any:
        """Send a file and return the answer."""
        file = SimpleUploadedFile(name, data)
        return self.client.post(reverse("labeling:import_new"), {"kind": kind, "file": file})

    def check(self, row: DataImport, columns: Mapping[str, str] | None = None, **form: Any) -> DataImport:
        """Send the columns, as guessed but for `columns`, and let a worker check the file."""
        chosen = row.mapping["columns"] | dict(columns or {})
        names = [column["name"] for column in row.columns]
        body = {f"column-{n}": chosen.get(name, "") for n, name in enumerate(names)}
        speakers = dict(row.mapping["speakers"]) | form.pop("speakers", {})
        body |= {"speaker": list(speakers), "speaker_is": list(speakers.values())}
        self.client.post(reverse("labeling:import_columns", args=[row.pk]), body | form | {"check": ""})
        check_work(row.pk)
        row.refresh_from_db()
        return row

    def start(self, row: DataImport, **form: Any) -> DataImport:
        """Start the import and let a worker do it."""
        self.client.post(reverse("labeling:import_start", args=[row.pk]), form)
        store_work(row.pk)
        row.refresh_from_db()
        return row

    def take(self, kind: str, data: bytes, name: str = "data.csv", **form: Any) -> DataImport:
        """Import a file without problems."""
        row = self.check(self.send(kind, data, name), **form)
        assert (row.state, row.problems, row.error) == ("checked", [], "")
        row = self.start(row)
        assert (row.state, row.error) == ("done", "")
        return row

    def undo(self, row: DataImport) -> DataImport:
        """Undo an import."""
        self.client.post(reverse("labeling:import_undo", args=[row.pk]))
        row.refresh_from_db()
        return row

    def page(self, row: DataImport) -> str:
        """The page of an import."""
        return self.client.get(reverse("labeling:import_detail", args=[row.pk])).content.decode()


def stored_imports(lead: User, text: str) -> dict[str, int]:
    """An import in each state, by the names of their arguments; `text` is in all that they hold."""
    data = csv_file(("id", "customer"), (text, text))
    ids = {}
    for name, state in {
        "import_id": "draft",
        "checked_import": "checked",
        "import_at_work": "checking",
        "finished_import": "done",
    }.items():
        row = data_import_create(kind=import_kinds()["chats"], name=f"{text}.csv", chunks=[data], by=lead)
        row.state, row.lines, row.problem_count = state, 1, 0
        row.result = {"created": 1, "unchanged": 0, "updated": 0, "ignored": {}, "notes": [text]}
        row.problems = [{"number": 2, "field": text, "message": text}]
        row.save()
        ids[name] = row.pk
    return ids
