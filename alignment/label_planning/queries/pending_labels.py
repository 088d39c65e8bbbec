"""Pending labels: samples without a labelling job, and chats in open jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.sampling_frame import earlier_samples
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.rubric import Criterion


@dataclass(frozen=True, slots=True)
class PendingJob:
    """A job that is not closed: its chats of the run, and how many of them every rater has finished."""

    job: int
    name: str
    chats: int
    done: int


def pending_jobs(scope: Scope) -> dict[int, list[PendingJob]]:
    """Return, by criterion id, the jobs with unfinished chats of the scope; one query."""
    rows = Assignment.objects.filter(chat__in=scope.chat_ids, job__criteria__in=scope.criteria).exclude(
        job__state=LabelingJob.State.CLOSED
    )
    unfinished = Q(state__in=(Assignment.State.OPEN, Assignment.State.LEASED))
    counted = rows.order_by("job").values_list("job__criteria", "job", "job__name")
    jobs: dict[int, list[PendingJob]] = {}
    for criterion, job, name, chats, still_open in counted.annotate(
        chats=Count("chat", distinct=True), still_open=Count("chat", distinct=True, filter=unfinished)
    ):
        if still_open:
            jobs.setdefault(criterion, []).append(PendingJob(job, name, chats, chats - still_open))
    return jobs


def samples_without_job(scope: Scope, *, criteria: Sequence[Criterion]) -> list[ChatSet]:
    """Return the samples for one of the criteria on which no job was ever opened; two queries."""
    samples = earlier_samples(scope, criteria)
    jobs = LabelingJob.objects.filter(chat_set__in=samples)
    with_job = set(jobs.order_by().values_list("chat_set", flat=True)) if samples else set()
    return [row for row in samples if row.pk not in with_job]
