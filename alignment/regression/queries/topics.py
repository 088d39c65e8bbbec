"""Changes of a regression test by topic, as far as a user can see them."""

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
    """Paired table of a topic; `key` is '' if several topics are counted together."""

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
    """Return the changes by topic; None if the criterion was not compared or the test is not decided.

    No row counts 1 to 9 chats that are hidden from the user.
    """
    if test.body is None:
        return None
    answers = paired_answers(test, candidate=test.candidate_run, only=key)
    if not answers.criteria:
        return None
    scope = Scope(test.chat_set, test.baseline_run)
    columns = ("chat_id", "chat__topic_id", "chat__topic__key", "chat__topic__name")
    chats = list(scope.members.values_list(*columns))
    hidden = None
    if not sees_every_chat(user=user):
        visible = set(chats_shown(user=user).filter(pk__in=scope.chat_ids).values_list("pk", flat=True))
        hidden = np.array([chat not in visible for chat, *_ in chats], dtype=bool)
    names = {topic: (topic_key, name) for _, topic, topic_key, name in chats}
    topics = np.array([topic for _, topic, *_ in chats], dtype=np.int64)
    return [
        TopicRow(*_named(row.topics, names), row.table, row.difference)
        for row in changes_by_topic(answers.criteria[0], topics, held=hidden)
    ]


def _named(topics: tuple[int, ...], names: dict[int, tuple[str, str]]) -> tuple[str, str]:
    """Return key and name; topics counted together have no names, because these could disclose chats."""
    if len(topics) == 1:
        return names[topics[0]]
    return "", f"{len(topics)} other topics"
