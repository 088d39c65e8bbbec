"""Chats from the rows of a file: one row a chat, one row an exchange, or one row a message."""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Any

from common.imports import Target
from common.problems import FieldProblem, shown
from labeling.transfer.core.columns import SPEAKERS, ColumnMapping, messages_in, plain
from labeling.transfer.core.rows import Row, cell_of, flat, is_blank, text_of, time_of

ROLES = {"user": "Customer", "assistant": "Bot", "tool": "Tool", "system": "System"}
SPLITS = {"training": "train", "development": "dev", "validation": "dev", "val": "dev", "test": "holdout"}
ROWS_AT_ONCE = 2000
TURN = re.compile(r"^[ \t]*([^\W\d_][\w .-]{0,30})[ \t]*:[ \t]?", re.MULTILINE)

Fragment = dict[str, Any]  # of a chat: what one row says about it


def chat_lines(
    rows: Iterable[Row], mapping: ColumnMapping, targets: Sequence[Target], *, prefix: str
) -> Iterator[Row]:
    """
    Yield the number of each chat's first row, and the chat as a line of a file of chats, or a problem.

    Parameters
    ----------
    rows : read once; rows of one chat need not be neighbours.
    mapping : one that `mapping_problem` accepts.
    targets : fields of a chat beside its messages.
    prefix : begins the ids of chats that have none in the file.
    """
    fragments = _fragments(rows, mapping, {target.key: target for target in targets}, prefix)
    texts = [name for name in mapping.of("text") if "[]." not in name]
    if mapping.of("id") and (texts or mapping.of("bot") or mapping.of("customer")):
        yield from _grouped(fragments)
        return
    for number, fragment in fragments:
        yield number, fragment if isinstance(fragment, FieldProblem) else _line([fragment])


def mapping_problem(mapping: ColumnMapping) -> str:
    """Return what is missing for chats, "" where nothing is."""
    inner = [name for name in mapping.columns if "[]." in name and mapping.columns[name]]
    speaker, text = mapping.of("speaker"), mapping.of("text")
    turns = mapping.of("customer") + mapping.of("bot")
    if bool(speaker) != bool(text):
        missing = "Speaker" if text else "Message text"
        return f"Choose the column with the {missing.lower()}. Speaker and message text go together."
    if not (text or turns or mapping.of("messages")):
        return (
            "Choose where the messages are: a speaker and a message text, a customer message and a bot "
            "message, or one column with all messages."
        )
    if text and not inner and not mapping.of("id"):
        return "Choose the column with the chat id: it says which messages belong together."
    for key in ("id", "topic", "split", "started_at", "variant", "experiment", "cluster", "messages"):
        if len(mapping.of(key)) > 1:
            return f"Two columns are marked as {key.replace('_', ' ')}: {', '.join(mapping.of(key))}."
    if not inner and (len(speaker) > 1 or len(text) > 1):
        return "Two columns are marked as speaker or as message text. Choose one of each."
    return ""


def _fragments(
    rows: Iterable[Row], mapping: ColumnMapping, targets: Mapping[str, Target], prefix: str
) -> Iterator[tuple[int, Fragment | FieldProblem]]:
    for number, row in rows:
        if isinstance(row, FieldProblem):
            yield number, row
            continue
        try:
            yield number, _fragment(flat(row), mapping, targets, f"{prefix}-{number}")
        except FieldProblem as problem:
            # The chat's other rows must go with it.
            columns = mapping.of("id")
            yield number, _Broken(problem, text_of(row.get(columns[0])).strip() if columns else "")


class _Broken(FieldProblem):
    """A problem with a row, and the chat that is incomplete without it."""

    def __init__(self, problem: FieldProblem, chat: str) -> None:
        super().__init__(problem.field, problem.message)
        self.chat = chat


def _fragment(
    row: Mapping[str, Any], mapping: ColumnMapping, targets: Mapping[str, Target], fallback: str
) -> Fragment:
    fragment: Fragment = {"messages": []}
    metadata: dict[str, Any] = {}
    for column, key in mapping.columns.items():
        value = row.get(column)
        if not key or "[]." in column or is_blank(value):
            continue
        if key == "metadata":
            metadata[column.removeprefix("metadata.")] = value
        elif key in targets:
            fragment[key] = cell_of(value, targets[key], column)
        elif key in ("customer", "bot"):
            role = "user" if key == "customer" else "assistant"
            fragment["messages"].append({"role": role, "content": text_of(value)})
        elif key == "messages":
            fragment["messages"] += _whole(value, column, mapping.speakers)
    for column in dict.fromkeys(name.split("[].", 1)[0] for name in mapping.columns if "[]." in name):
        fragment["messages"] += _listed(row.get(column), column, mapping)
    if mapping.of("text") and not any("[]." in name for name in mapping.of("text")):
        fragment["messages"] += [_message(row, mapping)]
    if metadata:
        fragment["metadata"] = metadata
    if "id" not in fragment:
        if columns := mapping.of("id"):
            raise FieldProblem(columns[0], "is empty")
        fragment["id"] = fallback
    fragment["id"] = str(fragment["id"]).strip()
    if split := str(fragment.get("split", "")).strip().lower():
        fragment["split"] = SPLITS.get(split, split)
    return fragment


