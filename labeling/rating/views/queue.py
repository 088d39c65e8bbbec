"""A rater's queue and the way to the next chat."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from common.access import permission_or_404
from labeling.models.people import User
from labeling.people.services.roles import rater_for
from labeling.rating.queries.queue import Queue, QueueJob, RecentChat, jobs_of, queue_for
from labeling.rating.services.leases import Conflict, assignment_next


@permission_or_404("labeling.label_chats")
def queue(request: HttpRequest) -> HttpResponse:
    """The rater's jobs and progress, with one button to continue."""
    own = queue_for(rater=rater_for(user=cast(User, request.user)))
    return render(request, "labeling/rating/queue.html", queue_context(own))


def queue_context(own: Queue) -> dict[str, Any]:
    """Return the template context of a queue: jobs, the chat to resume, the headline, recent chats."""
    return {
        "jobs": [_job(job) for job in own.jobs],
        "resume": _resume(own.current) if own.current else None,
        "headline": _headline(own),
        "recent": [_recent(chat) for chat in own.recent],
    }


@login_required(redirect_field_name=None)  # sign-in would return by GET, which this page refuses
@permission_or_404("labeling.label_chats")
@require_POST
def next_chat(request: HttpRequest, job_id: int) -> HttpResponse:
    """Lease the next chat of a job and open it; return to the queue when none is left."""
    rater = rater_for(user=cast(User, request.user))
    job = get_object_or_404(jobs_of(rater_id=rater.pk), pk=job_id)
    try:
        assignment = assignment_next(rater=rater, job=job)
    except Conflict as refused:
        messages.info(request, str(refused))
        return redirect("labeling:queue")
    if assignment is None:
        messages.info(request, f"No chats left for you in {job.name}.")
        return redirect("labeling:queue")
    return redirect("labeling:rate", assignment.pk)


def _job(job: QueueJob) -> dict[str, Any]:
    return {
        "name": job.name,
        "rubric": job.rubric,
        "guideline_url": reverse("labeling:read_guideline", args=[job.rubric_id]),
        "criteria_count": job.criteria_count,
        "calibration": job.calibration,
        "due_at": job.due_at,
        "done": job.done,
        "total": job.total,
        "minutes_left": job.minutes_left,
        "state": "closed" if job.closed else "held up" if job.held_up else "open",
        "resume_url": _next_url(job) if job.offered else "",
    }


def _resume(job: QueueJob) -> dict[str, Any]:
    return {
        "url": _next_url(job),
        "position": job.number,
        "topic": job.topic,
        "answered": job.answered,
        "total": job.criteria_count,
        "minutes_left": job.minutes_left,
    }


def _recent(chat: RecentChat) -> dict[str, Any]:
    return {
        "external_id": chat.external_id,
        "topic": chat.topic,
        "submitted_at": chat.submitted_at,
        "seconds": 60 * chat.minutes,
        "url": reverse("labeling:rate", args=[chat.assignment]),
    }


def _next_url(job: QueueJob) -> str:
    return reverse("labeling:next", args=[job.id])


def _headline(own: Queue) -> str:
    if own.current is None:
        return ""
    left = own.current.left
    return f"{left:,} chat{'' if left == 1 else 's'} left in {own.current.name}"
