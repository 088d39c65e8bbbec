"""Objects of a large JSON file, an array or JSON Lines, with one in memory at a time."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from common.guarded_json import guarded_loads
from common.jsonl import MAX_LINE, Fields, open_input
from common.problems import FieldProblem, ImportProblem

CHUNK = 1 << 16  # characters
# A whole string, a string that continues after the chunk, or a bracket.
_PIECE = re.compile(r'"(?:[^"\\]++|\\.)*+"|["\][{}]', re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^\s",:\[\]{}]++', re.DOTALL)
_BLANK = re.compile(r"\s*+")


class UnreadableRest(FieldProblem):
    """The rest of the file cannot be read, so no part of it may be imported."""


def read_objects(path: Path) -> Iterator[tuple[int, Fields]]:
    """
    Yield numbers (from 1) and fields of the objects of a UTF-8 file, checked like JSON Lines.

    Raises
    ------
    ImportProblem
        no such file, not UTF-8, neither an array of objects nor JSON Lines, truncated, an object over 16 MB,
        or what `guarded_loads` refuses; with the number of the record.
    """
    for number, value in object_values(path):
        if isinstance(value, FieldProblem):
            raise record_problem(path, number, value.field, value.message)
        yield number, Fields(value)


def object_values(path: Path) -> Iterator[tuple[int, dict[str, Any] | FieldProblem]]:
    """Yield what `read_objects` reads, and wrong records as their problem; the last one may end the file."""
    number = 1
    with open_input(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        texts = _texts(file)
        while True:
            try:
                text = next(texts, None)
            except UnicodeDecodeError:
                yield number, UnreadableRest("", "is not UTF-8")
                return
            except FieldProblem as problem:
                yield number, UnreadableRest(problem.field, problem.message)
                return
            if text is None:
                return
            try:
                yield number, Fields(guarded_loads(text)).data
            except FieldProblem as problem:
                yield number, problem
            number += 1


def record_problem(path: Path, number: int, field: str, message: str) -> ImportProblem:
    """
    Return the error about a record of a file.

    Examples
    --------
    >>> print(record_problem(Path("a.json"), 3, "annotations[0].id", "is missing"))
    a.json record 3, annotations[0].id: is missing
    """
    return ImportProblem(f"{path} record {number}", None, field, message)


def _texts(file: TextIO) -> Iterator[str]:
    """Yield the text of each object."""
    window = Window(file)
    is_array = window.take("[")
    first = True
    while not (window.take("]") if is_array else window.at_end()):
        if is_array and not first and not window.take(",") and not window.at_end():
            raise FieldProblem("", "must be followed by a comma or the end of the list")
        first = False
        yield window.object()
    if not window.at_end():
        raise FieldProblem("", "unexpected text after the end of the list")


class Window:
    """The part of the file in memory that is not consumed yet."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.text, self.at = file, "", 0
        self._line, self._counted = 1, 0  # the line at this place of `text`

    @property
    def line(self) -> int:
        """The line of what comes next, from 1."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def more(self) -> bool:
        """Double the text in memory; return False at the end of the file."""
        chunk = self.file.read(max(CHUNK, len(self.text) - self.at))
        self._line, self._counted = self.line, 0
        self.text, self.at = self.text[self.at :] + chunk, 0
        if len(self.text) > 2 * MAX_LINE:
            raise _too_long()
        return bool(chunk)

    def at_end(self) -> bool:
        """Whether only white space is left."""
        while True:
            match = _BLANK.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return False
            if not self.more():
                return True

    def take(self, mark: str) -> bool:
        """Skip a mark if it comes next; return whether it did."""
        if self.at_end() or self.text[self.at] != mark:
            return False
        self.at += 1
        return True

    def object(self) -> str:
        """Return the text of the next object."""
        if self.at_end():
            raise FieldProblem("", "the file ends before the end of the list")
        if self.text[self.at] != "{":
            raise FieldProblem("", "must be an object: expected a list of objects, or one object per line")
        return self._bracketed()

    def value(self) -> str:
        """Return the text of the next value of any type."""
        if self.at_end():
            raise FieldProblem("", "the file ends inside this record")
        if self.text[self.at] in "[{":
            return self._bracketed()
        while True:
            match = _SCALAR.match(self.text, self.at)
            # A number may continue after the chunk.
            if match and match.end() < len(self.text):
                return self._consume(match.end() - self.at)
            if not self.more():
                raise FieldProblem("", "the file ends inside this record")

    def _bracketed(self) -> str:
        depth, scanned = 0, 0  # characters after self.at
        while True:
            for piece in _PIECE.finditer(self.text, self.at + scanned):
                if piece[0] == '"':
                    break  # the string continues after the chunk
                scanned = piece.end() - self.at
                depth += (piece[0] in "[{") - (piece[0] in "]}")
                if depth == 0:
                    return self._consume(scanned)
            if not self.more():
                raise FieldProblem("", "the file ends inside this record")

    def _consume(self, length: int) -> str:
        if length > MAX_LINE:
            raise _too_long()
        text = self.text[self.at : self.at + length]
        self.at += length
        return text


def _too_long() -> FieldProblem:
    return FieldProblem("", f"the record is longer than {MAX_LINE // 1024**2} MB")
