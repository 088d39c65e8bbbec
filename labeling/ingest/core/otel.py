"""Chats out of OpenTelemetry's GenAI spans and events, in OTLP's JSON.

Shapes: OpenTelemetry's semantic conventions for generative AI (github.com/open-telemetry/
semantic-conventions-genai, docs/gen-ai: spans, events, input and output messages); the events with one
message each are those of version 1.36 and earlier. OTLP: opentelemetry.io/docs/specs/otlp, JSON encoding.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from common.guarded_json import guarded_loads
from common.jsonl import Fields
from common.problems import FieldProblem, shown
from labeling.ingest.core.collection import ChatCollection, Kind, Level, Part
from labeling.ingest.core.conversation import Call, is_moment
from labeling.ingest.core.messages import Turn, instructions_of, turns_of
from labeling.ingest.core.nested import Item, below, nested_objects
from labeling.transfer.core.rows import Row

SPANS = ("resourceSpans", "scopeSpans", "spans")
RECORDS = ("resourceLogs", "scopeLogs", "logRecords")
_RESOURCES = (("resourceSpans", "resource"), ("resourceLogs", "resource"))
OPERATIONS: dict[str, Kind] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "call"),
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), "whole"),
    "execute_tool": "tool",
}
# Attributes with the messages, and the deprecated ones before them.
GIVEN = ("gen_ai.input.messages", "gen_ai.prompt")
ANSWERED = ("gen_ai.output.messages", "gen_ai.completion")
INSTRUCTIONS = "gen_ai.system_instructions"
# Events with all messages of a call, and events with one message each and its default role.
DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
CONVERSATION = ("gen_ai.conversation.id", "session.id")
FACTS = {
    "model": ("gen_ai.response.model", "gen_ai.request.model"),
    "agent": ("gen_ai.agent.name",),
    "user_id": ("user.id", "enduser.id"),
    "service": ("service.name",),
    "version": ("service.version",),
    "environment": ("deployment.environment.name", "deployment.environment"),
}


def otel_chats(
    paths: Iterable[Path],
    *,
    level: Level = "calls",
    names: Collection[str] = (),
    without: Collection[str] = (),
) -> Iterator[Row]:
    """
    Yield the line of each chat's first span, and the chat as a line of a file of chats, or a problem.

    A conversation (`gen_ai.conversation.id`) is a chat, and so is a trace without one. Its turns are those of
    the models' calls in the order of their ends; of a trace without any, those of its agent. Spans that
    are not of GenAI are passed over. A chat with a wrong span is left out, all others are yielded.

    Parameters
    ----------
    paths : files with one OTLP JSON document, or one a line: spans, log records (events), or both.
    level : "traces" prefers the agents' input and output to the models' calls.
    names, without : names of agents (`gen_ai.agent.name`), else of spans, whose calls are read, or not.

    Raises ImportProblem where a file cannot be opened.
    """
    with ChatCollection() as collection:
        files = list(paths)
        for path in files:
            resource: dict[str, Any] = {}
            for item in nested_objects(path, routes=(SPANS, RECORDS), beside=_RESOURCES):
                if item.route in _RESOURCES and isinstance(item.value, dict):
                    resource = _resource(item.value)
                    continue
                for part in _parts(item, resource, names, without):
                    if isinstance(part, FieldProblem):
                        yield item.line, part if len(files) == 1 else _in_file(path, part)
                    else:
                        collection.add(part)
        yield from collection.chats(level)


def _in_file(path: Path, problem: FieldProblem) -> FieldProblem:
    return FieldProblem(f"{path.name} {problem.field}".rstrip(), problem.message)


def attributes_of(items: Any, path: str) -> dict[str, Any]:
    """
    Return OTLP's list of attributes as plain values.

    Raises FieldProblem for what is no list of {"key", "value"}.

    Examples
    --------
    >>> attributes_of([{"key": "a", "value": {"arrayValue": {"values": [{"intValue": "7"}]}}}], "x")
    {'a': [7]}
    """
    if items is None:
        return {}
    if not isinstance(items, list):
        raise FieldProblem(path, f"must be a list of attributes, not {shown(items)}")
    found: dict[str, Any] = {}
    for n, item in enumerate(items):
        if not isinstance(item, dict) or not isinstance(item.get("key"), str):
            raise FieldProblem(f"{path}[{n}]", f"must be an attribute with a key, not {shown(item)}")
        found[item["key"]] = _value(item.get("value"), f"{path}[{n}].value")
    return found


def _value(value: Any, path: str) -> Any:
    if value is None or value == {}:
        return None
    kind = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else ""
    inner = value[kind] if kind else None
    if kind == "intValue":
        return _whole(inner, path)
    if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        return inner
    if kind == "arrayValue" and isinstance(inner, dict):
        items = inner.get("values") or []
        return [_value(item, f"{path}.arrayValue.values[{n}]") for n, item in enumerate(items)]
    if kind == "kvlistValue" and isinstance(inner, dict):
        return attributes_of(inner.get("values") or [], f"{path}.kvlistValue.values")
    raise FieldProblem(path, f"must be one of OTLP’s values, such as stringValue, not {shown(value)}")


def _whole(value: Any, path: str) -> int:
    try:
        if isinstance(value, str | int) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise FieldProblem(path, f"must be a whole number, not {shown(value)}")


def _resource(value: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return attributes_of(value.get("attributes"), "attributes")
    except FieldProblem:
        return {}  # of use for the metadata alone


def _parts(
    item: Item, resource: Mapping[str, Any], names: Collection[str], without: Collection[str]
) -> Iterator[Part | FieldProblem]:
    """Yield the parts of a span or a log record, or its problem and the mark that its chat is incomplete."""
    if isinstance(item.value, FieldProblem):
        yield item.value
        return
    fields = Fields(item.value)
    chat = ""
    try:
        attributes = attributes_of(fields.data.get("attributes"), "attributes")
        chat = _text(attributes, CONVERSATION)
        reader = _Record(item.line, fields, attributes, resource)
        yield from reader.span(names, without) if item.route == SPANS else reader.log()
    except FieldProblem as problem:
        trace = fields.data.get("traceId")
        if chat or (isinstance(trace, str) and trace):
            yield Part(item.line, str(trace or ""), chat, broken=True)
        yield below(item.path, problem)


class _Record:
    """A span or a log record with its attributes."""

    def __init__(
        self, line: int, fields: Fields, attributes: Mapping[str, Any], resource: Mapping[str, Any]
    ) -> None:
        self.line, self.fields, self.attributes = line, fields, attributes
        self.chat = _text(attributes, CONVERSATION)
        self.facts = {key: _text({**resource, **attributes}, names) for key, names in FACTS.items()}

    def span(self, names: Collection[str], without: Collection[str]) -> Iterator[Part]:
        """Yield the parts of a span: its attributes, and its events."""
        events = self.fields.items("events", default=[])
        kind = self._kind(events)
        if kind is None:
            if self.chat:  # of a span around the calls: names their conversation
                yield self._part("whole", Call())
            return
        name = self.facts["agent"] or self.fields.data.get("name")
        if kind == "call" and (name in without or (names and name not in names)):
            yield self._part("whole", Call())
            return
        started, ended = (_time(self.fields, key) for key in ("startTimeUnixNano", "endTimeUnixNano"))
        if kind == "tool":
            yield self._part(kind, Call((), self._tool(), started, ended))
            return
        given, answered = _messages(self.attributes, "attributes")
        yield self._part(kind, Call(given, answered, started, ended))
        for n, event in enumerate(events):
            path = f"events[{n}]"
            one = Fields(event, path)
            attributes = attributes_of(one.data.get("attributes"), f"{path}.attributes")
            yield from self._event(kind, str(one.data.get("name")), attributes, None, path, started, ended)

    def log(self) -> Iterator[Part]:
        """Yield the part of a log record that is an event of GenAI."""
        name = _text({**self.attributes, **self.fields.data}, ("eventName", "event.name"))
        if name not in EVENTS and name not in DETAILS:
            return
        body = _value(self.fields.data.get("body"), "body")
        at = _time(self.fields, "timeUnixNano")
        if at is None:
            at = _time(self.fields, "observedTimeUnixNano")
        kind = OPERATIONS.get(_text(self.attributes, ("gen_ai.operation.name",)), "call")
        yield from self._event(kind, name, self.attributes, body, "", at, at)

    def _kind(self, events: list[Any]) -> Kind | None:
        """Return what a span is, None for one that holds no turns."""
        operation = _text(self.attributes, ("gen_ai.operation.name",))
        if operation:
            return OPERATIONS.get(operation)
        names = {event.get("name") for event in events if isinstance(event, dict)}
        has_messages = any(key in self.attributes for key in (*GIVEN, *ANSWERED))
        return "call" if has_messages or not names.isdisjoint((*EVENTS, *DETAILS)) else None

    def _part(self, kind: Kind, turns: Call, *, single: bool = False) -> Part:
        trace = self.fields.data.get("traceId") or ""
        if not isinstance(trace, str) or not (trace or self.chat):
            raise self.fields.refuse(
                "traceId", f"must be text, not {shown(trace)}" if trace else "is missing"
            )
        span = str(self.fields.data.get("spanId") or "")
        facts = {key: value for key, value in self.facts.items() if value}
        return Part(self.line, trace, self.chat, span, kind, turns, single, metadata=facts)

    def _event(
        self,
        kind: Kind,
        name: str,
        attributes: Mapping[str, Any],
        body: Any,
        path: str,
        started: int | None,
        ended: int | None,
    ) -> Iterator[Part]:
        if name in DETAILS:
            whole = {**attributes, **(body if isinstance(body, dict) else {})}
            given, answered = _messages(whole, f"{path}.attributes".lstrip("."))
            yield self._part(kind, Call(given, answered, started, ended))
        elif name in EVENTS:
            turns = _event_turns(name, attributes, body, path)
            call = (
                Call((), turns, started, ended)
                if name == "gen_ai.choice"
                else Call(turns, (), started, ended)
            )
            yield self._part(kind, call, single=True)

    def _tool(self) -> tuple[Turn, ...]:
        get = self.attributes.get
        parts = [
            {
                "type": "tool_call",
                "name": get("gen_ai.tool.name"),
                "arguments": get("gen_ai.tool.call.arguments"),
            },
            {"type": "tool_call_response", "response": get("gen_ai.tool.call.result")},
        ]
        turns = turns_of([{"role": "tool", "parts": parts}], "attributes", speaker="tool")
        return tuple(turn for turn in turns if turn.content)


def _messages(attributes: Mapping[str, Any], path: str) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """Return the messages that a call was given, its instructions first, and its answer."""
    place = f"{path}.{INSTRUCTIONS}"
    instructions = instructions_of(_whole_json(attributes.get(INSTRUCTIONS), place), place)
    given = [*instructions, *_turns(attributes, GIVEN, path, "user")]
    return tuple(given), tuple(_turns(attributes, ANSWERED, path, "assistant"))


def _turns(attributes: Mapping[str, Any], names: Iterable[str], path: str, speaker: str) -> list[Turn]:
    name = next((name for name in names if attributes.get(name)), "")
    value = _whole_json(attributes.get(name), f"{path}.{name}")
    if name == ANSWERED[0] and isinstance(value, list):
        value = value[:1]  # each message is one of the choices, and the customer saw the first
    return turns_of(value, f"{path}.{name}", speaker=speaker)


def _whole_json(value: Any, path: str) -> Any:
    """Return the content of a JSON text; what begins like JSON was cut off by a limit of the exporter."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return guarded_loads(value)
    except FieldProblem as problem:
        message = f"{problem.message}: did a limit for the length of attributes cut it off?"
        raise FieldProblem(f"{path}.{problem.field}".rstrip("."), message) from None


