"""Lines of JSON and CSV, and files that are written completely or not at all."""

import csv
import io
import itertools
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

from common.problems import InputProblem, OutsideFailure

# What reading a damaged ZIP file raises, beside errors of the disk.
DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError)

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "'")
_BOM = "\ufeff"  # without it Excel reads UTF-8 as the machine's old code page
# Valid in JSON strings, but many readers treat them as line ends.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def json_line(data: Mapping[str, Any]) -> str:
    """
    Format one object as a line of a JSON Lines file, without the line end.

    Examples
    --------
    >>> json_line({"chat_id": "ä", "value": None})
    '{"chat_id": "ä", "value": null}'
    """
    return json.dumps(data, ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS)


def csv_lines(lines: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """
    Yield the lines of a CSV table for spreadsheets: byte order mark and header, then the objects.

    No cell is a formula.

    Parameters
    ----------
    lines : objects whose fields are among `columns`; an absent field is an empty cell.
    columns : the header.

    Examples
    --------
    >>> list(csv_lines([{"rater": "=A1", "value": None}], ["rater", "value"]))
    ['\\ufeffrater,value\\r\\n', "'=A1,not_applicable\\r\\n"]
    """
    buffer = io.StringIO()
    buffer.write(_BOM)
    table = csv.writer(buffer)
    for row in itertools.chain([list(columns)], (_cells(line, columns) for line in lines)):
        table.writerow(row)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _cells(line: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    return [
        "not_applicable" if name == "value" and line[name] is None else _cell(line.get(name))
        for name in columns
    ]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    # NB: text that starts with an apostrophe gets one too, so that removing the first restores it.
    return f"'{value}" if value.startswith(_FORMULA) else value


def open_private(path: Path) -> IO[bytes]:
    """Create a file that only its owner may read."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


def unguarded(cell: str) -> str:
    """
    Return a cell without the apostrophe that `csv_lines` puts before what could be a formula.

    Examples
    --------
    >>> unguarded("'=A1"), unguarded("'tis")
    ('=A1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


@contextmanager
def replaced_file(path: Path) -> Iterator[TextIO]:
    """
    Open a UTF-8 file that replaces `path` on success and is deleted on failure.

    Devices and pipes are written directly.

    Raises
    ------
    InputProblem
        `path` cannot be written.
    OutsideFailure
        the disk failed while writing.
    """
    with _replaced(path, mode="w", encoding="utf-8", newline="\n") as file:
        yield file


@contextmanager
def replaced_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file, as `replaced_file` does."""
    with _replaced(path, mode="w+b") as file:
        yield file


@contextmanager
def _replaced(path: Path, **options: Any) -> Iterator[Any]:
    target = path.resolve()
    direct = target.exists() and not target.is_file()
    draft = target if direct else target.with_name(f".{target.name}.{os.getpid()}.part")
    if target.is_dir():
        raise InputProblem(f"{path}: is a folder, not a file")
    try:
        file = draft.open(**options)
    except OSError as error:
        raise InputProblem(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with file:
            yield file
        if not direct:
            draft.replace(target)
    except OSError as error:
        raise OutsideFailure(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        if not direct:
            draft.unlink(missing_ok=True)
