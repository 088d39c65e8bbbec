"""The chats of a run that can be drawn for labelling, by verdict and topic."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from alignment.core.label_draw import Share, Stratum, first_of_alike, strata_of
from alignment.core.label_planning import Expected, Seen, Shares, expected_false
from alignment.selectors.scope import Scope
from evaluation.models.runs import Verdict
from labeling.core.sampling import Candidate
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.labels import Assignment, Consensus, LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.selectors.blind import chats_shown, held_out


@dataclass(frozen=True, slots=True)
class Frame:
    """What can be drawn: strata of chats; every chat of the run with its split; verdicts by criterion.

    `ids` are the primary keys by external id, `said` by criterion id the chats called False, and True.
    """

    strata: list[Stratum]
    candidates: list[Candidate]
    ids: Mapping[str, int]
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
    by key; none: all. Eight queries at most, whatever the number of chats.
    """
    whole = replace(scope, split="", without_holdout=frozenset())
    rows = list(
        whole.members.values_list(
            "chat_id",
            "split",
            "chat__topic__key",
            "chat__external_id",
            "chat__content_hash",
            "chat__near_hash",
        )
    )
    taken = {*_labelled(whole, criteria), *_asked_for(criteria), *_drawn(whole, criteria)}
    held = set(held_out().filter(chat__in=whole.chat_ids))
    candidates = [
        Candidate(name, content, near, Split.HOLDOUT if chat in held else split or Split.DEV)
        for chat, split, _, name, content, near in rows
    ]
    first = first_of_alike(candidates, taken={name for chat, _, _, name, *_ in rows if chat in taken})
    open_to = set(
        scope.members.filter(chat__in=chats_shown(user=user)).order_by().values_list("chat_id", flat=True)
    )
    said = _said(scope, criteria)
    suspect = {chat for verdicts in said.values() for chat in verdicts[False]}
    frame = (
        (chat, topic)
        for chat, _, topic, name, *_ in rows
        if name in first and chat in open_to and (not topics or topic in topics)
    )
    ids = {name: chat for chat, _, _, name, *_ in rows}
    return Frame(strata_of(frame, suspect=suspect), candidates, ids, said)


def _labelled(scope: Scope, criteria: Sequence[Criterion]) -> QuerySet[Consensus, int]:
    rows = Consensus.objects.filter(chat__in=scope.chat_ids, criterion__in=criteria)
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


def _drawn(scope: Scope, criteria: Sequence[Criterion]) -> QuerySet[ChatSetMember, int]:
    rows = ChatSetMember.objects.filter(chat_set__in=earlier_draws(scope, criteria))
    return rows.values_list("chat_id", flat=True)


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
