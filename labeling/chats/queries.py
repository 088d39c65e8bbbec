"""Reads of chats and chat sets, without labels."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import QuerySet

from common.jsonl import in_batches
from labeling.models.chats import Chat, ChatSet
from labeling.models.rubric import Criterion

AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat of an import line."""

    id: int
    message_count: int


def chats_by_external_id(external_ids: Collection[str]) -> dict[str, ChatRef]:
    """Return the known chats by external id; one query per thousand ids."""
    known: dict[str, ChatRef] = {}
    for batch in in_batches(dict.fromkeys(external_ids), AT_ONCE):
        rows = Chat.objects.filter(external_id__in=batch).values_list("external_id", "pk", "message_count")
        known.update({external_id: ChatRef(pk, count) for external_id, pk, count in rows})
    return known


def chat_set_named(name: str) -> ChatSet | None:
    """Return the chat set of that name."""
    return ChatSet.objects.select_related("rubric").filter(name=name).first()


def criteria_of_set(chat_set: ChatSet) -> QuerySet[Criterion]:
    """Return all criteria of the set's rubric, retired ones included, in the rubric's order."""
    return Criterion.objects.filter(rubric=chat_set.rubric_id).order_by(
        "dimension__position", "position", "id"
    )
