"""Reads of chats and chat sets; knows nothing of labels."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from labeling.core.importing import in_batches
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.rubric import Criterion

AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat as a line of a file refers to it."""

    id: int
    message_count: int


def chats_by_external_id(external_ids: Collection[str]) -> dict[str, ChatRef]:
    """The known ones of these chats; one query a thousand."""
    found: dict[str, ChatRef] = {}
    for batch in in_batches(dict.fromkeys(external_ids), AT_ONCE):
        rows = Chat.objects.filter(external_id__in=batch).values_list("external_id", "pk", "message_count")
        found.update({external_id: ChatRef(pk, count) for external_id, pk, count in rows})
    return found


def chat_sets() -> QuerySet[ChatSet]:
    """All sets by name, each with n_chats, n_train, n_dev, n_holdout; one query."""
    splits = {f"n_{split}": Count("members", filter=Q(members__split=split)) for split in Split.values}
    return (
        ChatSet.objects.select_related("rubric").annotate(n_chats=Count("members"), **splits).order_by("name")
    )


def chat_set_named(name: str) -> ChatSet | None:
    """The set of that name."""
    return ChatSet.objects.select_related("rubric").filter(name=name).first()


def members(chat_set: ChatSet, *, split: str = "") -> QuerySet[ChatSetMember]:
    """The set's members in order with their chats, of one split or all."""
    rows = ChatSetMember.objects.filter(chat_set=chat_set).select_related("chat__topic").order_by("position")
    return rows.filter(split=split) if split else rows


def criteria_of_set(chat_set: ChatSet) -> QuerySet[Criterion]:
    """Every criterion of the set's rubric, retired ones included, in the rubric's order."""
    return Criterion.objects.filter(rubric=chat_set.rubric_id).order_by(
        "dimension__position", "position", "id"
    )
