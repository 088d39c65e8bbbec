"""A chat from a file: validated, counted and hashed."""

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from common.jsonl import KEY_LIMIT, Fields, Ignored, iso

MAX_CHARACTERS = 1_000_000
MAX_MESSAGES = 5_000
SHORT_LIMIT = 80
MOST_CODES = 1 << 16
ROLES = ("user", "assistant", "system", "tool")
SPLITS = ("train", "dev", "holdout")
CHAT_FIELDS = frozenset(
    (
        *("id", "topic", "split", "started_at", "messages", "experiment", "variant", "unit_id", "cluster"),
        "metadata",
    )
)
MESSAGE_FIELDS = frozenset(("role", "content", "created_at"))

_WORD = re.compile(r"\w+")
# What finds the same words in plain text, twice as fast.
_PLAIN_SIGNS = {code: " " for code in range(128) if not _WORD.match(chr(code))}
_Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Transcript:
    """
    One chat of a file. None = absent from the line.

    `messages` is what the database stores: [{"n": 1, "role": …, "content": …, "created_at"?: ISO 8601 UTC}].
    """

    external_id: str
    messages: list[dict[str, Any]]
    content_hash: str
    near_hash: int | None
    char_count: int
    topic: str | None
    split: str | None
    started_at: datetime | None
    experiment: str | None
    variant: str | None
    cluster: str | None
    metadata: dict[str, Any] | None
    unit_id: str | None = None
    # What gave the topic: "" the sender, `rule`, or `none`.
    topic_by: str = ""
    # What was redacted in it: [{"kind", "number", "digest", "count"}].
    redactions: tuple[dict[str, Any], ...] = ()

    @property
    def message_count(self) -> int:
        """Number of messages, blank ones included."""
        return len(self.messages)

    @property
    def last_at(self) -> datetime | None:
        """The time of the last message that has one."""
        times = [message["created_at"] for message in self.messages if "created_at" in message]
        return max(map(datetime.fromisoformat, times), default=None)

    def with_messages(self, messages: list[dict[str, Any]], **changes: Any) -> "Transcript":
        """Return the chat with other messages, hashed and counted anew, and other changes."""
        contents = [message["content"] for message in messages]
        return self.with_changes(
            messages=messages,
            content_hash=content_hash((message["role"], message["content"]) for message in messages),
            near_hash=near_hash(contents),
            char_count=sum(map(len, contents)),
            **changes,
        )

    def with_changes(self, **changes: Any) -> "Transcript":
        """Return the chat with other values in these fields."""
        return replace(self, **changes)


def transcript_of(fields: Fields, ignored: Ignored | None = None, *, cluster_key: str = "") -> Transcript:
    """
    Validate one chat object.

    Parameters
    ----------
    fields : the line.
    ignored : counts unknown fields.
    cluster_key : key of the metadata that names the chat's cluster if the line has no `cluster`.

    Raises
    ------
    FieldProblem
        a field of the wrong type, a cluster that is no text, number or boolean, more than 1,000,000
        characters or 5,000 messages, no message.

    Examples
    --------
    >>> chat = transcript_of(Fields({"id": "a", "messages": [{"role": "user", "content": "Hi"}]}))
    >>> chat.message_count, chat.char_count, chat.topic
    (1, 2, None)
    """
    external_id = fields.text("id", limit=KEY_LIMIT, blank=False)
    messages = _messages(fields, ignored)
    characters = sum(len(message["content"]) for message in messages)
    if characters > MAX_CHARACTERS:
        raise fields.refuse("messages", f"hold {characters:,} characters; {MAX_CHARACTERS:,} is the limit")
    if ignored is not None:
        ignored.note(fields.unknown(CHAT_FIELDS))
    metadata = fields.mapping("metadata") if fields.given("metadata") else None
    return Transcript(
        external_id=external_id,
        messages=messages,
        content_hash=content_hash((message["role"], message["content"]) for message in messages),
        near_hash=near_hash([message["content"] for message in messages]),
        char_count=characters,
        topic=_optional_text(fields, "topic", KEY_LIMIT),
        split=fields.choice("split", SPLITS) if fields.given("split") else None,
        started_at=fields.moment("started_at"),
        experiment=_experiment(fields),
        variant=_optional_text(fields, "variant", SHORT_LIMIT),
        cluster=_optional_text(fields, "cluster", KEY_LIMIT) or _cluster(fields, metadata, cluster_key),
        metadata=metadata,
        unit_id=_optional_text(fields, "unit_id", KEY_LIMIT),
    )


