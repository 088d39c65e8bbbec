"""The monitoring page: every criterion, dimension and session score over time; coverage and cost."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate

from alignment.monitoring.core.series import Cell, FrameSizes, Point, Series, chosen_cells, line_of
from alignment.monitoring.queries.judged import Judges, Window, score_cells, score_tenths, version_marks
from alignment.monitoring.queries.weeks import estimated_weeks
from evaluation.day_counts.core import DIMENSION, SCORE, SCORE_ALL
from evaluation.models.runs import ANCHORS, EVALUATIONS, Run
from labeling.models.chats import Topic
from labeling.models.people import User
from labeling.models.rubric import Criterion, Dimension
from labeling.people.queries.workspace import subjective_in_session_score


@dataclass(frozen=True, slots=True)
class CriterionLine:
    """A criterion and its line."""

    criterion: Criterion
    series: Series


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A dimension, a topic or the session score, and its line."""

    key: str
    name: str
    series: Series


@dataclass(frozen=True, slots=True)
class Coverage:
    """How a topic was judged; `weight` chats stand behind each judged one, None without any."""

    topic: Topic
    chats: int
    judged: int
    share: float
    judged_share: float

    @property
    def weight(self) -> float | None:
        """Share of the chats, divided by the share of the judged chats."""
        return self.share / self.judged_share if self.judged_share else None


@dataclass(frozen=True, slots=True)
class Bin:
    """Share of the chats with a session score from `low` to below `high`; the last one is 1 alone."""

    low: float
    high: float
    share: float

    @property
    def name(self) -> str:
        """The bounds as text."""
        return f"{self.low:.1f}" if self.low == self.high else f"{self.low:.1f} to below {self.high:.1f}"


@dataclass(frozen=True, slots=True)
class DayCost:
    """Cost of the runs that started on a day; `unknown` of them have no known cost."""

    day: date
    usd: Decimal
    unknown: int


@dataclass(frozen=True)
class Overview:
    """What the page shows."""

    window: Window
    lines: Sequence[CriterionLine]
    dimensions: Sequence[NamedLine]
    score: Series
    subjective: bool
    coverage: Sequence[Coverage]
    bins: Sequence[Bin]
    costs: Sequence[DayCost]

    @property
    def latest(self) -> Point | None:
        """The newest point of the session score: of all judged chats."""
        return self.score.latest

    @property
    def uncovered(self) -> list[Coverage]:
        """Topics of the newest point without a judged chat."""
        return [one for one in self.coverage if not one.judged]

    @property
    def cost(self) -> Decimal:
        """Known cost of the window."""
        return sum((one.usd for one in self.costs), Decimal(0))


def overview(window: Window, *, user: User | AnonymousUser) -> Overview:
    """Return the page of a window; the number of queries does not depend on verdicts, criteria or days."""
    subjective = subjective_in_session_score()
    part = SCORE_ALL if subjective else SCORE
    dimensions = list(Dimension.objects.all())
    marks = version_marks(window)
    found = estimated_weeks(window, parts=[part, *(DIMENSION + one.key for one in dimensions)], user=user)
    score = line_of(found.points.get(part, ()), versions=marks)
    latest = _latest_cells(window, found.judges, score.latest, part=part)
    return Overview(
        window=window,
        lines=[
            CriterionLine(row, line_of(points, versions=marks))
            for row in Criterion.objects.select_related("dimension")
            if (points := found.of_criterion(row.pk))
        ],
        dimensions=[
            NamedLine(one.key, one.name, line_of(found.points[DIMENSION + one.key], versions=marks))
            for one in dimensions
            if DIMENSION + one.key in found.points
        ],
        score=score,
        subjective=subjective,
        coverage=_coverage(latest, found.sizes),
        bins=_bins(latest, found.sizes, part=part),
        costs=day_costs(window),
    )


# ---------- the newest point


def _latest_cells(window: Window, judges: Judges, latest: Point | None, *, part: str) -> list[Cell]:
    """The counted sums behind the newest point of the score; one query."""
    if latest is None:
        return []
    days = replace(window, first=latest.first, last=min(latest.last, window.last))
    names = judges.names()
    known = [cell for cell in score_cells(days, [part]).get(part, []) if cell.run in names]
    return [cell for cell in chosen_cells(known, names) if names[cell.run].identity == latest.judge.identity]


def _coverage(cells: Sequence[Cell], sizes: FrameSizes) -> list[Coverage]:
    judged: dict[int, int] = defaultdict(int)
    chats: dict[int, int] = defaultdict(int)
    runs: dict[date, set[int]] = defaultdict(set)
    for cell in cells:
        judged[cell.topic] += cell.sampled
        runs[cell.day].add(cell.run)
    for day, of_day in runs.items():
        for topic, n in sizes.of_day(day, of_day).items():
            chats[topic] += n
    topics = Topic.objects.in_bulk({*judged, *chats})
    total, sampled = sum(chats.values()) or 1, sum(judged.values()) or 1
    rows = [
        Coverage(topic, chats[pk], judged[pk], chats[pk] / total, judged[pk] / sampled)
        for pk, topic in topics.items()
    ]
    return sorted(rows, key=lambda one: (-one.chats, one.topic.name))


def _bins(cells: Sequence[Cell], sizes: FrameSizes, *, part: str) -> list[Bin]:
    """Shares of all chats by session score, each judged chat with its weight."""
    if not cells:
        return []
    weights = {
        (cell.day, cell.topic, cell.run): sizes.of(cell) / cell.sampled for cell in cells if cell.sampled
    }
    days = [cell.day for cell in cells]
    found = score_tenths({cell.run for cell in cells}, part=part, first=min(days), last=max(days))
    shares = [0.0] * 11
    for day, topic, run, tenth, chats in found:
        if tenth >= 0:
            shares[tenth] += chats * weights.get((day, topic, run), 0.0)
    total = sum(shares) or 1.0
    return [Bin(at / 10, min(1.0, (at + 1) / 10), share / total) for at, share in enumerate(shares)]


# ---------- costs


def day_costs(window: Window) -> list[DayCost]:
    """Return the cost of evaluations and anchor runs by the day on which they started; one query."""
    day = TruncDate("created_at")
    runs = Run.objects.filter(purpose__in=(*EVALUATIONS, ANCHORS)).exclude(purpose=Run.Purpose.IMPORT)
    rows = runs.annotate(day=day).filter(day__gte=window.first, day__lte=window.last).order_by().values("day")
    sums = rows.annotate(usd=Sum("cost_usd"), unknown=Count("pk", filter=Q(cost_usd__isnull=True)))
    found = sums.order_by("day").values_list("day", "usd", "unknown")
    return [DayCost(at, usd or Decimal(0), unknown) for at, usd, unknown in found]
