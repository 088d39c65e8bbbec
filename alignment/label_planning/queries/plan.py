"""What a run's criteria still lack in labels, by decision and by topic."""

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
from alignment.reports.queries.reports import alignment_report
from alignment.statistics.agreement import Confusion
from alignment.statistics.label_needs import Decision, LabelCounts, Need, needs
from labeling.models.chats import Topic
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_hidden, sees_every_chat

SMALL = 10  # topics with fewer chats stand folded together
# A topic is thin when its share of the labels is under this part of its share of the chats.
THIN = 0.5


@dataclass(frozen=True, slots=True)
class CriterionPlan:
    """One criterion: its labels, what each decision misses, and what people say under either verdict."""

    criterion: Criterion
    counts: LabelCounts
    shares: Shares
    needs: tuple[Need, ...]

    @property
    def badge(self) -> Need:
        """What is missing before TPR and TNR have a badge."""
        return next(need for need in self.needs if need.decision == Decision.BADGE)


@dataclass(frozen=True, slots=True)
class TopicLabels:
    """One topic: its chats, and the True and False answers on them, all chosen criteria together."""

    key: str
    name: str
    chats: int
    share: float
    answers: int
    false: int
    answers_share: float

    @property
    def small(self) -> bool:
        """Whether it is too small for a line of its own."""
        return self.chats < SMALL

    @property
    def thin(self) -> bool:
        """Whether its labels are few against its chats."""
        return self.answers_share < THIN * self.share


def criterion_plans(scope: Scope) -> list[CriterionPlan]:
    """Every criterion of a run against the consensus, in the rubric's order; from what is stored."""
    scope = replace(scope, against=CONSENSUS, only="")
    entries = {entry["key"]: entry for entry in alignment_report(scope)["criteria"]}
    counts = plan_counts(scope)
    return [_plan(row, entries[row.key], counts) for row in scope.criteria]


def _plan(row: Criterion, entry: Mapping[str, Any], counts: PlanCounts) -> CriterionPlan:
    table, three = Confusion(**entry["confusion"]), counts.three.get(row.pk, Answers())
    waiting = entry["unjudged"]  # for a verdict: no label is missing there
    labels = LabelCounts(
        true=table.human_true + waiting["true"],
        false=table.human_false + waiting["false"],
        three=three.n,
        three_false=three.false,
        random=counts.random.get(row.pk, 0),
        tier=row.tier,
    )
    return CriterionPlan(row, labels, shares_of(table), tuple(needs(labels)))


def topic_labels(
    scope: Scope, *, criteria: Collection[Criterion], user: User | AnonymousUser
) -> list[TopicLabels]:
    """Topics of the chats that the user may see, those with the fewest answers for their size first."""
    asked = [row.pk for row in criteria]
    whole, hidden = plan_counts(scope).topics, _hidden(scope, criteria, user)
    sizes = {topic: n - hidden.chats.get(topic, 0) for topic, n in whole.chats.items()}
    answers = {
        topic: whole.answered(topic, asked).without(hidden.answered(topic, asked))
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
    """Of the chats that the user does not see; no query for who sees all."""
    if sees_every_chat(user=user):
        return TopicCounts({}, {})
    hidden = reduce(or_, (Q(chat__in=chats) for chats in chats_hidden(user=user)))
    return topic_counts(scope.members.filter(hidden), criteria)
