"""Sampling frame: the chats of a run that are eligible for labelling, by verdict and topic."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from alignment.comparison.queries.near_duplicates import near_duplicates
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.core import AnswerCounts, Expected, Shares, expected_false
from alignment.statistics.stratified_sampling import Allocation, Stratum, excluded_duplicates, strata_of
from evaluation.models.runs import Verdict
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.labels import Assignment, Consensus, LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown, holdout_chats


@dataclass(frozen=True, slots=True)
class SamplingFrame:
    """The eligible chats.

    strata : eligible chats by verdict and topic. splits : the split of every chat of the run.
    samples : earlier samples, whose chats are excluded.
    verdicts : by criterion id, the chats with verdict False, and True.
    """

    strata: list[Stratum]
    splits: Mapping[int, str]
    samples: tuple[int, ...]
    verdicts: Mapping[int, Mapping[bool, frozenset[int]]]

    def size(self, *, suspect: bool) -> int:
        """Count the chats judged False on a chosen criterion, or the others."""
        return sum(stratum.size for stratum in self.strata if stratum.suspect is suspect)

    def expected(self, shares: Sequence[Allocation], *, criterion: Criterion, labels: Shares) -> Expected:
        """Estimate the human False labels of a sample on one criterion."""
        chats = sum(share.n for share in shares)
        false = round(sum(self._judged(share, criterion, verdict=False) for share in shares))
        true = round(sum(self._judged(share, criterion, verdict=True) for share in shares))
        no_verdict = max(0, chats - false - true)
        return expected_false(
            [(false, labels.judge_false), (true, labels.judge_true), (no_verdict, labels.no_verdict)]
        )

    def share_of_false(self, criterion: Criterion, labels: Shares, *, suspect: bool) -> float:
        """Estimate the share of human False among the suspect chats, or among the others."""
        whole = [Allocation(one, one.size) for one in self.strata if one.suspect is suspect]
        size = sum(share.n for share in whole)
        if not size:
            return AnswerCounts().share
        return self.expected(whole, criterion=criterion, labels=labels).about / size

    def _judged(self, share: Allocation, criterion: Criterion, *, verdict: bool) -> float:
        """Expected number of sampled chats of a stratum with this verdict."""
        chats = self.verdicts[criterion.pk][verdict]
        return share.probability * sum(chat in chats for chat in share.stratum.chats)


def sampling_frame(
    scope: Scope,
    *,
    criteria: Sequence[Criterion],
    user: User | AnonymousUser,
    topics: Collection[str] = (),
) -> SamplingFrame:
    """Collect the scope's chats that are eligible for labelling on the criteria.

    Excluded are chats with a label on a criterion, in an open job for it, or in an earlier sample of the run
    (they have their probability there). Of near-duplicates the first is eligible, and none if one of them is
    excluded. `topics` by key; empty means all. At most ten queries for any number of chats.
    """
    whole = replace(scope, split="", without_holdout=frozenset())
    samples = tuple(row.pk for row in earlier_samples(whole, criteria))
    rows = list(whole.members.values_list("chat_id", "split", "chat__topic__key"))
    holdout = set(holdout_chats().filter(chat__in=whole.chat_ids))
    taken = {*_labelled(whole.chat_ids, criteria), *_in_open_jobs(criteria), *_sampled(samples)}
    excluded = taken | excluded_duplicates(near_duplicates(whole), taken=taken)
    visible = set(
        scope.members.filter(chat__in=chats_shown(user=user)).order_by().values_list("chat_id", flat=True)
    )
    verdicts = _verdicts(scope, criteria)
    suspect = {chat for by_value in verdicts.values() for chat in by_value[False]}
    eligible = (
        (chat, topic)
        for chat, _, topic in rows
        if chat not in excluded and chat in visible and (not topics or topic in topics)
    )
    splits = {chat: Split.HOLDOUT if chat in holdout else split or Split.DEV for chat, split, _ in rows}
    return SamplingFrame(strata_of(eligible, suspect=suspect), splits, samples, verdicts)


def frame_changed(
    scope: Scope, *, criteria: Sequence[Criterion], samples: Collection[int], chats: Sequence[int]
) -> bool:
    """Tell whether one of these chats is no longer eligible; four queries.

    `samples` : the earlier samples that were known when the chats were chosen.
    """
    if {row.pk for row in earlier_samples(scope, criteria)} != set(samples):
        return True
    return _labelled(chats, criteria).exists() or _in_open_jobs(criteria).filter(chat__in=chats).exists()


def _labelled(
    chats: Sequence[int] | QuerySet[Any, int], criteria: Sequence[Criterion]
) -> QuerySet[Consensus, int]:
    rows = Consensus.objects.filter(chat__in=chats, criterion__in=criteria)
    return rows.values_list("chat_id", flat=True)


def _in_open_jobs(criteria: Sequence[Criterion]) -> QuerySet[Assignment, int]:
    """Chats with an unfinished assignment on one of the criteria."""
    jobs = LabelingJob.objects.filter(criteria__in=criteria).exclude(state=LabelingJob.State.CLOSED)
    states = (Assignment.State.OPEN, Assignment.State.LEASED)
    assignments = Assignment.objects.filter(job__in=jobs.values("pk"), state__in=states)
    return assignments.values_list("chat_id", flat=True).distinct()


def earlier_samples(scope: Scope, criteria: Sequence[Criterion]) -> list[ChatSet]:
    """Return the samples of the scope's run for one of the criteria, the oldest first; one query."""
    keys = {row.key for row in criteria}
    sets = ChatSet.objects.filter(kind=ChatSet.Kind.SAMPLE, sampling__run=scope.run.pk if scope.run else None)
    return [row for row in sets.order_by("pk") if keys & set((row.sampling or {}).get("criteria", ()))]


def _sampled(samples: Collection[int]) -> QuerySet[ChatSetMember, int]:
    return ChatSetMember.objects.filter(chat_set__in=samples).values_list("chat_id", flat=True)


def _verdicts(scope: Scope, criteria: Sequence[Criterion]) -> dict[int, dict[bool, frozenset[int]]]:
    rows = Verdict.objects.filter(
        run=scope.run, criterion__in=criteria, state=Verdict.State.READ, value__isnull=False
    )
    verdicts: dict[int, dict[bool, set[int]]] = {row.pk: {False: set(), True: set()} for row in criteria}
    for criterion, chat, value in rows.values_list("criterion_id", "chat_id", "value").iterator(5000):
        verdicts[criterion][bool(value)].add(chat)
    return {
        criterion: {value: frozenset(chats) for value, chats in by_value.items()}
        for criterion, by_value in verdicts.items()
    }
