"""Missing labels of a run's criteria, by decision and by topic."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.core import Shares, shares_of
from alignment.label_planning.queries.counts import (
    Answers,
    PlanCounts,
    TopicCounts,
    plan_counts,
    topic_counts,
)
from alignment.reports.queries.label_minimums import label_minimums
from alignment.reports.queries.next_steps import label_counts
from alignment.reports.queries.shown import report_now
from alignment.statistics.agreement import Confusion
from alignment.statistics.label_needs import Decision, LabelCounts, Minimums, Need, label_summary, needs
from labeling.models.chats import Topic
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_hidden, sees_every_chat

SMALL = 10  # topics with fewer chats are folded together
# A topic has few labels if its share of the labels is below this fraction of its share of the chats.
THIN = 0.5


@dataclass(frozen=True, slots=True)
class CriterionPlan:
    """One criterion: its labels, the needs of each decision, and the labels under either verdict."""

    criterion: Criterion
    counts: LabelCounts
    shares: Shares
    needs: tuple[Need, ...]

    @property
    def status(self) -> Need:
        """The labels that a status needs."""
        return next(need for need in self.needs if need.decision == Decision.STATUS)

    @property
    def summary(self) -> str:
        """The labels that a status, ±6 points and the gate need, in words."""
        return label_summary(self.needs)


@dataclass(frozen=True, slots=True)
class TopicLabels:
    """One topic: its chats, and their True and False labels over all chosen criteria."""

    key: str
    name: str
    chats: int
    share: float
    answers: int
    false: int
    answers_share: float

    @property
    def small(self) -> bool:
        """Whether the topic is folded with other small ones."""
        return self.chats < SMALL

    @property
    def thin(self) -> bool:
        """Whether the topic has few labels for its number of chats."""
        return self.answers_share < THIN * self.share


def criterion_plans(scope: Scope) -> list[CriterionPlan]:
    """Plan every criterion of a run against the consensus, in rubric order, from cached documents."""
    scope = replace(scope, against=CONSENSUS, only="")
    entries = {entry["key"]: entry for entry in report_now(scope)["criteria"]}
    counts, minimums = plan_counts(scope), label_minimums()
    return [_plan(row, entries[row.key], counts, minimums) for row in scope.criteria]


def _plan(row: Criterion, entry: Mapping[str, Any], counts: PlanCounts, minimums: Minimums) -> CriterionPlan:
    table, three = Confusion(**entry["confusion"]), counts.three.get(row.pk, Answers())
    labels = replace(
        label_counts(entry),
        three=three.n,
        three_false=three.false,
        random=counts.random.get(row.pk, 0),
    )
    return CriterionPlan(row, labels, shares_of(table), tuple(needs(labels, minimums)))


def topic_labels(
    scope: Scope, *, criteria: Collection[Criterion], user: User | AnonymousUser
) -> list[TopicLabels]:
    """Return the topics of visible chats, the one with the fewest labels for its size first."""
    ids = [row.pk for row in criteria]
    whole, hidden = plan_counts(scope).topics, _hidden(scope, criteria, user)
    sizes = {topic: n - hidden.chats.get(topic, 0) for topic, n in whole.chats.items()}
    answers = {
        topic: whole.answered(topic, ids).without(hidden.answered(topic, ids))
        for topic, n in sizes.items()
        if n
    }
    chats, total = sum(sizes.values()), sum(one.n for one in answers.values())
    topics = Topic.objects.in_bulk(list(answers))
    rows = [
        TopicLabels(
            key=topics[topic].key,
            name=topics[topic].name,
            chats=sizes[topic],
            share=sizes[topic] / chats,
            answers=one.n,
            false=one.false,
            answers_share=one.n / total if total else 0.0,
        )
        for topic, one in answers.items()
    ]
    return sorted(rows, key=lambda row: (row.answers_share / row.share, row.name))


def _hidden(scope: Scope, criteria: Collection[Criterion], user: User | AnonymousUser) -> TopicCounts:
    """Count chats that the user cannot see; no query if the user sees all."""
    if sees_every_chat(user=user):
        return TopicCounts({}, {})
    hidden = reduce(or_, (Q(chat__in=chats) for chats in chats_hidden(user=user)))
    return topic_counts(scope.members.filter(hidden), criteria)
