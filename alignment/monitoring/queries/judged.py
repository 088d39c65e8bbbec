"""Judged chats by day and topic, their judges, and the chats that they were sampled from."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, TruncDate
from django.utils import timezone

from alignment.monitoring.core.series import Cell, FrameSizes, JudgeName, Mark, Step
from evaluation.day_counts.core import SCALE, SCORE
from evaluation.models.day_counts import DayCount, DayScore
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import FINISHED, Run
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.people import User
from labeling.models.sampling import SampleDraw
from labeling.people.queries.visibility import reads_holdout

WEEKS = (4, 8, 12, 26)
DEFAULT_WEEKS = {Step.WEEK: 12, Step.DAY: 4}
Cells = dict[Any, list[Cell]]


# ---------- the days shown


@dataclass(frozen=True, slots=True)
class Window:
    """The days of a page, and what a point covers."""

    first: date
    last: date
    step: Step
    weeks: int
    samples: bool = True  # whether the rates come from samples of chats

    @property
    def counted(self) -> Q:
        """The finished runs whose counts show production: over samples, else over any set."""
        return _finished(samples=self.samples)

    @property
    def query(self) -> str:
        """The query string of a page with this window."""
        return f"step={self.step.value}&weeks={self.weeks}"

    @property
    def newest_point(self) -> date:
        """First day of the newest point."""
        return self.step.first(self.last)

    def point(self, first: date) -> tuple[date, date]:
        """First and last day of the point that begins on this day."""
        return first, self.step.last(self.step.first(first))


def window_of(step: str = "", weeks: str | int = "", *, user: User | AnonymousUser) -> Window | None:
    """Return the asked weeks that were judged, up to the newest day; None without any. At most two queries.

    Unknown words count as not asked. A curated set is no sample of production: it counts only without one,
    and only for users who may see its holdout chats, because a day may have a single chat.
    """
    for samples in (True, False) if reads_holdout(user=user) else (True,):
        rows = DayScore.objects.filter(_finished(samples=samples), part=SCORE)
        days = rows.aggregate(oldest=Min("day"), newest=Max("day"))
        if days["newest"] is not None:
            break
    else:
        return None
    chosen = Step(step) if step in set(Step) else Step.WEEK
    asked = next((number for number in WEEKS if str(number) == str(weeks)), DEFAULT_WEEKS[chosen])
    first = Step.WEEK.first(days["newest"]) - timedelta(weeks=asked - 1)
    return Window(max(first, Step.WEEK.first(days["oldest"])), days["newest"], chosen, asked, samples)


def _finished(*, samples: bool) -> Q:
    finished = Q(run__state__in=FINISHED)
    if not samples:
        return finished
    # Samples for raters were drawn by the verdicts of a run: no rate of all chats comes from these alone.
    by_verdict = ChatSet.objects.filter(sampling__has_key="run")
    sets = ChatSet.objects.filter(kind=ChatSet.Kind.SAMPLE).exclude(pk__in=by_verdict.values("pk"))
    return finished & Q(run__chat_set__in=sets.values("pk"))


# ---------- chats


def frame_sizes(window: Window, runs: Collection[int]) -> FrameSizes:
    """Return how many chats those that these runs judged stand for; at most four queries.

    A run over a sample of a plan: the chats by topic that the sample was drawn from, as stored with it, so
    that the weights are those of its inclusion probabilities. A run that stopped early has judged a random
    part of the sample. Other runs: the chats of their days are counted.
    """
    drawn = _drawn_from(runs)
    others = set(runs) - set(drawn)
    return FrameSizes(by_run=drawn, by_day=_counted(window.first, window.last) if others else {})


def _drawn_from(runs: Collection[int]) -> dict[int, dict[int, int]]:
    """Return the chats that samples were drawn from, by run and topic."""
    sets = dict(Run.objects.filter(pk__in=list(runs)).order_by().values_list("pk", "chat_set"))
    draws = SampleDraw.objects.filter(chat_set__in={pk for pk in sets.values() if pk})
    strata = dict(draws.order_by().values_list("chat_set", "strata"))
    keys = {one["topic"] for some in strata.values() for one in some}
    topics = dict(Topic.objects.filter(key__in=keys).values_list("key", "pk")) if keys else {}
    return {
        run: {topics[one["topic"]]: one["size"] for one in strata[pk] if one["topic"] in topics}
        for run, pk in sets.items()
        if pk in strata
    }


def _counted(first: date, last: date) -> dict[date, dict[int, int]]:
    """Return the chats of these days by day and topic, judged or not."""
    day = TruncDate(Coalesce("started_at", "created_at"))
    rows = Chat.objects.filter(chats_of_days(first, last)).annotate(day=day).order_by().values("day", "topic")
    sizes: dict[date, dict[int, int]] = defaultdict(dict)
    for at, topic, chats in rows.annotate(n=Count("pk")).values_list("day", "topic", "n"):
        sizes[at][topic] = chats
    return sizes


def chats_of_days(first: date, last: date, prefix: str = "") -> Q:
    """Return the filter of the chats of these days: when they started, else when they arrived.

    `prefix` : of the chat, such as `chat__`. Days are those of the site's time zone.
    """
    ends = (first, last + timedelta(days=1))
    begin, end = (timezone.make_aware(datetime.combine(day, time())) for day in ends)
    started = Q(**{f"{prefix}started_at__gte": begin, f"{prefix}started_at__lt": end})
    arrived = Q(**{f"{prefix}created_at__gte": begin, f"{prefix}created_at__lt": end})
    return started | arrived & Q(**{f"{prefix}started_at__isnull": True})


# ---------- verdicts


def verdicts_of_days(first: date, last: date, *, runs: Collection[int]) -> Q:
    """Return the filter of these runs' verdicts on chats that count for these days; one query.

    The chats of a plan's sample count for the day that was sampled, all others for their own.
    """
    samples = SampleDraw.objects.filter(chat_set__isnull=False).values("chat_set")
    drawn = list(Run.objects.filter(pk__in=list(runs), chat_set__in=samples).values_list("pk", flat=True))
    others = set(runs) - set(drawn)
    return Q(run__in=drawn) | Q(run__in=others) & chats_of_days(first, last, "chat__")


def criterion_cells(rows: QuerySet[DayCount], *, by: str = "criterion") -> Cells:
    """Return the sums of these counts by a field, e.g. by criterion id; one query."""
    grouped = rows.order_by().values(by, "day", "topic", "run")
    sums = grouped.annotate(n=Sum("chats"), good=Sum("passed"), bad=Sum("failed"))
    cells: Cells = defaultdict(list)
    for subject, *values in sums.values_list(by, "day", "topic", "run", "n", "good", "bad"):
        cells[subject].append(Cell.of_counts(*values))
    return cells


def counts_in(window: Window, **about: Any) -> QuerySet[DayCount]:
    """Return the counts of criteria in a window."""
    return DayCount.objects.filter(window.counted, day__range=(window.first, window.last), **about)


def score_cells(window: Window, parts: Collection[str]) -> Cells:
    """Return the sums of scores by part; one query."""
    days = (window.first, window.last)
    rows = DayScore.objects.filter(window.counted, day__range=days, part__in=parts)
    numbers = ("chats", "answers", "passes", "answers_squared", "passes_squared", "products")
    sums = rows.order_by().values("part", "day", "topic", "run")
    sums = sums.annotate(**{f"sum_{name}": Sum(name) for name in numbers})
    cells: Cells = defaultdict(list)
    names = [f"sum_{name}" for name in numbers]
    for part, day, topic, run, n, a, y, aa, yy, ay in sums.values_list("part", "day", "topic", "run", *names):
        cells[part].append(Cell(day, topic, run, n, a, y / SCALE, aa, yy / SCALE**2, ay / SCALE))
    return cells


def score_tenths(runs: Collection[int], *, part: str, first: date, last: date) -> list[tuple[Any, ...]]:
    """Return (day, topic, run, tenth, chats) of a session score; one query."""
    rows = DayScore.objects.filter(run__in=runs, part=part, day__range=(first, last)).order_by()
    sums = rows.values("day", "topic", "run", "tenth").annotate(n=Sum("chats"))
    return list(sums.values_list("day", "topic", "run", "tenth", "n"))


# ---------- judges and marks


def runs_of(cells: Mapping[Any, Iterable[Cell]]) -> set[int]:
    """Return the runs that these sums come from."""
    return {cell.run for some in cells.values() for cell in some}


@dataclass(frozen=True)
class Judges:
    """The judges of runs; for a criterion only its own prompt version and the model matter."""

    rows: Mapping[int, Run]
    prompts: Mapping[tuple[int, int], JudgePrompt]

    @classmethod
    def of(cls, runs: Collection[int], criteria: Collection[int] = ()) -> "Judges":
        """Load the judges of these runs; two queries."""
        rows = Run.objects.select_related("judge").defer("options", "verdict_counts").in_bulk(runs)
        ids = {row.judge_id for row in rows.values()}
        prompts = JudgePrompt.objects.filter(judge__in=ids, criterion__in=criteria)
        prompts = prompts.select_related("prompt_version", "criterion_version").order_by()
        return cls(rows, {(row.judge_id, row.criterion_id): row for row in prompts})

    def names(self, criterion: int | None = None) -> dict[int, JudgeName]:
        """Return what judged by run: the whole judge for a score."""
        names = {}
        for pk, run in self.rows.items():
            judge, prompt = run.judge, self.prompts.get((run.judge_id, criterion or 0))
            identity, number = f"judge {judge.pk}", None
            if prompt is not None:
                identity = f"{judge.model} {judge.engine} {prompt.prompt_version_id}"
                number = prompt.prompt_version.number
            names[pk] = JudgeName(judge.pk, identity, judge.name, number, judge.model)
        return names


def version_marks(window: Window) -> list[Mark]:
    """Return the first days of the bot's versions that are new in a window; one query."""
    days = (window.first, window.last)
    rows = DayScore.objects.filter(window.counted, day__range=days, part=SCORE).order_by()
    found = rows.values("version").annotate(day=Min("day")).values_list("day", "version")
    versions = sorted(found)
    begin = versions[0][0] if versions else None
    return [Mark(day, f"Bot {name}", of_judge=False) for day, name in versions if name and day != begin]
