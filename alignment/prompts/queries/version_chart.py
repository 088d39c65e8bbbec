"""Balanced accuracy over a criterion's prompt versions, on one set and split."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from alignment.prompts.core.version_chart_geometry import VersionLine, VersionPoint, version_line
from alignment.prompts.queries.version_metrics import VersionMetrics
from alignment.prompts.queries.versions import VersionRow, VersionState, champion_of

VERSIONS_DRAWN = 12
NEWEST = 25  # versions that the chart may show, besides the champion


@dataclass(frozen=True, slots=True)
class Place:
    """A set and split with metrics of versions."""

    value: str
    words: str
    versions: int


@dataclass(frozen=True, slots=True)
class VersionChart:
    """The versions with metrics on `place`, newest first, and their chart; both empty without a place."""

    place: Place | None = None
    rows: Sequence[tuple[VersionRow, VersionMetrics]] = ()
    line: VersionLine | None = None

    @property
    def ceiling(self) -> float | None:
        """The human ceiling on the newest version's chats."""
        return self.rows[0][1].ceiling if self.rows else None


def chart_rows(rows: Sequence[VersionRow]) -> list[VersionRow]:
    """Return the newest versions and the champion."""
    return [row for n, row in enumerate(rows) if n < NEWEST or row.state is VersionState.RELEASED]


def places_of(rows: Iterable[VersionRow]) -> list[Place]:
    """Return the places by name of the set and split."""
    words: dict[str, str] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for one in row.metrics:
            words[one.place] = one.where
            counts[one.place] = counts.get(one.place, 0) + 1
    return [Place(value, words[value], counts[value]) for value in sorted(words, key=lambda one: words[one])]


def version_chart(rows: Sequence[VersionRow], places: Sequence[Place], *, wanted: str = "") -> VersionChart:
    """Return the chart of the place `wanted`, or of the default place."""
    chosen = next((one for one in places if one.value == wanted), None) or _usual(rows, places)
    if chosen is None:
        return VersionChart()
    points = [(row, one) for row in rows if (one := row.at(chosen.value)) is not None][:VERSIONS_DRAWN]
    return VersionChart(chosen, points, _chart(points))


def _chart(rows: Sequence[tuple[VersionRow, VersionMetrics]]) -> VersionLine:
    points = [
        VersionPoint(
            row.number, one.rates["balanced_accuracy"], one.recipe, row.state is VersionState.RELEASED
        )
        for row, one in reversed(rows)
    ]
    return version_line(points, ceiling=rows[0][1].ceiling)


def _usual(rows: Sequence[VersionRow], places: Sequence[Place]) -> Place | None:
    """Return the place with most versions; among equals one with the champion."""
    champion = champion_of(rows)
    known = {one.place for one in champion.metrics} if champion else set()
    return max(places, key=lambda one: (one.versions, one.value in known), default=None)
