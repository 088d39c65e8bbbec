"""The rating screen: one chat, the job's criteria, the rater's own answers and nothing else."""

import hmac
from hashlib import sha256
from itertools import groupby
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie

from labeling.access import permission_or_404
from labeling.models.labels import Assignment
from labeling.models.people import Rater, User, Workspace
from labeling.models.rubric import Criterion
from labeling.selectors.labels import Answer, answers_of, criteria_of, newest_version, own_assignment
from labeling.selectors.queue import job_progress
from labeling.services.labelling import Conflict, SkipReason
from labeling.services.roles import rater_for


@permission_or_404("labeling.label_chats")
@never_cache
@ensure_csrf_cookie
def rate(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """The own assignment; a chat that was given back or lost leads to the queue."""
    assignment = own_assignment(
        assignment_id=assignment_id, rater_id=rater_for(user=cast(User, request.user)).pk
    )
    if assignment is None:
        raise Http404
    if assignment.state == Assignment.State.SKIPPED:
        messages.info(request, Conflict.MESSAGES["skipped"])
        return redirect("labeling:queue")
    criteria = criteria_of(assignment.job)
    answers = answers_of(assignment=assignment, criteria=criteria)
    context = {
        "assignment": assignment,
        "chat": assignment.chat,
        "job": assignment.job,
        "groups": _groups(criteria),
        "submitted": assignment.state == Assignment.State.SUBMITTED,
        "progress": job_progress(job=assignment.job, rater=cast(Rater, assignment.rater)),
        "reasons": SkipReason.choices,
        "state": _state(assignment, criteria, answers),
    }
    return render(request, "labeling/rate.html", context)


def _groups(criteria: list[Criterion]) -> list[dict[str, Any]]:
    """The criteria by dimension, each with the text in force."""
    return [
        {
            "dimension": dimension,
            "criteria": [
                {"key": row.key, "name": row.name, "version": newest_version(row)} for row in in_dimension
            ],
        }
        for dimension, in_dimension in groupby(criteria, key=lambda criterion: criterion.dimension)
    ]


def _state(assignment: Assignment, criteria: list[Criterion], answers: dict[str, Answer]) -> dict[str, Any]:
    """What the script starts from."""
    versions = {row.key: newest_version(row) for row in criteria}
    return {
        "store": _store(assignment),
        "submitted": assignment.state == Assignment.State.SUBMITTED,
        "urls": {
            "assignment": reverse("api_assignment", args=[assignment.pk]),
            "submit": reverse("api_submit", args=[assignment.pk]),
            "skip": reverse("api_skip", args=[assignment.pk]),
            "queue": reverse("labeling:queue"),
        },
        "criteria": [
            {"key": key, "version": version.number, "allow_na": version.allow_na}
            for key, version in versions.items()
        ],
        "answers": {key: _answer(answer) for key, answer in answers.items()},
    }


def _store(assignment: Assignment) -> str:
    """Names the rater's work on this chat in the browser's storage.

    NB: not by the id alone: another database on the same host gives it to another chat.
    """
    lease = f"rate:{assignment.pk}:{assignment.rater_id}".encode()
    return hmac.new(bytes(Workspace.current().fence_secret), lease, sha256).hexdigest()[:16]


def _answer(answer: Answer) -> dict[str, Any]:
    return {"value": answer.value, "rationale": answer.rationale, "evidence": answer.places}
