"""Consensus on demand: Dawid–Skene of a set and criterion, and labels that no longer count."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db.models import Count, Max, QuerySet

from labeling.consensus.core.dawid_skene import DawidSkene, TooFewError, dawid_skene, numbered
from labeling.consensus.core.dropped import DroppedLabels
from labeling.consensus.core.votes import ConsensusState, state_of
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Consensus, Label, counting_versions
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.queries.visibility import chats_shown

# "Not applicable" is an answer like the others, as in the majority.
CATEGORIES: tuple[ConsensusState, ...] = ("true", "false", "na")


@dataclass(frozen=True, slots=True)
class Likely:
    """The most likely answer on a chat and its probability."""

    state: ConsensusState
    probability: float


@dataclass(frozen=True, slots=True)
class RaterRates:
    """A rater's estimated sensitivity for True and specificity for False; None: no such chat."""

    rater: str
    labels: int
    sensitivity: float | None
    specificity: float | None


@dataclass(frozen=True)
class DawidSkeneConsensus:
    """The model's estimates; `reason` says why there are none."""

    labels: int
    likely: Mapping[int, Likely] = field(default_factory=dict)  # by chat id
    raters: tuple[RaterRates, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    iterations: int = 0
    converged: bool = False
    reason: str = ""


def dropped_labels(*, labels: QuerySet[Label], criteria: Collection[Criterion]) -> list[DroppedLabels]:
    """Return which of these given labels answer an older text and no longer count; in the criteria's order.

    Takes one query where no criterion has an older text, else three.
    """
    counting = counting_versions().filter(criterion__in=criteria)
    older = CriterionVersion.objects.filter(criterion__in=criteria).exclude(pk__in=counting.values("pk"))
    versions = {
        pk: (criterion, number) for pk, criterion, number in older.values_list("pk", "criterion", "number")
    }
    if not versions:
        return []
    rows = labels.filter(version__in=list(versions)).order_by()
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for version, count in rows.values_list("version").annotate(Count("pk")):
        criterion, number = versions[version]
        found[criterion][number] = count
    if not found:
        return []
    newest = dict(counting.order_by().values_list("criterion").annotate(Max("number")))
    return [
        DroppedLabels(
            row.key,
            labels=sum(found[row.pk].values()),
            versions=tuple(sorted(found[row.pk])),
            counting=newest[row.pk],
        )
        for row in criteria
        if row.pk in found
    ]


def dawid_skene_of(*, criterion: Criterion, chat_set: ChatSet | None) -> DawidSkeneConsensus:
    """Estimate from the counted labels on the set's chats (None: on all chats), in two queries."""
    counted = Label.objects.counted().filter(criterion=criterion)
    if chat_set is not None:
        counted = counted.filter(chat__in=ChatSetMember.objects.filter(chat_set=chat_set).values("chat"))
    rows = list(counted.order_by("chat", "rater").values_list("chat", "rater", "value"))
    if not rows:
        return DawidSkeneConsensus(labels=0, reason="no labels")
    chats, items = numbered([chat for chat, _, _ in rows])
    raters, who = numbered([rater for _, rater, _ in rows])
    answers = [CATEGORIES.index(state_of(value)) for _, _, value in rows]
    try:
        result = dawid_skene(items, who, answers, categories=len(CATEGORIES))
    except TooFewError as error:
        return DawidSkeneConsensus(labels=len(rows), reason=str(error))
    if result.switched:
        return DawidSkeneConsensus(
            labels=len(rows), reason="raters’ errors cannot be separated from the truth"
        )
    return DawidSkeneConsensus(
        labels=len(rows),
        likely=dict(zip(chats, _likely(result), strict=True)),
        raters=_rates(result, raters),
        shares={name: float(share) for name, share in zip(CATEGORIES, result.shares, strict=True)},
        iterations=result.iterations,
        converged=result.converged,
    )


def likely_cells(*, criterion: Criterion, chat_set: ChatSet, user: User) -> QuerySet[Consensus]:
    """Return the consensus of the set's chats that the user may see."""
    members = ChatSetMember.objects.filter(chat_set=chat_set).values("chat")
    rows = Consensus.objects.filter(criterion=criterion, chat__in=members)
    shown = rows.filter(chat__in=chats_shown(user=user).values("pk"))
    return shown.select_related("chat").defer("chat__messages")


def likely_rows(*, model: DawidSkeneConsensus, cells: Iterable[Consensus]) -> list[dict[str, Any]]:
    """Return the estimates of these chats by external id, each beside the stored consensus."""
    return [
        {
            "chat_id": row.chat.external_id,
            "dawid_skene": model.likely[row.chat_id].state,
            "probability": model.likely[row.chat_id].probability,
            "consensus": row.state,
            "by": row.by,
        }
        for row in cells
        if row.chat_id in model.likely
    ]


def _likely(result: DawidSkene) -> list[Likely]:
    best = np.argmax(result.posteriors, axis=1)
    return [
        Likely(CATEGORIES[category], float(row[category]))
        for category, row in zip(best, result.posteriors, strict=True)
    ]


def _rates(result: DawidSkene, raters: list[int]) -> tuple[RaterRates, ...]:
    names = dict(Rater.objects.filter(pk__in=raters).values_list("pk", "name"))
    true, false = CATEGORIES.index("true"), CATEGORIES.index("false")
    rates = (
        RaterRates(names[pk], int(result.answered[n]), result.right(n, true), result.right(n, false))
        for n, pk in enumerate(raters)
    )
    return tuple(sorted(rates, key=lambda row: row.rater))
