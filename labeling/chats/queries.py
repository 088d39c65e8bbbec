"""Reads of chats and chat sets, without labels."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from common.jsonl import in_batches
from common.search.registry import Query
from labeling.models.chats import Chat, ChatQuerySet, ChatSet, Topic
from labeling.models.rubric import Criterion

AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat of an import line; `sources` hold a chat of this id, 0 where a file brought it, which counts."""

    id: int
    message_count: int
    sources: int = 1


def chats_by_external_id(external_ids: Collection[str]) -> dict[str, ChatRef]:
    """Return the known chats by external id, of several the one from a file; one query per thousand ids."""
    known: dict[str, ChatRef] = {}
    columns = ("external_id", "source", "pk", "message_count")
    for batch in in_batches(dict.fromkeys(external_ids), AT_ONCE):
        # NB: "" is the first source.
        for key, source, pk, count in (
            Chat.objects.filter(external_id__in=batch).order_by("source").values_list(*columns)
        ):
            if key not in known:
                known[key] = ChatRef(pk, count, 0 if source == "" else 1)
            elif known[key].sources:
                known[key] = replace(known[key], sources=known[key].sources + 1)
    return known


def chat_set_named(name: str) -> ChatSet | None:
    """Return the chat set of that name."""
    return ChatSet.objects.select_related("rubric").filter(name=name).first()


def criteria_of_set(chat_set: ChatSet) -> QuerySet[Criterion]:
    """Return all criteria of the set's rubric, retired ones included, in the rubric's order."""
    return Criterion.objects.filter(rubric=chat_set.rubric_id).order_by(
        "dimension__position", "position", "id"
    )


def contents_of(chat: Chat) -> list[str]:
    """Return the texts of a chat's messages."""
    return [str(message.get("content", "")) for message in chat.messages]


def chats_matching(chats: ChatQuerySet, query: Query, *, limit: int, titles: bool) -> list[Chat]:
    """Return those of these chats that match: the one with that id, then by words, then by topic.

    Each step is one query and only runs while chats are missing; within a step the newest come first.
    """
    # NB: topics first and by themselves: with a join every chat would be read.
    topics = list(Topic.objects.filter(query.matches("name")).values_list("pk", flat=True))
    steps = (
        chats.filter(external_id=query.text),
        chats.with_words(query.words, titles=titles),
        chats.filter(topic__in=topics),
    )
    found: dict[int, Chat] = {}
    for step in steps:
        if len(found) < limit:
            rows = step.exclude(pk__in=list(found)).select_related("topic").order_by("-pk")
            found |= {chat.pk: chat for chat in rows[: limit - len(found)]}
    return list(found.values())
