"""What a report is about: a run or a chat set, its chats in order and its criteria."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.timezone import make_aware

from alignment.comparison.core.codes import CONSENSUS, EACH_RATER
from alignment.comparison.queries.run_choice import RunChoice
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import held_out


@dataclass(frozen=True)
class Scope:
    """A run (judge against people) or a set alone (people only).

    `split` '' = all; `against` names the ground truth; `only` narrows it to one criterion key;
    `topic` '' = all, `since` and `until` are days on which chats started, both included; in the splits
    `without_holdout`, the chats that are holdout in any set are left out. `kept_whole`: a part was asked for
    that the user is not told apart from the whole. `choice` is what the runs offered beside it are narrowed
    to: it goes along from page to page, and changes no figure.
    """

    chat_set: ChatSet | None
    run: Run | None = None
    split: str = ""
    against: str = CONSENSUS
    only: str = ""
    topic: str = ""
    since: date | None = None
    until: date | None = None
    without_holdout: frozenset[str] = frozenset()
    kept_whole: bool = False
    choice: RunChoice = field(default_factory=RunChoice)

    @property
    def is_part(self) -> bool:
        """Whether chats are left out by topic or day."""
        return bool(self.topic or self.since or self.until)

    @property
    def is_fixed(self) -> bool:
        """Whether the chats covered can never change: a finished run's, all of them or those of a split."""
        ended = self.run is not None and self.run.finished_at is not None
        return ended and not self.is_part and not self.without_holdout

    @property
    def is_whole_run(self) -> bool:
        """Whether all chats of the run are covered."""
        return self.run is not None and not (self.split or self.is_part or self.without_holdout)

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

    def as_json(self) -> dict[str, Any]:
        """What a document says that it is about."""
        return {
            "run": self.run.pk if self.run else None,
            "set": self.chat_set.name if self.chat_set else None,
            "split": self.split or None,
            "topic": self.topic or None,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "against": self.against,
        }

    @property
    def members(self) -> QuerySet[RunChat] | QuerySet[ChatSetMember]:
        """The rows that say which chats are covered, in the set's order."""
        asked = self._asked
        if self.without_holdout:
            asked &= ~Q(split__in=self.without_holdout, chat__in=held_out())
        if self.run is not None:
            return RunChat.objects.filter(asked, run=self.run).order_by("id")
        return ChatSetMember.objects.filter(asked, chat_set=self.chat_set).order_by("position")

    @property
    def _asked(self) -> Q:
        asked = {
            "split": self.split,
            "chat__topic__key": self.topic,
            "chat__started_at__gte": self.since and _moment(self.since, time.min),
            "chat__started_at__lte": self.until and _moment(self.until, time.max),
        }
        return Q(**{name: value for name, value in asked.items() if value})

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


def _moment(day: date, at: time) -> datetime:
    """A time on that day here. Compared as they are, moments need no conversion of each chat's."""
    moment = datetime.combine(day, at)
    first_or_last = day in (date.min, date.max)  # in other zones these days may have no such moment
    return moment.replace(tzinfo=UTC) if first_or_last else make_aware(moment)
