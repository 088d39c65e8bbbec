"""Alignment at a glance: each active criterion with its stored figures, critical and worst first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from alignment.home.core import GlanceLine, GlancePoint, glance_line
from alignment.home.queries.report_figures import report_figures
from alignment.prompts.queries.criterion_list import CriterionRow
from alignment.prompts.queries.version_metrics import Figures, VersionMetrics, version_metrics
from alignment.prompts.queries.versions import VersionRow, champion_of, version_rows
from alignment.reports.core.status import Status
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.people import User
from labeling.models.rubric import Criterion, Tier
from labeling.people.queries.visibility import reads_holdout

VERSIONS_DRAWN = 8  # up to the released one


@dataclass(frozen=True, slots=True)
class GlanceRow:
    """A criterion with its champion's newest stored figures, and those of earlier versions at that place."""

    row: CriterionRow
    earlier: Sequence[tuple[int, VersionMetrics]]  # version number and metrics, oldest first

    @property
    def criterion(self) -> Criterion:
        """The criterion."""
        return self.row.criterion

    @property
    def newest(self) -> VersionMetrics | None:
        """The released version's figures in its newest finished run; None before the first stored counts."""
        return self.row.newest

    @property
    def status(self) -> Status | None:
        """The status by the policy; None before the first stored counts, and for a subjective criterion."""
        return self.newest.decision.status if self.newest and not self.directional else None

    @property
    def directional(self) -> bool:
        """Whether the criterion is reported only."""
        return self.criterion.tier == Tier.SUBJECTIVE

    @property
    def line(self) -> GlanceLine | None:
        """The sparkline over versions; None without a value."""
        points = [
            GlancePoint(number, value, one.recipe)
            for number, one in self.earlier
            if (value := one.rates["balanced_accuracy"].value) is not None
        ]
        return glance_line(points, ceiling=self.newest.ceiling if self.newest else None)

    @property
    def change(self) -> float | None:
        """The difference to the previous version, if only the prompts differ; None without one."""
        for (_, old), (_, new) in pairwise(self.earlier[-2:]):
            before, after = (one.rates["balanced_accuracy"].value for one in (old, new))
            if old.recipe == new.recipe and before is not None and after is not None:
                return after - before
        return None


def glance_rows(*, user: User) -> list[GlanceRow]:
    """Return the active criteria, critical and worst first, from stored figures; constant queries.

    Users who can see the holdout read the newest stored report; others, and criteria without a report of the
    released version, the stored counts of each split.
    """
    active = Criterion.objects.filter(state=Criterion.State.ACTIVE)
    criteria = list(active.select_related("dimension", "rubric").order_by("rubric", "position", "pk"))
    if not criteria:
        return []
    texts, prompts = newest_versions(criteria=criteria), version_rows(criteria=criteria)
    drawn = {pk: _drawn(rows) for pk, rows in prompts.items()}
    contents = {row.prompt.content_hash for rows in drawn.values() for row in rows}
    figures = version_metrics(criteria, user=user, contents=contents, stored=True)
    if reads_holdout(user=user):
        for key, reported in report_figures(criteria, contents=contents).items():
            found = figures.get(key, Figures())
            figures[key] = replace(found, rows=(*reported, *found.rows))
    rows = []
    for criterion in criteria:
        versions = [
            replace(row, figures=figures.get((criterion.pk, row.prompt.content_hash), Figures()))
            for row in prompts[criterion.pk]
        ]
        row = CriterionRow(criterion, texts[criterion.pk], versions)
        rows.append(GlanceRow(row, _earlier(row)))
    return sorted(rows, key=lambda one: one.row.rank)


def _drawn(rows: Sequence[VersionRow]) -> list[VersionRow]:
    """Return the released version and those before it, newest first."""
    champion = champion_of(rows)
    return [row for row in rows if champion and row.number <= champion.number][:VERSIONS_DRAWN]


def _earlier(row: CriterionRow) -> list[tuple[int, VersionMetrics]]:
    if row.newest is None:
        return []
    place = row.newest.place
    shown = [(one.number, found) for one in _drawn(row.versions) if (found := one.at(place)) is not None]
    return shown[::-1]


def glance_sentence(rows: Sequence[GlanceRow]) -> str:
    """Say on how many criteria the judge is aligned; '' where no criterion has figures."""
    measured = [row for row in rows if row.newest is not None and not row.directional]
    if not measured:
        return ""
    aligned = sum(row.status == Status.ALIGNED for row in measured)
    return (
        f"The judge is aligned on {aligned} of {len(measured)} criteri{'on' if len(measured) == 1 else 'a'}."
    )
