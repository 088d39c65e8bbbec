"""The file of a whole workspace: a ZIP with one JSON Lines file a table, and a manifest. Plain Python."""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, cast

from common.files import DAMAGED_ZIP, json_line
from common.guarded_json import guarded_loads
from common.jsonl import Fields
from common.problems import FieldProblem, InputProblem, shown

FORMAT = 1
KIND = "lace-workspace"
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 1_000_000  # bytes
LARGEST_LINE = 32 * 1024**2  # bytes
MOST_VALUES = 4_000_000  # of one line; a megabyte of "[]," becomes 20 MB of objects
LARGEST = 20 * 1024**3  # bytes of all tables together
# A table of real rows shrinks to about a twentieth; a bomb to a thousandth.
MOST_SHRUNK, SMALL = 200, 10 * 1024**2
_CHUNK = 1 << 20
_ENCRYPTED = 0x1
_DAMAGED = (*DAMAGED_ZIP, OSError)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What the manifest says of a table."""

    rows: int
    bytes: int
    sha256: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds. `migrations`: the newest one of each app of ours."""

    product: Mapping[str, str]
    created_at: str
    migrations: Mapping[str, str]
    tables: Mapping[str, TableEntry]

    @property
    def rows(self) -> int:
        """Return the number of rows in all tables."""
        return sum(table.rows for table in self.tables.values())

    def as_json(self) -> dict[str, Any]:
        """Return the document of the manifest."""
        return {
            "kind": KIND,
            "format": FORMAT,
            "product": dict(self.product),
            "created_at": self.created_at,
            "migrations": dict(self.migrations),
            "tables": {
                name: {
                    "rows": one.rows,
                    "bytes": one.bytes,
                    "sha256": one.sha256,
                    "columns": list(one.columns),
                }
                for name, one in self.tables.items()
            },
        }


def member_of(table: str) -> str:
    """
    Return the name of a table's file in the ZIP.

    Examples
    --------
    >>> member_of("labeling.Chat")
    'tables/labeling.Chat.jsonl'
    """
    return f"tables/{table}.jsonl"


def manifest_of(fields: Fields) -> Manifest:
    """
    Validate a manifest.

    Raises FieldProblem; a later format is refused by its number.
    """
    if fields.text("kind", default="") != KIND:
        raise fields.refuse("kind", f"is not {KIND!r}: this is no archive of a workspace")
    if (number := fields.whole("format", low=1)) != FORMAT:
        raise fields.refuse("format", f"is {number}, and this version reads {FORMAT}: update the workbench")
    tables = Fields(fields.mapping("tables"), "tables")
    return Manifest(
        product=_texts(fields, "product"),
        created_at=fields.text("created_at"),
        migrations=_texts(fields, "migrations"),
        tables={name: _entry(Fields(tables.data[name], f"tables.{name}")) for name in tables.data},
    )


def _texts(fields: Fields, key: str) -> dict[str, str]:
    inner = Fields(fields.mapping(key), key)
    return {name: inner.text(name) for name in inner.data}


def _entry(fields: Fields) -> TableEntry:
    columns = fields.items("columns")
    if not all(isinstance(name, str) for name in columns):
        raise fields.refuse("columns", "must be a list of names")
    size = {name: fields.whole(name) for name in ("rows", "bytes")}
    return TableEntry(size["rows"], size["bytes"], fields.text("sha256"), tuple(columns))


# ---------- writing ----------


def table_write(
    archive: zipfile.ZipFile, table: str, columns: Sequence[str], rows: Iterable[Row]
) -> TableEntry:
    """Write the file of one table and return its entry in the manifest."""
    digest, size, count = sha256(), 0, 0
    with archive.open(member_of(table), "w", force_zip64=True) as target:
        for row in rows:
            line = f"{json_line(row)}\n".encode()
            digest.update(line)
            size += target.write(line)
            count += 1
    return TableEntry(count, size, digest.hexdigest(), tuple(columns))


def manifest_write(archive: zipfile.ZipFile, manifest: Manifest) -> None:
    """Write the manifest, as the last file."""
    archive.writestr(MANIFEST, json.dumps(manifest.as_json(), indent=1, ensure_ascii=False))


# ---------- reading: nothing is taken on trust ----------


