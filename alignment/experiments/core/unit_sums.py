"""Sums over the units of each variant, by the day on which they changed."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from alignment.statistics.sequential import Totals


class ChatResult(NamedTuple):
    """A pass or fail of a chat; `weight` is the inverse probability with which it was sampled."""

    unit: str
    variant: str
    criterion: int
    day: date
    passed: bool
    weight: float = 1.0


@dataclass(slots=True)
class Sums:
    """Sums as in `Totals`, and the numbers of applicable and failing chats, without weights."""

    chats: int = 0
    failed: int = 0
    units: int = 0
    passed: float = 0.0
    n: float = 0.0
    passed_squared: float = 0.0
    n_squared: float = 0.0
    product: float = 0.0

    def add(self, other: "Sums") -> None:
        """Add the sums of another day."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def totals(self) -> Totals:
        """The sums that a rate and its error need."""
        return Totals(self.units, self.passed, self.n, self.passed_squared, self.n_squared, self.product)


class Place(NamedTuple):
    """The key of stored sums."""

    criterion: int
    variant: str
    day: date


@dataclass
class UnitSums:
    """The increase of the sums by day, and the number of units with a result by variant."""

    days: dict[Place, Sums] = field(default_factory=lambda: defaultdict(Sums))
    units: Counter[str] = field(default_factory=Counter)


def unit_sums(results: Iterable[ChatResult], *, mixed: Collection[str] = ()) -> UnitSums:
    """Sum up the results of each unit over all its chats, by day.

    A unit is a cluster: with y passes of n chats up to a day, a variant's error
    follows from sums over units of y^2, n^2 and y n. A day adds what it changes in them, so that the sums of
    all days up to one are those of the units on that day.

    Parameters
    ----------
    results : in the order of units; memory does not grow with units.
    mixed : units with chats of several variants. They do not count.

    Notes
    -----
    Deng, Knoblich & Lu (2018), Applying the Delta Method in Metric Analytics, KDD, section 2.3: the metric is
    a ratio of two means over units.

    Examples
    --------
    >>> monday, tuesday = date(2026, 11, 2), date(2026, 11, 3)
    >>> found = unit_sums([ChatResult("u", "a", 1, monday, True), ChatResult("u", "a", 1, tuesday, False)])
    >>> [(one.units, one.passed, one.n, one.n_squared) for one in found.days.values()]
    [(1, 1.0, 1.0, 1.0), (0, 0.0, 1.0, 3.0)]
    """
    found = UnitSums()
    for unit, some in groupby(results, key=attrgetter("unit")):
        if unit in mixed:
            continue
        rows = sorted(some, key=attrgetter("criterion", "day"))
        found.units[rows[0].variant] += 1
        for _, own in groupby(rows, key=attrgetter("criterion")):
            _add_unit(found.days, list(own))
    return found


def _add_unit(days: dict[Place, Sums], rows: Sequence[ChatResult]) -> None:
    """Add what each day of one unit changes; all rows have one criterion."""
    y = n = 0.0
    for day, some in groupby(rows, key=attrgetter("day")):
        first, before = n == 0, (y, n)
        sums = days[Place(rows[0].criterion, rows[0].variant, day)]
        for one in some:
            sums.chats += 1
            sums.failed += not one.passed
            n += one.weight
            y += one.weight * one.passed
        sums.units += first
        sums.passed += y - before[0]
        sums.n += n - before[1]
        sums.passed_squared += y * y - before[0] ** 2
        sums.n_squared += n * n - before[1] ** 2
        sums.product += y * n - before[0] * before[1]


def running(days: Iterable[tuple[date, Sums]]) -> Iterator[tuple[date, Sums]]:
    """Yield the sums of all days up to each one; the days come in their order."""
    so_far = Sums()
    for day, sums in days:
        so_far.add(sums)
        copy = Sums()
        copy.add(so_far)
        yield day, copy
