"""The columns of a file, and what each of them is: guessed from names and values, changed by people."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from common.guarded_json import guarded_loads
from common.imports import ImportKind, Target
from common.problems import FieldProblem
from labeling.transfer.core.rows import Row, flat, is_blank, text_of

SAMPLE_ROWS = 300
EXAMPLE = 160  # characters
MAX_SPEAKERS = 40
FEW_SPEAKERS = 6  # a column with so few words, a known speaker among them, holds speakers
LONG_TEXT = 15  # characters of a message on average
CRITERION = "criterion:"
WORDS = {
    "user": "user customer client human visitor guest enduser buyer caller consumer kunde kundin shopper",
    "assistant": "assistant bot agent ai chatbot model gpt support advisor operator helpdesk",
    "tool": "tool function toolresult ipython api",
    "system": "system developer instructions",
}
SPEAKERS = {word: role for role, words in WORDS.items() for word in words.split()}
# Fields that only chats have, beside those of a line: where their messages are.
MESSAGE_TARGETS = (
    Target(
        "speaker",
        "Speaker",
        also=("role", "from", "sender", "author", "who", "actor", "speaker", "senderrole"),
    ),
    Target("text", "Message text", also=("content", "text", "body", "message", "msg", "utterance", "value")),
    Target("time", "Message time", also=("createdat", "timestamp", "time", "at", "sentat", "date", "ts")),
    Target(
        "customer",
        "Customer message",
        also=(
            *("customer", "user", "client", "question", "usermessage", "customermessage", "query"),
            *("prompt", "input", "human", "request"),
        ),
    ),
    Target(
        "bot",
        "Bot message",
        also=(
            *("bot", "assistant", "answer", "response", "reply", "botmessage", "output", "completion"),
            *("agentmessage", "botreply", "botanswer", "assistantmessage"),
        ),
    ),
    Target("messages", "All messages", also=("transcript", "dialog", "dialogue", "history", "log")),
)
_PLAIN = re.compile(r"[^a-z0-9]+")
_TURN = re.compile(r"^\s*([^\W\d_][\w .-]{0,30})\s*:\s", re.MULTILINE)
_NUMBERED = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its first value; `speakers` are the words in it if few."""

    name: str
    example: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """What each column is ("" = left out), who each speaker is, and what stands for columns that lack."""

    columns: Mapping[str, str] = field(default_factory=dict)
    speakers: Mapping[str, str] = field(default_factory=dict)

    def of(self, target: str) -> list[str]:
        """Return the columns that fill a field, in the order of the file."""
        return [name for name, key in self.columns.items() if key == target]

    def as_json(self) -> dict[str, Any]:
        """Return it as the database keeps it."""
        return {"columns": dict(self.columns), "speakers": dict(self.speakers)}


@dataclass(frozen=True, slots=True)
class Summary:
    """The columns of a file from its first rows; `rows` of them were read."""

    columns: tuple[Column, ...]
    rows: int


def plain(name: str) -> str:
    """
    Return a name without case, spaces and signs.

    Examples
    --------
    >>> plain("Conversation-ID")
    'conversationid'
    """
    return _PLAIN.sub("", name.lower())


def messages_in(value: Any) -> list[dict[str, Any]]:
    """Return the messages of a cell that holds a list of objects, also as JSON text; else nothing."""
    if isinstance(value, str) and value.lstrip().startswith("[") and "{" in value:
        try:
            value = guarded_loads(value)
        except FieldProblem:
            return []
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return value
    return []


def summary_of(rows: Iterable[Row], *, lists: bool) -> Summary:
    """Return the columns of the first rows; with `lists` the fields of lists of objects are columns, too."""
    values: dict[str, list[Any]] = {}
    count = 0
    for _, row in rows:
        if count == SAMPLE_ROWS:
            break
        if isinstance(row, FieldProblem):
            continue
        count += 1
        for name, value in flat(row).items():
            inner = messages_in(value) if lists else []
            if not inner:
                values.setdefault(name, []).append(value)
            for message in inner:
                for key, one in message.items():
                    values.setdefault(f"{name}[].{key}", []).append(one)
    return Summary(tuple(_column(name, cells) for name, cells in values.items()), count)


def signature_of(columns: Iterable[str]) -> str:
    """Return the hash of a set of columns, by which a saved mapping is found again."""
    return sha256("\n".join(sorted(columns)).encode("utf-8", "surrogatepass")).hexdigest()


