"""Writing files that are there whole or not at all."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from labeling.core.problems import InputProblem, OutsideFailure

# A spreadsheet takes a cell that begins with one of these for a formula (OWASP ASVS 5.0, 1.2.10).
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0")

# JSON takes these as they are, but many readers take them for line ends.
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


def csv_text(text: str) -> str:
    """
    A text from outside as a cell of a CSV file that no spreadsheet takes for a formula.

    Examples
    --------
    >>> csv_text("=1+1"), csv_text("mara")
    ("'=1+1", 'mara')
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


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
