"""Parts of chats from anywhere in a file, collected on disk and put together."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, Self

from common.problems import FieldProblem
from labeling.ingest.core.conversation import Call, conversation_of, moment_of
from labeling.ingest.core.messages import Turn
from labeling.transfer.core.rows import Row

PARTS_AT_ONCE = 2000
# Of one chat, characters: with its history in every call a chat takes much more than its own length.
MAX_PARTS = 64 * 1024**2
# Where the turns of a trace are read from, the best first; tools' turns only where no call holds any.
Kind = Literal["call", "whole", "tool"]
Level = Literal["calls", "traces"]


@dataclass(frozen=True, slots=True)
class Part:
    """
    What one record says about a chat.

    Parameters
    ----------
    trace : groups the parts of one request.
    chat : the session or conversation, "" where the record does not name it: then that of the trace, else the
        trace is the chat.
    call : parts of the same call are one call, "" for a call of its own; of each trace one is whole.
    kind : a call of a model, the input and output of the whole trace, or the run of a tool.
    single : one of several messages of the call, in the order of the file; else all of its messages.
    broken : the record cannot be read, so the chat is incomplete without it.
    """

    number: int
    trace: str
    chat: str = ""
    call: str = ""
    kind: Kind = "call"
    turns: Call = field(default_factory=Call)
    single: bool = False
    broken: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ChatCollection:
    """A store of parts for the time of one import; use it as a context manager."""

    def __init__(self) -> None:
        # NB: the empty name is SQLite's temporary database, deleted when it is closed.
        self._store = sqlite3.connect("")
        self._store.execute("CREATE TABLE part (trace TEXT, chat TEXT, number INTEGER, body TEXT)")
        self._store.execute("CREATE TABLE trace (id TEXT PRIMARY KEY, chat TEXT)")
        self._waiting: list[Part] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def add(self, part: Part) -> None:
        """Keep a part."""
        self._waiting.append(part)
        if len(self._waiting) >= PARTS_AT_ONCE:
            self._flush()

    def chats(self, level: Level = "calls") -> Iterator[Row]:
        """
        Yield the number of each chat's first record, and the chat as a line of a file of chats, or a problem.

        A chat with a broken part is left out: its record's problem was named already.
        """
        self._flush()
        found = self._store.execute(
            "WITH placed AS (SELECT coalesce(nullif(part.chat, ''), trace.chat, part.trace) AS chat, number,"
            "  part.rowid AS place, body FROM part LEFT JOIN trace ON trace.id = part.trace),"
            " whole AS (SELECT chat, min(number) AS first FROM placed GROUP BY chat"
            "  HAVING sum(body = '') = 0)"
            " SELECT whole.first, chat, body FROM placed JOIN whole USING (chat)"
            " ORDER BY whole.first, chat, placed.number, placed.place"
        )
        for (first, chat), rows in groupby(found, key=itemgetter(0, 1)):
            bodies, size = [], 0
            for *_, body in rows:
                size += len(body)
                if size <= MAX_PARTS:
                    bodies.append(json.loads(body))
            yield first, _line(chat, bodies, level) if size <= MAX_PARTS else _too_large(chat)

    def _flush(self) -> None:
        self._store.executemany(
            "INSERT INTO part VALUES (?, ?, ?, ?)",
            [(part.trace, part.chat, part.number, _body(part)) for part in self._waiting],
        )
        self._store.executemany(
            "INSERT INTO trace VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(part.trace, part.chat) for part in self._waiting if part.chat],
        )
        self._waiting = []


def _too_large(chat: str) -> FieldProblem:
    return FieldProblem(
        "", f"the records of chat {chat} hold more than {MAX_PARTS // 1024**2} million characters"
    )


def _body(part: Part) -> str:
    if part.broken:
        return ""
    turns = part.turns
    sides = [[(turn.role, turn.content) for turn in side] for side in (turns.given, turns.answered)]
    return json.dumps(
        [part.trace, part.call, part.kind, part.single, sides, turns.started, turns.ended, part.metadata]
    )


def _line(chat: str, bodies: Sequence[list[Any]], level: Level) -> dict[str, Any] | FieldProblem:
    calls: defaultdict[tuple[str, str], dict[str, list[tuple[bool, Call]]]] = defaultdict(dict)
    metadata: dict[str, Any] = {}
    for n, (trace, call, kind, single, sides, started, ended, facts) in enumerate(bodies):
        given, answered = (tuple(Turn(*turn) for turn in side) for side in sides)
        parts = calls[trace, kind].setdefault(call or f"#{n}", [])
        parts.append((single, Call(given, answered, started, ended)))
        metadata = facts | metadata
    chosen = _chosen({key: [_call(parts) for parts in group.values()] for key, group in calls.items()}, level)
    messages = conversation_of(chosen)
    if not messages:
        return FieldProblem("", f"chat {chat} holds no messages: its records have neither input nor output")
    line: dict[str, Any] = {"id": chat, "messages": messages}
    if times := [call.started for call in chosen if call.started is not None]:
        line["started_at"] = moment_of(min(times))
    return line | ({"metadata": metadata} if metadata else {})


def _call(parts: Sequence[tuple[bool, Call]]) -> Call:
    """
    Return a call from what its records say.

    Of records with all its messages the last one counts, as exports hold a call again when it was updated.
    Without any, its single messages in order.
    """
    given: list[Turn] = []
    answered: list[Turn] = []
    for side, name in ((given, "given"), (answered, "answered")):
        for single in (False, True):
            found = [turns for one, call in parts if one == single and (turns := getattr(call, name))]
            if found and not side:
                side += [turn for turns in found for turn in turns] if single else found[-1]
    started = [call.started for _, call in parts if call.started is not None]
    ended = [call.ended for _, call in parts if call.ended is not None]
    return Call(tuple(given), tuple(answered), min(started, default=None), max(ended, default=None))


def _chosen(calls: Mapping[tuple[str, str], Sequence[Call]], level: Level) -> list[Call]:
    """Return the calls that a chat is read from: of each trace the models' calls, else its whole."""
    kinds = ("call", "whole") if level == "calls" else ("whole", "call")
    chosen: list[Call] = []
    for trace in dict.fromkeys(trace for trace, _ in calls):
        full = [
            [call for call in calls.get((trace, kind), []) if call.given or call.answered] for kind in kinds
        ]
        chosen += full[0] or full[1]
    if not any(turn.role == "tool" for call in chosen for turn in (*call.given, *call.answered)):
        chosen += [call for (_, kind), group in calls.items() if kind == "tool" for call in group]
    return chosen