def targets_of(kind: ImportKind) -> tuple[Target, ...]:
    """Return all fields that a column of this kind can fill."""
    return (*kind.targets, *MESSAGE_TARGETS) if kind.key == "chats" else kind.targets


def guessed(kind: ImportKind, columns: Sequence[Column], criteria: Iterable[str] = ()) -> ColumnMapping:
    """Return what the columns probably are, by their names and, for chats, by their values."""
    found: dict[str, str] = {}
    keys = {plain(key): key for key in criteria}
    for column in columns:
        found[column.name] = _by_name(kind, column.name, found)
        if not found[column.name] and kind.wide and plain(column.name) in keys:
            found[column.name] = CRITERION + keys[plain(column.name)]
    if kind.key == "chats":
        _by_values(columns, found)
        _settle(columns, found)
    return ColumnMapping(found, speakers_in(columns, found))


def speakers_in(columns: Sequence[Column], found: Mapping[str, str]) -> dict[str, str]:
    """Return the speakers that the sample names, each with its role, "" where it is not known."""
    words = [word for column in columns if found.get(column.name) == "speaker" for word in column.words]
    return {word: SPEAKERS.get(plain(word), "") for word in dict.fromkeys(words)}


def _column(name: str, cells: Sequence[Any]) -> Column:
    filled = [text_of(cell) for cell in cells if not is_blank(cell)]
    words = tuple(dict.fromkeys(text.strip() for text in filled))
    few = words if len(words) <= MAX_SPEAKERS and all(len(word) <= 60 for word in words) else ()
    return Column(name, filled[0][:EXAMPLE] if filled else "", few)


def _by_name(kind: ImportKind, name: str, found: Mapping[str, str]) -> str:
    inner = "[]." in name
    word = plain(name.rsplit("[].", 1)[-1])
    if kind.key == "chats" and name.startswith("metadata.") and not inner:
        return "metadata"
    if inner:
        choices: tuple[Target, ...] = MESSAGE_TARGETS[:3]
    else:
        choices = targets_of(kind)
    for target in choices:
        # Several columns may hold turns, as customer_1 and customer_2.
        many = target.key in ("customer", "bot")
        fits = word in (plain(target.key), *target.also)
        fits = fits or (many and _NUMBERED.sub("", word) in target.also)
        if fits and (many or inner or target.key not in found.values()):
            return target.key
    return ""


def _by_values(columns: Sequence[Column], found: dict[str, str]) -> None:
    """Find speakers, messages and ids whose columns have names that say nothing."""
    free = [column for column in columns if not found[column.name] and column.example]
    taken = set(found.values())
    for column in free:
        known = [word for word in column.words if plain(word) in SPEAKERS]
        few = 2 <= len(column.words) <= max(FEW_SPEAKERS, 2 * len(known))
        if "speaker" not in taken and known and few:
            found[column.name] = "speaker"
            taken.add("speaker")
        elif not taken & {"messages", "text", "customer"} and len(_TURN.findall(column.example)) >= 2:
            found[column.name] = "messages"
            taken.add("messages")
    free = [column for column in free if not found[column.name]]
    if "speaker" in taken and "text" not in taken and free:
        longest = max(free, key=lambda column: (not column.words, len(column.example)))
        if len(longest.example) >= LONG_TEXT or not longest.words:
            found[longest.name] = "text"
    if "id" not in taken:
        ids = [column for column in free if not found[column.name] and _is_id(column)]
        if ids:
            found[ids[0].name] = "id"


def _is_id(column: Column) -> bool:
    example = column.example.strip()
    return (
        len(example) <= 64
        and any(sign.isdigit() for sign in example)
        and not re.search(r"\s|[:.]\d\d", example)
    )


def _settle(columns: Sequence[Column], found: dict[str, str]) -> None:
    """Mend guesses that exclude each other."""
    roles = set(found.values())
    inner = any("[]." in name and role == "text" for name, role in found.items())
    rows = {"speaker", "text"} <= roles and not inner
    for name, role in found.items():
        if inner and "[]." not in name and role in ("speaker", "text", "customer", "bot", "messages"):
            found[name] = ""
        elif inner and "[]." not in name and role == "time":
            found[name] = "started_at"
        elif rows and role in ("customer", "bot", "messages"):
            found[name] = ""
        elif rows and role == "started_at" and "time" not in roles:
            found[name] = "time"
            roles.add("time")
        elif not rows and not inner and role in ("speaker", "text", "time"):
            found[name] = "" if role != "time" or "started_at" in roles else "started_at"
