"""Labels on their way: drawn sets that wait for a job, and what open jobs still ask for."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.sampling_frame import earlier_draws
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.rubric import Criterion


@dataclass(frozen=True, slots=True)
class Asking:
    """A job that is not closed: its chats of the run, and those of them that every rater is done with."""

    job: int
    name: str
    chats: int
    done: int


def asking_jobs(scope: Scope) -> dict[int, list[Asking]]:
    """By criterion id, the jobs not closed with chats of the scope still to label; one query."""
    rows = Assignment.objects.filter(chat__in=scope.chat_ids, job__criteria__in=scope.criteria).exclude(
        job__state=LabelingJob.State.CLOSED
    )
    left = Q(state__in=(Assignment.State.OPEN, Assignment.State.LEASED))
    counted = rows.order_by("job").values_list("job__criteria", "job", "job__name")
    found: dict[int, list[Asking]] = {}
    for criterion, job, name, chats, open_still in counted.annotate(
        chats=Count("chat", distinct=True), left=Count("chat", distinct=True, filter=left)
    ):
        if open_still:
            found.setdefault(criterion, []).append(Asking(job, name, chats, chats - open_still))
    return found


def waiting_draws(scope: Scope, *, criteria: Sequence[Criterion]) -> list[ChatSet]:
    """The sets drawn for one of the criteria that no job was ever opened on; two queries."""
    drawn = earlier_draws(scope, criteria)
    jobs = LabelingJob.objects.filter(chat_set__in=drawn)
    begun = set(jobs.order_by().values_list("chat_set", flat=True)) if drawn else set()
    return [row for row in drawn if row.pk not in begun]
