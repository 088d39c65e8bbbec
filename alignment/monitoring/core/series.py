"""Lines of rates over days or weeks: which runs count, where a line breaks, and the rate of each point."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

from alignment.monitoring.core.audits import JudgedStratum, PartAudit, of_topic, part_rates, zeroed
from alignment.monitoring.core.corrected_rates import Method, ProductionRates, Rate
from alignment.monitoring.core.weighted_rates import Reason, StratumSums, WeightedRate, weighted_rates
from alignment.reports.core.pass_rates import FEWEST_AT_RANDOM
from alignment.statistics.agreement import Confusion

# Topics of days without a judged chat are left out of a rate. Below this share of the chats there is none.
LEAST_COVERED = 0.9


class Step(StrEnum):
    """What a point covers."""

    DAY = "day"
    WEEK = "week"

    def first(self, day: date) -> date:
        """Return the first day of the point that this day belongs to; weeks begin on Monday.

        >>> Step.WEEK.first(date(2026, 11, 19))
        datetime.date(2026, 11, 16)
        """
        return day if self is Step.DAY else day - timedelta(days=day.weekday())

    def last(self, first: date) -> date:
        """Return the last day of the point that begins on this day."""
        return first if self is Step.DAY else first + timedelta(days=6)


class Cell(NamedTuple):
    """Sums over the judged chats of a run, day and topic, as in `StratumSums`."""

    day: date
    topic: int
    run: int
    sampled: int
    answers: float
    passes: float
    answers_squared: float
    passes_squared: float
    products: float

    @classmethod
    def of_counts(cls, day: date, topic: int, run: int, sampled: int, passed: int, failed: int) -> "Cell":
        """Sums of a criterion from its counts."""
        answers = passed + failed
        return cls(day, topic, run, sampled, answers, passed, answers, passed, passed)


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """How many chats the judged ones stand for.

    Parameters
    ----------
    by_run : of a run over a drawn sample, the chats by topic that it was drawn from, judged or not.
    by_day : of other runs, the chats by day and topic: each day's judged chats of a topic count as a simple
        random sample of these.

    Examples
    --------
    >>> day = date(2026, 11, 2)
    >>> sizes = FrameSizes(by_run={7: {5: 300, 6: 20}}, by_day={day: {5: 400}})
    >>> [sizes.of(Cell.of_counts(day, 5, run, 10, 9, 1)) for run in (7, 8)], sizes.of_day(day, {7})
    ([300, 400], {5: 300, 6: 20})
    """

    by_run: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    by_day: Mapping[date, Mapping[int, int]] = field(default_factory=dict)

    def of(self, cell: Cell) -> int:
        """Return the chats of a judged stratum, never fewer than were judged."""
        return max(self._frame(cell.day, cell.run).get(cell.topic, 0), cell.sampled)

    def of_day(self, day: date, runs: Iterable[int]) -> dict[int, int]:
        """Return the chats of a day by topic, as these runs of the day know them."""
        found: dict[int, int] = {}
        for run in runs:
            for topic, chats in self._frame(day, run).items():
                found[topic] = max(chats, found.get(topic, 0))
        return found

    def of_topic(self, topic: int) -> "FrameSizes":
        """Return the sizes of one topic alone."""

        def own(frames: Mapping[Any, Mapping[int, int]]) -> dict[Any, dict[int, int]]:
            return {key: {topic: frame[topic]} if topic in frame else {} for key, frame in frames.items()}

        return FrameSizes(own(self.by_run), own(self.by_day))

    def stratum(self, cell: Cell) -> StratumSums:
        """Return the sums of a judged stratum."""
        return StratumSums(self.of(cell), *cell[3:])

    def _frame(self, day: date, run: int) -> Mapping[int, int]:
        return self.by_run[run] if run in self.by_run else self.by_day.get(day, {})


@dataclass(frozen=True, slots=True)
class JudgeName:
    """What judged: `identity` differs where points are not comparable; `change` names it in a mark."""

    judge: int
    identity: str
    name: str = ""
    prompt: int | None = None
    model: str = ""

    def change(self, before: "JudgeName") -> str:
        """Say what is new here.

        >>> JudgeName(2, "b", "direct", 3, "m").change(JudgeName(1, "a", "direct", 2, "m"))
        'prompt version 3'
        """
        if self.model != before.model:
            return f"model {self.model or self.name}"
        if self.prompt != before.prompt and self.prompt is not None:
            return f"prompt version {self.prompt}"
        return f"judge {self.name}"


@dataclass(frozen=True, slots=True)
class Mark:
    """What changed on a day: the judge, or the bot. A line breaks there."""

    day: date
    text: str
    of_judge: bool = True


@dataclass(frozen=True)
class Point:
    """A rate over the days from `first` to `last`; `days` of them were judged.

    Parameters
    ----------
    judged : chats with or without a verdict. chats : chats of the judged days. covered : share of them in
        topics with a judged chat.
    segment : number of the line's part: points of two parts are not comparable.
    """

    first: date
    last: date
    days: int
    judge: JudgeName
    judged: int
    chats: int
    covered: float
    rates: ProductionRates
    segment: int = 0

    @property
    def uncorrected(self) -> Rate:
        """The judge's own rate."""
        return self.rates.uncorrected

    @property
    def corrected(self) -> Rate:
        """The rate by the random audit if there is one, else by curated labels, else why there is none."""
        return self.rates.corrected

    @property
    def rate(self) -> Rate:
        """The corrected rate if there is one."""
        return self.uncorrected if self.corrected.estimate.value is None else self.corrected