class ArchiveReader:
    """An archive from anywhere. All errors are InputProblem and name the file, and the table if it is one."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.archive, self.name = archive, name
        self.manifest = self._manifest()

    def refuse(self, message: str) -> InputProblem:
        """Return the error to raise about this archive."""
        return InputProblem(f"{self.name}: {message}")

    def check(self) -> None:
        """Read all of it once: the files are those of the manifest, with its sizes and hashes."""
        members = self.archive.infolist()
        expected = {MANIFEST, *(member_of(table) for table in self.manifest.tables)}
        names = [member.filename for member in members]
        if unknown := sorted(set(names) - expected):
            raise self.refuse(f"holds the unknown file {shown(unknown[0])}")
        if missing := sorted(expected - set(names)):
            raise self.refuse(f"lacks the file {missing[0]}")
        if len(names) != len(expected):
            raise self.refuse("holds a file twice")
        for member in members:
            self._check_member(member)
        if sum(table.bytes for table in self.manifest.tables.values()) > LARGEST:
            raise self.refuse(f"is larger than {LARGEST // 1024**3} GB when unpacked")
        for table, entry in self.manifest.tables.items():
            self._check_table(table, entry)

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table, one in memory at a time, with exactly the columns of the manifest."""
        entry = self.manifest.tables[table]
        columns = set(entry.columns)
        with self._opened(table) as source:
            for number in range(1, entry.rows + 1):
                row = self._row(table, number, source.readline(LARGEST_LINE + 1))
                if row.keys() != columns:
                    raise self.refuse(f"{table} line {number}: its columns are not those of the manifest")
                yield row
            if source.read(1):
                raise self.refuse(f"{table} has more rows than the manifest says")

    def _row(self, table: str, number: int, line: bytes) -> Row:
        place = f"{table} line {number}"
        if len(line) > LARGEST_LINE:
            raise self.refuse(f"{place} is longer than {LARGEST_LINE // 1024**2} MB")
        if sum(line.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
            raise self.refuse(f"{place} holds more than {MOST_VALUES:,} values")
        if not line:
            raise self.refuse(f"{table} has fewer rows than the manifest says")
        try:
            row = json.loads(line.decode(), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise self.refuse(f"{place} is not a JSON object") from None
        if not isinstance(row, dict):
            raise self.refuse(f"{place} is not a JSON object")
        return row

    def _manifest(self) -> Manifest:
        try:
            member = self.archive.getinfo(MANIFEST)
        except KeyError:
            raise self.refuse(f"has no {MANIFEST}: this is no archive of a workspace") from None
        self._check_member(member)
        if member.file_size > LARGEST_MANIFEST:
            raise self.refuse("the manifest is too large")
        try:
            with self.archive.open(member) as source:
                text = source.read(LARGEST_MANIFEST + 1)
        except _DAMAGED:
            raise self.refuse("the manifest is damaged") from None
        try:
            return manifest_of(Fields(guarded_loads(text.decode())))
        except UnicodeDecodeError:
            raise self.refuse("the manifest is not UTF-8") from None
        except FieldProblem as problem:
            raise self.refuse(f"manifest, {problem}") from None

    def _check_member(self, member: zipfile.ZipInfo) -> None:
        if member.flag_bits & _ENCRYPTED:
            raise self.refuse("is encrypted")
        if member.file_size > max(SMALL, MOST_SHRUNK * member.compress_size):
            raise self.refuse(f"{shown(member.filename)} unpacks to more than {MOST_SHRUNK} times its size")

    def _check_table(self, table: str, entry: TableEntry) -> None:
        digest, size = sha256(), 0
        with self._opened(table) as source:
            while size <= entry.bytes and (chunk := source.read(_CHUNK)):
                digest.update(chunk)
                size += len(chunk)
        if size != entry.bytes or digest.hexdigest() != entry.sha256:
            raise self.refuse(
                f"{table} differs from its sum in the manifest: the archive is damaged or changed"
            )

    @contextmanager
    def _opened(self, table: str) -> Iterator[IO[bytes]]:
        try:
            with (
                self.archive.open(member_of(table)) as member,
                io.BufferedReader(cast(io.RawIOBase, member), _CHUNK) as source,
            ):
                yield source
        except _DAMAGED:
            raise self.refuse(f"{table} is damaged") from None


@contextmanager
def archive_opened(source: Path | IO[bytes], name: str) -> Iterator[ArchiveReader]:
    """Open an archive. Raises InputProblem for what is no ZIP file, or is damaged."""
    try:
        archive = zipfile.ZipFile(source)
    except FileNotFoundError:
        raise InputProblem(f"{name}: no such file") from None
    except IsADirectoryError:
        raise InputProblem(f"{name}: is a folder, not a file") from None
    except _DAMAGED:
        raise InputProblem(f"{name} is no ZIP file, or a damaged one") from None
    with archive:
        yield ArchiveReader(archive, name)


def _no_constant(name: str) -> Any:
    raise ValueError(name)
