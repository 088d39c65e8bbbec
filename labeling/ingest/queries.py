"""Reads of incoming chats: the rules in force, the sources, and what the rules make of a pasted chat."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from common.guarded_json import guarded_loads
from common.jsonl import Fields
from common.problems import FieldProblem
from labeling.chats.core.transcript import Transcript, transcript_of
from labeling.ingest.core.intake import Intake
from labeling.ingest.core.personal_data import NAMED_KINDS
from labeling.ingest.core.redaction import Redactor
from labeling.ingest.core.retention import Exemption
from labeling.ingest.core.topics import Rule, TopicDecision, rules_of, topic_of
from labeling.ingest.names import name_finder
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.ingest import ChatSource, IngestSettings

MAX_PASTED = 200_000  # characters
# Chats that keep their text, by the chat sets that they are in.
EXEMPT: Mapping[Exemption, Q] = {"curated": ~Q(chat_set__kind=ChatSet.Kind.SAMPLE)}
_SPEAKERS = {
    **dict.fromkeys(("user", "customer", "client", "human"), "user"),
    **dict.fromkeys(("assistant", "bot", "agent", "support"), "assistant"),
    "system": "system",
    "tool": "tool",
}
_TURN = re.compile(rf"^[ \t]*({'|'.join(_SPEAKERS)})[ \t]*:[ \t]*", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Trial:
    """A pasted chat as the rules would store it, and what gave it its topic."""

    chat: Transcript
    decision: TopicDecision
    counts: dict[str, int]


def rules_stored(rules: Sequence[Any]) -> tuple[Rule, ...]:
    """Return topic rules as the core reads them. Raises FieldProblem."""
    return rules_of(Fields({"rules": list(rules)}))


def intake_of(row: IngestSettings) -> Intake:
    """Return what these settings do to a chat. Raises NamesUnavailable."""
    redactor = None
    if row.redact:
        names = name_finder() if set(NAMED_KINDS) & set(row.redact) else None
        redactor = Redactor(bytes(row.redaction_key), regions=row.regions, kinds=row.redact, names=names)
    return Intake(redactor, rules_stored(row.topic_rules))


def intake_now() -> Intake:
    """Return what the workspace does to each chat that comes in. Raises NamesUnavailable."""
    return intake_of(IngestSettings.current())


def source_rows() -> list[ChatSource]:
    """Return the sources that have sent chats, the latest first."""
    return list(ChatSource.objects.order_by("-last_at", "name"))


def trial_of(text: str, row: IngestSettings) -> Trial:
    """
    Return what these settings make of a pasted chat; nothing is stored.

    Parameters
    ----------
    text : a chat as JSON, as in a file of chats or a list of messages, or lines such as "Customer: text".

    Raises FieldProblem for a text that holds no chat, and NamesUnavailable.
    """
    chat = transcript_of(Fields(_pasted(text)))
    intake = intake_of(row)
    stored = intake.prepared(chat)
    counts: dict[str, int] = {}
    for one in stored.redactions:
        counts[one["kind"]] = counts.get(one["kind"], 0) + one["count"]
    # NB: the topic is decided on the redacted chat, as on the way in.
    decision = topic_of(
        sent=chat.topic,
        messages=stored.messages,
        metadata=stored.metadata or {},
        rules=rules_stored(row.topic_rules),
    )
    return Trial(stored, decision, counts)


def _pasted(text: str) -> dict[str, Any]:
    if len(text) > MAX_PASTED:
        raise FieldProblem("chat", f"is longer than {MAX_PASTED:,} characters")
    if text.lstrip().startswith(("{", "[")):
        value = guarded_loads(text)
        return {"id": "pasted", **value} if isinstance(value, dict) else {"id": "pasted", "messages": value}
    turns = list(_TURN.finditer(text))
    if not turns or text[: turns[0].start()].strip():
        raise FieldProblem("chat", "must be JSON, or lines such as “Customer: Where is my order?”")
    ends = [turn.start() for turn in turns[1:]] + [len(text)]
    messages = [
        {"role": _SPEAKERS[turn[1].lower()], "content": text[turn.end() : end].strip()}
        for turn, end in zip(turns, ends, strict=True)
    ]
    return {"id": "pasted", "messages": messages}


def chats_due(days: int | None, *, now: datetime) -> QuerySet[Chat]:
    """Return the chats that lose their text after so many days: not the exempt ones."""
    if days is None:
        return Chat.objects.none()
    old = Chat.objects.filter(text_deleted_at=None).alias(at=Coalesce("last_at", "created_at"))
    due = old.filter(at__lte=now - timedelta(days=days))
    for why in EXEMPT:
        due = due.exclude(is_exempt(why))
    return due


def is_exempt(why: Exemption) -> Exists:
    """Return whether a chat of a query is exempt from the deletion of texts for this reason."""
    members = ChatSetMember.objects.filter(EXEMPT[why], chat=OuterRef("pk"))
    return Exists(members.order_by())


def rules_text(rules: Sequence[Any]) -> str:
    """Return topic rules as the form shows them: JSON, a rule a line."""
    lines = ",\n".join(f"  {json.dumps(rule, ensure_ascii=False)}" for rule in rules)
    return f"[\n{lines}\n]" if lines else ""