@dataclass(frozen=True)
class Series:
    """Points in the order of time, and the marks between them."""

    points: tuple[Point, ...] = ()
    marks: tuple[Mark, ...] = ()
    is_corrected: bool = False
    # By which all points are corrected; None: not at all, or each by its own.
    method: Method | None = None

    @property
    def latest(self) -> Point | None:
        """The newest point."""
        return self.points[-1] if self.points else None

    @property
    def change(self) -> float | None:
        """Difference of the newest rate to the one before, in points of 100; None if not comparable."""
        if len(self.points) < 2 or self.points[-1].segment != self.points[-2].segment:
            return None
        now, before = (self.shown(point).estimate.value for point in (self.points[-1], self.points[-2]))
        return None if now is None or before is None else 100 * (now - before)

    def shown(self, point: Point) -> Rate:
        """The rate that a line shows: all its points by one method."""
        if self.method is Method.LANG_REICZIGEL:
            return point.rates.lang_reiczigel
        return point.corrected if self.is_corrected else point.uncorrected


@dataclass
class _Frame:
    """What one point is estimated from: sums by day and topic."""

    judge: JudgeName
    first: date
    last: date
    cells: dict[tuple[date, int], Cell] = field(default_factory=dict)
    built: list[StratumSums] | None = None

    @property
    def runs(self) -> dict[date, set[int]]:
        """The runs of each judged day."""
        found: dict[date, set[int]] = defaultdict(set)
        for cell in self.cells.values():
            found[cell.day].add(cell.run)
        return found

    @property
    def all_runs(self) -> set[int]:
        """The runs of all judged days."""
        return {cell.run for cell in self.cells.values()}

    def strata(self, sizes: FrameSizes) -> list[StratumSums]:
        """The strata with judged chats. Built once."""
        if self.built is None:
            self.built = [sizes.stratum(cell) for cell in self.cells.values() if cell.sampled]
        return self.built

    def judged_strata(self, sizes: FrameSizes) -> list[JudgedStratum]:
        """The same with run, day and topic."""
        judged = [cell for cell in self.cells.values() if cell.sampled]
        named = zip(judged, self.strata(sizes), strict=True)
        return [JudgedStratum(cell.run, cell.day, cell.topic, sums) for cell, sums in named]

    def missed(self, sizes: FrameSizes) -> int:
        """Chats of the judged days in topics of which none was judged."""
        return sum(
            chats
            for day, runs in self.runs.items()
            for topic, chats in sizes.of_day(day, runs).items()
            if (day, topic) not in self.cells
        )


