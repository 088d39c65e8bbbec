"""Imports on pages: take a file, choose its columns, start the check and the import, cancel, discard."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from common.guarded_json import guarded_loads
from common.imports import ImportKind
from common.problems import FieldProblem, InputProblem, shown
from common.queue import enqueue_row
from labeling.chats.core.splits import proportions_of
from labeling.chats.services.chat_sets import NAME_LIMIT
from labeling.models.chats import ChatSet, Split
from labeling.models.imports import DataImport, SavedMapping
from labeling.models.people import User
from labeling.models.rubric import Criterion, Rubric
from labeling.transfer.core.chat_rows import ROLES
from labeling.transfer.core.columns import CRITERION, signature_of, summary_of, targets_of
from labeling.transfer.core.tables import extras_of, rows_of, source_of
from labeling.transfer.queries.data_imports import (
    columns_of,
    guess_of,
    import_kinds,
    mapping_refusal,
    saved_mapping,
)
from labeling.transfer.services.importers import TOOLS
from labeling.transfer.services.watches import import_lock
from labeling.transfer.services.work import CHECK, STORE

State = DataImport.State
MAX_MAP = 1 << 20
_UNSAFE = re.compile(r"[^\w .()-]+")
# Fields by which records of other tools are known.
_TOOL_SIGNS = {"annotations": "label-studio", "responses": "argilla"}


def data_import_create(*, kind: ImportKind, name: str, chunks: Iterable[bytes], by: User) -> DataImport:
    """Store a file with what it seems to be, and guess its columns.

    Raises InputProblem for a file that cannot be read; nothing is kept then.
    """
    row = DataImport(kind=kind.key, file_name=safe_name(name), size=0, sha256="", by=by)
    row.save()
    try:
        _receive(row, chunks)
        _recognise(row, kind)
        row.save()
    except FieldProblem as problem:
        _forget(row)
        raise InputProblem(
            f"{problem.field}: {problem.message}." if problem.field else f"{problem.message}."
        ) from None
    except OSError as error:
        _forget(row)
        raise InputProblem(f"The server could not store the file: {error.strerror}.") from error
    except BaseException:
        _forget(row)
        raise
    return row


def safe_name(name: str) -> str:
    """
    Return the name of a file without folders and signs that mean something to a system.

    Examples
    --------
    >>> safe_name("../../etc/pass wd\\x00.csv"), safe_name("..")
    ('pass wd.csv', 'file')
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return _UNSAFE.sub("", last).strip(" .")[:100].strip(" .") or "file"


@transaction.atomic
def mapping_save(
    *, row: DataImport, columns: Mapping[str, str], speakers: Mapping[str, str], options: Mapping[str, Any]
) -> DataImport:
    """Keep what the columns are and where the lines go; unknown columns and fields are dropped.

    Raises InputProblem where the import is not open for changes.
    """
    row = _locked(row, State.DRAFT, State.CHECKED)
    _refuse_partly_written(row)
    kind = import_kinds()[row.kind]
    keys = {target.key for target in targets_of(kind)}
    names = {column.name for column in columns_of(row)}
    row.mapping = {
        "columns": {
            name: key if key in keys or (kind.wide and key.startswith(CRITERION)) else ""
            for name, key in columns.items()
            if name in names
        },
        "speakers": {word: role for word, role in speakers.items() if role in ROLES},
    }
    kept = {name: row.options[name] for name in ("dimensions",) if name in row.options}
    row.options = kept | dict(options)
    row.state, row.error = State.DRAFT, ""
    row.problems, row.problem_count, row.result = [], 0, {}
    row.save()
    return row


