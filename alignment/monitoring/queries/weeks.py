"""Points of all criteria, dimensions and scores by week: a process remembers the weeks that it has estimated.

A week is estimated again when its counts, sizes, judges, curated labels or audits have changed.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.cache import caches
from django.db.models import F, Sum

from alignment.monitoring.core.series import FrameSizes, Point, Step, chosen_cells, points_of
from alignment.monitoring.queries.audits import audits_of, criterion_part, night_stamps
from alignment.monitoring.queries.curated import curated_labels
from alignment.monitoring.queries.judged import (
    Judges,
    Window,
    counts_in,
    criterion_cells,
    frame_sizes,
    score_cells,
)
from alignment.statistics.agreement import Confusion
from evaluation.models.day_counts import DayScore
from labeling.models.people import User
from labeling.models.rubric import Criterion

Weeks = dict[date, dict[str, list[Point]]]
REMEMBERED = timedelta(days=7)
SUMS = ("chats", "answers", "passes", "answers_squared", "passes_squared", "products")


@dataclass(frozen=True)
class Estimated:
    """The points of a window by part, in the order of time, and what they are estimated from."""

    points: Mapping[str, Sequence[Point]]
    judges: Judges
    sizes: FrameSizes

    def of_criterion(self, criterion: int) -> Sequence[Point]:
        """Return the points of a criterion, by its id; none if nothing of it was judged."""
        return self.points.get(criterion_part(criterion), ())


def estimated_weeks(window: Window, *, parts: Collection[str], user: User | AnonymousUser) -> Estimated:
    """Return the points of every criterion and of these parts of scores.

    The number of queries does not depend on weeks, and is smaller where all of them are remembered.
    """
    stamps = _stamps(window)
    runs = {row[0] for rows in stamps.values() for row in rows}
    criteria = list(Criterion.objects.order_by("pk").values_list("pk", flat=True))
    judges, sizes = Judges.of(runs, criteria), frame_sizes(window, runs)
    source = _Source(
        window, sorted(parts), judges, sizes, curated_labels(judges, criteria, user=user), user=user
    )
    audits = night_stamps(runs, user=user)
    keys = {week: source.key(rows, audits) for week, rows in stamps.items()}
    memory = caches["documents"]
    known = memory.get_many(keys.values())
    weeks: Weeks = {week: known[key] for week, key in keys.items() if key in known}
    if missing := keys.keys() - weeks.keys():
        found = source.estimated(min(missing), max(missing) + timedelta(days=6))
        weeks |= {week: found.get(week, {}) for week in missing}
        memory.set_many({keys[week]: weeks[week] for week in missing}, REMEMBERED.total_seconds())
    points: dict[str, list[Point]] = defaultdict(list)
    for week in sorted(weeks):
        for part, some in weeks[week].items():
            points[part] += some
    return Estimated(dict(points), judges, sizes)


def _stamps(window: Window) -> dict[date, list[tuple[Any, ...]]]:
    """Return run, day and sums of the counts by week: they change with the counts; one query."""
    rows = DayScore.objects.filter(window.counted, day__range=(window.first, window.last)).order_by()
    sums = {f"sum_{name}": Sum(name) for name in SUMS} | {"topics": Sum(F("topic_id") * F("chats"))}
    found = rows.values("run", "day", "run__finished_at").annotate(**sums)
    weeks: dict[date, list[tuple[Any, ...]]] = defaultdict(list)
    for row in found.values_list("run", "day", "run__finished_at", *sums):
        weeks[Step.WEEK.first(row[1])].append(row)
    return {week: sorted(some, key=lambda row: row[:2]) for week, some in weeks.items()}


@dataclass(frozen=True)
class _Source:
    """What the weeks of a window are estimated from."""

    window: Window
    parts: Sequence[str]
    judges: Judges
    sizes: FrameSizes
    curated: Mapping[int, Mapping[int, Confusion]]
    user: User | AnonymousUser

    def key(self, rows: Sequence[tuple[Any, ...]], audits: Mapping[int, Any]) -> str:
        """Return the key of a week with these counts: a hash of all that its points depend on."""
        names = self.judges.names()
        runs = sorted({row[0] for row in rows})
        by_day = {row[1]: self.sizes.by_day.get(row[1]) for row in rows}
        judges = {self.judges.rows[run].judge_id for run in runs}
        state = (
            *(self.window.step.value, self.window.samples, self.parts, rows),
            [(names[run], audits.get(run), self.sizes.by_run.get(run)) for run in runs],
            sorted(by_day.items()),
            [
                (criterion, judge, table)
                for criterion, tables in sorted(self.curated.items())
                for judge, table in sorted(tables.items())
                if judge in judges
            ],
        )
        return f"monitoring:{sha256(repr(state).encode()).hexdigest()}"

    def estimated(self, first: date, last: date) -> Weeks:
        """Estimate the points of these weeks."""
        window = replace(self.window, first=first, last=last)
        counts = criterion_cells(counts_in(window))
        scores = score_cells(window, self.parts)
        runs = {cell.run for found in (counts, scores) for some in found.values() for cell in some}
        parts = [*map(criterion_part, counts), *scores]
        audits = audits_of(runs, parts, user=self.user)
        weeks: Weeks = defaultdict(dict)
        for subject, cells in (counts | scores).items():
            of_criterion = isinstance(subject, int)
            part = criterion_part(subject) if of_criterion else subject
            names = self.judges.names(subject if of_criterion else None)
            points = points_of(
                chosen_cells([cell for cell in cells if cell.run in names], names),
                judges=names,
                sizes=self.sizes,
                step=window.step,
                curated=self.curated.get(subject, {}) if of_criterion else None,
                audit=audits.of(part),
                alone=False,
            )
            for point in points:
                weeks[Step.WEEK.first(point.first)].setdefault(part, []).append(point)
        return weeks
