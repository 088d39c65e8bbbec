"""What workers do with an import: check the whole file, then write all of it or nothing."""

import json
import logging
import shutil
from array import array
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from common.import_watch import watched
from common.imports import ImportKind
from common.jsonl import ImportResult
from common.problems import FieldProblem, ImportProblem, InputProblem
from common.queue import enqueue_row
from labeling.models.imports import DataImport
from labeling.models.people import User
from labeling.people.services.audit import acting
from labeling.transfer.core.records import UnreadableRest
from labeling.transfer.queries.data_imports import import_kinds, import_lines, source_rows
from labeling.transfer.services.undo import UNDO, rows_removed, undo, undo_refusal, undone
from labeling.transfer.services.watches import ImportCancelled, WorkerWatch, import_lock

log = logging.getLogger(__name__)

CHECK, STORE = "labeling.tasks.check_import", "labeling.tasks.store_import"
TASKS = {
    DataImport.State.CHECKING: CHECK,
    DataImport.State.IMPORTING: STORE,
    DataImport.State.DONE: UNDO,
}
LONGEST_WAIT = timedelta(seconds=30)  # for a worker to begin, before the message counts as lost
LONGEST_DRAFT = timedelta(days=30)
State = DataImport.State


def check_work(import_id: int) -> None:
    """Find every problem of an import's file; a second message for it finds nothing to do."""
    _work(import_id, State.CHECKING, State.DRAFT, _check)


def store_work(import_id: int) -> None:
    """Write an import, all of it or nothing; a second message for it finds nothing to do."""
    _work(import_id, State.IMPORTING, State.CHECKED, _store)


def undo_work(import_id: int) -> None:
    """Take a large import back; a second message for it finds nothing to do."""
    _work(import_id, State.DONE, State.DONE, _undo)


def imports_sweep() -> None:
    """Enqueue imports that no worker holds, and delete files that nobody imported for a month."""
    late = timezone.now() - LONGEST_WAIT
    for row in DataImport.objects.at_work():
        if row.rung_at is not None and row.rung_at > late:
            continue
        with import_lock(row) as free:
            pass
        if free:
            enqueue_row(TASKS[State(row.state)], DataImport.objects.all(), row.pk)
    old = timezone.now() - LONGEST_DRAFT
    for row in DataImport.objects.filter(state__in=(State.DRAFT, State.CHECKED), created_at__lt=old):
        shutil.rmtree(row.folder, ignore_errors=True)
        row.delete()


def _work(import_id: int, state: str, back: str, work: Callable[[DataImport, ImportKind], None]) -> None:
    """Do the work of a state under the import's lock; where it cannot be done, go back and say why."""
    wanted = DataImport.objects.at_work().filter(pk=import_id, state=state)
    row = wanted.select_related("by").first()
    if row is None:
        return
    with import_lock(row) as free:
        # NB: the worker before may have finished between the two reads.
        if not free or not wanted.exists():
            return
        error = ""
        try:
            work(row, import_kinds()[row.kind])
            return
        except ImportCancelled:
            error = "Cancelled. Nothing was written."
        except InputProblem as problem:
            error = plain_message(problem)
        except OSError as problem:
            log.exception("import %s", import_id)
            error = f"The file cannot be worked on: {problem.strerror}. Nothing was written."
        except Exception:
            log.exception("import %s", import_id)
            error = "The import failed for a reason that is in the server's log. Nothing was written."
        finally:
            (row.folder / "cancel").unlink(missing_ok=True)
            (row.folder / "progress").unlink(missing_ok=True)
        DataImport.objects.filter(pk=import_id, state=state).update(state=back, error=error)


def plain_message(problem: InputProblem) -> str:
    """Return a message without file paths and options of commands."""
    if isinstance(problem, ImportProblem):
        return f"{problem.field}: {problem.message}" if problem.field else problem.message
    text = str(problem)
    for option in ("--set: ", "--rubric: ", "--kind: ", "--cluster-key: "):
        text = text.removeprefix(option)
    return text[:1].upper() + text[1:]


def _check(row: DataImport, kind: ImportKind) -> None:
    watch = WorkerWatch(row, tolerant=True, records=False)
    lines = _write_lines(row, kind, watch)
    result = ImportResult(0, 0, 0, {})
    watch.begin("checking", lines)
    with watched(watch):
        try:
            if kind.check is not None and lines:
                result = kind.check(row.lines_path, row.options)
            if kind.trial and lines and not (kind.check and watch.count):
                result = _trial(row, kind)
        except ImportProblem as problem:
            watch.note(watch.number_of(problem), problem.field, problem.message)
        except InputProblem as problem:
            watch.note(0, "", plain_message(problem))
    if not lines and not watch.count:
        watch.note(0, "", f"The file holds no {kind.unit}")
    changes: dict[str, Any] = {
        "state": State.CHECKED,
        "lines": lines,
        "problem_count": watch.count,
        "problems": watch.stored_problems(),
        "unreadable": watch.unreadable or not lines,
        "result": result_json(result),
        "error": "",
    }
    DataImport.objects.filter(pk=row.pk, state=State.CHECKING).update(**changes)


