"""Langfuse exports and OpenTelemetry's GenAI telemetry become chats; a wrong record is named."""

import csv
import json
import tracemalloc
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from common.jsonl import Fields
from common.problems import FieldProblem
from labeling.chats.core.transcript import transcript_of
from labeling.ingest.core.langfuse import langfuse_chats
from labeling.ingest.core.otel import otel_chats
from labeling.transfer.core.rows import Row
from labeling.transfer.core.tables import rows_of, source_of
from tests.files import write_jsonl

# Written after the public documentation that the readers name; no data of anybody.
EXPORTS = Path(__file__).parent / "exports"
SYSTEM = ("system", "You help customers of the shop.")
QUESTION, ANSWER = ("user", "Where is order 4711?"), ("assistant", "It is on its way.")
CALL = ("tool", 'find_order({"number": "4711"})')
LATER = [("user", "When will it arrive?"), ("assistant", "On Friday.")]
ORDER_CHAT = [SYSTEM, QUESTION, CALL, ("tool", '{"state": "on its way"}'), ANSWER]


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (EXPORTS / name).read_text(encoding="utf-8").splitlines()]


def langfuse(*names: str, **options: Any) -> dict[str, list[tuple[str, str]]]:
    paths = [EXPORTS / name for name in names]
    return told(
        langfuse_chats(chain.from_iterable(rows_of(path, source_of(path)) for path in paths), **options)
    )


def otel(name: str, **options: Any) -> dict[str, list[tuple[str, str]]]:
    return told(otel_chats([EXPORTS / name], **options))


def told(rows: Iterable[Row]) -> dict[str, list[tuple[str, str]]]:
    """Chats by id, each checked as a line of a file of chats."""
    chats = {}
    for _, row in rows:
        assert isinstance(row, dict), row
        chat = transcript_of(Fields(row))
        assert chat.started_at is not None
        chats[chat.external_id] = [(one["role"], one["content"]) for one in chat.messages]
    return chats


# ---------- Langfuse ----------


def test_observations_of_a_session_are_one_chat_in_the_order_of_time() -> None:
    chats = langfuse("langfuse_observations_v2.jsonl", without=["guardrail"])
    assert chats == {
        "s-1": [*ORDER_CHAT, *LATER],
        "t9": [("user", "Do you ship to Malta?"), ("assistant", "Yes, within five days.")],
    }


def test_traces_of_a_session_are_its_turns() -> None:
    assert langfuse("langfuse_session.json") == {
        "s-2": [
            *(("user", "Hello"), ("assistant", "Hello! How can I help?")),
            *(("user", "Hello"), ("assistant", "Hello again!")),
        ]
    }


def test_a_downloaded_trace_is_a_chat_of_its_models_calls_or_of_its_own_input() -> None:
    turns = [("user", "Can I return shoes?"), ("assistant", "Yes, within 30 days.")]
    assert langfuse("langfuse_trace.json") == {"t30": [SYSTEM, *turns]}
    assert langfuse("langfuse_trace.json", level="traces") == {"t30": turns}


def test_a_table_of_generations_is_read_from_json_and_from_csv(tmp_path: Path) -> None:
    expected = {"trace_1": [SYSTEM, ("user", "Is the lamp in stock?"), ("assistant", "Yes, eleven of them.")]}
    assert langfuse("langfuse_generations.json") == expected
    (row,) = json.loads((EXPORTS / "langfuse_generations.json").read_text())
    cells = {key: value if isinstance(value, str) else json.dumps(value) for key, value in row.items()}
    table = tmp_path / "generations.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([cells.keys(), cells.values()])
    assert told(langfuse_chats(rows_of(table, source_of(table)))) == expected


def test_legacy_observations_find_their_session_through_their_trace() -> None:
    files = ("langfuse_observations_legacy.jsonl", "langfuse_traces_legacy.jsonl")
    turns = [("user", "My parcel is open."), ("assistant", "I am sorry. I will send a new one.")]
    assert langfuse(*files) == langfuse(*reversed(files)) == {"s-4": turns}


def test_a_page_of_the_api_is_read_through_its_list(tmp_path: Path) -> None:
    rows = lines("langfuse_observations_v2.jsonl")
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"data": rows, "meta": {"cursor": None}}))
    assert told(langfuse_chats(rows_of(path, source_of(path)), names=["answer"])).keys() == {"s-1", "t9"}


