"""The chats of a run that can be drawn for labelling, by verdict and topic."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from alignment.comparison.queries.near_duplicates import alike_chats
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.core import Expected, Seen, Shares, expected_false
from alignment.statistics.stratified_sampling import Share, Stratum, stood_for, strata_of
from evaluation.models.runs import Verdict
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.labels import Assignment, Consensus, LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown, held_out


@dataclass(frozen=True, slots=True)
class Frame:
    """What can be drawn: strata of chats; the split of every chat of the run; verdicts by criterion.

    `draws` are the sets whose chats were left out, `said` by criterion id the chats called False, and True.
    """

    strata: list[Stratum]
    splits: Mapping[int, str]
    draws: tuple[int, ...]
    said: Mapping[int, Mapping[bool, frozenset[int]]]

    def size(self, *, suspect: bool) -> int:
        """Chats that the judge calls False on a chosen criterion, or does not."""
        return sum(stratum.size for stratum in self.strata if stratum.suspect is suspect)

    def expected(self, shares: Sequence[Share], *, criterion: Criterion, seen: Shares) -> Expected:
        """How many of the drawn chats people may call False on one criterion."""
        drawn = sum(share.n for share in shares)
        false = round(sum(self._called(share, criterion, verdict=False) for share in shares))
        true = round(sum(self._called(share, criterion, verdict=True) for share in shares))
        silent = max(0, drawn - false - true)
        return expected_false([(false, seen.judge_false), (true, seen.judge_true), (silent, seen.silent)])

    def share_of_false(self, criterion: Criterion, seen: Shares, *, suspect: bool) -> float:
        """The share of human False to expect among the suspect chats, or among the others."""
        whole = [Share(one, one.size) for one in self.strata if one.suspect is suspect]
        size = sum(share.n for share in whole)
        if not size:
            return Seen().share
        return self.expected(whole, criterion=criterion, seen=seen).about / size

    def _called(self, share: Share, criterion: Criterion, *, verdict: bool) -> float:
        """Chats that a stratum is expected to give with this verdict."""
        said = self.said[criterion.pk][verdict]
        return share.probability * sum(chat in said for chat in share.stratum.chats)


def label_frame(
    scope: Scope,
    *,
    criteria: Sequence[Criterion],
    user: User | AnonymousUser,
    topics: Collection[str] = (),
) -> Frame:
    """The scope's chats without a label on any of the criteria that no open job asks for one.

    Nor is there a chat of an earlier draw from the run for one of them: it has its probability there. Of
    near-duplicates the first one stands for all, and none where one of them has labels or is drawn. `topics`
    by key; none: all. Ten queries at most, whatever the number of chats.
    """
    whole = replace(scope, split="", without_holdout=frozenset())
    draws = tuple(row.pk for row in earlier_draws(whole, criteria))
    rows = list(whole.members.values_list("chat_id", "split", "chat__topic__key"))
    held = set(held_out().filter(chat__in=whole.chat_ids))
    taken = {*_labelled(whole.chat_ids, criteria), *_asked_for(criteria), *_drawn(draws)}
    gone = taken | stood_for(alike_chats(whole), taken=taken)
    open_to = set(
        scope.members.filter(chat__in=chats_shown(user=user)).order_by().values_list("chat_id", flat=True)
    )
    said = _said(scope, criteria)
    suspect = {chat for verdicts in said.values() for chat in verdicts[False]}
    frame = (
        (chat, topic)
        for chat, _, topic in rows
        if chat not in gone and chat in open_to and (not topics or topic in topics)
    )
    splits = {chat: Split.HOLDOUT if chat in held else split or Split.DEV for chat, split, _ in rows}
    return Frame(strata_of(frame, suspect=suspect), splits, draws, said)


def has_moved(
    scope: Scope, *, criteria: Sequence[Criterion], draws: Collection[int], chats: Sequence[int]
) -> bool:
    """Whether one of these chats, drawn while `draws` were all there were, cannot be drawn any more.

    Four queries, whatever there is to draw.
    """
    if {row.pk for row in earlier_draws(scope, criteria)} != set(draws):
        return True
    return _labelled(chats, criteria).exists() or _asked_for(criteria).filter(chat__in=chats).exists()


def _labelled(
    chats: Sequence[int] | QuerySet[Any, int], criteria: Sequence[Criterion]
) -> QuerySet[Consensus, int]:
    rows = Consensus.objects.filter(chat__in=chats, criterion__in=criteria)
    return rows.values_list("chat_id", flat=True)


def _asked_for(criteria: Sequence[Criterion]) -> QuerySet[Assignment, int]:
    """Chats that somebody is to label on one of the criteria."""
    jobs = LabelingJob.objects.filter(criteria__in=criteria).exclude(state=LabelingJob.State.CLOSED)
    states = (Assignment.State.OPEN, Assignment.State.LEASED)
    wanted = Assignment.objects.filter(job__in=jobs.values("pk"), state__in=states)
    return wanted.values_list("chat_id", flat=True).distinct()


def earlier_draws(scope: Scope, criteria: Sequence[Criterion]) -> list[ChatSet]:
    """The sets drawn from the scope's run for one of the criteria, the first one first; one query."""
    keys = {row.key for row in criteria}
    sets = ChatSet.objects.filter(kind=ChatSet.Kind.SAMPLE, sampling__run=scope.run.pk if scope.run else None)
    return [row for row in sets.order_by("pk") if keys & set((row.sampling or {}).get("criteria", ()))]


def _drawn(draws: Collection[int]) -> QuerySet[ChatSetMember, int]:
    return ChatSetMember.objects.filter(chat_set__in=draws).values_list("chat_id", flat=True)


def _said(scope: Scope, criteria: Sequence[Criterion]) -> dict[int, dict[bool, frozenset[int]]]:
    rows = Verdict.objects.filter(
        run=scope.run, criterion__in=criteria, state=Verdict.State.READ, value__isnull=False
    )
    found: dict[int, dict[bool, set[int]]] = {row.pk: {False: set(), True: set()} for row in criteria}
    for criterion, chat, value in rows.values_list("criterion_id", "chat_id", "value").iterator(5000):
        found[criterion][bool(value)].add(chat)
    return {
        criterion: {value: frozenset(chats) for value, chats in said.items()}
        for criterion, said in found.items()
    }
