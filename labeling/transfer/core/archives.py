"""Excel workbooks and ZIP files of Markdown, read without trust in them."""

import math
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path, PurePosixPath
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from common.problems import FieldProblem, shown
from labeling.transfer.core.rows import header_of, row_of

MAX_ENTRIES = 10_000
MAX_RATIO = 100
MAX_UNPACKED = 512 * 1024**2  # bytes
MAX_SHARED = 128 * 1024**2  # bytes of the texts of a workbook, which are read whole
MAX_ARTICLE = 16 * 1024**2
MAX_ROWS = 1_048_576  # of a sheet, as in Excel; a file may claim any number of empty ones
SMALL = 1 << 20  # a small entry may be packed as tightly as it likes
MAX_NAME = 1000
_ZIP = b"PK\x03\x04"
_WORKBOOK = "xl/workbook.xml"
# What openpyxl and zipfile raise for files that somebody has damaged or forged.
_DAMAGE = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, SyntaxError, RuntimeError),
    *(InvalidFileException, OSError, EOFError, zipfile.BadZipFile, zlib.error),
)
_LEFT_OUT = ("__MACOSX/", ".DS_Store", "Thumbs.db")


def is_archive(head: bytes) -> bool:
    """Whether a file that begins like this is a ZIP file."""
    return head.startswith(_ZIP)


def is_workbook(path: Path) -> bool:
    """Whether a ZIP file is an Excel workbook. Raises FieldProblem for a file that is unsafe or damaged."""
    with _opened(path) as archive:
        names = {entry.filename for entry in archive.infolist()}
        if _WORKBOOK in names and any(name.endswith("vbaProject.bin") for name in names):
            raise FieldProblem("", "The workbook has macros. Save it as .xlsx without them")
        return _WORKBOOK in names


def sheet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | FieldProblem]]:
    """Yield the rows of the first sheet with any; formulas as the values that Excel stored with them."""
    if not openpyxl.DEFUSEDXML:
        raise FieldProblem("", "Excel files cannot be read safely: defusedxml is not installed")
    with _opened(path):
        pass
    file = path.open("rb")  # NB: openpyxl would judge a path by its ending
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    except _DAMAGE as error:
        file.close()
        raise FieldProblem("", f"The workbook cannot be read ({type(error).__name__})") from error
    try:
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # the size that a file claims may be a lie
            header: list[str] = []
            for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
                if number > MAX_ROWS:
                    raise FieldProblem("", f"The sheet has more than {MAX_ROWS:,} rows")
                values = [_value(cell) for cell in cells]
                if all(value is None or value == "" for value in values):
                    continue
                if not header:
                    header = header_of(values)
                    continue
                yield number, row_of(header, values)
            if header:
                return
    except _DAMAGE as error:
        if isinstance(error, FieldProblem):
            raise
        raise FieldProblem("", f"The workbook is damaged ({type(error).__name__})") from error
    finally:
        book.close()
        file.close()


def article_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | FieldProblem]]:
    """Yield the Markdown files of a ZIP file as articles; the key is the path without its extension."""
    with _opened(path) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        found = [entry for entry in entries if entry.filename.lower().endswith(".md")]
        if not found:
            raise FieldProblem("", "The ZIP file holds no .md file")
        for number, entry in enumerate(found, 1):
            if not any(part in entry.filename for part in _LEFT_OUT):
                yield number, _article(archive, entry)


def _article(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> dict[str, Any] | FieldProblem:
    name = entry.filename
    key = PurePosixPath(name).with_suffix("")
    if not name.isprintable() or key.is_absolute() or ".." in key.parts or "\\" in name or ":" in name:
        return FieldProblem("", f"{shown(name)}: no path that leads out of the ZIP file")
    if entry.file_size > MAX_ARTICLE:
        return FieldProblem(name, "is longer than 16 MB")
    try:
        with archive.open(entry) as file:
            raw = file.read(MAX_ARTICLE + 1)
        if len(raw) > MAX_ARTICLE:
            return FieldProblem(name, "is longer than 16 MB")
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return FieldProblem(name, "is not UTF-8")
    except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError) as error:
        return FieldProblem(name, f"cannot be unpacked ({type(error).__name__})")
    if "\x00" in text:
        return FieldProblem(name, "holds a NUL character: is this a binary file?")
    return {"key": key.as_posix(), "text": text.replace("\r\n", "\n").replace("\r", "\n")}


def _opened(path: Path) -> zipfile.ZipFile:
    """Open a ZIP file whose entries unpack to a bearable size."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FieldProblem("", "The ZIP or Excel file is damaged") from error
    entries = archive.infolist()
    problem = ""
    if len(entries) > MAX_ENTRIES:
        problem = f"The file has {len(entries):,} entries; {MAX_ENTRIES:,} is the limit"
    elif sum(entry.file_size for entry in entries) > MAX_UNPACKED:
        problem = f"The file unpacks to more than {MAX_UNPACKED // 1024**2} MB"
    elif any(entry.file_size > max(SMALL, MAX_RATIO * entry.compress_size) for entry in entries):
        problem = f"The file unpacks to more than {MAX_RATIO} times its size"
    elif any(
        entry.filename.endswith("sharedStrings.xml") and entry.file_size > MAX_SHARED for entry in entries
    ):
        problem = "The workbook holds too much text. Save it as CSV"
    elif any(entry.flag_bits & 1 for entry in entries):
        problem = "The file is encrypted. Save it without a password"
    elif any(len(entry.filename) > MAX_NAME for entry in entries):
        problem = "The file has an entry with a very long name"
    if problem:
        archive.close()
        raise FieldProblem("", problem)
    return archive


def _value(cell: Any) -> Any:
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, float):
        if not math.isfinite(cell):
            return str(cell)
        return int(cell) if cell.is_integer() and abs(cell) < 2**53 else cell
    return cell if isinstance(cell, str | int | bool | None) else str(cell)
