"""The chats of one cell of a confusion matrix."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.core.report import HumanCode, JudgeCode
from alignment.selectors.answers import report_data
from alignment.selectors.scope import Scope
from labeling.models.chats import Chat
from labeling.models.people import User

CELL_CODES = {
    "tp": (HumanCode.TRUE, JudgeCode.TRUE),
    "fn": (HumanCode.TRUE, JudgeCode.FALSE),
    "fp": (HumanCode.FALSE, JudgeCode.TRUE),
    "tn": (HumanCode.FALSE, JudgeCode.FALSE),
}
EXCERPT = 160


@dataclass(frozen=True, slots=True)
class CellChat:
    """One chat of a cell as its list shows it."""

    chat_id: str
    title: str
    topic: str
    split: str
    excerpt: str
    human: bool
    judge: bool
    url: str


def chats_in(scope: Scope, key: str, cells: tuple[str, ...], user: User | AnonymousUser) -> list[str]:
    """External ids of the chats of these cells that the user may see, in the set's order."""
    data = report_data(replace(scope, only=key))
    if not data.criteria or data.criteria[0].judge is None:
        return []
    human, judge = data.criteria[0].human, data.criteria[0].judge
    hits = np.zeros(len(human), dtype=bool)
    for cell in cells:
        people, verdict = CELL_CODES[cell]
        hits |= (human == people) & (judge == verdict)
    return visible([data.chat_ids[place] for place in np.flatnonzero(hits).tolist()], scope, user)


def visible(external_ids: list[str], scope: Scope, user: User | AnonymousUser) -> list[str]:
    """Without the chats the user may not see."""
    if user.has_perm("labeling.see_holdout"):
        return external_ids
    allowed = Chat.objects.visible_to(user).filter(pk__in=scope.chat_ids)
    seen = set(allowed.values_list("external_id", flat=True))
    return [external_id for external_id in external_ids if external_id in seen]


def cell_chats(scope: Scope, key: str, cell: str, external_ids: list[str], query: str) -> list[CellChat]:
    """Rows of one page of a cell; `query` is added to each chat's address."""
    chats = Chat.objects.select_related("topic").in_bulk(external_ids, field_name="external_id")
    splits = dict(scope.members.filter(chat__external_id__in=external_ids).values_list("chat_id", "split"))
    people, judge = CELL_CODES[cell]
    return [
        CellChat(
            chat_id=row.external_id,
            title=row.title,
            topic=row.topic.name,
            split=splits.get(row.pk, ""),
            excerpt=excerpt(row.messages),
            human=people == HumanCode.TRUE,
            judge=judge == JudgeCode.TRUE,
            url=f"{reverse('alignment:chat', args=[scope.run.pk, row.pk])}?criterion={key}{query}"
            if scope.run
            else "",
        )
        for row in (chats[external_id] for external_id in external_ids)
    ]


def excerpt(messages: list[dict[str, Any]]) -> str:
    """The customer's first words."""
    text = next((m["content"] for m in messages if m["role"] == "user" and m["content"].strip()), "")
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"
