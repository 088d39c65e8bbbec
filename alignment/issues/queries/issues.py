"""The list of issues, one issue with its chats, and the panel of new ones."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Max, Q, QuerySet
from django.urls import reverse

from alignment.issues.queries.texts import rationales
from alignment.models.issues import Issue, IssueChat, IssueNaming, IssueScan, IssueWeek
from alignment.monitoring.queries.criterion import FailingChat, failing_chats
from common.inbox.subjects import Subject
from evaluation.models.runs import Verdict
from labeling.models.chats import Topic
from labeling.models.people import User
from labeling.people.queries.visibility import chats_hidden

SHOWN_WEEKS = 12
EXAMPLES = 3
ON_PANEL = 5
NAMED_FROM = 8  # rationales in the request for a name
OPEN_STATES = (Issue.State.OPEN, Issue.State.ACKNOWLEDGED)
STATES = {"": "Open and acknowledged", **dict(Issue.State.choices), "all": "All"}
Reader = User | AnonymousUser


@dataclass(frozen=True, slots=True)
class WeekCount:
    """The chats of an issue in a week; `left`, `top` and `tall` place its bar in the sparkline."""

    week: date
    chats: int
    left: int = 0
    top: int = 23
    tall: int = 1

    @property
    def last(self) -> date:
        """Return the week's Sunday."""
        return self.week + timedelta(days=6)


@dataclass(frozen=True)
class IssueRow:
    """An issue in the list.

    `chats` of the newest week, with their share of that week's failing chats (None without any), and of the
    week before. `back_after` is the number of weeks without a chat before the newest week; 0 for none.
    """

    issue: Issue
    trend: Sequence[WeekCount]
    chats: int
    before: int
    total: int
    share: float | None
    is_new: bool
    back_after: int

    @property
    def trend_in_words(self) -> str:
        """The chats by week, for those who do not see the sparkline."""
        return ", ".join(f"{one.week.day} {one.week:%b}: {one.chats}" for one in self.trend)

    @property
    def change(self) -> str:
        """The change since the week before, with a sign."""
        return f"{self.chats - self.before:+d}".replace("-", "−") if self.trend else ""


@dataclass(frozen=True, slots=True)
class IssueFilter:
    """Filters of the list: keys of a criterion and a topic, a state of STATES, an owner's name."""

    state: str = ""
    criterion: str = ""
    topic: str = ""
    owner: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "IssueFilter":
        """Read the query string; unknown states count as none."""
        values = {name: query.get(name, "") for name in ("state", "criterion", "topic", "owner")}
        return cls(**values | {"state": values["state"] if values["state"] in STATES else ""})


@dataclass(frozen=True)
class IssueList:
    """Issues of the newest week first, and what was clustered."""

    rows: Sequence[IssueRow]
    newest: IssueScan | None
    waiting: Sequence[IssueScan]

    @property
    def new(self) -> list[IssueRow]:
        """Return those of which the newest week is the first."""
        return [row for row in self.rows if row.is_new]


def issue_list(*, only: IssueFilter, user: Reader) -> IssueList:
    """Return the issues that the filter selects; the number of queries does not depend on issues or weeks."""
    scans = list(IssueScan.objects.select_related("by"))
    done = [one for one in scans if one.finished_at and one.state == IssueScan.State.DONE]
    rows = issues_shown(only).select_related("criterion", "topic", "owner", "merged_into")
    found = issue_rows(list(rows), scans=done, user=user)
    return IssueList(
        sorted(found, key=lambda one: (-one.chats, -one.before, -one.total, one.issue.pk)),
        done[0] if done else None,
        [one for one in scans if one.is_open or one.state == IssueScan.State.FAILED],
    )


def issues_shown(only: IssueFilter) -> QuerySet[Issue]:
    """Return the issues of a filter. Merged ones are listed under "All" alone."""
    rows = Issue.objects.all()
    if only.state != "all":
        rows = rows.filter(merged_into=None)
        rows = rows.filter(state__in=(only.state,) if only.state else OPEN_STATES)
    if only.criterion:
        rows = rows.filter(criterion__key=only.criterion)
    if only.topic:
        rows = rows.filter(topic__key=only.topic)
    if only.owner:
        rows = rows.filter(owner=None) if only.owner == "nobody" else rows.filter(owner__username=only.owner)
    return rows