def test_what_the_sender_said_of_a_trace_is_the_chats_metadata() -> None:
    path = EXPORTS / "langfuse_session.json"
    ((_, chat),) = langfuse_chats(rows_of(path, source_of(path)))
    assert isinstance(chat, dict)
    assert chat["metadata"] == {"user_id": "customer-8", "environment": "production", "channel": "web"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"start_time": "yesterday"}, "start_time: must be an ISO 8601 time, not 'yesterday'"),
        ({"start_time": "1901-01-01"}, "start_time: must be a time since 1970, not '1901-01-01'"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role: unknown role 'wizard'"),
        ({"output": 7}, "output: holds no messages"),
    ],
)
def test_a_wrong_observation_is_named_and_only_its_session_left_out(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    rows = lines("langfuse_observations_v2.jsonl")
    path = write_jsonl(tmp_path / "x.jsonl", rows[0] | changes, *rows[1:], {"id": "score", "value": 1})
    found = list(langfuse_chats(rows_of(path, source_of(path))))
    problems = [(number, str(row)) for number, row in found if isinstance(row, FieldProblem)]
    assert problems[0][0] == 1
    assert problems[0][1].startswith(problem)
    assert problems[1] == (
        9,
        "is no Langfuse session with its traces, no trace and no observation: export one of these",
    )
    assert [row["id"] for _, row in found if isinstance(row, dict)] == ["t9"]


def test_a_wrong_trace_inside_a_session_is_named_by_its_path() -> None:
    session = json.loads((EXPORTS / "langfuse_session.json").read_text())
    session["traces"][1]["timestamp"] = 12
    other = {"id": "t5", "timestamp": "2026-03-02T09:00:00Z", "input": "Hi", "output": "Hello"}
    (first, second) = langfuse_chats([(1, session), (2, other)])
    assert (first[0], str(first[1])) == (1, "traces[1].timestamp: must be an ISO 8601 time, not 12")
    assert (second[0], second[1]["id"]) == (2, "t5")  # type: ignore[index]


def test_a_session_without_text_is_named_not_dropped() -> None:
    trace = {"id": "t1", "timestamp": "2026-03-02T09:00:00Z", "input": None, "output": None}
    ((number, problem),) = langfuse_chats([(3, trace)])
    assert (number, str(problem)) == (
        3,
        "chat t1 holds no messages: its records have neither input nor output",
    )


def test_a_session_of_endless_records_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labeling.ingest.core.collection.MAX_PARTS", 300)
    traces = [{"id": f"t{n}", "timestamp": f"2026-03-02T09:00:0{n}Z", "input": "x" * 90} for n in range(4)]
    rows = [(n, trace | {"sessionId": "s1"}) for n, trace in enumerate(traces, 1)]
    ((number, problem), (_, small)) = langfuse_chats([*rows, (9, traces[0] | {"id": "t9"})])
    assert (number, str(problem)) == (1, "the records of chat s1 hold more than 0 million characters")
    assert small["id"] == "t9"  # type: ignore[index]


# ---------- OpenTelemetry ----------


def test_spans_of_a_conversation_are_one_chat_across_traces() -> None:
    chat = [SYSTEM, QUESTION, CALL, ("tool", "on its way"), ANSWER, *LATER]
    assert otel("otel_spans.jsonl") == {"conv-1": chat}


def test_agents_tell_the_turns_where_that_is_chosen() -> None:
    chats = otel("otel_spans.jsonl", level="traces")
    assert [turn for turn in chats["conv-1"] if turn[0] in ("user", "assistant")] == [
        QUESTION,
        ANSWER,
        *LATER,
    ]


def test_tool_spans_are_the_tool_turns_where_no_call_holds_any(tmp_path: Path) -> None:
    documents = lines("otel_spans.jsonl")
    spans = documents[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[:] = [span for span in spans if not span["name"].startswith("chat")]
    path = write_jsonl(tmp_path / "x.jsonl", documents[0])
    assert told(otel_chats([path])) == {"conv-1": [CALL, ("tool", "on its way"), QUESTION, ANSWER]}


def test_events_with_one_message_each_are_read_from_spans() -> None:
    assert otel("otel_span_events.json") == {"6bf92f3577b34da6a3ce929d0e0e4736": ORDER_CHAT}


def test_events_are_read_from_logs_old_and_new() -> None:
    assert otel("otel_logs.jsonl") == {
        "7bf92f3577b34da6a3ce929d0e0e4736": [SYSTEM, QUESTION, ANSWER],
        "conv-5": [("user", "Do you ship to Malta?"), ("assistant", "Yes, within five days.")],
    }


def test_spans_and_their_events_in_two_files_say_each_turn_once() -> None:
    both = [EXPORTS / "otel_spans.jsonl", EXPORTS / "otel_spans.jsonl", EXPORTS / "otel_logs.jsonl"]
    chats = told(otel_chats(both))
    assert chats == otel("otel_spans.jsonl") | otel("otel_logs.jsonl")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("startTimeUnixNano", "soon", "startTimeUnixNano: must be a whole number, not 'soon'"),
        ("startTimeUnixNano", "9" * 30, "startTimeUnixNano: must be nanoseconds since 1970"),
        ("attributes", {}, "attributes: must be a list of attributes, not {}"),
        ("attributes", [{"value": {}}], "attributes[0]: must be an attribute with a key"),
        (
            "attributes",
            [{"key": "a", "value": {"x": 1}}],
            "attributes[0].value: must be one of OTLP’s values",
        ),
        (
            "attributes",
            [{"key": "gen_ai.input.messages", "value": {"stringValue": '[{"role": "user", "par'}}],
            "attributes.gen_ai.input.messages: not JSON: Unterminated string starting at at column 19: "
            "did a limit for the length of attributes cut it off?",
        ),
    ],
)
def test_a_wrong_span_is_named_by_line_and_path_and_only_its_chat_left_out(
    tmp_path: Path, key: str, value: Any, problem: str
) -> None:
    wrong = lines("otel_spans.jsonl")[0]
    span = wrong["resourceSpans"][0]["scopeSpans"][0]["spans"][3]
    span[key] = value
    fine = lines("otel_logs.jsonl")
    found = list(otel_chats([write_jsonl(tmp_path / "x.jsonl", fine[0], wrong, fine[1])]))
    assert [number for number, row in found if isinstance(row, FieldProblem)] == [2]
    assert str(found[0][1]).startswith(f"resourceSpans[0].scopeSpans[0].spans[3].{problem}")
    assert [row["id"] for _, row in found if isinstance(row, dict)] == [
        "7bf92f3577b34da6a3ce929d0e0e4736",
        "conv-5",
    ]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"a": NaN}]}]}]}', 1, "spans[0]: NaN is not JSON"),
        (
            '{}\n{"resourceSpans": [{"scopeSpans": [{"spans": [{"a"',
            2,
            "spans[0]: the file ends inside this record",
        ),
        ('{}\n\n{"resourceSpans": [7]}', 3, "resourceSpans[0]: must be an object"),
        ("[1]", 1, "must be an object"),
        ('{"a" 1}', 1, "must be followed by a colon"),
    ],
)
def test_a_broken_document_is_named_by_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    ((number, row),) = otel_chats([path])
    assert number == line
    assert str(row).endswith(problem)


def test_a_document_larger_than_the_memory_is_read_span_by_span(tmp_path: Path) -> None:
    path, size = tmp_path / "large.json", 17 * 1024**2
    document = lines("otel_spans.jsonl")[0]
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"].pop(0)
    with path.open("w") as file:
        file.write('{"resourceSpans": [{"scopeSpans": [{"spans": [')
        for n in range(size // 200_000):
            one = span | {"spanId": str(n), "traceId": str(n), "pad": "x" * 200_000, "attributes": _call(n)}
            file.write("," * bool(n) + json.dumps(one))
        file.write("]}]}]}")
    tracemalloc.start()
    count = sum(isinstance(row, dict) for _, row in otel_chats([path]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == size // 200_000
    assert peak < size // 3


def _call(n: int) -> list[dict[str, Any]]:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"Question {n}"}]}])
    return [{"key": "gen_ai.input.messages", "value": {"stringValue": messages}}]
