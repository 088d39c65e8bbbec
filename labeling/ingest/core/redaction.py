"""Redaction of a chat on its way in: placeholders for personal data, and keyed hashes of it."""

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labeling.ingest.core.personal_data import KINDS, NAMED_KINDS, Found, personal_data_in

SHORTEST_KEY = 16  # bytes
_PLACEHOLDER = re.compile(rf"\[({'|'.join((*KINDS, *NAMED_KINDS))}) (\d{{1,6}})\]")


@dataclass(frozen=True, slots=True)
class Redaction:
    """One piece of personal data of a chat, such as an address; `count` is how often the chat holds it."""

    kind: str
    number: int
    digest: str
    count: int

    @property
    def placeholder(self) -> str:
        """What stands in the chat instead."""
        return f"[{self.kind} {self.number}]"


@dataclass(frozen=True, slots=True)
class Move:
    """A passage [start, end) of the original text and its placeholder at [new_start, new_end)."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class RedactedChat:
    """
    A chat without personal data.

    `messages` and `metadata` are the given ones with placeholders; `moves` are the placeholders of each
    message by its place in `messages`, from 0.
    """

    messages: list[dict[str, Any]]
    metadata: dict[str, Any]
    redactions: tuple[Redaction, ...]
    moves: Mapping[int, tuple[Move, ...]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many passages of each kind were replaced."""
        counts: Counter[str] = Counter()
        for one in self.redactions:
            counts[one.kind] += one.count
        return dict(counts)

    def span(self, place: int, start: int, end: int) -> tuple[int, int]:
        """
        Return where a passage of an original message is now, such as the evidence of a label.

        A passage that begins or ends inside personal data reaches over the whole placeholder.
        """
        moves = self.moves.get(place, ())
        return _moved(start, moves, last=False), _moved(end, moves, last=True)


class Redactor:
    """
    Redacts chats under one key.

    Parameters
    ----------
    key : secret of the workspace; without it nobody can test whether a hash is that of a known address.
    regions : see `personal_data_in`.
    kinds : what is redacted; other personal data stays.
    names : finds names and places in a text, where these kinds are redacted.

    Raises ValueError for a key under 16 bytes.

    Examples
    --------
    >>> redactor = Redactor(b"sixteen bytes or more", regions=["GB"])
    >>> messages = [{"role": "user", "content": "I am ann@example.com. ANN@example.com!"}]
    >>> chat = redactor.chat(messages, {"mail": "ann@example.com"})
    >>> chat.messages[0]["content"], chat.metadata, chat.counts
    ('I am [email 1]. [email 1]!', {'mail': '[email 1]'}, {'email': 3})
    >>> chat.span(0, 5, 9)
    (5, 14)
    """

    def __init__(
        self,
        key: bytes,
        *,
        regions: Sequence[str] = (),
        kinds: Collection[str] = KINDS,
        names: Callable[[str], Sequence[Found]] | None = None,
    ) -> None:
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"The key of the hashes must have at least {SHORTEST_KEY} bytes, not {len(key)}")
        self._key, self._regions, self._kinds, self._names = key, tuple(regions), frozenset(kinds), names

    def chat(
        self, messages: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any] | None = None
    ) -> RedactedChat:
        """
        Return a chat with a placeholder for each piece of personal data, such as [email 1].

        The same address has the same placeholder in the whole chat, however it is written. They are numbered
        in the order of the messages, so a chat that grew keeps the numbers it had. A placeholder that
        stands in the text already is left, and its number is not given again.

        Parameters
        ----------
        messages : each with its "content"; other fields are kept.
        metadata : texts in it are redacted, at any depth; keys are not.
        """
        work = _Work(self, [str(message.get("content", "")) for message in messages])
        moves: dict[int, tuple[Move, ...]] = {}
        redacted: list[dict[str, Any]] = []
        before = ""
        for place, message in enumerate(messages):
            original = str(message.get("content", ""))
            content, moved = work.replaced(original, before)
            before = original
            redacted.append({**message, "content": content} if moved else dict(message))
            if moved:
                moves[place] = moved
        facts = {key: work.inside(value) for key, value in (metadata or {}).items()}
        return RedactedChat(redacted, facts, work.redactions(), moves)

    def identifier(self, text: str) -> str:
        """
        Return an id, or a name of a cluster, with hashes for the personal data in it.

        It is the same for the same id in every chat, so that a chat that comes again is found.

        Examples
        --------
        >>> redactor = Redactor(b"sixteen bytes or more")
        >>> redactor.identifier("chat-7"), redactor.identifier("ann@example.com/7")
        ('chat-7', 'email-43d0508695aa25b4/7')
        """
        for found in reversed(self._patterns(text)):  # an id is no sentence: it has no names
            digest = self.digest(found)[:16]
            text = f"{text[: found.start]}{found.kind}-{digest}{text[found.end :]}"
        return text

    def found(self, text: str, before: str = "") -> list[Found]:
        """Return the personal data in a text; `before` is the message before it."""
        found = self._patterns(text, before)
        for one in self._names(text) if self._names else ():
            if one.kind in self._kinds and not any(one.start < at.end and at.start < one.end for at in found):
                found.append(one)
        return sorted(found)

    def _patterns(self, text: str, before: str = "") -> list[Found]:
        found = personal_data_in(text, before=before, regions=self._regions)
        return [one for one in found if one.kind in self._kinds]

    def digest(self, found: Found) -> str:
        """Return the HMAC-SHA256 (RFC 2104) of what was found, as hexadecimal text."""
        return hmac.new(self._key, f"{found.kind}:{found.value}".encode(), hashlib.sha256).hexdigest()


