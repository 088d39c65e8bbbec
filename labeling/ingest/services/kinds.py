"""Files of chats: our own formats, Langfuse's exports and OpenTelemetry's GenAI spans."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common.imports import ImportKind, Options, Target
from common.jsonl import ImportResult, open_input
from common.problems import FieldProblem, ImportProblem
from labeling.chats.services.chats import chats_check, chats_import
from labeling.ingest.core.collection import Level
from labeling.ingest.core.langfuse import langfuse_chats
from labeling.ingest.core.otel import otel_chats
from labeling.ingest.queries import intake_now
from labeling.transfer.core.rows import Row
from labeling.transfer.core.tables import Source, rows_of, source_of

_OF_CHATS: Mapping[str, Any] = {
    "trial": False,
    "batches": True,
    "asks": frozenset({"new_set"}),
    "derived": {"labeling.consensus": {}},
}


def _store(path: Path, options: Options, *, source: str) -> ImportResult:
    chat_set = str(options.get("set", ""))
    return chats_import(
        path=path,
        set_name=chat_set,
        rubric_name=str(options.get("rubric", "")) if chat_set else "",
        split=str(options.get("split", "")) if chat_set else "",
        source=source,
        prepare=intake_now().prepared,
    )


def _check(path: Path, options: Options, *, source: str) -> ImportResult:
    return chats_check(
        path=path, into_set=bool(options.get("set")), source=source, prepare=intake_now().prepared
    )


def _langfuse(path: Path, source: Source, **choice: Any) -> Iterator[Row]:
    return langfuse_chats(rows_of(path, source), **choice)


def _otel(path: Path, source: Source, **choice: Any) -> Iterator[Row]:
    return otel_chats([path], **choice)


TRACES: Mapping[str, Callable[..., Iterator[Row]]] = {"langfuse": _langfuse, "otel": _otel}


def _reader(form: str) -> Callable[[Path, Mapping[str, str]], Iterator[Row]]:
    return lambda path, source: TRACES[form](path, Source(**source))


def traces_import(
    *,
    path: Path,
    form: str,
    level: Level = "calls",
    names: Collection[str] = (),
    without: Collection[str] = (),
    **options: Any,
) -> ImportResult:
    """
    Add the chats of an export of traces, all of them or none.

    Parameters
    ----------
    form : langfuse or otel; also the source of the chats.
    level, names, without : see `langfuse_chats`.
    options : see `chats_import`.

    Raises ImportProblem with the line or record of the export, or InputProblem.
    """
    open_input(path).close()
    places: list[int] = []
    with TemporaryDirectory() as folder:
        lines = Path(folder) / path.name
        with lines.open("w", encoding="utf-8", newline="\n") as file:
            try:
                rows = TRACES[form](path, source_of(path), level=level, names=names, without=without)
                for number, row in rows:
                    if isinstance(row, FieldProblem):
                        raise ImportProblem(str(path), number or None, row.field, row.message)
                    file.write(json.dumps(row) + "\n")
                    places.append(number)
            except FieldProblem as problem:
                raise ImportProblem(str(path), None, problem.field, problem.message) from None
        if not places:
            raise ImportProblem(str(path), None, "", "holds no chats: it has no records of models' calls")
        try:
            return chats_import(path=lines, source=form, **options)
        except ImportProblem as problem:
            place = places[problem.line - 1] if problem.line else None
            raise ImportProblem(str(path), place, problem.field, problem.message) from None


CHATS = ImportKind(
    key="chats",
    label="Chats",
    unit="chats",
    about="Conversations of your chatbot, with a row for each chat or for each message.",
    targets=(
        Target(
            "id",
            "Chat id",
            also=(
                *("chatid", "conversationid", "sessionid", "dialogid", "dialogueid", "threadid", "ticketid"),
                *("caseid", "convid", "chat", "conversation", "session", "ticket", "uuid", "externalid"),
            ),
        ),
        Target("topic", "Topic", also=("category", "subject", "intent", "theme", "queue", "label")),
        Target(
            "started_at", "Start of the chat", "time", also=("start", "starttime", "chatdate", "openedat")
        ),
        Target("split", "Split", also=("partition", "fold")),
        Target("variant", "Variant", also=("version", "botversion", "arm")),
        Target("experiment", "Experiment", also=("test", "abtest")),
        Target("unit_id", "Unit of the experiment", also=("unit", "unitid", "bucketid")),
        Target("cluster", "Group of chats (same customer)", also=("customerid", "userid", "clientid")),
        Target("metadata", "Extra field", also=("title", "language", "lang", "channel", "country")),
    ),
    store=partial(_store, source=""),
    check=partial(_check, source=""),
    **_OF_CHATS,
    examples=(
        {
            "id": "c-1",
            "topic": "refund",
            "messages": [
                {"role": "user", "content": "Where is my refund?", "created_at": "2026-11-17T09:12:00Z"},
                {"role": "assistant", "content": "It is on its way.", "created_at": "2026-11-17T09:12:05Z"},
            ],
        },
        {
            "id": "c-2",
            "topic": "promo code",
            "messages": [
                {"role": "user", "content": "My code does not work", "created_at": "2026-11-17T09:15:00Z"},
                {"role": "assistant", "content": "It needs €40.", "created_at": "2026-11-17T09:15:06Z"},
            ],
        },
    ),
)

LANGFUSE = ImportKind(
    key="langfuse",
    label="Langfuse export",
    unit="chats",
    about="Sessions, traces or observations as Langfuse exports them: JSON, JSON Lines or CSV.",
    targets=(),
    reader=_reader("langfuse"),
    store=partial(_store, source="langfuse"),
    check=partial(_check, source="langfuse"),
    **_OF_CHATS,
)

OTEL = ImportKind(
    key="otel",
    label="OpenTelemetry spans",
    unit="chats",
    about="GenAI spans or their events as OTLP JSON, one document or one a line.",
    targets=(),
    reader=_reader("otel"),
    store=partial(_store, source="otel"),
    check=partial(_check, source="otel"),
    **_OF_CHATS,
)
