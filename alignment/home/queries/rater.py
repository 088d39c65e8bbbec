"""A rater's home: the queue, news, answers to notes, and the own pace; no figure of judge or other raters."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.utils import timezone

from alignment.home.core import WORKING_DAYS, Bar, pace_bars
from common.inbox.subjects import subjects_open_to
from common.models import Comment, InboxItem
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater, User
from labeling.rating.queries.queue import Queue, open_jobs, queue_for
from labeling.rubric.queries.guidelines import TextNews, text_news

ANSWERS, NEWS, RECENT = 5, 5, 5
PACE_DAYS = 3 * WORKING_DAYS  # days that surely hold ten working ones


@dataclass(frozen=True, slots=True)
class NoteAnswer:
    """The newest answer to a note of the rater: the note's subject and text, who answered what, and when."""

    title: str
    url: str
    note: str
    by: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Pace:
    """Own submissions of the last ten working days; `seconds` is the median active time of a chat."""

    bars: Sequence[Bar]
    seconds: float | None

    @property
    def chats(self) -> int:
        """Number of chats submitted."""
        return sum(bar.chats for bar in self.bars)

    @property
    def label(self) -> str:
        """The chart in words."""
        days = ", ".join(f"{bar.day:%-d %B} {bar.chats}" for bar in self.bars)
        return f"Chats submitted by day: {days}"


@dataclass(frozen=True, slots=True)
class RaterHome:
    """The sections of a rater's home. `waiting`: open jobs of a rater who has not begun any."""

    queue: Queue
    news: Sequence[TextNews]
    answers: Sequence[NoteAnswer]
    pace: Pace | None
    waiting: int = 0


def rater_home(*, user: User) -> RaterHome:
    """Return a rater's home, in a constant number of queries."""
    rater = Rater.objects.filter(user=user).first()
    if rater is None:  # the queue creates it
        offered = LabelingJob.objects.filter(group__user=user, state=LabelingJob.State.OPEN)
        return RaterHome(Queue((), ()), (), (), None, waiting=offered.distinct().count())
    jobs = open_jobs(rater_id=rater.pk)
    return RaterHome(
        queue=queue_for(rater=rater),
        news=text_news(rater=rater, jobs=jobs)[:NEWS],
        answers=_answers(user),
        pace=_pace(rater),
    )


def _answers(user: User) -> list[NoteAnswer]:
    """Return the newest answers to own notes, as far as the user may open them."""
    kind = InboxItem.Kind.ANSWERED
    items = InboxItem.objects.filter(user=user, kind=kind, subject__startswith="note:").order_by("-at", "-pk")
    keys = list(items.values_list("subject", flat=True)[: 3 * ANSWERS])
    if not keys:
        return []
    subjects = subjects_open_to(user, keys)
    comments = Comment.objects.filter(subject__in=subjects).exclude(by=user.pk).select_related("by")
    newest = {row.subject: row for row in comments.order_by("pk")}
    return [
        NoteAnswer(about.title, about.url, about.text, row.by.get_username(), row.text, row.at)
        for key in keys
        if (about := subjects.get(key)) is not None
        and (row := newest.get(key)) is not None
        and user.pk in about.people
    ][:ANSWERS]


def _pace(rater: Rater) -> Pace | None:
    """Return the rater's pace; None before the first submission of these days."""
    now = timezone.now()
    rows = Assignment.objects.filter(
        rater=rater, state=Assignment.State.SUBMITTED, submitted_at__gte=now - timedelta(days=PACE_DAYS)
    ).values_list("submitted_at", "active_ms")
    submitted = [(timezone.localtime(at).date(), ms) for at, ms in rows if at is not None]
    bars = pace_bars([day for day, _ in submitted], today=timezone.localdate())
    times = [ms / 1000 for day, ms in submitted if ms and day >= bars[0].day]
    return Pace(bars, median(times) if times else None) if any(bar.chats for bar in bars) else None
