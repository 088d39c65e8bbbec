"""Chat and label counts of a run for the label plan, cached so that no page reads all rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, F, Q, QuerySet

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.cached_documents import cached_document, pin_of
from alignment.comparison.queries.random_samples import (
    RandomSample,
    equal_chance_samples,
    random_sample_sizes,
)
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion

BODY_VERSION = 1
RATERS_FOR_REPLACING = 3


@dataclass(frozen=True, slots=True)
class Answers:
    """Numbers of labelled chats, and of those labelled False."""

    n: int = 0
    false: int = 0

    def without(self, other: "Answers") -> "Answers":
        """Subtract the counts of other chats."""
        return Answers(self.n - other.n, self.false - other.false)


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """Chats by topic id, and labels by topic and criterion id."""

    chats: Mapping[int, int]
    answers: Mapping[tuple[int, int], Answers]

    def answered(self, topic: int, criteria: Collection[int]) -> Answers:
        """Sum the labels of a topic over the criteria."""
        counts = [self.answers.get((topic, one), Answers()) for one in criteria]
        return Answers(sum(one.n for one in counts), sum(one.false for one in counts))


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """By criterion id: chats with three raters or more, and the effective size of random samples."""

    three: Mapping[int, Answers]
    random: Mapping[int, int]
    topics: TopicCounts


def plan_counts(scope: Scope) -> PlanCounts:
    """Count chats and labels; cached for a finished run until labels or samples change."""
    scope = replace(scope, against=CONSENSUS, only="")
    samples = equal_chance_samples(scope)
    if scope.run is None or scope.run.finished_at is None:
        return _read(_body(scope, samples))
    about = [[sample.pk, sample.criteria] for sample in samples]
    pin = pin_of(scope, Report.Kind.PLAN.value, BODY_VERSION, about)
    return _read(
        cached_document(scope, kind=Report.Kind.PLAN, pin=pin, body=lambda: _body(scope, samples)).body
    )


def topic_counts(members: QuerySet[Any], criteria: Collection[Criterion]) -> TopicCounts:
    """Count chats and labels by topic; two queries."""
    chats = members.order_by().values_list("chat__topic").annotate(n=Count("chat"))
    rows = _answered(members, criteria).values_list("chat__topic", "criterion")
    return TopicCounts(
        dict(chats), {(topic, criterion): Answers(n, no) for topic, criterion, n, no in _counted(rows)}
    )


def _body(scope: Scope, samples: list[RandomSample]) -> dict[str, Any]:
    by_topic = topic_counts(scope.members, scope.criteria)
    rows = _answered(scope.members, scope.criteria).annotate(raters=F("n_true") + F("n_false"))
    three = rows.filter(raters__gte=RATERS_FOR_REPLACING).values_list("criterion")
    return {
        "three": list(_counted(three)),
        "random": list(random_sample_sizes(scope, samples).items()),
        "chats": list(by_topic.chats.items()),
        "answers": [[*about, one.n, one.false] for about, one in by_topic.answers.items()],
    }


def _read(body: dict[str, Any]) -> PlanCounts:
    answers = {(topic, criterion): Answers(n, no) for topic, criterion, n, no in body["answers"]}
    three = {criterion: Answers(n, no) for criterion, n, no in body["three"]}
    return PlanCounts(three, dict(body["random"]), TopicCounts(dict(body["chats"]), answers))


def _answered(members: QuerySet[Any], criteria: Collection[Criterion]) -> QuerySet[Consensus]:
    chats = members.order_by().values_list("chat_id", flat=True)
    return Consensus.objects.filter(
        chat__in=chats, criterion__in=criteria, state__in=Consensus.ANSWERED
    ).order_by()


def _counted(rows: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
    false = Count("pk", filter=Q(state=Consensus.State.FALSE))
    counted: QuerySet[Any, Any] = rows.annotate(n=Count("pk"), false=false)
    return counted
