"""Rows of the files that people bring: CSV, JSON and JSON Lines, one in memory at a time."""

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from common.files import unguarded
from common.guarded_json import guarded_loads
from common.jsonl import MAX_LINE, Fields, jsonl_values
from common.problems import FieldProblem, shown
from labeling.transfer.core.archives import article_rows, is_archive, is_workbook, sheet_rows
from labeling.transfer.core.records import UnreadableRest, object_values
from labeling.transfer.core.rows import Row, header_of, row_of

SAMPLE = 1 << 16  # bytes
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# What pages call one row of a file.
PLACES = {"csv": "Row", "xlsx": "Row", "jsonl": "Line", "json": "Record", "zip": "File"}
FORMATS = {"csv": "CSV", "xlsx": "Excel", "jsonl": "JSON Lines", "json": "JSON", "zip": "ZIP of Markdown"}
# A JSON document may hold its records in a list of one of these names.
LISTS = ("chats", "labels", "verdicts", "criteria", "articles", "conversations", "data", "records", "items")
csv.field_size_limit(MAX_LINE)  # of this process: a cell may hold a whole chat
_OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")
_WRONG_BYTE = re.compile("[\udc80-\udcff]")  # as surrogateescape reads it
_END = "\x1e"  # a line of ours after the last one of a CSV file
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True, slots=True)
class Source:
    """How a file is read; `extras` are the fields of a JSON document beside its list of records."""

    format: str
    encoding: str = "utf-8"
    delimiter: str = ","
    list_name: str = ""

    def as_json(self) -> dict[str, str]:
        """Return it as the database keeps it."""
        return {name: str(getattr(self, name)) for name in ("format", "encoding", "delimiter", "list_name")}


def source_of(path: Path) -> Source:
    """
    Find out what a file is from its content; its name is not trusted.

    Raises FieldProblem for an empty file and for other binary files.
    """
    with path.open("rb") as file:
        head = file.read(SAMPLE)
    if not head.strip():
        raise FieldProblem("", "The file is empty")
    if is_archive(head):
        return Source("xlsx" if is_workbook(path) else "zip")
    if head.startswith(_OLD_OFFICE):
        raise FieldProblem(
            "", "This is an old or a password-protected Office file. Save it as .xlsx without a password"
        )
    encoding = _encoding(path, head)
    text = head.decode(encoding, "ignore").lstrip("\ufeff \t\r\n")
    if text.startswith(("{", "[")):
        if encoding not in ("utf-8", "utf-8-sig"):
            raise FieldProblem("", "JSON must be UTF-8: save the file as UTF-8")
        return _json_source(path, text)
    return Source("csv", encoding, _delimiter(text, whole=len(head) < SAMPLE))


def rows_of(path: Path, source: Source) -> Iterator[Row]:
    """Yield the rows of a file, wrong ones as their problem; UnreadableRest ends it."""
    try:
        if source.format == "csv":
            yield from _csv_rows(path, source)
        elif source.format == "xlsx":
            yield from sheet_rows(path)
        elif source.format == "zip":
            yield from article_rows(path)
        elif source.format == "jsonl":
            yield from jsonl_values(path)
        elif source.list_name:
            yield from enumerate(_listed(path, source.list_name), 1)
        else:
            yield from object_values(path)
    except FieldProblem as problem:
        yield 0, UnreadableRest(problem.field, problem.message)


def extras_of(path: Path, source: Source) -> dict[str, Any]:
    """Return the fields of a JSON document beside its list of records, such as the name of a rubric."""
    if not source.list_name:
        return {}
    return {name: value for name, value in _document(path).items() if name != source.list_name}


