"""The topic prompt: its request, reading of its answers, and its agreement with given topics."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from alignment.statistics.estimates import Interval
from alignment.statistics.intervals import wilson
from common.jsonl import KEY_LIMIT
from common.problems import FieldProblem, shown
from evaluation.core.hashing import canonical, text_hash
from evaluation.core.transcript_fencing import chat_block, visible_text
from evaluation.core.types import Chat, Message, MessageRole, PromptMessage

UNKNOWN = "unknown"
FEWEST_TOPICS, MOST_TOPICS = 2, 100
LONGEST_DESCRIPTION = 300
# Characters of a chat that the model reads: its beginning says what the customer wants.
LONGEST_CHAT = 12_000
SPEAKERS = ("user", "assistant")
CUT = " […]"
_ANSWER = re.compile(r"^[\s>*_#`-]*topic[\s*_`]*:\s*(.+?)[\s*_`.]*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic of the list, with what belongs to it in one line."""

    key: str
    description: str

    def as_json(self) -> dict[str, str]:
        """Return what is stored."""
        return {"key": self.key, "description": self.description}


def topics_of(text: str) -> tuple[TopicLine, ...]:
    """
    Return the topics of a text, one a line as "key: description".

    Raises FieldProblem, with the line, for a wrong one, and for fewer than 2 or more than 100 topics.

    >>> topics_of("returns: sending goods back\\ndelivery: where an order is")[0].key
    'returns'
    """
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            key, colon, description = line.partition(":")
            if not colon:
                raise FieldProblem("topics", f"line {number}: write topic, colon and description")
            rows.append({"key": key, "description": description})
    return topics_checked(rows)


def topics_checked(rows: Sequence[Mapping[str, Any]]) -> tuple[TopicLine, ...]:
    """Return topics with keys and descriptions; raises FieldProblem as `topics_of`."""
    topics = []
    for number, row in enumerate(rows, 1):
        key, description = (" ".join(str(row.get(name, "")).split()) for name in ("key", "description"))
        if not 0 < len(key) <= KEY_LIMIT or ":" in key:
            raise FieldProblem("topics", f"line {number}: a topic has 1 to {KEY_LIMIT} characters, no colon")
        if key.casefold() == UNKNOWN:
            raise FieldProblem("topics", f"line {number}: remove {UNKNOWN}: chats that fit no topic get it")
        if not 0 < len(description) <= LONGEST_DESCRIPTION:
            raise FieldProblem(
                "topics",
                f"line {number}: describe {shown(key)} in 1 to {LONGEST_DESCRIPTION} characters",
            )
        topics.append(TopicLine(key, description))
    if twice := [key for key, n in Counter(one.key.casefold() for one in topics).items() if n > 1]:
        raise FieldProblem("topics", f"{shown(twice[0])} is in the list twice")
    if not FEWEST_TOPICS <= len(topics) <= MOST_TOPICS:
        raise FieldProblem("topics", f"list {FEWEST_TOPICS} to {MOST_TOPICS} topics, one a line")
    return tuple(topics)


def topic_messages(
    topics: Sequence[TopicLine], messages: Sequence[Mapping[str, Any]], *, secret: bytes
) -> tuple[PromptMessage, PromptMessage]:
    """Return system and user message; the system message is the same for every chat.

    Parameters
    ----------
    messages : of the chat, {"role", "content"}; only the beginning of what customer and bot said is sent.
    secret : the workspace's secret for fences.
    """
    listed = "\n".join(f"- {visible_text(one.key)}: {visible_text(one.description)}" for one in topics)
    system = f"{_text('system')}\n{listed}\n- {UNKNOWN}: none of the topics above"
    chat = chat_block(chat=excerpt(messages), secret=secret)
    return PromptMessage("system", (system,)), PromptMessage("user", (chat, _text("duty")))


