"""The rater's position in a job, for the rating screen."""

from django.db.models import QuerySet

from labeling.models.labels import Assignment, LabelingJob


def chat_number(*, assignment: Assignment, done: int) -> int:
    """Return the chat's number in the rater's work: after those submitted and those leased earlier."""
    return done + _others_in_work(assignment).filter(pk__lt=assignment.pk).count() + 1


def chat_in_work(*, assignment: Assignment) -> Assignment | None:
    """Return the job's chat in work to continue after correcting this one, or None."""
    return _others_in_work(assignment).filter(job__state=LabelingJob.State.OPEN).order_by("pk").first()


def _others_in_work(assignment: Assignment) -> QuerySet[Assignment]:
    leased = Assignment.objects.filter(
        job=assignment.job_id, rater=assignment.rater_id, state=Assignment.State.LEASED
    )
    return leased.exclude(pk=assignment.pk)
