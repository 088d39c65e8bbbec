"""Rows of tables: their columns and cells."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from common.guarded_json import guarded_loads
from common.imports import Target
from common.problems import FieldProblem, shown

# Number of the row as its file shows it (from 1), and its cells or what is wrong with it.
Row = tuple[int, dict[str, Any] | FieldProblem]
MAX_COLUMNS = 500
TRUE = {"true", "t", "yes", "y", "1", "wahr", "ja", "oui", "si", "x"}
FALSE = {"false", "f", "no", "n", "0", "falsch", "nein", "non"}
NEITHER = {"not applicable", "not_applicable", "na", "n/a", "null", "none"}
_DOTTED = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_LONG_AGO, _SECONDS, _MILLIS = 0, 1e11, 1e14


def header_of(cells: list[Any]) -> list[str]:
    """
    Return the names of columns: blank ones by their position, repeated ones with a number.

    Raises FieldProblem for more than 500 columns.

    Examples
    --------
    >>> header_of(["id", "", "text", "text "])
    ['id', 'column 2', 'text', 'text (2)']
    """
    while cells and not str(cells[-1] if cells[-1] is not None else "").strip():
        cells = cells[:-1]
    if len(cells) > MAX_COLUMNS:
        raise FieldProblem("", f"The file has {len(cells):,} columns; {MAX_COLUMNS} is the limit")
    names: list[str] = []
    for place, cell in enumerate(cells, 1):
        name = str(cell if cell is not None else "").replace("\x00", "").strip()[:200] or f"column {place}"
        count = 1
        while (name if count == 1 else f"{name} ({count})") in names:
            count += 1
        names.append(name if count == 1 else f"{name} ({count})")
    return names


def row_of(header: list[str], cells: list[Any]) -> dict[str, Any] | FieldProblem:
    """Return the cells of a row by column; a row with text beyond the header is wrong."""
    beyond = [cell for cell in cells[len(header) :] if cell is not None and str(cell).strip()]
    if beyond:
        return FieldProblem(
            "", f"has {len(cells)} cells, the header {len(header)}. Put texts with separators in quotes"
        )
    row = dict(zip(header, cells, strict=False))
    for name, cell in row.items():
        if isinstance(cell, str) and "\x00" in cell:
            return FieldProblem(name, "holds a NUL character: is this a binary file?")
    return row


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with the fields of objects as columns of their own: "meta.lang".

    Examples
    --------
    >>> flat({"id": 1, "meta": {"lang": "en"}})
    {'id': 1, 'meta.lang': 'en'}
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and value:
            found |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            found[name] = value
    return found


def is_blank(value: Any) -> bool:
    """Whether a cell is empty."""
    return value is None or (isinstance(value, str) and not value.strip())


def text_of(value: Any) -> str:
    """
    Return a cell as text: numbers as their digits, lists and objects as JSON, OpenAI's parts as their texts.

    Examples
    --------
    >>> text_of(12), text_of(True), text_of([{"type": "text", "text": "Hi"}])
    ('12', 'true', 'Hi')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "\n".join(text_of(part["text"]) for part in value)
    return json.dumps(value, ensure_ascii=False)


def time_of(value: Any) -> str:
    """
    Return a time as ISO 8601: from ISO 8601, dates with dots, and seconds or milliseconds since 1970.

    Raises ValueError for other text, as for 03/04/2026, which has two meanings.

    Examples
    --------
    >>> time_of("17.11.2026 09:12"), time_of(1795770744)
    ('2026-11-17T09:12:00+00:00', '2026-11-27T09:12:24+00:00')
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) and len(value.strip()) > 8:
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not _LONG_AGO < value < _MILLIS:
            raise ValueError
        return datetime.fromtimestamp(value / 1000 if value > _SECONDS else value, UTC).isoformat()
    text = str(value).strip()
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        parsed = next(one for one in map(_dotted(text), _DOTTED) if one is not None)
    return (parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed).isoformat()


def _dotted(text: str) -> Any:
    def parse(pattern: str) -> datetime | None:
        try:
            return datetime.strptime(text, pattern).replace(tzinfo=UTC)
        except ValueError:
            return None

    return parse


def cell_of(value: Any, target: Target, column: str) -> Any:
    """Return a cell as the field needs it. Raises FieldProblem, which names the column."""
    kind = target.cell
    if kind == "text":
        return text_of(value)
    if kind == "time":
        try:
            return time_of(value)
        except (ValueError, StopIteration, OverflowError, OSError):
            message = f"must be a time such as 2026-11-17 09:12, not {shown(value)}"
            raise FieldProblem(column, message) from None
    if kind in ("answer", "flag"):
        return _answer(value, column, neither=kind == "answer")
    if not isinstance(value, str):
        return value
    if kind == "json":
        return _json(value, column)
    try:
        return int(value) if kind == "whole" else float(value.replace(",", "."))
    except ValueError:
        raise FieldProblem(column, f"must be a number, not {shown(value)}") from None


def _answer(value: Any, column: str, *, neither: bool) -> bool | None:
    if isinstance(value, bool) or (value is None and neither):
        return value
    word = str(value).strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    if neither and word in NEITHER:
        return None
    raise FieldProblem(
        column, f"must be true or false{', or not_applicable' if neither else ''}, not {shown(value)}"
    )


def _json(value: str, column: str) -> Any:
    if not value.lstrip().startswith(("[", "{")):
        # As people write lists in a cell: 2, 5
        return [
            int(part) if part.strip().isdecimal() and len(part) < 10 else part.strip()
            for part in value.split(",")
        ]
    try:
        return guarded_loads(value)
    except FieldProblem as problem:
        raise FieldProblem(column, problem.message) from None
