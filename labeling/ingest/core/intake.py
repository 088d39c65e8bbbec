"""What happens to each chat on its way in: personal data redacted, a topic given."""

from collections.abc import Sequence
from typing import Any

from labeling.chats.core.transcript import Transcript
from labeling.ingest.core.redaction import Redaction, Redactor
from labeling.ingest.core.topics import Rule, topic_of


class Intake:
    """
    The workspace's rules for chats that come in.

    Parameters
    ----------
    redactor : None where nothing is redacted.
    rules : give a topic to chats that come without one.

    Examples
    --------
    >>> from common.jsonl import Fields
    >>> from labeling.chats.core.transcript import transcript_of
    >>> message = {"role": "user", "content": "I am ann@example.com"}
    >>> chat = transcript_of(Fields({"id": "c1", "messages": [message]}))
    >>> redacted = Intake(Redactor(b"sixteen bytes or more")).prepared(chat)
    >>> redacted.messages[0]["content"], redacted.redactions[0]["kind"]
    ('I am [email 1]', 'email')
    """

    def __init__(self, redactor: Redactor | None = None, rules: Sequence[Rule] = ()) -> None:
        self._redactor, self._rules = redactor, tuple(rules)

    def prepared(self, chat: Transcript) -> Transcript:
        """Return the chat as it is stored; its id and clusters are the same for the same chat."""
        if self._redactor is not None:
            chat = self._redacted(chat, self._redactor)
        topic = topic_of(
            sent=chat.topic, messages=chat.messages, metadata=chat.metadata or {}, rules=self._rules
        )
        # NB: no topic of the sender and of no rule leaves the topic of a known chat as it is.
        if topic.by == "none":
            return chat.with_changes(topic_by="none")
        return chat.with_changes(topic=topic.topic, topic_by="rule" if topic.by == "rule" else "")

    def redacted_messages(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return stored messages as they would be stored now; what is redacted already stays as it is."""
        return list(messages) if self._redactor is None else self._redactor.chat(messages).messages

    def _redacted(self, chat: Transcript, redactor: Redactor) -> Transcript:
        redacted = redactor.chat(chat.messages, chat.metadata)
        facts = {
            "external_id": redactor.identifier(chat.external_id),
            "cluster": redactor.identifier(chat.cluster) if chat.cluster else chat.cluster,
            "unit_id": redactor.identifier(chat.unit_id) if chat.unit_id else chat.unit_id,
            "metadata": redacted.metadata if chat.metadata is not None else None,
            "redactions": tuple(map(redaction_json, redacted.redactions)),
        }
        if redacted.moves:
            return chat.with_messages(redacted.messages, **facts)
        return chat.with_changes(**facts)


def redaction_json(redaction: Redaction) -> dict[str, Any]:
    """Return a redaction as the database keeps it."""
    return {
        "kind": redaction.kind,
        "number": redaction.number,
        "digest": redaction.digest,
        "count": redaction.count,
    }
