"""What a worker notes while it checks or writes an import, and how it is stopped."""

import fcntl
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import models, transaction

from common.import_watch import ImportWatch
from common.problems import ImportProblem
from common.sql import insert_rows
from labeling.models.imports import PROBLEMS_STORED, DataImport, ImportedRow

ROWS_AT_ONCE = 2000
SECONDS_BETWEEN = 0.5
_RECORD = re.compile(r"record (\d+)$")


class ImportCancelled(Exception):
    """A lead has cancelled the import."""


@contextmanager
def import_lock(row: DataImport) -> Iterator[bool]:
    """Hold the lock of an import, which dies with the process; False: another worker holds it."""
    row.folder.mkdir(parents=True, exist_ok=True)
    with (row.folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


class WorkerWatch(ImportWatch):
    """
    Notes progress in a file, as nothing can be read of an open transaction, and stops when it is asked to.

    Parameters
    ----------
    in_batches : each batch is a transaction, so that others can write between two.
    places : the number of the row in the file of each line.
    tolerant : collect problems and leave their lines out, instead of stopping.
    """

    def __init__(
        self, row: DataImport, *, tolerant: bool, records: bool = True, in_batches: bool = False
    ) -> None:
        self.row, self.tolerant, self.records, self.in_batches = row, tolerant, records, in_batches
        self.places: Sequence[int] = ()
        self.phase, self.done, self.total = "reading", 0, 0
        self.began, self.told = time.time(), 0.0
        self.problems: dict[tuple[int, str, str], None] = {}
        self.seen: set[int] = set()
        self.unreadable = False
        self.stoppable = True
        self.pending: list[ImportedRow] = []

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write rows and what is kept of them in one transaction, where the import writes in batches."""
        if not self.in_batches:
            yield
            return
        try:
            with transaction.atomic():
                yield
                self.flush()
        finally:
            self.pending = []

    def own(self, model: type[models.Model]) -> frozenset[int]:
        """Return the ids of the rows that a worker before had created."""
        name = model._meta.label_lower
        rows = self.row.rows.filter(model=name, before__isnull=True) if self.in_batches else None
        return frozenset(rows.values_list("object_id", flat=True)) if rows is not None else frozenset()

    @property
    def count(self) -> int:
        """The number of problems."""
        return len(self.seen)

    def begin(self, phase: str, total: int = 0) -> None:
        """Begin a phase of the work."""
        self.phase, self.done, self.total, self.began, self.told = phase, 0, total, time.time(), 0.0
        self.advance(0)

    def advance(self, done: int) -> None:
        """Note the progress twice a second. Raises ImportCancelled."""
        self.done += done
        if time.monotonic() - self.told < SECONDS_BETWEEN:
            return
        self.told = time.monotonic()
        if self.stoppable and (self.row.folder / "cancel").exists():
            raise ImportCancelled
        data = {"phase": self.phase, "done": self.done, "total": self.total, "began": self.began}
        draft = self.row.folder / "progress.part"
        draft.write_text(json.dumps(data), encoding="utf-8")
        draft.replace(self.row.folder / "progress")

    def note(self, number: int, field: str, message: str) -> None:
        """Note a problem with a row of the file, once."""
        key = hash((number, field, message))
        if key in self.seen:
            return
        self.seen.add(key)
        if len(self.problems) < PROBLEMS_STORED:
            self.problems[(number, field, message)] = None

    def refuse(self, problem: ImportProblem) -> None:
        """Note a problem with a line; go on only where wrong lines are left out."""
        self.note(self.number_of(problem), problem.field, problem.message)
        if not self.tolerant:
            raise problem

    def number_of(self, problem: ImportProblem) -> int:
        """Return the row of the file that a problem is about, 0 for the whole file."""
        line = problem.line
        if line is None and (record := _RECORD.search(problem.file)):
            line = int(record[1])
        if line is None:
            return 0
        return self.places[line - 1] if 0 < line <= len(self.places) else line

    def created(self, rows: Iterable[models.Model], fields: Sequence[str] = ()) -> None:
        """Keep the ids of new rows."""
        if not self.records:
            return
        for row in rows:
            after = {name: _stored(getattr(row, name)) for name in fields} or None
            self._keep(ImportedRow(model=row._meta.label_lower, object_id=row.pk, after=after))

    def updated(self, row: models.Model, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Keep what a row held before."""
        if self.records:
            was = {name: _stored(value) for name, value in before.items()}
            now = {name: _stored(value) for name, value in after.items()}
            self._keep(ImportedRow(model=row._meta.label_lower, object_id=row.pk, before=was, after=now))

    def flush(self) -> None:
        """Store what is kept, in the transaction of the import."""
        names = ("data_import", "model", "object_id", "before", "after")
        kept = ((self.row.pk, one.model, one.object_id, one.before, one.after) for one in self.pending)
        insert_rows(ImportedRow, names, kept)
        self.pending = []

    def stored_problems(self) -> list[dict[str, Any]]:
        """Return the problems as the database keeps them, in the order of the file."""
        return [
            {"number": number, "field": field[:200], "message": message[:500]}
            for number, field, message in sorted(self.problems)
        ]

    def _keep(self, kept: ImportedRow) -> None:
        kept.data_import = self.row
        self.pending.append(kept)
        if len(self.pending) >= ROWS_AT_ONCE:
            self.flush()


def _stored(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
