"""Adds an attack to a chat: a message that tries to set its verdicts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from evaluation.core.types import Chat, Message, MessageRole
from evaluation.probes.core.payloads import KINDS, Aim, Direction
from labeling.chats.core.transcript import content_hash

SPEAKERS: dict[MessageRole, str] = {"user": "customer", "assistant": "bot", "tool": "tool"}
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to push a chat's verdicts: the text, the speaker and the intended answer."""

    kind: str
    speaker: MessageRole
    direction: Direction

    @property
    def name(self) -> str:
        """Return a stable id, such as `fake_policy/tool/true`."""
        return f"{self.kind}/{SPEAKERS[self.speaker]}/{self.direction}"


def attacks(*, kinds: Sequence[str] = (), directions: Sequence[Direction] = ()) -> Iterator[Attack]:
    """Yield every attack of these kinds and directions (none = all), in a fixed order.

    Raises
    ------
    KeyError : unknown kind.

    Examples
    --------
    >>> [attack.name for attack in attacks(kinds=["tool_result"])]
    ['tool_result/tool/true', 'tool_result/tool/false']
    """
    for kind in kinds or KINDS:
        for speaker in KINDS[kind].speakers:
            for direction in directions or DIRECTIONS:
                yield Attack(kind, speaker, direction)


def with_attack(chat: Chat, *, attack: Attack, keys: Sequence[str]) -> Chat:
    """Return the chat with the attack in it, aimed at every criterion of `keys`.

    A customer says it at the end, a bot in its last message, a tool before the bot's last message. An attack
    over several messages begins after a third of the chat.
    """
    texts = KINDS[attack.kind].texts(Aim(keys, attack.direction))
    turns = [(message.role, message.content) for message in chat.messages]
    if attack.speaker == "assistant":
        turns = _in_last_bot_message(turns, texts[-1])
    elif attack.speaker == "tool":
        place = _last_bot_message(turns)
        turns[place:place] = [("tool", texts[-1])]
    else:
        turns.append(("user", texts[-1]))
    for text in reversed(texts[:-1]):
        place = len(chat.messages) // 3 + 1
        turns[place:place] = [(attack.speaker, text)]
    return chat_of(turns)


def chat_of(turns: Sequence[tuple[MessageRole, str]]) -> Chat:
    """Return a chat of these messages, numbered and hashed like an imported one."""
    messages = tuple(Message(n, role, text) for n, (role, text) in enumerate(turns, 1))
    return Chat(content_hash(turns), messages)


def _last_bot_message(turns: Sequence[tuple[MessageRole, str]]) -> int:
    """Return the place of the bot's last message; the end if it has none."""
    return max((i for i, (role, _) in enumerate(turns) if role == "assistant"), default=len(turns))


def _in_last_bot_message(turns: list[tuple[MessageRole, str]], text: str) -> list[tuple[MessageRole, str]]:
    place = _last_bot_message(turns)
    if place == len(turns):
        return [*turns, ("assistant", text)]
    content = f"{turns[place][1]}\n\n{text}".strip()
    return [*turns[:place], ("assistant", content), *turns[place + 1 :]]
