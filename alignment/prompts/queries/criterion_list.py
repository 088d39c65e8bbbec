"""The list of criteria: each with its champion's alignment and the version that waits."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from alignment.prompts.queries.version_metrics import VersionMetrics
from alignment.prompts.queries.versions import VersionRow, champion_of, version_rows, waiting_of, with_figures
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class CriterionRow:
    """A criterion, its current text and its prompt versions; only the champion has figures."""

    criterion: Criterion
    version: CriterionVersion
    versions: list[VersionRow]

    @property
    def champion(self) -> VersionRow | None:
        """The version in use."""
        return champion_of(self.versions)

    @property
    def waiting(self) -> VersionRow | None:
        """The newest version that waits for a test or a release."""
        return waiting_of(self.versions)

    @property
    def newest(self) -> VersionMetrics | None:
        """The champion's metrics in its newest run on labelled chats."""
        champion = self.champion
        return champion.metrics[0] if champion and champion.metrics else None


def criterion_list(*, user: User | AnonymousUser) -> list[CriterionRow]:
    """Return the active criteria by rubric and dimension; constant number of queries."""
    active = Criterion.objects.filter(state=Criterion.State.ACTIVE).select_related("dimension", "rubric")
    return _rows(list(active.order_by("rubric", "dimension__position", "position")), user)


def criterion_row(criterion: Criterion, *, user: User | AnonymousUser) -> CriterionRow:
    """Return the row of one criterion."""
    return _rows([criterion], user)[0]


def _rows(criteria: list[Criterion], user: User | AnonymousUser) -> list[CriterionRow]:
    texts, prompts = newest_versions(criteria=criteria), version_rows(criteria=criteria)
    champions = [one for rows in prompts.values() if (one := champion_of(rows)) is not None]
    measured = {row.prompt.pk: row for row in with_figures(champions, of=champions, user=user)}
    return [
        CriterionRow(row, texts[row.pk], [measured.get(one.prompt.pk, one) for one in prompts[row.pk]])
        for row in criteria
    ]
