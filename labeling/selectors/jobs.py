"""Labelling jobs as a lead sees them. Counts only; no query grows with the chats."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob


@dataclass(frozen=True, slots=True)
class JobRow:
    """A labelling job in a list."""

    id: int
    name: str
    chat_set: str
    due_at: datetime | None
    state: str
    overlap: int
    raters: Sequence[str]
    submitted: int
    wanted: int


def job_rows(*, chat_set: ChatSet | None = None) -> list[JobRow]:
    """The labelling jobs, all or one set's, newest first."""
    jobs = LabelingJob.objects.select_related("chat_set").prefetch_related("raters").order_by("-pk")
    if chat_set is not None:
        jobs = jobs.filter(chat_set=chat_set)
    wanted = Assignment.objects.filter(job__in=jobs.order_by().values("pk")).exclude(
        state=Assignment.State.SKIPPED
    )
    counted = (
        wanted.order_by()
        .values("job")
        .annotate(wanted=Count("pk"), submitted=Count("pk", filter=Q(state=Assignment.State.SUBMITTED)))
    )
    counts = {row["job"]: row for row in counted}
    return [
        JobRow(
            id=job.pk,
            name=job.name,
            chat_set=job.chat_set.name,
            due_at=job.due_at,
            state=job.state,
            overlap=job.overlap,
            raters=[rater.name for rater in job.raters.all()],
            submitted=counts[job.pk]["submitted"],
            wanted=counts[job.pk]["wanted"],
        )
        for job in jobs
    ]
