"""Import files: streamed JSON Lines, typed fields, errors that name file, line and field."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from common.guarded_json import guarded_loads, line_of, printable
from common.import_watch import import_watch
from common.problems import FieldProblem, ImportProblem, shown

MAX_LINE = 16 * 1024 * 1024  # bytes
NAME_LIMIT = 120
KEY_LIMIT = 200

T = TypeVar("T")
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, as some spreadsheets save it
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import; `ignored` counts the lines with each unknown field."""

    created: int
    unchanged: int
    updated: int
    ignored: Mapping[str, int]
    notes: tuple[str, ...] = ()


class Ignored:
    """Counts unknown fields, which imports ignore but report."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, names: Iterable[str], prefix: str = "") -> None:
        """Count each of these fields once for this line."""
        self.counts.update({f"{prefix}{printable(name)}" for name in names})


class Fields:
    """
    Typed access to one JSON object; errors name the field by its path in the line.

    Parameters
    ----------
    data : the object; other values raise FieldProblem.
    path : its position in the line, e.g. "messages[2]"; "" for the line itself.

    Examples
    --------
    >>> Fields({"id": "a1"}).text("id")
    'a1'
    >>> Fields({"role": 3}, "messages[2]").text("role")
    Traceback (most recent call last):
    common.problems.FieldProblem: messages[2].role: must be text, not 3
    """

    __slots__ = ("data", "path")

    def __init__(self, data: object, path: str = "") -> None:
        if not isinstance(data, dict):
            raise FieldProblem(path, f"must be an object, not {shown(data)}")
        self.data: dict[str, Any] = data
        self.path = path

    def refuse(self, key: str, message: str) -> FieldProblem:
        """Return the error to raise about a field of this object."""
        return FieldProblem(f"{self.path}.{key}" if self.path else key, message)

    def given(self, key: str) -> bool:
        """Whether the field is present and not null."""
        return self.data.get(key) is not None

    def unknown(self, known: frozenset[str]) -> set[str]:
        """Return the names of unknown fields."""
        return self.data.keys() - known

    def text(self, key: str, *, default: str = _MISSING, limit: int | None = None, blank: bool = True) -> str:
        """Return text of at most `limit` characters; refuse white space alone unless `blank`."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.refuse(key, self._not("text", value))
        if limit is not None and len(value) > limit:
            raise self.refuse(key, f"is longer than {limit:,} characters ({len(value):,})")
        if not blank and not value.strip():
            raise self.refuse(key, "must not be blank")
        return value

    def choice(self, key: str, options: Iterable[str], *, default: str = _MISSING) -> str:
        """Return one of the options."""
        value = self.data.get(key, default)
        if value is _MISSING or not isinstance(value, str) or value not in options:
            raise self.refuse(key, self._not(f"one of {', '.join(options)}", value))
        return value

    def boolean(self, key: str, *, default: bool = _MISSING) -> bool:
        """Return a boolean."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise self.refuse(key, self._not("true or false", value))
        return value

    def answer(self, key: str, *, default: bool | None = _MISSING) -> bool | None:
        """Return true, false, or None for not applicable."""
        value = self.data.get(key, default)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(key, self._not("true, false or null", value))
        return value

    def whole(self, key: str, *, low: int = 0) -> int:
        """Return a whole number of at least `low`."""
        return whole_number(self.data.get(key, _MISSING), self.refuse, key, low=low)

    def share(self, key: str) -> float | None:
        """Return a number from 0 to 1, or None where it is absent or null."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise self.refuse(key, self._not("a number from 0 to 1", value))
        return float(value)

    def items(self, key: str, *, default: list[Any] = _MISSING) -> list[Any]:
        """Return a list."""
        value = self.data.get(key, default)
        if not isinstance(value, list):
            raise self.refuse(key, self._not("a list", value))
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an object."""
        value = self.data.get(key)
        if not isinstance(value, dict):
            raise self.refuse(key, self._not("an object", value))
        return value

    def moment(self, key: str) -> datetime | None:
        """Return an ISO 8601 time as an aware UTC datetime (default zone UTC); None where absent or null."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.refuse(key, self._not("an ISO 8601 time", value))
        try:
            parsed = datetime.fromisoformat(value)
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.refuse(key, self._not("an ISO 8601 time", value)) from None

    @staticmethod
    def _not(expected: str, value: object) -> str:
        return "is missing" if value is _MISSING else f"must be {expected}, not {shown(value)}"


