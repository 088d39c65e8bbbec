"""What a report is about: a run or a chat set, its chats in order and its criteria."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet

from alignment.core.regression.topics import FEWEST
from alignment.core.report import CONSENSUS, EACH_RATER
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.selectors.blind import held_out, reads_holdout


@dataclass(frozen=True)
class Scope:
    """A run (judge against people) or a set alone (people only).

    `split` '' = all; `against` names the ground truth; `only` narrows it to one criterion key;
    `without_holdout` leaves out the chats that are holdout in any set.
    """

    chat_set: ChatSet | None
    run: Run | None = None
    split: str = ""
    against: str = CONSENSUS
    only: str = ""
    without_holdout: bool = False

    @property
    def rater(self) -> str:
        """The one rater who is the ground truth, by name; '' when it is not one rater."""
        return self.against.removeprefix("rater:") if self.against.startswith("rater:") else ""

    @property
    def each_rater(self) -> bool:
        """The judge is compared with each rater."""
        return self.against == EACH_RATER

    @property
    def ground_truth(self) -> str:
        """What the judge is compared with, in words."""
        return self.rater or ("Each rater" if self.each_rater else "Consensus")

    @property
    def people(self) -> str:
        """Whose answers stand beside the judge's, as the head of their column."""
        return self.rater or ("A rater" if self.each_rater else "People")

    @property
    def members(self) -> QuerySet[RunChat] | QuerySet[ChatSetMember]:
        """The rows that say which chats are covered, in the set's order."""
        asked = Q(split=self.split) if self.split else Q()
        if self.without_holdout:
            asked &= ~Q(chat__in=held_out())
        if self.run is not None:
            return RunChat.objects.filter(asked, run=self.run).order_by("id")
        return ChatSetMember.objects.filter(asked, chat_set=self.chat_set).order_by("position")

    @property
    def chat_ids(self) -> QuerySet[RunChat, int] | QuerySet[ChatSetMember, int]:
        """A subquery of the covered chats."""
        return self.members.order_by().values_list("chat_id", flat=True)

    @cached_property
    def criteria(self) -> list[Criterion]:
        """What the judge was asked (or brought verdicts on), or the set's rubric, in the rubric's order."""
        rows = Criterion.objects.select_related("dimension")
        rows = rows.order_by("rubric", "dimension__position", "position")
        if self.only:
            rows = rows.filter(key=self.only)
        if self.run is not None:
            asked = JudgePrompt.objects.filter(judge=self.run.judge_id, criterion=OuterRef("pk"))
            brought = Verdict.objects.filter(run=self.run, criterion=OuterRef("pk"))
            return list(rows.filter(Exists(asked) | Exists(brought)))
        rubric = self.chat_set.rubric_id if self.chat_set else None
        return list(rows.filter(rubric=rubric, state=Criterion.State.ACTIVE))


def valid_ground_truth(against: str) -> bool:
    """Whether this names a ground truth that a report can be taken against."""
    rater = against.removeprefix("rater:")
    return against in (CONSENSUS, EACH_RATER) or (against != rater and bool(rater))


def requested_scope(
    chat_set: ChatSet | None, run: Run | None, query: Mapping[str, str], user: User | AnonymousUser
) -> Scope | None:
    """The scope that `split` and `against` of a query string ask for; None when they make no sense."""
    split, against = query.get("split", ""), query.get("against", "") or CONSENSUS
    if (split and split not in Split.values) or not valid_ground_truth(against):
        return None
    return narrowed(Scope(chat_set, run, split, against), user=user)


def narrowed(scope: Scope, *, user: User | AnonymousUser) -> Scope:
    """The scope whose figures the user may be told.

    Who may not read the holdout is told of it in sum, and nothing where fewer than 10 of its chats are
    labelled: such figures would come close to telling what is said of one.
    """
    if reads_holdout(user=user) or not _few_held_out(scope):
        return scope
    return replace(scope, without_holdout=True)


def _few_held_out(scope: Scope) -> bool:
    held = scope.members.filter(chat__in=held_out()).order_by().values_list("chat_id", flat=True)
    if not held.exists():
        return False
    labelled = Consensus.objects.filter(chat__in=held, criterion__in=scope.criteria)
    return labelled.values("chat").distinct().count() < FEWEST