def check_start(*, row: DataImport, by: User) -> None:
    """Send the import to a worker that finds its problems; remember the mapping for files with these columns.

    Raises InputProblem where something is missing or wrong.
    """
    kind = import_kinds()[row.kind]
    if refusal := mapping_refusal(row, kind) or _options_refusal(row.options, kind):
        raise InputProblem(refusal)
    with transaction.atomic():
        row = _locked(row, State.DRAFT)
        row.state, row.error = State.CHECKING, ""
        row.save(update_fields=["state", "error"])
        if not row.options.get("tool"):
            SavedMapping.objects.update_or_create(
                kind=row.kind,
                signature=signature_of(column.name for column in columns_of(row)),
                defaults={"mapping": row.mapping, "options": _reusable(row.options), "by": by},
            )
    enqueue_row(CHECK, DataImport.objects.all(), row.pk)


def store_start(*, row: DataImport, skip: bool) -> None:
    """Send a checked import to a worker that writes it. `skip`: rows with problems are left out.

    Raises InputProblem where there are problems that nobody agreed to leave out.
    """
    with transaction.atomic():
        row = _locked(row, State.CHECKED)
        if row.unreadable:
            raise InputProblem("The file cannot be read to its end. Correct it and choose it again.")
        if row.problem_count and not skip:
            raise InputProblem("Some rows have problems. Correct the file, or skip these rows.")
        if row.problem_count and row.kind == "rubric":
            raise InputProblem("A rubric is imported whole. Correct the file and choose it again.")
        row.state, row.error = State.IMPORTING, ""
        row.options |= {"skip": skip}
        row.save(update_fields=["state", "error", "options"])
    enqueue_row(STORE, DataImport.objects.all(), row.pk)


def work_cancel(*, row: DataImport) -> None:
    """Stop the worker of an import; where none works at it, take it out of the queue."""
    back = {State.CHECKING: State.DRAFT, State.IMPORTING: State.CHECKED}.get(State(row.state))
    if back is None:
        return
    with import_lock(row) as free:
        if free:
            DataImport.objects.filter(pk=row.pk, state=row.state).update(
                state=back, error="Cancelled. Nothing was written."
            )
        else:
            # NB: a file, because the database may be locked by the import itself.
            (row.folder / "cancel").touch(mode=0o600)


def data_import_discard(*, row: DataImport) -> None:
    """Delete an import that was not written, with its file. Raises InputProblem for others."""
    with transaction.atomic():
        row = _locked(row, State.DRAFT, State.CHECKED)
        _refuse_partly_written(row)
        folder = row.folder
        row.delete()
    shutil.rmtree(folder, ignore_errors=True)


def tool_map_of(text: str) -> dict[str, Any]:
    """Return the mapping of another tool's questions. Raises InputProblem for what is no JSON object."""
    try:
        value = guarded_loads(text[:MAX_MAP])
    except FieldProblem as problem:
        raise InputProblem(f"Mapping: {problem.message}.") from None
    if not isinstance(value, dict):
        raise InputProblem(f"Mapping: must be a JSON object, not {shown(value)}.")
    return value


def _locked(row: DataImport, *states: State) -> DataImport:
    found = DataImport.objects.select_for_update(of=("self",)).get(pk=row.pk)
    if found.state not in states:
        raise InputProblem(f"This import is in another state: {found.get_state_display().lower()}.")
    return found


def _refuse_partly_written(row: DataImport) -> None:
    if row.rows.exists():
        raise InputProblem("A part of this import is in use. Start it again to complete it.")


def _receive(row: DataImport, chunks: Iterable[bytes]) -> None:
    row.folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with row.path.open("wb") as file:
        row.path.chmod(0o600)
        for chunk in chunks:
            row.size += len(chunk)
            if row.size > settings.LACE_IMPORT_MB * 1024**2:
                raise InputProblem(f"The file is larger than {settings.LACE_IMPORT_MB} MB.")
            digest.update(chunk)
            file.write(chunk)
    row.sha256 = digest.hexdigest()