def whole_number(value: object, refuse: Callable[[str, str], FieldProblem], key: str, *, low: int) -> int:
    """Return a whole number of at least `low`; `refuse(key, message)` makes the error."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise refuse(key, Fields._not(f"a whole number from {low} up", value))
    return value


def in_batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """
    Yield lists of at most `size` values, in order.

    Examples
    --------
    >>> list(in_batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def iso(moment: datetime) -> str:
    """
    Format a time as in the files.

    Examples
    --------
    >>> iso(datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    '2026-01-02T03:04:00Z'
    """
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_records(path: Path, parse: Callable[[Fields], T]) -> Iterator[tuple[int, T]]:
    """
    Yield line numbers and parsed objects of a JSON Lines file, one line in memory at a time.

    Parameters
    ----------
    path : the file; blank lines are skipped, but counted.
    parse : from the line's fields to a record; raises FieldProblem.

    Raises
    ------
    ImportProblem
        with file, line and field, unless the import's watch takes it: the line is then left out.
    """
    for number, value in jsonl_values(path):
        wrong = value if isinstance(value, FieldProblem) else None
        if not isinstance(value, FieldProblem):
            try:
                record = parse(Fields(value))
            except FieldProblem as problem:
                wrong = problem
        if wrong is None:
            yield number, record
        else:
            import_watch().refuse(ImportProblem(str(path), number, wrong.field, wrong.message))


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """
    Yield line numbers and JSON objects of a UTF-8 file, one line in memory at a time.

    Raises
    ------
    ImportProblem
        no such file, not UTF-8, a binary file, a line over 16 MB, not a JSON object, or what `guarded_loads`
        refuses.
    """
    for number, value in jsonl_values(path):
        if isinstance(value, FieldProblem):
            raise ImportProblem(str(path), number, value.field, value.message)
        yield number, value


def jsonl_values(path: Path) -> Iterator[tuple[int, dict[str, Any] | FieldProblem]]:
    """Yield what `read_jsonl` yields, and a wrong line as its problem; raise ImportProblem for no file."""
    with open_input(path) as file:
        number = 0
        while raw := file.readline(MAX_LINE + 1):
            number += 1
            try:
                text = _decoded(raw, first=number == 1)
                if text.strip():
                    yield number, _object(text)
            except FieldProblem as problem:
                yield number, problem
                if len(raw) > MAX_LINE:
                    return  # what follows is the rest of this line


def read_document(path: Path, parse: Callable[[Fields], T]) -> T:
    """
    Parse the one JSON object of a UTF-8 file of at most 16 MB.

    Raises
    ------
    ImportProblem
        as `read_records`; the line is that of the field, or of the object that lacks it.
    """
    with open_input(path) as file:
        raw = file.read(MAX_LINE + 1)
    text = ""
    try:
        text = _decoded(raw, first=True, what="file")
        value = guarded_loads(text)
    except FieldProblem as problem:
        raise ImportProblem(str(path), problem.line, problem.field, problem.message) from None
    try:
        return parse(Fields(value))
    except FieldProblem as problem:
        raise ImportProblem(str(path), line_of(text, problem.field), problem.field, problem.message) from None


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file of at most 16 MB, with line ends as LF."""
    with open_input(path) as file:
        raw = file.read(MAX_LINE + 1)
    try:
        text = _decoded(raw, first=True, what="file")
        if "\x00" in text:
            raise FieldProblem("", "holds a NUL character: is this a binary file?")
    except FieldProblem as problem:
        raise ImportProblem(str(path), None, problem.field, problem.message) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def open_input(path: Path) -> BinaryIO:
    """Open the file for reading bytes; raise ImportProblem with the reason."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        message = "no such file"
    except IsADirectoryError:
        message = "is a folder, not a file"
    except (OSError, ValueError) as error:
        message = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ImportProblem(str(path), None, "", message)


def _decoded(raw: bytes, *, first: bool, what: str = "line") -> str:
    if first and raw.startswith(_WIDE):
        raise FieldProblem("", "is UTF-16, not UTF-8: save it as UTF-8")
    if len(raw) > MAX_LINE:
        raise FieldProblem("", f"the {what} is longer than {MAX_LINE // 1024**2} MB")
    if first:
        raw = raw.removeprefix(_BOM)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        binary = ": is this a binary file?" if b"\x00" in raw else ""
        raise FieldProblem("", f"is not UTF-8 at byte {error.start + 1} of the {what}{binary}") from None
    if "\x00" in text:
        raise FieldProblem("", "holds a NUL character: is this a binary file?")
    return text


def _object(text: str) -> dict[str, Any]:
    value = guarded_loads(text)
    if not isinstance(value, dict):
        raise FieldProblem("", f"must be a JSON object, not {shown(value)}")
    return value
