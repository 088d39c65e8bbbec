"""The list of criteria: each with its champion, what that was measured to be, and what waits."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from alignment.prompts.queries.version_metrics import Measured
from alignment.prompts.queries.versions import VersionRow, champion_of, version_rows, waiting_of, with_figures
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class CriterionRow:
    """A criterion, its text in force, and how its prompts stand; the champion alone has figures."""

    criterion: Criterion
    version: CriterionVersion
    versions: list[VersionRow]

    @property
    def champion(self) -> VersionRow | None:
        """The version that the judge is asked with."""
        return champion_of(self.versions)

    @property
    def waiting(self) -> VersionRow | None:
        """The newest version that waits for a test or a release."""
        return waiting_of(self.versions)

    @property
    def newest(self) -> Measured | None:
        """What the champion was measured to be in its newest run that labels compare with."""
        champion = self.champion
        return champion.measured[0] if champion and champion.measured else None


def criterion_list(*, user: User | AnonymousUser) -> list[CriterionRow]:
    """Active criteria by rubric and dimension; constant queries."""
    active = Criterion.objects.filter(state=Criterion.State.ACTIVE).select_related("dimension", "rubric")
    return _rows(list(active.order_by("rubric", "dimension__position", "position")), user)


def criterion_row(criterion: Criterion, *, user: User | AnonymousUser) -> CriterionRow:
    """One of them."""
    return _rows([criterion], user)[0]


def _rows(criteria: list[Criterion], user: User | AnonymousUser) -> list[CriterionRow]:
    texts, prompts = newest_versions(criteria=criteria), version_rows(criteria=criteria)
    champions = [one for rows in prompts.values() if (one := champion_of(rows)) is not None]
    told = {row.prompt.pk: row for row in with_figures(champions, of=champions, user=user)}
    return [
        CriterionRow(row, texts[row.pk], [told.get(one.prompt.pk, one) for one in prompts[row.pk]])
        for row in criteria
    ]
