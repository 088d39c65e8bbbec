"""Where a rater is in a job: what the rating screen shows beside chat and criteria."""

from django.db.models import QuerySet

from labeling.models.labels import Assignment, LabelingJob


def chat_number(*, assignment: Assignment, done: int) -> int:
    """The chat's place in the rater's work on the job: after those submitted and those taken before it."""
    return done + _others_in_work(assignment).filter(pk__lt=assignment.pk).count() + 1


def chat_in_work(*, assignment: Assignment) -> Assignment | None:
    """The chat of the job to go on with after correcting this one, if any."""
    return _others_in_work(assignment).filter(job__state=LabelingJob.State.OPEN).order_by("pk").first()


def _others_in_work(assignment: Assignment) -> QuerySet[Assignment]:
    leased = Assignment.objects.filter(
        job=assignment.job_id, rater=assignment.rater_id, state=Assignment.State.LEASED
    )
    return leased.exclude(pk=assignment.pk)
