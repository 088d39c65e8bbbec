"""What a report is about: a run or a chat set, its chats in order and its criteria."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.utils.dateparse import parse_date
from django.utils.timezone import make_aware

from alignment.comparison.core.codes import CONSENSUS, EACH_RATER
from alignment.comparison.queries.cached_documents import kept, pin_of
from alignment.comparison.queries.run_choice import RunChoice
from alignment.models.reports import Report
from alignment.regression.core.topics import FEWEST
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import ChatSet, ChatSetMember, Split, Topic
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import held_out, labels_too, reads_holdout, to_label


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


@dataclass(frozen=True, slots=True)
class Own:
    """The chats covered that are still the user's to label: lists leave them out and tell only how many.

    `closed`: so few of them have an answer that counts, with a list taken from them, would tell it. Then no
    list opens.
    """

    chats: int = 0
    closed: bool = False


def _moment(day: date, at: time) -> datetime:
    """A time on that day here. Compared as they are, moments need no conversion of each chat's."""
    moment = datetime.combine(day, at)
    first_or_last = day in (date.min, date.max)  # in other zones these days may have no such moment
    return moment.replace(tzinfo=UTC) if first_or_last else make_aware(moment)


def valid_ground_truth(against: str) -> bool:
    """Whether this names a ground truth that a report can be taken against."""
    rater = against.removeprefix("rater:")
    return against in (CONSENSUS, EACH_RATER) or (against != rater and bool(rater))


def requested_scope(
    chat_set: ChatSet | None, run: Run | None, query: Mapping[str, str], user: User | AnonymousUser
) -> Scope | None:
    """The scope that `split`, `against`, `topic`, `since` and `until` of a query string ask for.

    None when they make no sense.
    """
    split, against = query.get("split", ""), query.get("against", "") or CONSENSUS
    if (split and split not in Split.values) or not valid_ground_truth(against):
        return None
    topic, days = query.get("topic", ""), [query.get(name, "") for name in ("since", "until")]
    if topic and not Topic.objects.filter(key=topic).exists():
        return None
    try:
        since, until = (parse_date(day) for day in days)
    except ValueError:
        return None
    if (since is None) != (not days[0]) or (until is None) != (not days[1]):
        return None
    asked = Scope(chat_set, run, split, against, topic=topic, since=since, until=until)
    return narrowed(replace(asked, choice=RunChoice.read(query)), user=user)


def narrowed(scope: Scope, *, user: User | AnonymousUser) -> Scope:
    """The scope whose figures the user may be told.

    Who may not read the holdout is told of it in sum, and nothing of a split's held-out chats where fewer
    than 10 are compared on a criterion: such figures would come close to telling what is said of one. Decided
    split by split and for the whole alike, or taking splits from the whole would tell. Topics and days cut
    the holdout too finely to be told at all, and the chats still to label of whoever labels as well.
    """
    if scope.is_part and own_chats(scope, user=user).chats:
        scope = replace(scope, topic="", since=None, until=None, kept_whole=True)
    if reads_holdout(user=user):
        return scope
    if scope.is_part:
        return replace(scope, without_holdout=frozenset(Split.values))
    few = _few_held_out(replace(scope, split=""))
    return replace(scope, without_holdout=few) if few else scope


def own_chats(scope: Scope, *, user: User | AnonymousUser) -> Own:
    """Those of the whole run, whatever the split or part; none where nobody has answered any of them yet.

    Decided split by split: lists name the split of each chat. No query for who does not label.
    """
    if not labels_too(user=user):
        return Own()
    whole = replace(scope, split="", topic="", since=None, until=None)
    own = whole.members.filter(chat__in=to_label(user=user)).order_by()
    counts = _answered(whole, own)
    return Own(own.count(), closed=bool(_few(counts))) if counts else Own()


def _few_held_out(whole: Scope) -> frozenset[str]:
    """The splits with held-out chats of which on some criterion, or by some rater, too few are answered.

    Counted once for the same answers and the same held-out chats: these are read for each page, what was
    answered on them is not.
    """
    held = whole.members.filter(chat__in=held_out())
    marks = list(held.order_by("chat_id").values_list("chat_id", "split"))
    if not marks:
        return frozenset()
    if whole.run is not None and whole.run.finished_at is None:
        return frozenset(_few_of(whole, held))
    pin = pin_of(whole, Report.Kind.HELD_OUT.value, FEWEST, marks)
    found = kept(
        whole, kind=Report.Kind.HELD_OUT, pin=pin, body=lambda: {"few": sorted(_few_of(whole, held))}
    )
    return frozenset(found.body["few"])


def _few_of(whole: Scope, held: QuerySet[Any]) -> set[str]:
    counts = _answered(whole, held.order_by())
    splits = set(held.order_by().values_list("split", flat=True).distinct())
    return _few(counts) | (splits - {row["split"] for row in counts})


def _few(counts: list[Any]) -> set[str]:
    """The splits with fewer than 10 answers, of somebody on some criterion."""
    return {row["split"] for row in counts if (row.get("compared") or row["n"]) < FEWEST}


def _answered(whole: Scope, among: QuerySet[Any]) -> list[Any]:
    """How many of these members have an answer: rows by criterion and split, where asked for by rater too."""
    about = {"chat__in": among.values("chat_id"), "criterion__in": whole.criteria}
    split = Subquery(whole.members.filter(chat=OuterRef("chat")).order_by().values("split")[:1])
    answers = Consensus.objects.filter(**about).annotate(split=split).values("criterion", "split")
    compared = Count("pk", filter=Q(state__in=(Consensus.State.TRUE, Consensus.State.FALSE)))
    counts: list[Any] = list(answers.annotate(n=Count("pk"), compared=compared).order_by())
    if whole.rater or whole.each_rater:
        labels = Label.objects.counted().filter(value__isnull=False, **about).annotate(split=split)
        own = labels.filter(rater__name=whole.rater) if whole.rater else labels
        counts += own.values("criterion", "rater", "split").annotate(n=Count("pk")).order_by()
    return counts
