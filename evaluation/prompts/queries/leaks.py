"""Finds passages of a prompt in chats of dev or holdout; the chats themselves are not revealed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from common.jsonl import in_batches
from evaluation.prompts.core.leaks import Shingles, leaked_passages, merge_shingles, shingles_of
from labeling.chats.core.splits import has_near
from labeling.models.chats import Chat, ChatSetMember, Split

# Judges are measured on these; a prompt with text from them would contain the answer.
MEASURED = (Split.DEV, Split.HOLDOUT)
AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class _MeasuredText:
    """The chats, by the hash of their messages, and their runs of words."""

    hashes: frozenset[str] = frozenset()
    shingles: Shingles = field(default_factory=lambda: np.zeros(0, np.uint64))


class _Memory:
    """The chats that this process has read: 10,000 need two seconds, once."""

    known = _MeasuredText()


def measured_chats() -> QuerySet[Chat]:
    """Return the chats that are dev or holdout in any set."""
    membership = ChatSetMember.objects.filter(chat=OuterRef("pk"), split__in=MEASURED)
    return Chat.objects.filter(Exists(membership))


def nearly_measured(chats: Iterable[Chat]) -> set[int]:
    """Return the ids of chats that nearly equal a dev or holdout chat; at most one query."""
    hashes = {chat.pk: chat.near_hash for chat in chats if chat.near_hash is not None}
    if not hashes:
        return set()
    near = measured_chats().filter(near_hash__isnull=False).values_list("near_hash", flat=True)
    others = np.fromiter(near.iterator(chunk_size=10_000), dtype=np.int64)
    return {pk for pk, one in hashes.items() if has_near(one, others)}


def leaks(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (name, passage) for each passage of these texts that occurs word for word in such a chat.

    One query while the chats are unchanged; messages never change, so only new chats are read.
    """
    known = _known().shingles
    return [(name, passage) for name, text in texts.items() for passage in leaked_passages(text, known=known)]


def _known() -> _MeasuredText:
    hashes = frozenset(measured_chats().order_by().values_list("content_hash", flat=True))
    known = _Memory.known
    if known.hashes == hashes:
        return known
    # Numbers cannot be removed: after a chat was deleted, all chats are read again.
    start = known if known.hashes <= hashes else _MeasuredText()
    batches = in_batches(sorted(hashes - start.hashes), AT_ONCE)
    _Memory.known = _MeasuredText(hashes, merge_shingles(chain([start.shingles], map(_read, batches))))
    return _Memory.known


def _read(hashes: Sequence[str]) -> Shingles:
    chats = Chat.objects.filter(content_hash__in=hashes).values_list("messages", flat=True)
    return shingles_of(message["content"] for messages in chats for message in messages)
