"""The rating screen: one chat, the job's criteria and only the rater's own answers."""

import hmac
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import ensure_csrf_cookie

from common.access import permission_or_404
from labeling.models.labels import EXPIRED, Assignment, LabelingJob
from labeling.models.people import Rater, User, Workspace
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.services.roles import rater_for
from labeling.rating.queries.labels import (
    Answer,
    Rules,
    answers_of,
    answers_seen,
    may_reveal,
    own_assignment,
    rules_of,
)
from labeling.rating.queries.notes import own_notes
from labeling.rating.queries.queue import chat_in_work, chat_number, familiar_since, job_progress
from labeling.rating.services.leases import LEASE, Conflict, SkipReason
from labeling.rubric.queries.criteria import criteria_of, newest_version
from labeling.rubric.queries.guidelines import changes_since, guideline_for

ANSWERS = {True: "True", False: "False"}


@permission_or_404("labeling.label_chats")
@ensure_csrf_cookie
def rate(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """The rater's own assignment; a skipped or lost chat leads to the queue."""
    assignment = own_assignment(
        assignment_id=assignment_id, rater_id=rater_for(user=cast(User, request.user)).pk
    )
    if assignment is None:
        raise Http404
    if assignment.state == Assignment.State.SKIPPED:
        lost = assignment.skip_reason == EXPIRED
        messages.info(request, Conflict.MESSAGES["lease_lost" if lost else "skipped"])
        return redirect("labeling:queue")
    criteria = criteria_of(assignment.job)
    answers = answers_of(assignment=assignment, criteria=criteria)
    progress = job_progress(job=assignment.job, rater=cast(Rater, assignment.rater))
    number = chat_number(assignment=assignment, done=progress.done)
    guidance = guideline_for(assignment=assignment, criteria=criteria)
    rules = rules_of()
    context = {
        "chat": assignment.chat,
        "job": assignment.job,
        "groups": _groups(criteria, answers, rules, familiar_since(assignment=assignment)),
        "rules": rules,
        "guidance": guidance,
        "changes": changes_since(assignment=assignment, criteria=criteria),
        "submitted": assignment.state == Assignment.State.SUBMITTED,
        "progress": progress,
        "number": number,
        # Not `progress.done`: a page fetched ahead is shown when this many are done.
        "before": number - 1,
        "notes": own_notes(assignment=assignment),
        "onwards": _onwards(assignment),
        "reasons": SkipReason.choices,
        "state": _state(assignment, criteria, answers, rules) | {"guideline": guidance.number},
    }
    return render(request, "labeling/rating/rate.html", context)


def _onwards(assignment: Assignment) -> str:
    """Return the address of the chat in work; '' for the queue."""
    following = chat_in_work(assignment=assignment)
    return reverse("labeling:rate", args=[following.pk]) if following else ""


def _groups(
    criteria: list[Criterion], answers: dict[str, Answer], rules: Rules, familiar: datetime | None
) -> list[dict[str, Any]]:
    """Group the criteria by dimension, each with its current text and the rater's answer.

    The definition is folded where the rater has submitted enough chats since its text was written.
    """
    return [
        {
            "dimension": dimension,
            "criteria": [
                {
                    "key": row.key,
                    "name": row.name,
                    "version": version,
                    "answer": answers.get(row.key),
                    "folded": familiar is not None and version.created_at < familiar,
                    "evidence_for": " and ".join(
                        ANSWERS[value] for value in _evidence_for(row, version, rules)
                    ),
                }
                for row in in_dimension
                for version in (newest_version(row),)
            ],
        }
        for dimension, in_dimension in groupby(criteria, key=lambda criterion: criterion.dimension)
    ]


def _evidence_for(criterion: Criterion, version: CriterionVersion, rules: Rules) -> list[bool]:
    """Return the answers that need evidence."""
    return [
        value
        for value in (True, False)
        if rules.needs_evidence(value=value, criterion=criterion, version=version)
    ]


def _state(
    assignment: Assignment, criteria: list[Criterion], answers: dict[str, Answer], rules: Rules
) -> dict[str, Any]:
    """Return the script's initial state; times are durations in ms, as browser clocks may be wrong."""
    return {
        "id": assignment.pk,
        "store": _store(assignment),
        "submitted": assignment.state == Assignment.State.SUBMITTED,
        "revealed": answers_seen(assignment=assignment),
        "stopped": "" if assignment.job.state == LabelingJob.State.OPEN else Conflict.MESSAGES["job_closed"],
        "urls": _urls(assignment),
        "criteria": [_criterion(row, answers, rules) for row in criteria],
        "answers": {key: _answer(answer) for key, answer in answers.items()},
        "texts": {message["n"]: message["content"] for message in assignment.chat.messages},
        "comment_required": rules.comment_required,
        "active_ms": assignment.active_ms,
        "now": _ms(timezone.now()),
        "lease": _lease(assignment),
    }


def _urls(assignment: Assignment) -> dict[str, str]:
    api = reverse("api_assignment", args=[assignment.pk])
    urls = {
        "assignment": api,
        "submit": reverse("api_submit", args=[assignment.pk]),
        "skip": reverse("api_skip", args=[assignment.pk]),
        "extend": reverse("api_extend", args=[assignment.pk]),
        "notes": reverse("api_assignment_notes", args=[assignment.pk]),
        "ahead": reverse("api_job_next", args=[assignment.job_id]),
        "read": reverse("labeling:read_guideline", args=[assignment.job.chat_set.rubric_id]),
    }
    if may_reveal(assignment=assignment):
        urls["reveal"] = f"{api}reveal/"
    return urls


def _criterion(criterion: Criterion, answers: dict[str, Answer], rules: Rules) -> dict[str, Any]:
    version, answer = newest_version(criterion), answers.get(criterion.key)
    return {
        "key": criterion.key,
        "version": version.number,
        "allow_na": version.allow_na,
        "inverted": not version.passes_when,
        "evidence_for": _evidence_for(criterion, version, rules),
        "revision": answer.revision if answer else 0,
    }


def _lease(assignment: Assignment) -> dict[str, int] | None:
    """Return the remaining and the full duration of the lease in ms."""
    if assignment.lease_expires_at is None:
        return None
    left = _ms(assignment.lease_expires_at) - _ms(timezone.now())
    return {"left": max(left, 0), "length": int(LEASE.total_seconds() * 1000)}


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _store(assignment: Assignment) -> str:
    """Return the name of this work in the browser's storage; it survives a lost and reassigned chat.

    It begins with the account, whose work goes when it signs out. NB: ids alone are not enough: another
    database on the same host may reuse them.
    """
    lease = f"rate:{assignment.job_id}:{assignment.chat_id}:{assignment.rater_id}".encode()
    digest = hmac.new(bytes(Workspace.current().fence_secret), lease, sha256).hexdigest()[:16]
    return f"{assignment.rater.user_id if assignment.rater else ''}-{digest}"


def _answer(answer: Answer) -> dict[str, Any]:
    return {"value": answer.value, "rationale": answer.rationale, "evidence": answer.places}