def _trial(row: DataImport, kind: ImportKind) -> ImportResult:
    """Write the lines as the import does and take it back."""
    with transaction.atomic(), acting(row.by):
        result = kind.store(row.lines_path, row.options)
        transaction.set_rollback(True)
    return result


def _write_lines(row: DataImport, kind: ImportKind, watch: WorkerWatch) -> int:
    """Write the lines that the file becomes, and the row that each came from; return how many."""
    row.lines_path.parent.mkdir(exist_ok=True)
    watch.begin("reading")
    if row.options.get("tool"):
        shutil.copyfile(row.path, row.lines_path)
        return sum(1 for _ in source_rows(row))
    places = array("Q")
    with row.lines_path.open("w", encoding="utf-8", newline="\n") as file:
        for number, line in import_lines(row, kind, source_rows(row)):
            if isinstance(line, FieldProblem):
                watch.unreadable |= isinstance(line, UnreadableRest)
                watch.note(number, line.field, line.message)
            else:
                # NB: half a surrogate pair cannot be written as UTF-8, so it stays escaped.
                file.write(json.dumps(line) + "\n")
                places.append(number)
            watch.advance(1)
    (row.folder / "places").write_bytes(places.tobytes())
    watch.places = places
    return len(places)


def _store(row: DataImport, kind: ImportKind) -> None:
    watch = WorkerWatch(row, tolerant=bool(row.options.get("skip")), in_batches=kind.batches)
    if (row.folder / "places").exists():
        places = array("Q")
        places.frombytes((row.folder / "places").read_bytes())
        watch.places = places
    watch.begin("importing", row.lines)
    try:
        with watched(watch), acting(row.by):
            _write(row, kind, watch)
    except Exception as error:
        if kind.batches:
            _take_back(row, watch)
        if not isinstance(error, ImportProblem):
            raise
        place = watch.number_of(error)
        where = f"In row {place}: " if place else ""
        raise InputProblem(
            f"{where}{plain_message(error)}. Nothing was written; check the file again."
        ) from None
    shutil.rmtree(row.lines_path.parent, ignore_errors=True)


def _write(row: DataImport, kind: ImportKind, watch: WorkerWatch) -> None:
    """Write the rows and, in the same or the last transaction, that they are written."""
    with nullcontext() if kind.batches else transaction.atomic():
        result = kind.store(row.lines_path, row.options)
        with transaction.atomic():
            locked = DataImport.objects.select_for_update(of=("self",)).get(pk=row.pk)
            if locked.state != State.IMPORTING:
                raise ImportCancelled
            watch.flush()
            locked.state, locked.finished_at, locked.error = State.DONE, timezone.now(), ""
            locked.result = result_json(result)
            locked.save()


def _undo(row: DataImport, kind: ImportKind) -> None:
    by = User.objects.get(pk=row.options[DataImport.UNDOING])
    watch = WorkerWatch(row, tolerant=False)
    watch.stoppable = False
    watch.begin("removing", row.rows.count())
    try:
        if not kind.batches:
            undo(row=row, by=by)
            return
        if refusal := undo_refusal(row):
            raise InputProblem(refusal)
        for removed in rows_removed(row):
            watch.advance(removed)
        with transaction.atomic():
            undone(row=row, by=by)
    except InputProblem as problem:
        row.options.pop(DataImport.UNDOING)
        row.save(update_fields=["options"])
        raise InputProblem(f"Not undone. {plain_message(problem)}") from None


def _take_back(row: DataImport, watch: WorkerWatch) -> None:
    """Remove what a failed import had written; raise InputProblem where some of it must stay."""
    watch.stoppable = False
    watch.begin("removing", row.rows.count())
    if refusal := undo_refusal(row):
        raise InputProblem(
            f"The import stopped, and the chats before that are in the workspace: {refusal} "
            "Start it again to complete it."
        )
    for removed in rows_removed(row):
        watch.advance(removed)


def result_json(result: ImportResult) -> dict[str, Any]:
    """Return a result as the database keeps it."""
    return {
        "created": result.created,
        "unchanged": result.unchanged,
        "updated": result.updated,
        "ignored": dict(list(result.ignored.items())[:50]),
        "notes": list(result.notes),
    }
