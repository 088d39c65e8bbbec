"""Small makers of rows for tests; every argument that matters is named, the rest is plain."""

import itertools
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone

from labeling.chats.core.transcript import content_hash
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.people import Rater, Role, User
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric
from labeling.rubric.core.rubric import version_hash

_numbers = itertools.count(1)


def make_user(name: str, *roles: Role) -> User:
    # Tests count the events of what they do, not of the accounts they start with.
    with patch("labeling.people.services.accounts.audit"):
        # Seen just now: tests that count statements do not meet the one that notes it.
        user = User.objects.create_user(
            username=name, password="correct horse battery", last_seen_at=timezone.now()
        )
        user.groups.set(Group.objects.filter(name__in=[role.value for role in roles]))
    return user


def make_rater(name: str = "", *, user: User | None = None) -> Rater:
    return Rater.objects.create(name=name or f"rater-{next(_numbers)}", user=user)


def make_criterion(
    key: str,
    *,
    rubric: Rubric,
    tier: str = "simple",
    passes_when: bool = True,
    allow_na: bool = False,
    dimension: str = "compliance",
    question: str = "",
) -> Criterion:
    row, _ = Dimension.objects.get_or_create(
        key=dimension, defaults={"name": dimension.replace("_", " ").title()}
    )
    criterion = Criterion.objects.create(
        key=key, rubric=rubric, dimension=row, tier=tier, position=next(_numbers), articles="listed"
    )
    asked: dict[str, Any] = {
        "question": question or f"Is {key} so?",
        "definition": f"True when {key}.",
        "passes_when": passes_when,
        "allow_na": allow_na,
    }
    CriterionVersion.objects.create(
        criterion=criterion, number=1, content_hash=version_hash(**asked), **asked
    )
    return criterion


def make_rubric(*keys: str, name: str = "Test rubric", **criterion: Any) -> Rubric:
    rubric = Rubric.objects.create(name=name)
    for key in keys:
        make_criterion(key, rubric=rubric, **criterion)
    return rubric


def make_chat(
    external_id: str = "", *, messages: Sequence[tuple[str, str]] = (), topic: str = "unknown"
) -> Chat:
    number = next(_numbers)
    turns = list(messages) or [
        ("user", f"Where is order {number}?"),
        ("assistant", f"Order {number} is on its way."),
    ]
    stored = [{"n": n, "role": role, "content": content} for n, (role, content) in enumerate(turns, 1)]
    return Chat.objects.create(
        external_id=external_id or f"chat-{number}",
        topic=Topic.objects.get_or_create(key=topic, defaults={"name": topic})[0],
        messages=stored,
        content_hash=content_hash(turns),
        message_count=len(stored),
        char_count=sum(len(content) for _, content in turns),
    )


def make_set(rubric: Rubric, *chats: Chat, name: str = "calibration", split: str = "dev") -> ChatSet:
    chat_set = ChatSet.objects.create(name=name, rubric=rubric)
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=chat_set, chat=chat, split=split, position=position)
        for position, chat in enumerate(chats, 1)
    )
    return chat_set


def analyze() -> None:
    """Tell the database what its tables hold now: it does so by itself, but not in the middle of a test."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
