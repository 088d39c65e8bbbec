"""Chats out of Langfuse's exports: sessions, traces and observations, from its pages, API and blob storage.

Shapes: langfuse.com/docs/api-and-data-platform/features (export-from-ui, blob-storage-export-fields,
observations-api), and the server's API definition for sessions and traces.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from common.guarded_json import guarded_loads
from common.jsonl import Fields
from common.problems import FieldProblem, shown
from labeling.ingest.core.collection import ChatCollection, Kind, Level, Part
from labeling.ingest.core.conversation import Call, is_moment, nanoseconds_of
from labeling.ingest.core.messages import turns_of
from labeling.ingest.core.nested import below
from labeling.transfer.core.records import UnreadableRest
from labeling.transfer.core.rows import Row

# Only these observations hold turns, and the outermost one of a trace; the others are the way between them.
KINDS: dict[str, Kind] = {"GENERATION": "call", "TOOL": "tool"}
# Facts of a trace that its chat keeps as metadata, by the first name that is there.
FACTS = {
    "user_id": ("user_id", "userId"),
    "release": ("release",),
    "version": ("version",),
    "environment": ("environment",),
    "tags": ("tags",),
    "model": ("provided_model_name", "providedModelName", "model"),
    "prompt_name": ("prompt_name", "promptName"),
    "prompt_version": ("prompt_version", "promptVersion"),
}
_NAMES = {
    "chat": ("session_id", "sessionId"),
    "trace": ("trace_id", "traceId"),
    "started": ("start_time", "startTime", "timestamp"),
    "ended": ("end_time", "endTime"),
    "parent": ("parent_observation_id", "parentObservationId"),
    "id": ("id",),
}
# What Langfuse's own libraries write into the metadata; of no use beside a chat.
_NOISE = frozenset(("attributes", "resourceAttributes", "scope"))


def langfuse_chats(
    rows: Iterable[Row], *, level: Level = "calls", names: Collection[str] = (), without: Collection[str] = ()
) -> Iterator[Row]:
    """
    Yield the number of each chat's first row, and the chat as a line of a file of chats, or a problem.

    A session is a chat, and so is a trace without a session. Its turns are those of the models' calls
    (observations of type GENERATION), in the order of their ends; of a trace without any, its own input and
    output. Rows of one chat may stand anywhere; a chat with a wrong row is left out, all others are yielded.
    Of a line that is no JSON nobody can say which chat lacks it: the caller decides about the others.

    Parameters
    ----------
    rows : sessions with their traces, traces, observations or trace downloads, as `rows_of` reads them from
        JSON, JSON Lines or CSV; legacy exports need the rows of traces and of observations together.
    level : "traces" prefers the traces' input and output to the models' calls.
    names : read only the calls of these names; empty for all.
    without : leave out the calls of these names, such as guardrails that the customer never sees.

    Examples
    --------
    >>> trace = {"id": "t1", "timestamp": "2026-01-02T03:04:05Z", "input": "Hi", "output": "Hello"}
    >>> [chat["id"] for _, chat in langfuse_chats([(1, trace | {"sessionId": "s1"})])]
    ['s1']
    """
    with ChatCollection() as collection:
        for number, row in rows:
            if isinstance(row, FieldProblem):
                yield number, row
                if isinstance(row, UnreadableRest):
                    return
                continue
            for part in _Reader(number, names, without).parts(row):
                if isinstance(part, FieldProblem):
                    yield number, part
                else:
                    collection.add(part)
        yield from collection.chats(level)


class _Reader:
    """Parts of one row."""

    def __init__(self, number: int, names: Collection[str], without: Collection[str]) -> None:
        self.number, self.names, self.without = number, names, without

    def parts(self, row: Mapping[str, Any]) -> Iterator[Part | FieldProblem]:
        """Yield the parts of a row and the problems in it."""
        data = dict(row)
        if isinstance(data.get("traces"), list):
            yield from self._session(data)
        elif isinstance(data.get("trace"), dict):
            yield from self._trace(data["trace"] | {"observations": data.get("observations")}, "trace", "")
        elif _text(data, "trace"):
            yield from self._guarded(data, "", "", self._observation)
        elif "id" in data and ("timestamp" in data or "observations" in data):
            yield from self._trace(data, "", "")
        else:
            yield FieldProblem(
                "", "is no Langfuse session with its traces, no trace and no observation: export one of these"
            )

    def _session(self, data: dict[str, Any]) -> Iterator[Part | FieldProblem]:
        chat = data.get("id")
        if not isinstance(chat, str) or not chat.strip():
            yield FieldProblem("id", "is missing" if chat is None else f"must be text, not {shown(chat)}")
            return
        for n, trace in enumerate(data["traces"]):
            if isinstance(trace, dict):
                yield from self._trace(trace, f"traces[{n}]", chat)
            else:
                yield Part(self.number, f"{chat}#{n}", chat, broken=True)
                yield FieldProblem(f"traces[{n}]", f"must be an object, not {shown(trace)}")

    def _trace(self, data: dict[str, Any], path: str, chat: str) -> Iterator[Part | FieldProblem]:
        chat = chat or _text(data, "chat")
        yield from self._guarded(data, path, chat, self._whole)
        inner = data.get("observations")
        facts = {"traceId": data.get("id"), "sessionId": chat}
        for n, one in enumerate(inner if isinstance(inner, list) else []):
            if isinstance(one, dict):  # lists of traces hold the ids alone
                place = f"{path}.observations[{n}]" if path else f"observations[{n}]"
                yield from self._guarded(one | facts, place, chat, self._observation)

    def _guarded(
        self, data: dict[str, Any], path: str, chat: str, read: Any
    ) -> Iterator[Part | FieldProblem]:
        """Yield what `read` makes of a record, or its problem and the mark that its chat is incomplete."""
        try:
            yield from read(Fields(data), chat)
        except FieldProblem as problem:
            trace = _text(data, "trace") or str(data.get("id") or "")
            chat = chat or _text(data, "chat")
            if trace or chat:
                yield Part(self.number, trace, chat, broken=True)
            yield below(path, problem)

    def _whole(self, fields: Fields, chat: str) -> Iterator[Part]:
        trace = fields.text("id", blank=False)
        metadata = _facts(fields) | _metadata(fields.data.get("metadata"))
        yield Part(self.number, trace, chat, "whole", "whole", _turns(fields), metadata=metadata)

    def _observation(self, fields: Fields, chat: str) -> Iterator[Part]:
        trace, chat = _text(fields.data, "trace"), chat or _text(fields.data, "chat")
        kind = KINDS.get(str(fields.data.get("type")).upper(), "whole")
        name = fields.data.get("name")
        inside = kind == "whole" and _text(fields.data, "parent")
        if inside or (kind == "call" and not self._is_wanted(name)):
            yield Part(self.number, trace, chat, kind="whole")  # says which chat the trace belongs to
            return
        turns = _tool_turns(fields, str(name or "tool")) if kind == "tool" else _turns(fields)
        metadata = _facts(fields) | _metadata(fields.data.get("metadata"))
        call = "" if kind == "whole" else _text(fields.data, "id")
        yield Part(self.number, trace, chat, call or kind, kind, turns, metadata=metadata)

    def _is_wanted(self, name: object) -> bool:
        return name not in self.without and (not self.names or name in self.names)


def _first(data: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the name of a field that is there and filled, "" for none."""
    return next((name for name in names if data.get(name) not in (None, "", [], {})), "")


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(_first(data, _NAMES[key]))
    return value.strip() if isinstance(value, str) else ""


