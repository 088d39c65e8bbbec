"""Lists of chats with both answers: those of a cell of a matrix, and all disagreements."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.core.report import HumanCode, JudgeCode, Pair, ReportData, disagreeing, disagreement
from alignment.selectors.answers import report_data
from alignment.selectors.scope import Own, Scope, own_chats
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.selectors.blind import chats_shown, sees_every_chat

CELL_CODES = {
    "tp": (HumanCode.TRUE, JudgeCode.TRUE),
    "fn": (HumanCode.TRUE, JudgeCode.FALSE),
    "fp": (HumanCode.FALSE, JudgeCode.TRUE),
    "tn": (HumanCode.FALSE, JudgeCode.FALSE),
}
EXCERPT = 160


@dataclass(frozen=True, slots=True)
class PairRow:
    """One chat and criterion as a list shows it."""

    chat_id: str
    title: str
    topic: str
    split: str
    excerpt: str
    criterion: str
    human: bool
    judge: bool
    url: str


@dataclass(frozen=True, slots=True)
class Disagreements:
    """Those a user may see, as places [chat, criterion] in `data`, and how many there are beside them.

    Who is still to label some of the chats is told the number of these chats alone.
    """

    data: ReportData
    places: list[list[int]]
    hidden: int
    own: Own

    @property
    def chat_ids(self) -> list[str]:
        """The external id of each place."""
        return [self.data.chat_ids[chat] for chat, _ in self.places]

    def pairs(self, places: Iterable[list[int]]) -> list[Pair]:
        """What people and the judge answered at these places."""
        return [disagreement(self.data, chat, criterion) for chat, criterion in places]


def cell_pairs(scope: Scope, key: str, cell: str, user: User | AnonymousUser) -> list[Pair]:
    """The chats of a cell that the user may see, in the set's order."""
    data = report_data(replace(scope, only=key))
    if not data.criteria or data.criteria[0].judge is None:
        return []
    people, verdict = CELL_CODES[cell]
    hits = np.flatnonzero((data.criteria[0].human == people) & (data.criteria[0].judge == verdict))
    chat_ids = listed([data.chat_ids[place] for place in hits.tolist()], replace(scope, only=key), user)
    said, judged = people == HumanCode.TRUE, verdict == JudgeCode.TRUE
    return [Pair(chat_id, key, said, judged) for chat_id in chat_ids]


def disagreements(
    scope: Scope, user: User | AnonymousUser, *, among: Container[tuple[str, str]] | None = None
) -> Disagreements:
    """Chats in the set's order, criteria in the rubric's; `among` keeps these (chat, criterion) alone."""
    data = report_data(scope)
    places = disagreeing(data).tolist()
    if among is not None:
        keys = [criterion.spec.key for criterion in data.criteria]
        places = [place for place in places if (data.chat_ids[place[0]], keys[place[1]]) in among]
    own = own_chats(scope, user=user)
    allowed = set() if own.closed else set(visible([data.chat_ids[chat] for chat, _ in places], scope, user))
    shown = [place for place in places if data.chat_ids[place[0]] in allowed]
    return Disagreements(data, shown, hidden=0 if own.chats else len(places) - len(shown), own=own)


def listed(external_ids: list[str], scope: Scope, user: User | AnonymousUser) -> list[str]:
    """Those that a list shows the user: without chats not to be seen, none while its lists are closed."""
    return [] if own_chats(scope, user=user).closed else visible(external_ids, scope, user)


def visible(external_ids: list[str], scope: Scope, user: User | AnonymousUser) -> list[str]:
    """Without the chats the user may not see."""
    if sees_every_chat(user=user):
        return external_ids
    allowed = chats_shown(user=user).filter(pk__in=scope.chat_ids)
    seen = set(allowed.values_list("external_id", flat=True))
    return [external_id for external_id in external_ids if external_id in seen]


def pair_rows(scope: Scope, pairs: Sequence[Pair], query: str) -> list[PairRow]:
    """Rows of one page of a list; `query` is added to each chat's address."""
    chat_ids = {pair.chat_id for pair in pairs}
    chats = Chat.objects.select_related("topic").in_bulk(chat_ids, field_name="external_id")
    splits = dict(scope.members.filter(chat__external_id__in=chat_ids).values_list("chat_id", "split"))
    names = {row.key: row.name for row in scope.criteria}
    return [
        PairRow(
            chat_id=pair.chat_id,
            title=row.title,
            topic=row.topic.name,
            split=splits.get(row.pk, ""),
            excerpt=excerpt(row.messages),
            criterion=names[pair.criterion],
            human=pair.human,
            judge=pair.judge,
            url=f"{reverse('alignment:chat', args=[scope.run.pk, row.pk])}?criterion={pair.criterion}{query}"
            if scope.run
            else "",
        )
        for pair, row in ((pair, chats[pair.chat_id]) for pair in pairs)
    ]


def excerpt(messages: list[dict[str, Any]]) -> str:
    """The customer's first words."""
    text = next((m["content"] for m in messages if m["role"] == "user" and m["content"].strip()), "")
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"
