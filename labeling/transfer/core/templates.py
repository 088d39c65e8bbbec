"""Files to fill in: an example of each kind in each format."""

import csv
import io
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import openpyxl

from common.files import json_line
from common.imports import ImportKind

TEMPLATE_FORMATS = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "jsonl": "application/x-ndjson; charset=utf-8",
    "zip": "application/zip",
}


def template_of(kind: ImportKind, form: str) -> bytes:
    """Return a small file that the import takes as it is. Raises KeyError for a format without one."""
    if form == "zip":
        return _zip(kind)
    if form == "jsonl":
        return "".join(json_line(line) + "\n" for line in kind.examples).encode()
    rows = list(_table(kind))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {"csv": _csv, "xlsx": _xlsx}[form](columns, rows)


def formats_of(kind: ImportKind) -> list[str]:
    """Return the formats with a template for this kind."""
    if not kind.examples:
        return []
    return [form for form in TEMPLATE_FORMATS if form != "zip" or kind.key == "knowledge"]


def _table(kind: ImportKind) -> Iterable[Mapping[str, Any]]:
    """Yield rows of a table: a chat has a row for each message."""
    for line in kind.examples:
        if kind.key != "chats":
            yield line
            continue
        for message in line["messages"]:
            yield {
                "chat_id": line["id"],
                "topic": line["topic"],
                "time": message["created_at"],
                "speaker": {"user": "customer", "assistant": "bot"}[message["role"]],
                "text": message["content"],
            }


def _cell(value: Any) -> Any:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def _csv(columns: list[str], rows: list[Mapping[str, Any]]) -> bytes:
    buffer = io.StringIO()
    table = csv.writer(buffer)
    table.writerow(columns)
    table.writerows([[_cell(row.get(name, "")) for name in columns] for row in rows])
    return buffer.getvalue().encode("utf-8-sig")  # with the mark Excel reads it as UTF-8


def _xlsx(columns: list[str], rows: list[Mapping[str, Any]]) -> bytes:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Import")
    sheet.append(columns)
    for row in rows:
        sheet.append([_cell(row.get(name, "")) for name in columns])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _zip(kind: ImportKind) -> bytes:
    if kind.key != "knowledge":
        raise KeyError(kind.key)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for line in kind.examples:
            archive.writestr(f"{line['key']}.md", line["text"] + "\n")
    return buffer.getvalue()
