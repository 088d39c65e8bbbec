"""Writing files that are there whole or not at all."""

import csv
import io
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from common.problems import InputProblem, OutsideFailure

# JSON takes these as they are, but many readers take them for line ends.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "'")
_BOM = "\ufeff"  # without it Excel takes a table for one in the machine's old alphabet
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def json_line(data: Mapping[str, Any]) -> str:
    """
    One object as a line of a JSON Lines file, without the line end.

    Examples
    --------
    >>> json_line({"chat_id": "ä", "value": None})
    '{"chat_id": "ä", "value": null}'
    """
    return json.dumps(data, ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS)


def csv_lines(lines: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """
    A table for spreadsheets as text with line ends: byte order mark and header, then each object.

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
    # NB: an apostrophe of its own gets one too, so that taking off the first gives the text back.
    return f"'{value}" if value.startswith(_FORMULA) else value


@contextmanager
def replaced_file(path: Path) -> Iterator[TextIO]:
    """
    A UTF-8 file to write that takes the place of `path` when all went well, and vanishes when not.

    Devices and pipes are written straight.

    Raises
    ------
    InputProblem
        the place cannot be written to.
    OutsideFailure
        the disk failed while writing.
    """
    target = path.resolve()
    direct = target.exists() and not target.is_file()
    draft = target if direct else target.with_name(f".{target.name}.{os.getpid()}.part")
    if target.is_dir():
        raise InputProblem(f"{path}: is a folder, not a file")
    try:
        file = draft.open("w", encoding="utf-8", newline="\n")
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