def _recognise(row: DataImport, kind: ImportKind) -> None:
    """Note how the file is read and what its columns are."""
    source = source_of(row.path)
    if source.format == "zip" and kind.key != "knowledge":
        raise FieldProblem(
            "", f"A ZIP of Markdown files holds knowledge, not {kind.unit}. Unpack other files"
        )
    row.source = source.as_json()
    if kind.reader is not None:
        _recall(row, kind)
        return
    summary = summary_of(rows_of(row.path, source), lists=kind.key == "chats")
    columns = summary.columns
    if not columns:
        problem = next((one for _, one in rows_of(row.path, source) if isinstance(one, FieldProblem)), None)
        raise problem or FieldProblem("", "The file has no rows below the header")
    row.columns = [
        {"name": one.name, "example": one.example, "words": list(one.words)} for one in columns[:500]
    ]
    _recall(row, kind)
    extras = extras_of(row.path, source)
    if kind.key == "rubric":
        row.options |= {
            "rubric_name": str(extras.get("name", ""))[:NAME_LIMIT] or row.options.get("rubric_name", "")
        }
        if isinstance(extras.get("dimensions"), list):
            row.options["dimensions"] = extras["dimensions"]
    if kind.key == "labels" and source.format in ("json", "jsonl"):
        names = {column.name.split(".")[0] for column in columns}
        tool = next((tool for sign, tool in _TOOL_SIGNS.items() if sign in names), "")
        row.options |= {"tool": tool} if tool else {}


def _recall(row: DataImport, kind: ImportKind) -> None:
    """Offer what was chosen for the last file with these columns, else what they seem to be."""
    saved = saved_mapping(kind=kind.key, columns=columns_of(row))
    row.mapping = saved.mapping if saved else guess_of(kind, columns_of(row)).as_json()
    row.options = dict(saved.options) if saved else {}
    # Chats that were stored before there was a rubric join a set when their file comes again.
    if (not saved or not ChatSet.objects.exists()) and "new_set" in kind.asks and Rubric.objects.exists():
        row.options |= {"set": row.file_name.rsplit(".", 1)[0]}


def _options_refusal(options: Mapping[str, Any], kind: ImportKind) -> str:
    """Return what is wrong with where the lines go, "" where nothing is."""
    if "new_set" in kind.asks and "set" in options:
        return _set_refusal(options)
    if "set" in kind.asks and not ChatSet.objects.filter(name=options.get("set", "")).exists():
        return "Choose the chat set that the judge answered on."
    if "rubric_name" in kind.asks and not 0 < len(str(options.get("rubric_name", "")).strip()) <= NAME_LIMIT:
        return f"Name the rubric, in 1 to {NAME_LIMIT} characters."
    if options.get("tool") and options["tool"] not in TOOLS:
        return "Choose the tool that the file comes from."
    if options.get("tool") and not options.get("tool_map"):
        return "Say which questions of the tool are which criteria: fill in the mapping."
    return ""


def _set_refusal(options: Mapping[str, Any]) -> str:
    name, rubric = str(options["set"]), str(options.get("rubric", ""))
    row = ChatSet.objects.select_related("rubric").filter(name=name).first()
    if not 0 < len(name.strip()) <= NAME_LIMIT:
        return f"Name the chat set, in 1 to {NAME_LIMIT} characters."
    if row is not None and row.kind == ChatSet.Kind.SAMPLE:
        return f"The set {shown(name)} is a random sample. Choose another set."
    if row is not None and rubric and row.rubric.name != rubric:
        return f"There is a set {shown(name)} with another rubric. Choose it in the list, or another name."
    if row is None and not Rubric.objects.filter(name=rubric).exists():
        return "A new chat set needs a rubric. Create or import one first; this file waits under Imports."
    try:
        proportions_of(str(options.get("split") or Split.DEV))
    except InputProblem:
        return "The shares of train, dev and holdout must be numbers from 0 up, one of them above 0."
    return ""


def _reusable(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("set", "rubric", "split", "rater", "judge") if options.get(name)}


def _forget(row: DataImport) -> None:
    shutil.rmtree(row.folder, ignore_errors=True)
    DataImport.objects.filter(pk=row.pk).delete()


def criteria_choices() -> list[str]:
    """Return the keys of criteria that a column may hold answers to, in the rubrics' order."""
    active = Q(state=Criterion.State.ACTIVE)
    return list(Criterion.objects.filter(active).order_by("rubric", "position").values_list("key", flat=True))
