"""Exports as files, and the line in the audit log that each leaves."""

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from alignment.exports.core import EXPORTS, ToolChat, ToolCriterion, argilla, label_studio, mapping_json
from alignment.exports.queries.files import article_files, rubric_document
from alignment.exports.queries.lines import (
    MESSAGE_COLUMNS,
    SCORE_COLUMNS,
    VERDICT_COLUMNS,
    ExportRun,
    chat_lines,
    members_for,
    message_lines,
    score_lines,
    verdict_lines,
)
from alignment.exports.queries.tools import tool_chats, tool_criteria
from common.files import csv_lines, json_line
from common.workbooks import workbook_write
from evaluation.prompts.services.prompt_files import prompt_files
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit
from labeling.transfer.queries.exports import LABELLING, Line

MAPPING, TASKS, CONFIGURATION = "mapping.json", "tasks.json", "labeling_config.xml"
Members = Iterable[tuple[str, Iterable[str]]]


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """What to export: a set, the runs of verdicts, and who may see it; None: all of it, for commands."""

    chat_set: ChatSet
    runs: Sequence[ExportRun] = ()
    user: User | None = None


def export_texts(choice: ExportChoice, what: str, kind: str) -> Iterator[str]:
    """Yield the text of an export in a text format: jsonl, csv or json."""
    if kind == "json":
        document = rubric_document(choice.chat_set)
        return iter([json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False), "\n"])
    lines, columns = _table(choice, what)
    return csv_lines(lines, columns) if kind == "csv" else (json_line(line) + "\n" for line in lines)


def export_write(choice: ExportChoice, what: str, kind: str, target: IO[bytes]) -> None:
    """Write an export in a binary format: xlsx or zip; in constant memory."""
    if kind == "zip":
        _zip_write(_FILES[what](choice), target)
        return
    lines, columns = _table(choice, what)
    if what == "chats":
        lines, columns = message_lines(lines), MESSAGE_COLUMNS
    workbook_write(target, lines, columns, title=EXPORTS[what].title)


def file_name(choice: ExportChoice, what: str, kind: str) -> str:
    """Return the name of the file, with the set and today's date."""
    name = slugify(choice.chat_set.name)[:60] or f"set-{choice.chat_set.pk}"
    return f"{name}-{what.replace('_', '-')}-{timezone.now():%Y-%m-%d}.{kind}"


@transaction.atomic
def export_log(choice: ExportChoice, what: str, kind: str) -> None:
    """Log an export by a user."""
    runs = {"runs": [one.run.pk for one in choice.runs]} if EXPORTS[what].runs else {}
    audit(actor=choice.user, verb="set exported", obj=choice.chat_set, what=what, format=kind, **runs)


def _table(choice: ExportChoice, what: str) -> tuple[Iterator[Line], Sequence[str]]:
    """Return lines and columns of a table."""
    if what == "chats":
        return chat_lines(choice.chat_set, choice.user), ()
    if what in LABELLING:
        lines, columns = LABELLING[what]
        return lines(choice.chat_set, choice.user), columns
    of_run, of_what = _OF_RUNS[what]
    rows = (of_run(one, members_for(one, choice.user)) for one in choice.runs)
    return chain.from_iterable(rows), of_what


_OF_RUNS: Mapping[str, tuple[Callable[..., Iterator[Line]], Sequence[str]]] = {
    "verdicts": (verdict_lines, VERDICT_COLUMNS),
    "session_scores": (score_lines, SCORE_COLUMNS),
}


# ---------- files of a ZIP ----------


def _label_studio(choice: ExportChoice) -> Members:
    questions = tool_criteria(choice.chat_set)
    criteria = list(questions.values())
    chats = tool_chats(choice.chat_set, choice.runs, questions, choice.user)
    yield CONFIGURATION, [label_studio.configuration(criteria)]
    yield TASKS, _array(label_studio.task(chat) for chat in chats)
    yield MAPPING, [_document(mapping_json(criteria, rater=label_studio.RATER))]


def _argilla(choice: ExportChoice) -> Members:
    questions = tool_criteria(choice.chat_set)
    criteria: list[ToolCriterion] = list(questions.values())
    raters: dict[str, str] = {}

    def records() -> Iterator[dict[str, Any]]:
        chat: ToolChat
        for chat in tool_chats(choice.chat_set, choice.runs, questions, choice.user):
            raters.update({argilla.user_id(rater.name): rater.name for rater in chat.raters})
            yield argilla.record(chat)

    yield argilla.SETTINGS, [_document(argilla.settings_json(criteria))]
    yield argilla.DATASET, [_document(argilla.dataset_json(choice.chat_set.name))]
    yield argilla.RECORDS, _array(records())
    yield MAPPING, [_document(mapping_json(criteria, raters=raters))]


def _prompts(choice: ExportChoice) -> Members:
    criteria = Criterion.objects.filter(rubric=choice.chat_set.rubric_id, state=Criterion.State.ACTIVE)
    return ((name, [text]) for name, text in prompt_files(list(criteria.order_by("key"))))


def _knowledge(choice: ExportChoice) -> Members:
    return ((name, [text]) for name, text in article_files())


_FILES: Mapping[str, Callable[[ExportChoice], Members]] = {
    "label_studio": _label_studio,
    "argilla": _argilla,
    "prompts": _prompts,
    "knowledge": _knowledge,
}


def _zip_write(members: Members, target: IO[bytes]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, texts in members:
            with archive.open(name, "w", force_zip64=True) as file:
                for text in texts:
                    file.write(text.encode())


def _array(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a JSON array, a line a record."""
    before = "["
    for row in rows:
        yield f"{before}\n{json_line(row)}"
        before = ","
    yield "\n]\n" if before == "," else "[]\n"


def _document(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