def _message(row: Mapping[str, Any], mapping: ColumnMapping, columns: Mapping[str, str] | None = None) -> Any:
    """Return one message from the cells of a row, or of an object in a list (`columns`: field → key)."""
    names = columns or {key: mapping.of(key)[0] for key in ("speaker", "text", "time") if mapping.of(key)}
    shown_as = names["speaker"]
    message = {
        "role": _role(row.get(names["speaker"]), shown_as, mapping.speakers),
        "content": text_of(row.get(names["text"])),
    }
    if "time" in names and not is_blank(row.get(names["time"])):
        message["created_at"] = cell_of(row[names["time"]], Target("time", "", "time"), names["time"])
    return message


def _listed(value: Any, column: str, mapping: ColumnMapping) -> list[Any]:
    if is_blank(value):
        return []
    messages = messages_in(value)
    if not messages:
        raise FieldProblem(column, f"must be a list of messages, not {shown(value)}")
    start = f"{column}[]."
    columns = {
        key: name.removeprefix(start) for name, key in mapping.columns.items() if name.startswith(start)
    }
    found = []
    for place, message in enumerate(messages):
        try:
            found.append(_message(message, mapping, columns))
        except FieldProblem as problem:
            raise FieldProblem(f"{column}[{place}].{problem.field}", problem.message) from None
    return found


def _whole(value: Any, column: str, speakers: Mapping[str, str]) -> list[Any]:
    """Return the messages of a cell with a whole chat: lines of the form "Customer: text"."""
    text = text_of(value)
    starts = [match for match in TURN.finditer(text) if _known(match[1], speakers)]
    if not starts or text[: starts[0].start()].strip():
        raise FieldProblem(column, f"must be lines such as “Customer: text”, not {shown(text[:40])}")
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [
        {"role": _known(match[1], speakers), "content": text[match.end() : end].strip()}
        for match, end in zip(starts, ends, strict=True)
    ]


def _known(word: str, speakers: Mapping[str, str]) -> str:
    return speakers.get(word.strip()) or SPEAKERS.get(plain(word), "")


def _role(value: Any, column: str, speakers: Mapping[str, str]) -> str:
    word = text_of(value).strip()
    if role := _known(word, speakers):
        return role
    if not word:
        raise FieldProblem(column, "is empty: who is speaking?")
    raise FieldProblem(column, f"unknown speaker {shown(word)}: say who it is under “Speakers”")


def _grouped(fragments: Iterable[tuple[int, Fragment | FieldProblem]]) -> Iterator[Row]:
    """Yield chats whose rows may be anywhere in the file; they are collected on disk, not in memory."""
    # NB: the empty name is SQLite's temporary database, deleted when it is closed.
    with closing(sqlite3.connect("")) as store:
        store.execute("CREATE TABLE chat (id TEXT PRIMARY KEY, first INTEGER, broken INTEGER)")
        store.execute("CREATE TABLE part (chat TEXT, number INTEGER, body TEXT)")
        batch: list[tuple[str, int, str]] = []
        for number, fragment in fragments:
            if isinstance(fragment, FieldProblem):
                if isinstance(fragment, _Broken) and fragment.chat:
                    batch.append((fragment.chat, number, ""))
                yield number, fragment
            else:
                batch.append((fragment["id"], number, json.dumps(fragment)))
            if len(batch) >= ROWS_AT_ONCE:
                _store(store, batch)
                batch = []
        _store(store, batch)
        found = store.execute(
            "SELECT chat.first, part.body FROM chat JOIN part ON part.chat = chat.id"
            " WHERE NOT chat.broken ORDER BY chat.first, part.number"
        )
        for first, parts in groupby(found, key=itemgetter(0)):
            yield first, _line([json.loads(body) for _, body in parts])


def _store(store: sqlite3.Connection, batch: Sequence[tuple[str, int, str]]) -> None:
    store.executemany(
        "INSERT INTO chat VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET broken = max(broken, excluded.broken)",
        [(chat, number, not body) for chat, number, body in batch],
    )
    store.executemany("INSERT INTO part VALUES (?, ?, ?)", [part for part in batch if part[2]])


def _line(fragments: Sequence[Fragment]) -> dict[str, Any]:
    """Return the chat of some rows: the first row that fills a field wins, messages follow each other."""
    line: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []
    for fragment in fragments:
        messages += fragment.pop("messages")
        metadata = fragment.pop("metadata", {})
        line = {**fragment, **line}
        if metadata:
            line["metadata"] = metadata | line.get("metadata", {})
    times = [message.get("created_at") for message in messages]
    if len(fragments) > 1 and all(times):
        messages.sort(key=lambda message: time_of(message["created_at"]))
    return line | {"messages": messages}