def _event_turns(name: str, attributes: Mapping[str, Any], body: Any, path: str) -> tuple[Turn, ...]:
    """Return the turns of an event with one message, of a log's body or the attributes of a span's event."""
    content = body
    if body is None:
        content = _whole_json(attributes.get("gen_ai.event.content", dict(attributes)), path)
    if isinstance(content, str):
        content = {"content": content}
    if not isinstance(content, dict):
        raise FieldProblem(path or "body", f"must hold a message, not {shown(content)}")
    if name == "gen_ai.choice":
        if content.get("index") not in (None, 0, "0"):
            return ()
        message = content.get("message", content)
        content = message if isinstance(message, dict) else {"content": message}
    role = content.get("role") or EVENTS[name]
    tools = _whole_json(content.get("tool_calls"), path or "body")
    message = {"role": role, "content": content.get("content"), "tool_calls": tools}
    return tuple(turns_of(message, path or "body", speaker=EVENTS[name]))


def _text(values: Mapping[str, Any], names: Iterable[str]) -> str:
    found = (values.get(name) for name in names)
    return next((value.strip() for value in found if isinstance(value, str) and value.strip()), "")


def _time(fields: Fields, key: str) -> int | None:
    """Return a time in nanoseconds; OTLP writes it as text, 0 for none."""
    if not fields.given(key):
        return None
    at = _whole(fields.data[key], key)
    if at and not is_moment(at):
        raise fields.refuse(key, f"must be nanoseconds since 1970, not {shown(fields.data[key])}")
    return at or None
