"""Chats with labels for the tests of adjudication."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import Label
from labeling.models.people import Rater
from labeling.models.rubric import Criterion, Rubric
from tests.factories.rows import make_chat, make_criterion, make_set

NAMES = ("Amira", "Basil", "Cleo", "Dan", "Eve")


@dataclass(frozen=True)
class Item:
    """A pair of chat and criterion with the labels on it, in a set."""

    chat: Chat
    criterion: Criterion
    chat_set: ChatSet


def labelled_item(*values: bool | None, key: str = "polite", **more: Any) -> Item:
    """A chat with one label a value, by Amira, Basil, Cleo, …; set and criterion are made on first use."""
    rubric, _ = Rubric.objects.get_or_create(name="Test rubric")
    criterion = Criterion.objects.filter(key=key).first() or make_criterion(
        key,
        rubric=rubric,
        allow_na=more.pop("allow_na", False),
        dimension=more.pop("dimension", "compliance"),
    )
    chat_set = ChatSet.objects.filter(name="calibration").first() or make_set(rubric)
    chat = make_chat(
        f"chat-{Chat.objects.count() + 1}",
        messages=more.pop("messages", [("user", "Where is my order?"), ("assistant", "On its way to you.")]),
        topic=more.pop("topic", "unknown"),
    )
    position = chat_set.members.count() + 1
    ChatSetMember.objects.create(
        chat_set=chat_set, chat=chat, position=position, split=more.pop("split", "dev")
    )
    assert not more, more
    label(chat, criterion, *values)
    return Item(chat, criterion, chat_set)


def label(chat: Chat, criterion: Criterion, *values: bool | None, evidence: Any = (), **fields: Any) -> None:
    """Submitted labels of the raters in their order; consensus follows."""
    for name, value in zip(NAMES, values, strict=False):
        Label.objects.create(
            chat=chat,
            criterion=criterion,
            rater=Rater.objects.get_or_create(name=name)[0],
            version=criterion.versions.latest("number"),
            value=value,
            rationale=f"Because {len(name)}.",
            evidence=list(evidence),
            state="submitted",
            given_at=timezone.now() - timedelta(days=1),
            **fields,
        )
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[chat.pk])
