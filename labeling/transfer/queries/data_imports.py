"""Reads of imports: kinds, the mapping to offer, the preview, the progress of the worker."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from common.guarded_json import guarded_loads
from common.imports import ImportKind
from common.problems import FieldProblem
from labeling.models.imports import DataImport, SavedMapping
from labeling.models.rubric import Criterion
from labeling.transfer.core.chat_rows import chat_lines, mapping_problem
from labeling.transfer.core.columns import Column, ColumnMapping, guessed, signature_of
from labeling.transfer.core.lines import missing_columns, plain_lines
from labeling.transfer.core.rows import Row
from labeling.transfer.core.tables import Source, rows_of

PREVIEW_CHATS = 10
PREVIEW_ROWS = 2000
PREVIEW_MESSAGES, PREVIEW_CHARACTERS = 50, 5000


@dataclass(frozen=True, slots=True)
class PreviewChat:
    """A chat as raters will see it."""

    external_id: str
    topic: str
    messages: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows as the mapping reads them; `problem` is what the mapping lacks, or the first problem."""

    chats: tuple[PreviewChat, ...] = ()
    lines: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a worker has done; `seconds_left` None while nobody knows."""

    phase: str
    done: int
    total: int
    seconds_left: int | None


def import_kinds() -> dict[str, ImportKind]:
    """Return all kinds by key, in the order of the settings."""
    kinds: list[ImportKind] = [import_string(path) for path in settings.IMPORT_KINDS]
    return {kind.key: kind for kind in kinds}


def source_rows(row: DataImport) -> Iterator[Row]:
    """Yield the rows of the import's file."""
    return rows_of(row.path, Source(**row.source))


def mapping_of(row: DataImport) -> ColumnMapping:
    """Return the import's mapping as the core reads it."""
    return ColumnMapping(row.mapping.get("columns", {}), row.mapping.get("speakers", {}))


def columns_of(row: DataImport) -> tuple[Column, ...]:
    """Return the columns that the file had in its first rows."""
    return tuple(Column(one["name"], one["example"], tuple(one["words"])) for one in row.columns)


def defaults_of(row: DataImport) -> dict[str, Any]:
    """Return what stands for missing columns: one rater or judge for the whole file."""
    return {name: row.options[name] for name in ("rater", "judge") if row.options.get(name)}


def saved_mapping(*, kind: str, columns: tuple[Column, ...]) -> SavedMapping | None:
    """Return what columns of these names were the last time."""
    signature = signature_of(column.name for column in columns)
    return SavedMapping.objects.select_related("by").filter(kind=kind, signature=signature).first()


def guess_of(kind: ImportKind, columns: tuple[Column, ...]) -> ColumnMapping:
    """Return what the columns probably are."""
    criteria = Criterion.objects.values_list("key", flat=True) if kind.wide else ()
    return guessed(kind, columns, criteria)


def import_lines(row: DataImport, kind: ImportKind, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the lines that the rows of a file become, with the numbers of their rows."""
    if kind.reader is not None:
        return kind.reader(row.path, row.source)
    mapping = mapping_of(row)
    if kind.key == "chats":
        return chat_lines(rows, mapping, kind.targets, prefix=f"import-{row.sha256[:8]}")
    return plain_lines(rows, mapping, kind.targets, defaults_of(row))


def mapping_refusal(row: DataImport, kind: ImportKind) -> str:
    """Return what the mapping lacks, "" where nothing is."""
    if row.options.get("tool") or kind.reader is not None:
        return ""
    mapping = mapping_of(row)
    if kind.key == "chats":
        return mapping_problem(mapping)
    return missing_columns(mapping, kind.targets, defaults_of(row))


def preview_of(row: DataImport, kind: ImportKind) -> Preview:
    """Return the first chats or lines of a file; it reads the first 2,000 rows at most."""
    if row.options.get("tool"):
        return Preview()
    if kind.reader is not None:
        return _checked_preview(row)
    if refusal := mapping_refusal(row, kind):
        return Preview(problem=refusal)
    try:
        return _preview(row, kind)
    except OSError:
        return Preview(problem="The file is no longer on this server. Import it again.")


def _preview(row: DataImport, kind: ImportKind) -> Preview:
    found: list[dict[str, Any]] = []
    problem = ""
    for number, line in import_lines(row, kind, islice(source_rows(row), PREVIEW_ROWS)):
        if isinstance(line, FieldProblem):
            problem = problem or f"{number}: {line}"
        elif len(found) < PREVIEW_CHATS:
            found.append(line)
        if len(found) == PREVIEW_CHATS:
            break
    if kind.key != "chats":
        return Preview(lines=tuple(found), problem="" if found else problem)
    return Preview(chats=tuple(map(_preview_chat, found)), problem="" if found else problem)


def _checked_preview(row: DataImport) -> Preview:
    """Return the first chats that the check has read; reading the file once more may take minutes."""
    try:
        with row.lines_path.open(encoding="utf-8") as file:
            lines = [guarded_loads(line) for line in islice(file, PREVIEW_CHATS)]
    except (OSError, FieldProblem):
        return Preview()
    return Preview(chats=tuple(map(_preview_chat, lines)))


def _preview_chat(line: Mapping[str, Any]) -> PreviewChat:
    messages = [_shortened(n, message) for n, message in enumerate(line["messages"][:PREVIEW_MESSAGES], 1)]
    return PreviewChat(str(line["id"]), str(line.get("topic") or "unknown"), messages)


def _shortened(n: int, message: Any) -> dict[str, Any]:
    return {"n": n, **message, "content": str(message.get("content", ""))[:PREVIEW_CHARACTERS]}


def progress_of(row: DataImport) -> Progress | None:
    """Return how far the worker is, None while none has begun."""
    try:
        data = guarded_loads((row.folder / "progress").read_text("utf-8"))
    except (OSError, FieldProblem):
        return None
    done, total = int(data["done"]), int(data["total"])
    elapsed = timezone.now().timestamp() - float(data["began"])
    left = round(elapsed * (total - done) / done) if 0 < done <= total and elapsed > 2 else None
    return Progress(str(data["phase"]), done, total, left)


def example_text(value: Any) -> str:
    """Return a value of a line for a table of the preview."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
