"""Facts for the start form of a test: labels, holdout, versions and baselines."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, Q

from alignment.comparison.queries.requested_scope import visible_scope
from alignment.comparison.queries.scope import Scope
from alignment.models.regressions import RegressionTest
from alignment.regression.core import GatePolicy
from alignment.reports.queries.label_minimums import label_minimums
from alignment.statistics.label_needs import Decision, LabelCounts, Minimums, label_summary, needs
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import FINISHED, Run
from evaluation.prompts.queries.versions import champions
from labeling.models.chats import ChatSet, Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion, Tier


@dataclass(frozen=True, slots=True)
class LabelledChats:
    """Numbers of chats with human True and False on a criterion; `minimums`: what the policies require.

    clusters : number of their clusters; None if no two of these chats share one.
    """

    criterion: Criterion
    true: int
    false: int
    minimums: Minimums
    clusters: int | None = None

    @property
    def more(self) -> str:
        """The labels that a status, ±6 points and the gate need, in words; '' if there are enough."""
        every = needs(LabelCounts(self.true, self.false, tier=self.criterion.tier), self.minimums)
        if self.clusters is None:
            return label_summary(every)
        chats = label_summary(need for need in every if need.decision != Decision.GATE_ALONE)
        more = self.minimums.gate_alone - self.clusters if self.blocks else 0
        clusters = f"{more:,} more cluster{'' if more == 1 else 's'} for the gate" if more > 0 else ""
        return ", ".join(filter(None, (chats, clusters)))

    @property
    def n(self) -> int:
        """Labelled chats."""
        return self.true + self.false

    @property
    def units(self) -> int:
        """Labelled chats, or their clusters: what the gate counts."""
        return self.n if self.clusters is None else self.clusters

    @property
    def blocks(self) -> bool:
        """Whether the criterion can block a release; subjective ones cannot."""
        return self.criterion.tier != Tier.SUBJECTIVE


def labelled_chats(
    *, chat_set: ChatSet, split: str, keys: Collection[str], user: User, policy: GatePolicy
) -> list[LabelledChats]:
    """Count chats of the split ('' means all) with human True or False, by criterion in the order of `keys`.

    Small numbers of hidden holdout chats are excluded: see `alignment.comparison.queries.scope`.
    """
    scope = visible_scope(Scope(chat_set, split=split), user=user)
    rows = Criterion.objects.filter(rubric=chat_set.rubric_id, key__in=keys)
    counted = Consensus.objects.filter(
        chat__in=scope.chat_ids, criterion__in=rows, state__in=("true", "false")
    )
    named = Q(chat__cluster__gt="")
    counts = (
        counted.values("criterion_id")
        .order_by()
        .annotate(
            true=Count("pk", filter=Q(state="true")),
            false=Count("pk", filter=Q(state="false")),
            alone=Count("pk", filter=~named),
            clusters=Count("chat__cluster", filter=named, distinct=True),
        )
    )
    found = {row["criterion_id"]: row for row in counts}
    by_key = {row.key: row for row in rows}
    minimums = replace(label_minimums(), gate_alone=policy.single_minimum)
    return [_labelled(by_key[key], found.get(by_key[key].pk), minimums) for key in keys if key in by_key]


def _labelled(row: Criterion, counts: Mapping[str, Any] | None, minimums: Minimums) -> LabelledChats:
    if counts is None:
        return LabelledChats(row, 0, 0, minimums)
    true, false, units = counts["true"], counts["false"], counts["alone"] + counts["clusters"]
    return LabelledChats(row, true, false, minimums, None if units == true + false else units)


def opens_holdout(*, chat_set: ChatSet, split: str) -> bool:
    """Tell whether a test on this split ('' means all) uses holdout chats."""
    return split in ("", Split.HOLDOUT) and chat_set.members.filter(split=Split.HOLDOUT).exists()


def candidates(criterion: Criterion) -> list[PromptVersion]:
    """Return the versions to test, newest first: all but the champion."""
    champion = champions(criteria=[criterion]).get(criterion.pk)
    rows = PromptVersion.objects.filter(criterion=criterion).select_related("author", "criterion")
    return list((rows.exclude(pk=champion.pk) if champion else rows).order_by("-number"))


def newest_drafts(criteria: Collection[Criterion]) -> list[PromptVersion]:
    """Return the newest version of each criterion, if it is newer than the champion."""
    released = champions(criteria=criteria)
    newest = {
        row.criterion_id: row
        for row in PromptVersion.objects.filter(criterion__in=criteria).order_by("number")
    }
    return [
        row for pk, row in newest.items() if pk in released and (row.number or 0) > (released[pk].number or 0)
    ]


def set_to_offer(criterion: Criterion | None) -> ChatSet | None:
    """Return the set of the criterion's newest test, otherwise the largest set of its rubric or of all."""
    if criterion is not None:
        tests = RegressionTest.objects.filter(candidate__criterion=criterion)
        if (newest := tests.select_related("chat_set").order_by("-id").first()) is not None:
            return newest.chat_set
    sets = ChatSet.objects.listed()
    if criterion is not None:
        sets = sets.filter(rubric=criterion.rubric_id)
    return sets.annotate(chats=Count("members")).order_by("-chats", "pk").first()


def finished_runs(*, most: int | None = 100) -> list[Run]:
    """Return runs that can be a baseline, newest first: finished runs of a LACE judge over a set."""
    done = Run.objects.filter(state__in=FINISHED, chat_set__isnull=False, judge__kind="lace").exclude(
        purpose=Run.Purpose.TRY
    )
    return list(done.select_related("judge", "chat_set").order_by("-id")[:most])
