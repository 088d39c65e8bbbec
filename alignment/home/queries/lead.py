"""A lead's home: tasks, alignment at a glance, recent runs, open labelling jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from alignment.home.queries.glance import GlanceRow, glance_sentence
from alignment.home.queries.tasks import Task, lead_tasks
from evaluation.models.runs import Run
from evaluation.runs.queries.progress import seconds_left
from evaluation.runs.queries.runs import RunRow, run_list, run_rows
from labeling.jobs.queries.jobs import JobRow, job_rows
from labeling.models.labels import LabelingJob
from labeling.models.people import User

RUNS, JOBS = 5, 6


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A run, its splits, and its estimated seconds left; None if unknown or ended."""

    row: RunRow
    split: str
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class LeadHome:
    """The sections of a lead's home."""

    tasks: Sequence[Task]
    glance: Sequence[GlanceRow]
    runs: Sequence[RecentRun]
    jobs: Sequence[JobRow]

    @property
    def headline(self) -> str:
        """The number of tasks."""
        n = len(self.tasks)
        return f"{n} task{'' if n == 1 else 's'} for you" if n else "No tasks for you"

    @property
    def sentence(self) -> str:
        """On how many criteria the judge is aligned."""
        return glance_sentence(self.glance)

    @property
    def running(self) -> RecentRun | None:
        """The newest run in progress."""
        return next((run for run in self.runs if run.row.active), None)

    @property
    def outdated(self) -> int:
        """Number of criteria whose figures are from before the latest answers."""
        return sum(row.newest is not None and row.newest.outdated for row in self.glance)

    @property
    def report(self) -> Run | None:
        """The newest run that the figures come from; one with figures of all splits, if there is any."""
        shown = [row.newest for row in self.glance if row.newest]
        runs = [one.run for one in shown if not one.split] or [one.run for one in shown]
        return max(runs, key=lambda run: run.pk, default=None)


def lead_home(*, user: User, glance: Sequence[GlanceRow]) -> LeadHome:
    """Return a lead's home with these rows, in a constant number of queries."""
    sees_judge = user.has_perm("labeling.see_judge")
    jobs = LabelingJob.objects.exclude(state=LabelingJob.State.CLOSED)
    return LeadHome(
        tasks=lead_tasks(glance, user=user),
        glance=glance,
        runs=_recent_runs() if sees_judge else (),
        jobs=job_rows(jobs=jobs, limit=JOBS),
    )


def _recent_runs() -> list[RecentRun]:
    runs = list(run_list()[:RUNS])
    left = seconds_left(runs)
    return [
        RecentRun(row, str(run.options.get("split") or ""), left.get(run.pk))
        for run, row in zip(runs, run_rows(runs), strict=True)
    ]
