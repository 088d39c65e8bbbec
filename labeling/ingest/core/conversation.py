"""One chat from the calls that made it, where each call may repeat what was said before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

from common.jsonl import iso
from labeling.ingest.core.messages import Turn

_Key = tuple[str, str]  # role and text, as far as they tell turns apart
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp()) * 10**9


@dataclass(frozen=True, slots=True)
class Call:
    """
    What a model or a bot was given and what it answered.

    Times are nanoseconds since 1970, UTC, None where unknown.
    """

    given: tuple[Turn, ...] = ()
    answered: tuple[Turn, ...] = ()
    started: int | None = None
    ended: int | None = None


def conversation_of(calls: Iterable[Call]) -> list[dict[str, Any]]:
    """
    Return the messages of a chat: {"role", "content", "created_at"?}, in the order of the calls' ends.

    If any call was given an earlier answer, the calls repeat the history. A call's history ends where the
    chat ended before it; it may be cut at its start, and tool turns in it may lack or be shortened. What
    follows is new. Otherwise each call was given its new turns alone, and all are kept; a call that
    was asked again because it got no answer counts once.

    Where the bot answered anew, the chat holds both answers. A system turn is kept once, where it
    comes first.

    Examples
    --------
    >>> hi, hello, bye = Turn("user", "Hi"), Turn("assistant", "Hello"), Turn("user", "Bye")
    >>> calls = [Call((hi,), (hello,), 1, 2), Call((hi, hello, bye), (Turn("assistant", "Bye!"),), 3, 4)]
    >>> [message["content"] for message in conversation_of(calls)]
    ['Hi', 'Hello', 'Bye', 'Bye!']
    """
    ordered = sorted(calls, key=lambda call: (_order(call.ended, call.started), _order(call.started)))
    repeats = any(turn.role == "assistant" for call in ordered for turn in call.given)
    chat = _Chat()
    for call in ordered:
        chat.add(call, repeats=repeats)
    return chat.messages


def moment_of(nanoseconds: int) -> str:
    """
    Return a time as in the files, to the microsecond.

    Examples
    --------
    >>> moment_of(1_764_374_400_123_456_789)
    '2025-11-29T00:00:00.123456Z'
    """
    return iso(_EPOCH + timedelta(microseconds=nanoseconds // 1000))


def nanoseconds_of(moment: datetime) -> int:
    """
    Return an aware time as nanoseconds since 1970.

    Examples
    --------
    >>> nanoseconds_of(datetime(2025, 11, 29, tzinfo=UTC))
    1764374400000000000
    """
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def is_moment(nanoseconds: int) -> bool:
    """Whether `moment_of` can format the time: the years 1970 to 9998."""
    return 0 <= nanoseconds < _LAST


def _order(*times: int | None) -> int:
    return next((time for time in times if time is not None), 0)


class _Chat:
    """A chat that grows call by call."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.keys: list[_Key] = []  # of the messages but the system's
        self.said: list[_Key] = []  # of these the customer's and the bot's
        self.places: list[int] = []  # of these in `keys`
        self.instructions: set[_Key] = set()

    def add(self, call: Call, *, repeats: bool) -> None:
        """Add the turns of a call that are new."""
        for turn in call.given:
            if turn.role == "system" and _key(turn) not in self.instructions:
                self.instructions.add(_key(turn))
                self._append(turn, call.started)
        given = [turn for turn in call.given if turn.role != "system"]
        turns = [*given, *call.answered]
        known = self._history(turns, len(given)) if repeats else self._unanswered(given)
        for n, turn in enumerate(turns[known:], known):
            self._append(turn, call.started if n < len(given) else call.ended)
            if turn.role != "tool":
                self.said.append(_key(turn))
                self.places.append(len(self.keys))
            self.keys.append(_key(turn))

    def _history(self, turns: Sequence[Turn], given: int) -> int:
        """Return how many of the first turns the chat holds; the first `given` were the model's input."""
        keys = [_key(turn) for turn in turns]
        # Tools' turns may be shortened or missing in a history, so the others are compared.
        asked = [n for n, key in enumerate(keys[:given]) if key[0] != "tool"]
        here, there = _shared(self.said, [keys[n] for n in asked])
        at, known = (self.places[here - 1] + 1, asked[there - 1] + 1) if there else (0, 0)
        while there and known < len(keys) and at < len(self.keys) and keys[known] == self.keys[at]:
            at, known = at + 1, known + 1
        return known

    def _unanswered(self, given: Sequence[Turn]) -> int:
        """Return how many of the first turns the chat ends with."""
        keys = [_key(turn) for turn in given]
        lengths = range(min(len(keys), len(self.keys)), 0, -1)
        return next((length for length in lengths if self.keys[-length:] == keys[:length]), 0)

    def _append(self, turn: Turn, at: int | None) -> None:
        message = {"role": turn.role, "content": turn.content}
        self.messages.append(message if at is None else message | {"created_at": moment_of(at)})


def _key(turn: Turn) -> _Key:
    # JSON of tools comes back from one call to the next with other spaces.
    content = "".join(turn.content.split()) if turn.role == "tool" else turn.content.strip()
    return turn.role, content


def _shared(said: Sequence[_Key], asked: Sequence[_Key]) -> tuple[int, int]:
    """Return how many of the first turns of a chat, and of a call's input, are history; (0, 0) for none."""
    ends = [end for end, key in enumerate(asked, 1) if said and key == said[-1]]
    if ends:  # of several places the one with the longest history before it
        return len(said), max(ends, key=lambda end: _common(reversed(said), reversed(asked[:end])))
    if start := _common(said, asked):  # answered anew, or a question changed
        return start, start
    size = len(asked)
    for end in range(size, len(said) + 1):
        if (
            size > 1 and said[end - size] == asked[0] and said[end - size : end] == asked
        ):  # answered anew, from a history that was cut
            return end, size
    return 0, 0


def _common(left: Iterable[_Key], right: Iterable[_Key]) -> int:
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
