"""JSON from untrusted sources: refuse what `json.loads` accepts wrongly or crashes on."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from common.problems import FieldProblem, shown

MAX_DEPTH = 32
MAX_DIGITS = 4300
MAX_VALUES = 100_000  # a megabyte of "[]," becomes 20 MB of objects
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_PIECE = re.compile(_STRING.pattern + r'|[][{},:]|\n|[^][{},:"\s]+')
_ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")  # raw ones are not JSON or not UTF-8


def guarded_loads(text: str, *, most: int = MAX_VALUES) -> Any:
    """
    Parse one JSON document.

    Parameters
    ----------
    text : the document; the caller bounds its length.
    most : the most values that it may hold.

    Raises
    ------
    FieldProblem
        not JSON, NaN or Infinity, a number out of range, an integer over 4,300 digits, the same key twice in
        an object, nested deeper than 32, over 100,000 values, NUL or half a surrogate pair in a string (no
        database stores those).

    Examples
    --------
    >>> guarded_loads('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> guarded_loads('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    common.problems.FieldProblem: a: appears twice in one object
    """
    if _separators(text) > most and _separators(_STRING.sub("", text)) > most:
        raise FieldProblem("", f"holds more than {most:,} values")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise FieldProblem("", f"nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise FieldProblem("", f"not JSON: {error.msg} at column {error.colno}", line=error.lineno) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    if _ESCAPED.search(text):
        _check_text(value)
    return value


def _separators(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise FieldProblem(printable(twice), "appears twice in one object")
    return result


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise FieldProblem("", f"a whole number of more than {MAX_DIGITS:,} digits: {digits[:12]}…")
    return int(digits)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise FieldProblem("", f"a number out of range: {text[:20]}")
    return value


def _constant(name: str) -> NoReturn:
    raise FieldProblem("", f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, list | dict)
        ]
        if not level:
            return
    raise FieldProblem("", f"nested deeper than {MAX_DEPTH} levels")


def _check_text(value: Any, path: str = "") -> None:
    """Refuse strings that no database stores and name the field; the depth is already limited."""
    if isinstance(value, str):
        if bad := _UNSTORABLE.search(value):
            what = "a NUL character" if bad[0] == "\x00" else "half a surrogate pair"
            raise FieldProblem(path, f"holds {what} at character {bad.start() + 1}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_text(item, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, f"{path} key {shown(key)}".strip())
            _check_text(item, f"{path}.{printable(key)}" if path else printable(key))


def printable(key: str) -> str:
    """Format an untrusted field name for a message: short, one line, no control characters."""
    return key if key.isprintable() and len(key) <= 40 else shown(key)


def line_of(text: str, field: str) -> int | None:
    """
    Return the line of a field in a JSON document, or of the object that lacks it.

    Parameters
    ----------
    text : a document that parses.
    field : its path, e.g. "criteria[2].tier".

    Examples
    --------
    >>> line_of('{\\n "criteria": [\\n  {"key": "a"},\\n  {"key": "b"}\\n ]}', "criteria[1].tier")
    4
    """
    lines = dict(_places(text))
    while field not in lines and field:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field)


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Yield (path, line) of every value, in order."""
    line = 1
    # Path of each open container and the position in it: an index, or a key (None before the key).
    opened: list[tuple[str, list[int | str | None]]] = []
    for piece in _PIECE.findall(text):
        if piece == "\n":
            line += 1
        elif piece in "]}":
            opened.pop()
        elif piece == ",":
            place = opened[-1][1]
            place[0] = place[0] + 1 if isinstance(place[0], int) else None
        elif piece != ":" and opened and opened[-1][1][0] is None:
            opened[-1][1][0] = json.loads(piece)
        elif piece != ":":
            yield (path := _path(opened)), line
            if piece in "[{":
                opened.append((path, [0 if piece == "[" else None]))


def _path(opened: list[tuple[str, list[int | str | None]]]) -> str:
    if not opened:
        return ""
    base, (here,) = opened[-1]
    if isinstance(here, int):
        return f"{base}[{here}]"
    return f"{base}.{here}" if base else str(here)
