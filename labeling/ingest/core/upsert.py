"""What becomes of a chat that comes in: new, the same, grown, or refused with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from labeling.chats.core.transcript import content_hash

Outcome = Literal["create", "same", "grew", "refused"]


@dataclass(frozen=True, slots=True)
class StoredChat:
    """
    What the database holds of a chat.

    `messages` is None where its text was deleted after the time of retention; `content_hash` stays. A chat is
    `sampled` once a plan has sampled it, or a set or a label holds it: what was judged must not change.
    """

    messages: Sequence[Mapping[str, Any]] | None
    content_hash: str
    sampled: bool


@dataclass(frozen=True, slots=True)
class UpsertDecision:
    """
    What to do with an incoming chat.

    `added` is the number of new messages at its end: all of a new chat. `reason` is a sentence that says why
    a chat is refused, or why one that differs is the same.
    """

    outcome: Outcome
    added: int = 0
    reason: str = ""


def upsert_decision(
    *, external_id: str, stored: StoredChat | None, incoming: Sequence[Mapping[str, Any]]
) -> UpsertDecision:
    """
    Return what becomes of an incoming chat; sent again, it has the same answer.

    A chat is what its messages say (role and text); times do not count. It may grow by messages at its end
    until it was sampled. Deliveries may overtake each other, so an earlier state of a chat changes nothing.

    Parameters
    ----------
    external_id : names the chat in the reason.
    stored : the chat under the same source and id, None if there is none.
    incoming : its messages {"role", "content"}, after redaction where that is on, as the stored ones are.

    Examples
    --------
    >>> hi, hello = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
    >>> upsert_decision(external_id="c1", stored=None, incoming=[hi])
    UpsertDecision(outcome='create', added=1, reason='')
    >>> stored = StoredChat([hi], content_hash([("user", "Hi")]), sampled=True)
    >>> upsert_decision(external_id="c1", stored=stored, incoming=[hi, hello]).reason
    'Chat c1 was sampled with 1 message and cannot grow. Send later messages under another id.'
    """
    if stored is None:
        return UpsertDecision("create", len(incoming))
    new = _pairs(incoming)
    if content_hash(new) == stored.content_hash:
        return UpsertDecision("same")
    if stored.messages is None:
        return UpsertDecision(
            "refused", reason=f"The text of chat {external_id} was deleted after its retention."
        )
    old = _pairs(stored.messages)
    common = next((n for n, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), None)
    if common is not None:
        reason = f"Chat {external_id} holds another message {common + 1}. Send another chat under another id."
        return UpsertDecision("refused", reason=reason)
    if len(new) < len(old):
        reason = f"Chat {external_id} holds these {_count(new)} and {len(old) - len(new)} more."
        return UpsertDecision("same", reason=reason)
    if stored.sampled:
        return UpsertDecision(
            "refused",
            reason=f"Chat {external_id} was sampled with {_count(old)} and cannot grow. "
            "Send later messages under another id.",
        )
    return UpsertDecision("grew", len(new) - len(old))


def _pairs(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(str(message["role"]), str(message["content"])) for message in messages]


def _count(messages: Sequence[object]) -> str:
    return f"{len(messages)} message{'s' * (len(messages) != 1)}"