def issue_rows(issues: Sequence[Issue], *, scans: Sequence[IssueScan], user: Reader) -> list[IssueRow]:
    """Return issues with their weeks. Chats that the user may not read are counted in none of them."""
    ids = [one.pk for one in issues]
    counts: dict[int, Counter[date]] = defaultdict(Counter)
    for issue, week, chats in IssueWeek.objects.filter(issue__in=ids).values_list("issue", "week", "chats"):
        counts[issue][week] = chats
    for issue, week, chats in hidden_counts(ids, user=user):
        counts[issue][week] -= chats
    weeks = [scan.week for scan in scans][:SHOWN_WEEKS][::-1]
    failing = {scan.week: scan.chats for scan in scans}
    return [_row(one, +counts[one.pk], weeks, failing) for one in issues]


def _row(issue: Issue, counts: Counter[date], weeks: Sequence[date], failing: Mapping[date, int]) -> IssueRow:
    newest = weeks[-1] if weeks else None
    chats = counts[newest] if newest else 0
    largest = max((counts[week] for week in weeks), default=0)
    earlier = [week for week in counts if newest and week < newest]
    gap = (newest - max(earlier)).days // 7 - 1 if newest and chats and earlier else 0
    total = failing.get(newest, 0) if newest else 0
    return IssueRow(
        issue=issue,
        trend=[
            WeekCount(week, counts[week], *_bar(number + SHOWN_WEEKS - len(weeks), counts[week], largest))
            for number, week in enumerate(weeks)
        ],
        chats=chats,
        before=counts[weeks[-2]] if len(weeks) > 1 else 0,
        total=sum(counts.values()),
        share=chats / total if total else None,
        is_new=bool(chats) and not earlier,
        back_after=gap,
    )


def _bar(number: int, chats: int, largest: int) -> tuple[int, int, int]:
    """Return left, top and height of a bar, on 96 by 24 units; a week without chats keeps a line."""
    tall = max(1, round(24 * chats / largest)) if largest else 1
    return 8 * number + 1, 24 - tall, tall


def hidden_counts(ids: Collection[int], *, user: Reader) -> list[tuple[int, date, int]]:
    """Return (issue, week, chats) of chats that the user may not read; at most one query."""
    hidden = chats_hidden(user=user)
    if not hidden or not ids:
        return []
    chosen = Q(pk=None)
    for chats in hidden:
        chosen |= Q(chat__in=chats)
    rows = IssueChat.objects.filter(chosen, issue__in=ids).order_by().values("issue", "week")
    return list(rows.annotate(n=Count("pk")).values_list("issue", "week", "n"))


def chats_of(issue: Issue, *, user: Reader) -> QuerySet[IssueChat]:
    """Return the issue's chats that the user may read, newest week first, the most typical first."""
    rows = IssueChat.objects.filter(issue=issue)
    for hidden in chats_hidden(user=user):
        rows = rows.exclude(chat__in=hidden)
    return rows.order_by("-week", "-closeness", "pk")


# ---------- one issue


@dataclass(frozen=True)
class IssuePage:
    """One issue: its row, three examples, the chats by topic, terms of its newest week, and its relations."""

    row: IssueRow
    examples: Sequence[FailingChat]
    topics: Sequence[tuple[Topic, int]]
    terms: Sequence[str]
    merged: Sequence[Issue]
    naming: IssueNaming | None