def excerpt(messages: Sequence[Mapping[str, Any]]) -> Chat:
    """Return the beginning of what customer and bot said, as a chat.

    >>> excerpt([{"role": "tool", "content": "{}"}, {"role": "user", "content": "Hi"}]).messages
    (Message(n=2, role='user', content='Hi'),)
    """
    left, taken = LONGEST_CHAT, []
    for number, one in enumerate(messages, 1):
        if one["role"] not in SPEAKERS:
            continue
        content = str(one["content"])
        whole = len(content) <= left
        taken.append(
            Message(number, cast(MessageRole, one["role"]), content if whole else content[:left] + CUT)
        )
        left -= len(content)
        if left <= 0:
            break
    digest = text_hash(canonical([[one.n, one.role, one.content] for one in taken]))
    return Chat(digest, tuple(taken))


def read_topic(answer: str, topics: Sequence[TopicLine]) -> str | None:
    """
    Return the topic of an answer, `unknown` included; None for an answer that names none of the list.

    >>> topics = topics_of("returns: sending goods back\\ndelivery: where an order is")
    >>> read_topic("**TOPIC: Returns**", topics), read_topic("TOPIC: weather", topics)
    ('returns', None)
    """
    keys = {visible_text(one.key).casefold(): one.key for one in topics} | {UNKNOWN: UNKNOWN}
    found = _ANSWER.findall(answer)
    asked = found[-1] if found else answer.strip().splitlines()[0] if answer.strip() else ""
    return keys.get(" ".join(asked.strip(" <>*_`\"'.").split()).casefold())


def answer_room(*, reasons: bool) -> int:
    """Return the token limit of an answer: a line, and tokens for reasoning."""
    return 60 + (4_000 if reasons else 0)


@dataclass(frozen=True, slots=True)
class TopicAgreement:
    """A given topic against the prompt's answers: `others` are the wrong ones, the most frequent first."""

    topic: str
    chats: int
    agreed: int
    others: tuple[tuple[str, int], ...]

    @property
    def share(self) -> float:
        """Share of the chats that the prompt gave the same topic."""
        return self.agreed / self.chats


@dataclass(frozen=True, slots=True)
class PromptAgreement:
    """Agreement of the prompt with given topics; Wilson's interval, 95%. None without a chat."""

    chats: int
    agreed: int
    value: float | None
    interval: Interval | None
    topics: tuple[TopicAgreement, ...]


def prompt_agreement(
    counts: Iterable[tuple[str, str, int]], topics: Iterable[str], *, unreadable: str
) -> PromptAgreement:
    """
    Compare given topics with answers.

    Parameters
    ----------
    counts : (given topic, answer, chats); the answer "" could not be read.
    topics : the prompt's list. A given topic outside it is right as *unknown*, as the prompt cannot name it.
    unreadable : the name of an answer that could not be read.

    Examples
    --------
    >>> counts = [("a", "a", 8), ("a", "b", 1), ("c", "unknown", 1)]
    >>> found = prompt_agreement(counts, ["a", "b"], unreadable="-")
    >>> found.value, [(one.topic, one.agreed, one.others) for one in found.topics]
    (0.9, [('a', 8, (('b', 1),)), ('c', 1, ())])
    """
    listed = set(topics)
    rows: dict[str, Counter[str]] = {}
    for given, answer, chats in counts:
        rows.setdefault(given, Counter())[answer or unreadable] += chats
    found = []
    for given, answers in rows.items():
        right = given if given in listed else UNKNOWN
        others = tuple((answer, n) for answer, n in answers.most_common() if answer != right)
        found.append(TopicAgreement(given, answers.total(), answers[right], others))
    found.sort(key=lambda one: (-one.chats, one.topic))
    chats, agreed = sum(one.chats for one in found), sum(one.agreed for one in found)
    value = agreed / chats if chats else None
    return PromptAgreement(chats, agreed, value, wilson(agreed, chats), tuple(found))


@cache
def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8").strip()