def _optional_text(fields: Fields, key: str, limit: int) -> str | None:
    return fields.text(key, limit=limit).strip() if fields.given(key) else None


def _experiment(fields: Fields) -> str | None:
    """Return the key of the experiment, which is a part of API addresses.

    There a slash at an end, a double one, or a dot alone between slashes would name another address.
    """
    key = _optional_text(fields, "experiment", SHORT_LIMIT)
    if key and any(part in ("", ".", "..") for part in key.split("/")):
        raise fields.refuse("experiment", f"{key!r} must not have empty parts, . or .. between slashes")
    return key


def _cluster(fields: Fields, metadata: dict[str, Any] | None, key: str) -> str | None:
    """Return the cluster that the metadata names; None without one."""
    value = (metadata or {}).get(key) if key else None
    if value is None:
        return None
    if not isinstance(value, str | int | float):
        raise fields.refuse(f"metadata.{key}", "names the cluster: it must be a text, a number or a boolean")
    text = str(value).strip()
    if len(text) > KEY_LIMIT:
        raise fields.refuse(f"metadata.{key}", f"has {len(text):,} characters; {KEY_LIMIT} is the limit")
    return text or None


def _messages(fields: Fields, ignored: Ignored | None) -> list[dict[str, Any]]:
    items = fields.items("messages")
    if not items:
        raise fields.refuse("messages", "must contain at least one message")
    if len(items) > MAX_MESSAGES:
        raise fields.refuse("messages", f"holds {len(items):,} messages; {MAX_MESSAGES:,} is the limit")
    extra: set[str] = set()
    messages = [_message(Fields(item, f"messages[{n - 1}]"), n, extra) for n, item in enumerate(items, 1)]
    if ignored is not None and extra:
        ignored.note(extra, "messages[].")
    return messages


def _message(fields: Fields, n: int, extra: set[str]) -> dict[str, Any]:
    message: dict[str, Any] = {
        "n": n,
        "role": fields.choice("role", ROLES),
        "content": fields.text("content"),
    }
    if len(fields.data) > 2:
        extra |= fields.unknown(MESSAGE_FIELDS)
        if moment := fields.moment("created_at"):
            message["created_at"] = iso(moment)
    return message


def content_hash(pairs: Iterable[tuple[str, str]]) -> str:
    """
    Return the SHA-256 over the (role, text) pairs in order, the identity of a chat.

    Examples
    --------
    >>> content_hash([("user", "Hi")])[:16]
    '8b1450277179b15b'
    """
    canonical = json.dumps(list(pairs), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def near_hash(texts: Sequence[str]) -> int | None:
    """
    Return a 64-bit simhash over three-word shingles, signed; near-duplicates differ in few bits.

    Charikar, "Similarity estimation techniques from rounding algorithms" (STOC 2002); three of 64 bits as the
    bound of near-duplicates: Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007).

    Parameters
    ----------
    texts : the messages' texts; case and punctuation do not count.

    Returns
    -------
    None when there is no word at all.

    Examples
    --------
    >>> near_hash(["Where is my order?"]) == near_hash(["where is", "my order"])
    True
    """
    text = " ".join(texts).lower()
    words = text.translate(_PLAIN_SIGNS).split() if text.isascii() else _WORD.findall(text)
    if not words:
        return None
    codes = np.fromiter(map(_CODES.__getitem__, words), np.uint64, len(words))
    bits = np.unpackbits(_mixed(_shingles(codes)).astype("<u8").view(np.uint8)).reshape(-1, 64)
    votes = np.ones(len(bits), np.float32) @ bits.astype(np.float32)  # exact below 2**24 shingles, and fast
    return int(np.packbits(2 * votes > len(bits)).view("<i8")[0])


class _Codes(dict[str, int]):
    """The codes of the words met last: half the time of an lru_cache, which keeps an order, too."""

    def __missing__(self, word: str) -> int:
        if len(self) >= MOST_CODES:
            self.clear()
        self[word] = code = zlib.crc32(word.encode())
        return code


_CODES = _Codes()


def _shingles(codes: _Words) -> _Words:
    """Return one number per three consecutive words (per word if fewer); wraps at 64 bits."""
    if len(codes) < 3:
        return codes
    first, second = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
    return (codes[:-2] * first + codes[1:-1]) * second + codes[2:]


def _mixed(values: _Words) -> _Words:
    """Finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit reaches every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
