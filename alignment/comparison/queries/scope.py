"""Scope of a report: a run or a chat set, its chats in order, and its criteria."""

from collections.abc import Sequence
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
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.queries.visibility import holdout_chats


@dataclass(frozen=True)
class Scope:
    """A run (labels × verdicts), or a chat set alone (labels only).

    Parameters
    ----------
    split : '' for all.
    against : the ground truth.
    only : key of a single criterion, '' for all.
    topic, since, until : limit the chats by topic and start day, both days included.
    without_holdout : splits in which chats that are holdout in any set are excluded.
    kept_whole : the user asked for a part, but may only see the whole.
    choice : filters of the run select; passed on between pages, without effect on figures.
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
        """Whether the chats are limited by topic or day."""
        return bool(self.topic or self.since or self.until)

    @property
    def is_fixed(self) -> bool:
        """Whether the chats can never change: those of a finished run, or of a split of it."""
        ended = self.run is not None and self.run.finished_at is not None
        return ended and not self.is_part and not self.without_holdout

    @property
    def is_whole_run(self) -> bool:
        """Whether all chats of the run are included."""
        return self.run is not None and not (self.split or self.is_part or self.without_holdout)

    @property
    def is_unfiltered(self) -> bool:
        """Whether it is a run against the consensus, of all splits, topics and days."""
        return self.run is not None and self.against == CONSENSUS and not (self.split or self.is_part)

    @property
    def rater(self) -> str:
        """Name of the rater who is the ground truth; '' for other ground truths."""
        return self.against.removeprefix("rater:") if self.against.startswith("rater:") else ""

    @property
    def each_rater(self) -> bool:
        """Whether the judge is compared with each rater."""
        return self.against == EACH_RATER

    @property
    def ground_truth(self) -> str:
        """The ground truth, in words."""
        return self.rater or ("Each rater" if self.each_rater else "Consensus")

    @property
    def human_head(self) -> str:
        """Head of the column with the human answers."""
        return self.rater or ("A rater" if self.each_rater else "Consensus")

    def as_json(self) -> dict[str, Any]:
        """The scope as JSON, for documents."""
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
        """Member rows of the chats, in the set's order."""
        limits = self._limits
        if self.without_holdout:
            limits &= ~Q(split__in=self.without_holdout, chat__in=holdout_chats())
        if self.run is not None:
            return RunChat.objects.filter(limits, run=self.run).order_by("id")
        return ChatSetMember.objects.filter(limits, chat_set=self.chat_set).order_by("position")

    @property
    def _limits(self) -> Q:
        limits = {
            "split": self.split,
            "chat__topic__key": self.topic,
            "chat__started_at__gte": self.since and _moment(self.since, time.min),
            "chat__started_at__lte": self.until and _moment(self.until, time.max),
        }
        return Q(**{name: value for name, value in limits.items() if value})

    @property
    def chat_ids(self) -> QuerySet[RunChat, int] | QuerySet[ChatSetMember, int]:
        """A subquery of the chats' ids."""
        return self.members.order_by().values_list("chat_id", flat=True)

    @cached_property
    def criteria(self) -> list[Criterion]:
        """Criteria of the judge, or of the set's rubric, in the rubric's order.

        Those of an imported judge are the ones with verdicts, and the active ones that were there before its
        import and have labels on its chats.
        """
        rows = Criterion.objects.select_related("dimension")
        rows = rows.order_by("rubric", "dimension__position", "position")
        if self.only:
            rows = rows.filter(key=self.only)
        if self.run is not None:
            prompts = JudgePrompt.objects.filter(judge=self.run.judge_id, criterion=OuterRef("pk"))
            verdicts = Verdict.objects.filter(run=self.run, criterion=OuterRef("pk"))
            judged = Exists(prompts) | Exists(verdicts)
            if self.run.purpose != Run.Purpose.IMPORT:
                return list(rows.filter(judged))
            older = Exists(
                CriterionVersion.objects.filter(criterion=OuterRef("pk"), created_at__lt=self.run.created_at)
            )
            missing = self._in_use & Q(labels_seq__gt=0) & Q(older)
            known = list(rows.annotate(judged=judged).filter(Q(judged=True) | missing))
            labelled = self._labelled([row.pk for row in known if not row.judged])
            return [row for row in known if row.judged or row.pk in labelled]
        return list(rows.filter(self._in_use))

    @property
    def _in_use(self) -> Q:
        rubric = self.chat_set.rubric_id if self.chat_set else None
        return Q(rubric=rubric, state=Criterion.State.ACTIVE)

    def _labelled(self, criteria: Sequence[int]) -> set[int]:
        """Ids of those criteria with a label on a chat of the run, whatever the filters; one query if any."""
        if not criteria:
            return set()
        chats = RunChat.objects.filter(run=self.run).values("chat")
        labels = Consensus.objects.filter(criterion=OuterRef("pk"), chat__in=chats)
        return set(Criterion.objects.filter(Exists(labels), pk__in=criteria).values_list("pk", flat=True))


def part_of(scope: Scope) -> dict[str, Any]:
    """The scope's part of its run, as JSON; `scope_of_part` restores it."""
    days = {name: day and day.isoformat() for name, day in (("since", scope.since), ("until", scope.until))}
    fields = {"split": scope.split, "against": scope.against, "topic": scope.topic}
    return fields | days | {"without_holdout": sorted(scope.without_holdout)}


def scope_of_part(run: Run, part: dict[str, Any]) -> Scope:
    """Restore the scope from the result of `part_of`."""
    days = {name: part[name] and date.fromisoformat(part[name]) for name in ("since", "until")}
    fields = part | days | {"without_holdout": frozenset(part["without_holdout"])}
    return Scope(run.chat_set, run, **fields)


def _moment(day: date, at: time) -> datetime:
    """A time on that day in the current time zone, so that the database compares without conversion."""
    moment = datetime.combine(day, at)
    first_or_last = day in (date.min, date.max)  # may not exist in other time zones
    return moment.replace(tzinfo=UTC) if first_or_last else make_aware(moment)
