"""Which copies of a chat's text are deleted when its time of retention is over; figures stay."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

Exemption = Literal["curated", "anchor"]


@dataclass(frozen=True, slots=True)
class CopyKind:
    """
    A place that holds text of chats.

    `loses` is what is deleted there and `keeps` what stays. A `shared` place, such as a file, holds many
    chats and cannot lose one alone: it is deleted with the first of them. Any other place that several chats
    have in common, such as a call about chats that say the same, is theirs until the last one is due.
    """

    key: str
    loses: str
    keeps: str
    shared: bool = False


COPIES = {
    kind.key: kind
    for kind in (
        CopyKind("chat", "messages and title", "id, topic, times, counts, hashes, experiment, variant"),
        CopyKind("search_words", "words", ""),
        CopyKind("model_call", "prompt and reply", "tokens, cost, latency, model, key"),
        CopyKind("verdict", "rationale and quotes", "value, probability, state, flags"),
        CopyKind("label", "rationale and quotes", "value, rater, times, places of the evidence"),
        CopyKind("label_revision", "rationale and quotes", "value, number, times"),
        CopyKind("adjudication", "reason", "value, who decided, times"),
        CopyKind("rater_note", "text", "kind, times"),
        CopyKind("example", "chat and rationale", "value, position in the prompt"),
        CopyKind("disagreement", "note", "cause, state, owner"),
        CopyKind("issue", "terms, names made from texts, note", "counts, state, owner, weeks"),
        CopyKind("report", "quoted chats", "every figure"),
        CopyKind("outbox_event", "what its receiver answered", "ids, verdicts, kind, times"),
        CopyKind("batch_file", "file", "id, counts, times", shared=True),
        CopyKind("import_file", "file", "name, counts, times", shared=True),
        CopyKind("export_file", "file", "name, counts, times", shared=True),
    )
}


@dataclass(frozen=True, slots=True)
class ChatAge:
    """A chat, the aware time of its last message (else of its arrival), and why it is exempt."""

    chat: int
    last_at: datetime
    exempt: frozenset[Exemption] = frozenset()


@dataclass(frozen=True, slots=True)
class TextCopy:
    """One copy: its kind, a key of `COPIES`, its id there, and the chats whose text it holds."""

    kind: str
    id: int
    chats: frozenset[int]


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """
    What loses its text now.

    `chats` are due, `copies` lose the text, and `kept` says why chats of that age are exempt.
    """

    chats: frozenset[int] = frozenset()
    copies: tuple[TextCopy, ...] = ()
    kept: Mapping[int, frozenset[Exemption]] = field(default_factory=dict)


def retention_plan(
    *, chats: Iterable[ChatAge], copies: Iterable[TextCopy], days: int | None, now: datetime
) -> RetentionPlan:
    """
    Return the copies that lose the text of chats whose last message is `days` or more days old.

    Chats of curated sets and anchor chats keep theirs: labels, gates and drift are measured on them. The plan
    of the same rows is the same, so it may be carried out again after a crash.

    Parameters
    ----------
    chats : all whose text `copies` hold, also those that lost theirs before; others count as not due.
    days : days of 24 hours, at least 1; None keeps all text.
    now : aware.

    Raises ValueError for fewer days than 1, a time without a zone and an unknown kind of copy.

    Examples
    --------
    >>> from datetime import UTC
    >>> old = ChatAge(1, datetime(2026, 1, 1, tzinfo=UTC))
    >>> copies = [TextCopy(kind, 7, frozenset({1, 2})) for kind in ("model_call", "export_file")]
    >>> plan = retention_plan(chats=[old], copies=copies, days=90, now=datetime(2026, 4, 1, tzinfo=UTC))
    >>> plan.chats, [copy.kind for copy in plan.copies]
    (frozenset({1}), ['export_file'])
    """
    if days is None:
        return RetentionPlan()
    if days < 1:
        raise ValueError(f"Texts are kept for at least 1 day, not {days}")
    last = now - timedelta(days=days)
    due: set[int] = set()
    kept: dict[int, frozenset[Exemption]] = {}
    for one in chats:
        if one.last_at.tzinfo is None or now.tzinfo is None:
            raise ValueError("Times must have a zone")
        if one.last_at <= last and one.exempt:
            kept[one.chat] = one.exempt
        elif one.last_at <= last:
            due.add(one.chat)
    return RetentionPlan(frozenset(due), tuple(copy for copy in copies if _is_due(copy, due)), kept)


def _is_due(copy: TextCopy, due: set[int]) -> bool:
    if copy.kind not in COPIES:
        raise ValueError(f"Unknown kind of copy: {copy.kind}")
    if COPIES[copy.kind].shared:
        return not copy.chats.isdisjoint(due)
    return bool(copy.chats) and copy.chats <= due