def issue_page(issue: Issue, *, user: Reader) -> IssuePage:
    """Return an issue's page; a constant number of queries."""
    scans = list(IssueScan.objects.filter(state=IssueScan.State.DONE))
    (row,) = issue_rows([issue], scans=scans, user=user)
    chats = chats_of(issue, user=user)
    by_topic = chats.order_by().values("chat__topic").annotate(n=Count("pk"))
    numbers = dict(by_topic.values_list("chat__topic", "n"))
    topics = Topic.objects.in_bulk(numbers)
    named = issue.weeks.exclude(terms=[]).order_by("-week").first()
    return IssuePage(
        row=row,
        examples=typical_chats(chats),
        topics=sorted(((topics[pk], n) for pk, n in numbers.items()), key=lambda one: (-one[1], one[0].name)),
        terms=[term for term in named.terms if term] if named else [],
        merged=list(issue.merged.order_by("pk")),
        naming=issue.namings.select_related("call").first(),
    )


def typical_chats(chats: QuerySet[IssueChat]) -> list[FailingChat]:
    """Return the three most typical chats of the newest week that still have their text."""
    with_text = chats.filter(chat__text_deleted_at=None)
    newest = with_text.aggregate(week=Max("week"))["week"]
    rows = with_text.filter(week=newest)[:EXAMPLES]
    return chats_with_words([row.verdict_id for row in rows])


def chats_with_words(verdicts: Sequence[int]) -> list[FailingChat]:
    """Return these verdicts with what their rationales say, and the quoted message, in this order."""
    found = Verdict.objects.select_related("chat__topic").in_bulk(verdicts)
    chats = failing_chats([found[pk] for pk in verdicts if pk in found])
    return [replace(one, words=_evidence(one.words)) for one in chats]


def _evidence(rationale: str) -> str:
    """Return what a rationale in the shipped form says under Evidence; another one as it is."""
    label, found, rest = rationale.partition("Evidence: ")
    return rest.partition(" Against: ")[0] if found and not label else rationale


def naming_material(issue: Issue, *, user: Reader) -> tuple[list[int], list[str], list[str]]:
    """Return chats, their rationales and the shared terms: what a model is asked for a name with."""
    rows = chats_of(issue, user=user).filter(chat__text_deleted_at=None).order_by("-closeness", "pk")
    chosen = list(rows[:NAMED_FROM])
    texts = list(rationales([one.verdict_id for one in chosen]))
    week = issue.weeks.exclude(terms=[]).order_by("-week").first()
    terms = [term for term in week.terms if term] if week else []
    return [one.chat_id for one in chosen], [one for one in texts if one], terms


# ---------- panel, files, inbox


def new_issues(*, user: Reader) -> IssueList:
    """Return the new and returned issues of the newest week, the largest first."""
    found = issue_list(only=IssueFilter(), user=user)
    rows = [row for row in found.rows if row.is_new or (row.chats and (row.back_after or row.issue.returned))]
    return replace(found, rows=rows[:ON_PANEL])


HEAD = (
    *("id", "name", "criterion", "topic", "state", "owner", "first_week", "last_week", "week", "chats"),
    *("share", "chats_before", "chats_total", "new", "back_after_weeks", "merged_into"),
)


def issue_lines(found: IssueList) -> Iterator[dict[str, Any]]:
    """Yield the list as rows of a table."""
    week = _text(found.newest.week if found.newest else None)
    for row in found.rows:
        issue = row.issue
        yield {
            "id": issue.pk,
            "name": issue.name,
            "criterion": issue.criterion.key,
            "topic": issue.topic.key,
            "state": issue.state,
            "owner": issue.owner.username if issue.owner else None,
            "first_week": _text(issue.first_week),
            "last_week": _text(issue.last_week),
            "week": week,
            "chats": row.chats,
            "share": None if row.share is None else round(row.share, 4),
            "chats_before": row.before,
            "chats_total": row.total,
            "new": row.is_new,
            "back_after_weeks": row.back_after,
            "merged_into": issue.merged_into_id,
        }


def _text(day: date | None) -> str | None:
    return day.isoformat() if day else None


def issue_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these issues that the user may open."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    return {
        row.pk: Subject(
            title=f"issue {row.name}",
            url=reverse("issues:detail", args=[row.pk]),
            people=(row.owner_id,) if row.owner_id else (),
            text=row.note,
        )
        for row in Issue.objects.filter(pk__in=ids)
    }
