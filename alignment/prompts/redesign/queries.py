"""Effects of a redesign besides labels: runs in progress and open tests; and proposals of one."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef
from django.urls import reverse

from alignment.models.regressions import RegressionTest
from alignment.models.requests import RedesignProposal
from alignment.regression.queries.test_list import regression_rows
from common.inbox.subjects import Subject
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.rubric.core.redesign import Redesign
from labeling.rubric.queries.redesign import Consequences, consequences, redesigned

OPEN = (RegressionTest.State.RUNNING, RegressionTest.State.CONFIRMING)
LISTED = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)


@dataclass(frozen=True, slots=True)
class Preview:
    """The effects: criteria that end, consequences for labels and jobs, runs in progress, open tests."""

    olds: tuple[Criterion, ...]
    consequences: Consequences
    runs: tuple[int, ...]
    tests: tuple[RegressionTest, ...]


def redesign_preview(*, redesign: Redesign) -> Preview:
    """Return the effects without writing. Raises FieldProblem as the redesign itself does."""
    olds = redesigned(redesign=redesign)
    return Preview(
        olds=tuple(olds),
        consequences=consequences(redesign=redesign, olds=olds),
        runs=_runs_under_way(olds),
        tests=open_tests(criteria=olds),
    )


def open_tests(*, criteria: Iterable[Criterion]) -> tuple[RegressionTest, ...]:
    """Return the open regression tests that include one of these criteria, oldest first."""
    included = JudgePrompt.objects.filter(judge=OuterRef("candidate_run__judge"), criterion__in=criteria)
    return tuple(regression_rows().filter(Exists(included), state__in=OPEN).order_by("pk"))


def _runs_under_way(criteria: Collection[Criterion]) -> tuple[int, ...]:
    included = JudgePrompt.objects.filter(judge=OuterRef("judge"), criterion__in=criteria)
    runs = Run.objects.filter(Exists(included), purpose__in=LISTED, finished_at=None).order_by("pk")
    return tuple(runs.values_list("pk", flat=True))


def redesign_proposals(criterion: Criterion) -> list[RedesignProposal]:
    """Return what was proposed for this criterion, newest first."""
    rows = RedesignProposal.objects.filter(criterion=criterion).select_related("by", "answered_by")
    return list(rows.order_by("-pk"))


def proposal_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these proposals that the user may read; an answer tells who proposed it."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    return {
        row.pk: Subject(
            title=f"a redesign of {row.criterion.name}",
            url=f"{reverse('alignment:criterion_detail', args=[row.criterion.key])}#proposals",
            people=(row.by_id,),
            text=row.note,
        )
        for row in RedesignProposal.objects.filter(pk__in=ids).select_related("criterion")
    }
