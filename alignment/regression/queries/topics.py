"""What a regression test changed by topic, as one person may know it."""

from dataclasses import dataclass

import numpy as np
from django.contrib.auth.models import AnonymousUser

from alignment.comparison.queries.scope import Scope
from alignment.models.regressions import RegressionTest
from alignment.regression.core.topics import changes_by_topic
from alignment.regression.queries.paired_verdicts import paired_answers
from alignment.statistics.estimates import Estimate
from alignment.statistics.paired_tests import PairedTable
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown, sees_every_chat


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic's paired table; `key` is '' where several topics are counted together."""

    key: str
    name: str
    table: PairedTable
    change: Estimate

    @property
    def fixed(self) -> int:
        """Chats on which only the candidate is right."""
        return self.table.first

    @property
    def broken(self) -> int:
        """Chats on which only the champion is right."""
        return self.table.second


def topic_rows(test: RegressionTest, *, key: str, user: User | AnonymousUser) -> list[TopicRow] | None:
    """By topic, counted as the whole is; None where this criterion was not compared, or not decided yet.

    Who may not read some of the chats, held out or still to be labelled, gets no row that counts 1 to 9 of
    these.
    """
    if test.body is None:
        return None
    found = paired_answers(test, candidate=test.candidate_run, only=key)
    if not found.criteria:
        return None
    scope = Scope(test.chat_set, test.baseline_run)
    columns = ("chat_id", "chat__topic_id", "chat__topic__key", "chat__topic__name")
    chats = list(scope.members.values_list(*columns))
    held = None
    if not sees_every_chat(user=user):
        shown = set(chats_shown(user=user).filter(pk__in=scope.chat_ids).values_list("pk", flat=True))
        held = np.array([chat not in shown for chat, *_ in chats], dtype=bool)
    names = {topic: (topic_key, name) for _, topic, topic_key, name in chats}
    topics = np.array([topic for _, topic, *_ in chats], dtype=np.int64)
    return [
        TopicRow(*_named(row.topics, names), row.table, row.difference)
        for row in changes_by_topic(found.criteria[0], topics, held=held)
    ]


def _named(topics: tuple[int, ...], names: dict[int, tuple[str, str]]) -> tuple[str, str]:
    """Key and name; topics told together have no name, for one might be of held-out chats alone."""
    if len(topics) == 1:
        return names[topics[0]]
    return "", f"{len(topics)} other topics"