def _encoding(path: Path, head: bytes) -> str:
    """Return the encoding by its mark, else UTF-8 where all of it is, else that of old Windows programs."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    if b"\x00" in head or head.startswith(b"%PDF-"):
        raise FieldProblem(
            "", "This is no text, Excel or ZIP file. Choose a file in one of the formats above"
        )
    decoder, plain = codecs.getincrementaldecoder("utf-8")(), True
    with path.open("rb") as file:
        try:
            while chunk := file.read(1 << 20):
                plain &= decoder.decode(chunk).isascii()
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            # One wrong byte after others that are right is damage, not another encoding.
            return "cp1252" if plain and error.object[: error.start].isascii() else "utf-8"
    return "utf-8"


def _json_source(path: Path, text: str) -> Source:
    if text.startswith("["):
        return Source("json")
    first = text.split("\n", 1)[0].strip()
    try:
        if isinstance(json.loads(first), dict) and path.stat().st_size > len(first.encode()) + 1:
            return Source("jsonl")
    except (ValueError, RecursionError):
        # A broken first line, or a document over several lines.
        if first.endswith("}") and len(first) > 2:
            return Source("jsonl")
    try:
        document = _document(path)
    except FieldProblem:
        return Source("json")
    found = [name for name in LISTS if isinstance(document.get(name), list)]
    return Source("json", list_name=found[0]) if found else Source("jsonl" if "\n" not in text else "json")


def _document(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        raw = file.read(MAX_LINE + 1)
    if len(raw) > MAX_LINE:
        raise FieldProblem("", f"is longer than {MAX_LINE // 1024**2} MB: save one record per line")
    try:
        return Fields(guarded_loads(raw.decode("utf-8-sig"))).data
    except UnicodeDecodeError:
        raise FieldProblem("", "is not UTF-8") from None


def _listed(path: Path, name: str) -> Iterator[dict[str, Any] | FieldProblem]:
    for item in _document(path)[name]:
        yield item if isinstance(item, dict) else FieldProblem("", f"must be an object, not {shown(item)}")


def _delimiter(text: str, *, whole: bool) -> str:
    """Return the delimiter that gives the first rows the most columns of equal number."""
    lines = text if whole else text.rsplit("\n", 1)[0]
    best, most = ",", 0
    for mark in DELIMITERS:
        try:
            rows = [row for row in csv.reader(io.StringIO(lines), delimiter=mark) if row][:50]
        except csv.Error:
            continue
        same = Counter(len(row) for row in rows)[len(rows[0])] if rows else 0
        score = (len(rows[0]) - 1) * same if rows else 0
        if score > most:
            best, most = mark, score
    return best


def _csv_rows(path: Path, source: Source) -> Iterator[Row]:
    number = 0
    try:
        with path.open("rb") as raw, _text(raw, source.encoding) as file:
            header: list[str] = []
            for number, cells in enumerate(csv.reader(_lines(file), delimiter=source.delimiter), 1):
                if cells == [_END]:
                    return
                if cells and cells[-1].endswith(_END):
                    yield number, UnreadableRest("", "has a quotation mark that is never closed")
                    return
                if not any(cell.strip() for cell in cells):
                    continue
                if not header:
                    header = header_of(cells)
                    continue
                if any(_WRONG_BYTE.search(cell) for cell in cells if not cell.isascii()):
                    yield number, FieldProblem("", "is not UTF-8: save the file as UTF-8")
                    continue
                yield number, row_of(header, [unguarded(cell) for cell in cells])
    except UnicodeDecodeError:
        yield number + 1, UnreadableRest("", f"is not {source.encoding} from here on: save it as UTF-8")
    except csv.Error as error:
        yield number + 1, UnreadableRest("", f"cannot be read from here on: {error}")


def _lines(file: TextIO) -> Iterator[str]:
    """Yield the lines of a file; one that is too long for the memory is an error."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise csv.Error(f"a line is longer than {MAX_LINE // 1024**2} MB")
        yield line
    yield _END


def _text(raw: BinaryIO, encoding: str) -> io.TextIOWrapper:
    # The few bytes that cp1252 leaves open must not end the import.
    errors = "replace" if encoding == "cp1252" else "strict"
    # A wrong byte in UTF-8 is a problem of its row, and not of the thousands that are read with it.
    errors = "surrogateescape" if encoding.startswith("utf-8") else errors
    return io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline="")