def chosen_cells(cells: Iterable[Cell], judges: Mapping[int, JudgeName]) -> list[Cell]:
    """Return the cells that count: of each day the judge with the most chats, of each topic its largest run.

    A chat that two runs judged would count twice otherwise. Of equal ones the newest counts.

    >>> day, judges = date(2026, 11, 2), {1: JudgeName(1, "a"), 2: JudgeName(1, "a"), 3: JudgeName(2, "b")}
    >>> cells = [Cell.of_counts(day, 5, run, n, n, 0) for run, n in ((1, 9), (2, 9), (3, 8))]
    >>> [cell.run for cell in chosen_cells(cells, judges)]
    [2]
    """
    by_day: dict[date, dict[str, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        by_day[cell.day][judges[cell.run].identity].append(cell)
    chosen = []
    for of_judges in by_day.values():
        largest = max(of_judges.values(), key=_size)
        topics: dict[int, list[Cell]] = defaultdict(list)
        for cell in largest:
            topics[cell.topic].append(cell)
        chosen += [max(some, key=lambda cell: (cell.sampled, cell.run)) for some in topics.values()]
    return chosen


def _size(cells: Sequence[Cell]) -> tuple[int, int]:
    by_run: dict[int, int] = defaultdict(int)
    for cell in cells:
        by_run[cell.run] += cell.sampled
    return max(by_run.values()), max(by_run)


@dataclass(frozen=True, slots=True)
class TopicPart:
    """A topic, and the judged strata of all topics: what it is a part of."""

    topic: int
    whole: Sequence[JudgedStratum]


def series(
    cells: Iterable[Cell],
    *,
    judges: Mapping[int, JudgeName],
    sizes: FrameSizes,
    step: Step,
    versions: Sequence[Mark] = (),
    curated: Mapping[int, Confusion] | None = None,
    audit: PartAudit | None = None,
    topic: TopicPart | None = None,
    alone: bool = True,
) -> Series:
    """Estimate the line of one criterion, dimension or score.

    Parameters
    ----------
    cells : chosen ones. judges : by run.
    versions : first days of the bot's versions.
    curated : labels against verdicts by judge, with the passing answer as True; None: a dimension or score,
        which single labels cannot correct.
    audit : of the same criterion, dimension or score.
    topic : where the cells are those of one topic.
    alone : whether the rates of the audit's labels alone are wanted.

    Returns
    -------
    Series : a point a step and judge. It shows corrected rates if each rate has a correction.
    """
    points = points_of(
        cells,
        judges=judges,
        sizes=sizes,
        step=step,
        curated=curated,
        audit=audit,
        topic=topic,
        alone=alone,
    )
    return line_of(points, versions=versions)


def points_of(
    cells: Iterable[Cell],
    *,
    judges: Mapping[int, JudgeName],
    sizes: FrameSizes,
    step: Step,
    curated: Mapping[int, Confusion] | None = None,
    audit: PartAudit | None = None,
    topic: TopicPart | None = None,
    alone: bool = True,
) -> list[Point]:
    """Estimate the points of a line, see `series`; those of a week depend on its own cells only."""
    frames = _frames(cells, judges, step)
    own = sizes if topic is None else sizes.of_topic(topic.topic)
    sources = _Sources(sizes, own, curated, audit, topic, judges, alone)
    estimated = weighted_rates([frame.strata(sizes) for frame in frames])
    return [_point(frame, judged, sources) for frame, judged in zip(frames, estimated, strict=True)]


def line_of(points: Sequence[Point], *, versions: Sequence[Mark] = ()) -> Series:
    """Return the line of points in the order of time."""
    marks = [
        *versions,
        *(
            Mark(after.first, f"New {after.judge.change(before.judge)}")
            for before, after in pairwise(points)
            if after.judge.identity != before.judge.identity
        ),
    ]
    placed = tuple(replace(point, segment=_segment(point, marks)) for point in points)
    rated = [point for point in placed if point.uncorrected.estimate.value is not None]
    whole = bool(rated) and all(point.corrected.estimate.value is not None for point in rated)
    method = _method(rated) if whole else None
    return Series(placed, tuple(sorted(marks, key=lambda mark: mark.day)), whole, method)


def _method(points: Sequence[Point]) -> Method | None:
    """The method that corrects all of these points, the random audit first."""
    for method in (Method.PPI, Method.LANG_REICZIGEL):
        rates = [getattr(point.rates, method.value) for point in points]
        if all(rate.estimate.value is not None for rate in rates):
            return method
    return None


def _segment(point: Point, marks: Iterable[Mark]) -> int:
    """The part of the line: a week in which the bot changed belongs to the new part."""
    return sum(mark.day <= (point.first if mark.of_judge else point.last) for mark in marks)


def _frames(cells: Iterable[Cell], judges: Mapping[int, JudgeName], step: Step) -> list[_Frame]:
    """One frame a step and judge; where the judge changed within a step, the second begins on that day."""
    frames: dict[tuple[date, str], _Frame] = {}
    begun: set[date] = set()
    for cell in sorted(cells, key=lambda one: one.day):
        judge, start = judges[cell.run], step.first(cell.day)
        if (start, judge.identity) not in frames:
            first = cell.day if start in begun else start
            frames[start, judge.identity] = _Frame(judge, first, step.last(start))
            begun.add(start)
        frames[start, judge.identity].cells[cell.day, cell.topic] = cell
    return list(frames.values())


@dataclass(frozen=True, slots=True)
class _Sources:
    """What the rates of a point are estimated from, beside its frame."""

    sizes: FrameSizes
    own: FrameSizes  # of the topic alone
    curated: Mapping[int, Confusion] | None
    audit: PartAudit | None
    topic: TopicPart | None
    judges: Mapping[int, JudgeName]
    alone: bool

    def few_labels(self, frame: _Frame) -> int:
        """The labels of the topic, if there are some, but too few; else 0."""
        if self.topic is None or self.audit is None:
            return 0
        labels = self.audit.labelled(frame.all_runs, of_topic(self.topic.topic))
        return labels if labels < FEWEST_AT_RANDOM else 0

    def strata(self, frame: _Frame) -> list[JudgedStratum]:
        """The strata of the whole frame, with a = y = 0 outside the topic; none without an audit."""
        if self.audit is None or not any(run in self.audit.cells for run in frame.all_runs):
            return []
        if self.topic is None:
            return frame.judged_strata(self.sizes)
        of_frame = [
            one
            for one in self.topic.whole
            if frame.first <= one.day <= frame.last and self.judges[one.run].identity == frame.judge.identity
        ]
        return zeroed(of_frame, topic=self.topic.topic)


def _point(frame: _Frame, judged: WeightedRate, sources: _Sources) -> Point:
    own = sources.own
    strata, missed = frame.strata(own), frame.missed(own)
    inside = sum(stratum.size for stratum in strata)
    covered = inside / (inside + missed) if inside else 0.0
    if inside and covered < LEAST_COVERED:
        judged = WeightedRate.missing(Reason.UNSAMPLED, covered=covered)
    by_judge, topic = sources.curated, sources.topic
    few = sources.few_labels(frame)
    rates = part_rates(
        judged,
        () if few else sources.strata(frame),
        curated=Reason.NEEDS_AUDIT if by_judge is None else by_judge.get(frame.judge.judge),
        audit=sources.audit,
        inside=of_topic(topic.topic) if topic else None,
        shared=topic is not None,
        few=few,
        alone=sources.alone,
    )
    return Point(
        first=frame.first,
        last=frame.last,
        days=len(frame.runs),
        judge=frame.judge,
        judged=sum(stratum.sampled for stratum in strata),
        chats=inside + missed,
        covered=covered,
        rates=rates,
    )