def _turns(fields: Fields) -> Call:
    given = turns_of(fields.data.get("input"), "input", speaker="user")
    answered = turns_of(fields.data.get("output"), "output", speaker="assistant")
    return Call(tuple(given), tuple(answered), _time(fields, "started"), _time(fields, "ended"))


def _tool_turns(fields: Fields, name: str) -> Call:
    sides = [fields.data.get(key) for key in ("input", "output")]
    call, result = ({"type": kind} for kind in ("tool_call", "tool_call_response"))
    parts = [call | {"name": name, "arguments": sides[0]}, result | {"response": sides[1]}]
    turns = turns_of([{"role": "tool", "parts": parts}], "", speaker="tool")
    kept = tuple(turn for turn in turns if turn.content)
    return Call((), kept, _time(fields, "started"), _time(fields, "ended"))


def _time(fields: Fields, key: str) -> int | None:
    name = _first(fields.data, _NAMES[key])
    moment = fields.moment(name) if name else None
    if moment is None:
        return None
    if not is_moment(nanoseconds := nanoseconds_of(moment)):
        raise fields.refuse(name, f"must be a time since 1970, not {shown(fields.data[name])}")
    return nanoseconds


def _facts(fields: Fields) -> dict[str, Any]:
    found = {key: _first(fields.data, names) for key, names in FACTS.items()}
    return {key: fields.data[name] for key, name in found.items() if name}


def _metadata(value: Any) -> dict[str, Any]:
    """Return the metadata that the sender gave: an object, or its JSON in a cell of a table."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = guarded_loads(value)
        except FieldProblem:
            return {"metadata": value}
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key not in _NOISE}
    return {} if value in (None, "", []) else {"metadata": value}
