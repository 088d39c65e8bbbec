"""What a redesign of criteria touches beside the labels: runs under way, and tests that are open."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from alignment.models.regressions import RegressionTest
from alignment.regression.queries.test_list import regression_rows
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run
from labeling.models.rubric import Criterion
from labeling.rubric.core.redesign import Redesign
from labeling.rubric.queries.redesign import Consequences, consequences, redesigned

OPEN = (RegressionTest.State.RUNNING, RegressionTest.State.CONFIRMING)
TOLD = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen: the criteria that end, people's answers and jobs, runs under way, open tests."""

    olds: tuple[Criterion, ...]
    people: Consequences
    runs: tuple[int, ...]
    tests: tuple[RegressionTest, ...]


def redesign_preview(*, redesign: Redesign) -> Preview:
    """What the redesign would do today; writes nothing. Raises FieldProblem as the redesign itself does."""
    olds = redesigned(redesign=redesign)
    return Preview(
        olds=tuple(olds),
        people=consequences(redesign=redesign, olds=olds),
        runs=_runs_under_way(olds),
        tests=open_tests(criteria=olds),
    )


def open_tests(*, criteria: Iterable[Criterion]) -> tuple[RegressionTest, ...]:
    """The regression tests that ask one of these criteria and are not over, oldest first."""
    asked = JudgePrompt.objects.filter(judge=OuterRef("candidate_run__judge"), criterion__in=criteria)
    return tuple(regression_rows().filter(Exists(asked), state__in=OPEN).order_by("pk"))


def _runs_under_way(criteria: Collection[Criterion]) -> tuple[int, ...]:
    asked = JudgePrompt.objects.filter(judge=OuterRef("judge"), criterion__in=criteria)
    runs = Run.objects.filter(Exists(asked), purpose__in=TOLD, finished_at=None).order_by("pk")
    return tuple(runs.values_list("pk", flat=True))
