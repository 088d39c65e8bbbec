"""What a run's criteria still lack in labels, by decision and by topic."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, F, Q

from alignment.core.agreement import Confusion
from alignment.core.label_planning import Decision, LabelCounts, Need, Shares, needs, shares_of
from alignment.core.report import CONSENSUS
from alignment.selectors.reports import alignment_report
from alignment.selectors.scope import Scope
from labeling.models.chats import ChatSetMember
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.selectors.blind import chats_shown

ANSWERED = (Consensus.State.TRUE, Consensus.State.FALSE)
RATERS_FOR_REPLACING = 3
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
    """Every criterion of a run against the consensus, in the rubric's order; from the stored report."""
    scope = replace(scope, against=CONSENSUS, only="")
    entries = {entry["key"]: entry for entry in alignment_report(scope)["criteria"]}
    three, random = _three_raters(scope), _drawn_at_random(scope)
    return [
        _plan(row, entries[row.key], three.get(row.pk, (0, 0)), random.get(row.pk, 0))
        for row in scope.criteria
    ]


def _plan(row: Criterion, entry: Mapping[str, Any], three: tuple[int, int], random: int) -> CriterionPlan:
    table = Confusion(**entry["confusion"])
    counts = LabelCounts(
        true=table.human_true,
        false=table.human_false,
        three=three[0],
        three_false=three[1],
        random=random,
        tier=row.tier,
    )
    return CriterionPlan(row, counts, shares_of(table), tuple(needs(counts)))


def _three_raters(scope: Scope) -> dict[int, tuple[int, int]]:
    """By criterion id: the chats that three raters or more answered, and those of them called False."""
    rows = Consensus.objects.filter(
        chat__in=scope.chat_ids, criterion__in=scope.criteria, state__in=ANSWERED
    ).annotate(given=F("n_true") + F("n_false"))
    false = Count("pk", filter=Q(state=Consensus.State.FALSE))
    counted = rows.filter(given__gte=RATERS_FOR_REPLACING).values_list("criterion").order_by()
    return {criterion: (n, no) for criterion, n, no in counted.annotate(n=Count("pk"), false=false)}


def _drawn_at_random(scope: Scope) -> dict[int, int]:
    """By criterion id: answered chats of draws that took no verdict more often than another."""
    drawn = ChatSetMember.objects.filter(
        chat_set__sampling__oversampled=False, inclusion_probability__isnull=False
    )
    rows = Consensus.objects.filter(
        chat__in=scope.chat_ids, criterion__in=scope.criteria, state__in=ANSWERED
    ).filter(chat__in=drawn.values("chat"))
    return dict(rows.order_by().values_list("criterion").annotate(n=Count("pk")))


def topic_labels(
    scope: Scope, *, criteria: Collection[Criterion], user: User | AnonymousUser
) -> list[TopicLabels]:
    """Topics of the chats that the user may see, those with the fewest answers for their size first."""
    members = scope.members.filter(chat__in=chats_shown(user=user)).order_by()
    sizes = list(
        members.values_list("chat__topic__key", "chat__topic__name").annotate(chats=Count("chat_id"))
    )
    cells = Consensus.objects.filter(
        chat__in=members.values_list("chat_id", flat=True), criterion__in=criteria, state__in=ANSWERED
    )
    false = Count("pk", filter=Q(state=Consensus.State.FALSE))
    counted = cells.order_by().values_list("chat__topic__key").annotate(n=Count("pk"), false=false)
    answers = {key: (n, no) for key, n, no in counted}
    chats = sum(n for *_, n in sizes)
    total = sum(n for n, _ in answers.values())
    rows = [
        TopicLabels(key, name, n, n / chats, found, no, found / total if total else 0.0)
        for key, name, n in sizes
        for found, no in [answers.get(key, (0, 0))]
    ]
    return sorted(rows, key=lambda row: (row.answers_share / row.share, row.name))