class _Work:
    """The redaction of one chat."""

    def __init__(self, redactor: Redactor, texts: Sequence[str]) -> None:
        self._redactor = redactor
        self._last: Counter[str] = Counter()
        for kind, number in (match for text in texts for match in _PLACEHOLDER.findall(text)):
            self._last[kind] = max(self._last[kind], int(number))
        self._numbers: dict[tuple[str, str], int] = {}  # by kind and value, in their order
        self._digests: dict[tuple[str, str], str] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def replaced(self, text: str, before: str = "") -> tuple[str, tuple[Move, ...]]:
        """Return a text with its placeholders, and where they are."""
        pieces: list[str] = []
        moves: list[Move] = []
        at, length = 0, 0
        for found in self._redactor.found(text, before):
            placeholder = self._placeholder(found)
            length += found.start - at
            pieces += [text[at : found.start], placeholder]
            moves.append(Move(found.start, found.end, length, length + len(placeholder)))
            at, length = found.end, length + len(placeholder)
        return "".join([*pieces, text[at:]]), tuple(moves)

    def inside(self, value: Any) -> Any:
        """Return a value of the metadata with its texts redacted."""
        if isinstance(value, str):
            return self.replaced(value)[0]
        if isinstance(value, list):
            return [self.inside(item) for item in value]
        if isinstance(value, dict):
            return {key: self.inside(item) for key, item in value.items()}
        return value

    def redactions(self) -> tuple[Redaction, ...]:
        """Return what was replaced, in the order of its first place."""
        return tuple(
            Redaction(key[0], number, self._digests[key], self._counts[key])
            for key, number in self._numbers.items()
        )

    def _placeholder(self, found: Found) -> str:
        key = (found.kind, found.value)
        if key not in self._numbers:
            self._last[found.kind] += 1
            self._numbers[key] = self._last[found.kind]
            self._digests[key] = self._redactor.digest(found)
        self._counts[key] += 1
        return f"[{found.kind} {self._numbers[key]}]"


def _moved(offset: int, moves: Sequence[Move], *, last: bool) -> int:
    """Return where an offset of the original is now; `last`: it ends a passage."""
    shift = 0
    for move in moves:
        if offset <= move.start:
            break
        if offset < move.end:
            return move.new_end if last else move.new_start
        shift = move.new_end - move.end
    return offset + shift
