"""The list of criteria: each with its released version's alignment, and what waits for somebody."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from alignment.misalignments.queries.misalignment_list import open_disagreement_counts
from alignment.prompts.queries.run_costs import costs_per_chat
from alignment.prompts.queries.version_metrics import VersionMetrics
from alignment.prompts.queries.versions import VersionRow, champion_of, version_rows, waiting_of, with_figures
from alignment.reports.core.status import Status
from evaluation.models.prompts import PromptDraft
from evaluation.prompts.queries.versions import newest_versions
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Tier

# From what needs work to what does not; None is not measured.
WORST_FIRST = (Status.NOT_ALIGNED, Status.RATERS_DISAGREE, Status.NOT_ENOUGH_LABELS, None, Status.ALIGNED)


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

    @property
    def rank(self) -> tuple[bool, int, bool, float]:
        """The place in a list: critical first, then by status, then the worst balanced accuracy."""
        newest = self.newest
        status = newest.decision.status if newest else None
        place = WORST_FIRST.index(status) if status in WORST_FIRST else len(WORST_FIRST)
        if self.criterion.tier == Tier.SUBJECTIVE:  # directional only
            place = len(WORST_FIRST)
        value = newest.rates["balanced_accuracy"].value if newest else None
        return not self.criterion.critical, place, value is None, value or 0.0


@dataclass(frozen=True, slots=True)
class ListedCriterion:
    """A row of the page: open disagreements, dollars for 1,000 chats if known, and the user's own draft."""

    row: CriterionRow
    disagreements: int
    cost: float | None
    drafted: bool

    @property
    def criterion(self) -> Criterion:
        """The criterion, by whose rubric the page groups."""
        return self.row.criterion


def criterion_list(*, user: User | AnonymousUser) -> list[CriterionRow]:
    """Return the active criteria by rubric and dimension; constant number of queries."""
    active = Criterion.objects.filter(state=Criterion.State.ACTIVE).select_related("dimension", "rubric")
    return _rows(list(active.order_by("rubric", "dimension__position", "position")), user)


def criteria_worst_first(*, user: User | AnonymousUser) -> list[ListedCriterion]:
    """Return the active criteria by rubric, critical and worst first; constant number of queries."""
    rows = sorted(criterion_list(user=user), key=lambda row: (row.criterion.rubric_id, row.rank))
    criteria = [row.criterion for row in rows]
    disagreements = open_disagreement_counts(criteria, user=user)
    costs = costs_per_chat([(one.run, row.criterion.pk) for row in rows if (one := row.newest) is not None])
    drafts = PromptDraft.objects.filter(author=user.pk, criterion__in=criteria)
    drafted = set(drafts.values_list("criterion", flat=True))
    return [_listed(row, disagreements.get(row.criterion.pk, 0), costs, drafted) for row in rows]


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


def _listed(
    row: CriterionRow, disagreements: int, costs: dict[tuple[int, int], float], drafted: set[int]
) -> ListedCriterion:
    pk, newest = row.criterion.pk, row.newest
    cost = costs.get((newest.run.pk, pk)) if newest else None
    return ListedCriterion(row, disagreements, None if cost is None else 1000 * cost, pk in drafted)
