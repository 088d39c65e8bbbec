"""API of raters: their own queue, assignments, answers and guidelines."""

from typing import ClassVar, cast

from django.urls import reverse
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from common.access import found_or_404
from common.api import INVALID, NO_ACCESS, PROBLEMS, ApiView, field_error, problem, validated
from common.problems import FieldProblem
from labeling.models.labels import Assignment, Label
from labeling.models.people import ApiToken, Rater, User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import LabelsChats
from labeling.people.services.roles import rater_for
from labeling.rating.queries.labels import answers_of, asked_criterion, own_assignment, own_work
from labeling.rating.queries.notes import own_notes
from labeling.rating.queries.queue import queue_for
from labeling.rating.serializers import (
    AssignmentOutput,
    ClearInput,
    GuidanceOutput,
    IncompleteOutput,
    LabelInput,
    LabelOutput,
    LeaseOutput,
    QueueOutput,
    SkipInput,
    StaleOutput,
    StateOutput,
    SubmitInput,
)
from labeling.rating.services.answers import Incomplete, Stale, label_clear, label_save
from labeling.rating.services.leases import Conflict, assignment_skip, lease_extend
from labeling.rating.services.submission import Outdated, Unanswered, assignment_submit
from labeling.rubric.queries.criteria import criteria_of
from labeling.rubric.queries.guidelines import changes_since, guideline_for


class RaterView(ApiView):
    """Routes of a rater, who reaches only their own assignments."""

    permission_classes = [LabelsChats]

    @cached_property
    def rater(self) -> Rater:
        """The rater who is signed in."""
        return rater_for(user=cast(User, self.request.user))

    def own(self, assignment_id: int) -> Assignment:
        """Return the rater's own assignment with its chat. Raises Http404."""
        return found_or_404(own_assignment(assignment_id=assignment_id, rater_id=self.rater.pk))

    def own_work(self, assignment_id: int) -> tuple[Assignment, Rater]:
        """Return the assignment without its chat, and the rater, in one query. Raises Http404."""
        assignment = found_or_404(own_work(assignment_id=assignment_id, user=cast(User, self.request.user)))
        return assignment, cast(Rater, assignment.rater)

    @property
    def source(self) -> Label.Source:
        """Where the request's answers come from: a token, or the page."""
        return Label.Source.API if isinstance(self.request.auth, ApiToken) else Label.Source.SCREEN

    def handle_exception(self, exc: Exception) -> Response:
        """Answer errors of the services with 400 or 409."""
        if isinstance(exc, Conflict):
            exc = problem(exc.code, str(exc))
        elif isinstance(exc, Unanswered):
            exc = problem("unanswered", str(exc), criteria=exc.keys)
        elif isinstance(exc, Outdated):
            exc = problem("stale", str(exc), criteria=exc.keys)
        elif isinstance(exc, Incomplete):
            missing = {"criteria": exc.keys, "evidence": exc.evidence, "comment": exc.comment}
            exc = problem("incomplete", str(exc), **missing)
        elif isinstance(exc, Stale):
            exc = problem("stale", str(exc), answer=exc.current and LabelOutput(exc.current).data)
        elif isinstance(exc, FieldProblem):
            exc = field_error(exc)
        return super().handle_exception(exc)


# ---------- routes ----------


class QueueApi(RaterView):
    """The queue."""

    @extend_schema(operation_id="queue", responses={200: QueueOutput, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Your jobs with your progress."""
        return Response(QueueOutput({"jobs": queue_for(rater=self.rater).jobs}).data)


class AssignmentApi(RaterView):
    """One chat to label."""

    @extend_schema(operation_id="assignment", responses={200: AssignmentOutput, **NO_ACCESS})
    def get(self, request: Request, assignment_id: int) -> Response:
        """The chat, its criteria, and your answers and notes."""
        assignment = self.own(assignment_id)
        criteria = criteria_of(assignment.job)
        answers = answers_of(assignment=assignment, criteria=criteria)
        body = {
            "id": assignment.pk,
            "state": assignment.state,
            "job": assignment.job_id,
            "lease_expires_at": assignment.lease_expires_at,
            "revealed_at": assignment.revealed_at,
            "chat": assignment.chat,
            "criteria": criteria,
            "labels": [answers[criterion.key] for criterion in criteria if criterion.key in answers],
            "notes": own_notes(assignment=assignment),
        }
        return Response(AssignmentOutput(body).data)


class LabelApi(RaterView):
    """One answer of an assignment."""

    query_classes: ClassVar = {"DELETE": ClearInput}

    def criterion(self, assignment: Assignment, key: str) -> Criterion:
        """Return a criterion of the job. Raises Http404."""
        return found_or_404(asked_criterion(job_id=assignment.job_id, key=key))

    @extend_schema(
        operation_id="label_save",
        request=LabelInput,
        responses={200: LabelOutput, 400: INVALID, **PROBLEMS, 409: StaleOutput},
    )
    def put(self, request: Request, assignment_id: int, criterion_key: str) -> Response:
        """Save an answer. Repeating a `client_id` changes nothing and returns the same answer."""
        assignment, rater = self.own_work(assignment_id)
        criterion = self.criterion(assignment, criterion_key)
        body = validated(LabelInput, request.data)
        answer = label_save(
            assignment=assignment, rater=rater, criterion=criterion, source=self.source, **body
        )
        return Response(LabelOutput(answer).data)

    @extend_schema(
        operation_id="label_clear",
        responses={204: None, 400: INVALID, **PROBLEMS, 409: StaleOutput},
    )
    def delete(self, request: Request, assignment_id: int, criterion_key: str) -> Response:
        """Withdraw a draft answer."""
        assignment, rater = self.own_work(assignment_id)
        criterion = self.criterion(assignment, criterion_key)
        label_clear(assignment=assignment, rater=rater, criterion=criterion, **self.query)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SubmitApi(RaterView):
    """Finish a chat."""

    @extend_schema(
        operation_id="assignment_submit",
        request=SubmitInput,
        responses={200: StateOutput, 400: INVALID, **PROBLEMS, 409: IncompleteOutput},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Submit every answer. Repeating it changes nothing. All fields are optional."""
        assignment, rater = self.own_work(assignment_id)
        body = validated(SubmitInput, request.data)
        return _state(assignment_submit(assignment=assignment, rater=rater, source=self.source, **body))


class ExtendApi(RaterView):
    """Keep a chat longer."""

    @extend_schema(operation_id="assignment_extend", request=None, responses={200: LeaseOutput, **PROBLEMS})
    def post(self, request: Request, assignment_id: int) -> Response:
        """Renew the lease."""
        assignment = lease_extend(assignment=self.own(assignment_id), rater=self.rater)
        return Response(LeaseOutput({"expires_at": assignment.lease_expires_at}).data)


class SkipApi(RaterView):
    """Skip a chat."""

    @extend_schema(
        operation_id="assignment_skip",
        request=SkipInput,
        responses={200: StateOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Skip the chat with a reason; another rater gets it."""
        assignment = self.own(assignment_id)
        body = validated(SkipInput, request.data)
        text = body.get("text", "").strip()
        reason = body["reason"] + (f": {text}" if text else "")
        return _state(assignment_skip(assignment=assignment, rater=self.rater, reason=reason))


class GuidelineApi(RaterView):
    """The guidelines for a chat."""

    @extend_schema(operation_id="assignment_guideline", responses={200: GuidanceOutput, **NO_ACCESS})
    def get(self, request: Request, assignment_id: int) -> Response:
        """The texts in force, and what has changed since you last labelled by them."""
        assignment = self.own(assignment_id)
        criteria = criteria_of(assignment.job)
        guidance = guideline_for(assignment=assignment, criteria=criteria)
        body = {
            "rubric": guidance.rubric,
            "number": guidance.number,
            "text": guidance.text,
            "criteria": list(guidance.criteria.values()),
            "changes": changes_since(assignment=assignment, criteria=criteria),
            "lease_expires_at": assignment.lease_expires_at,
        }
        return Response(GuidanceOutput(body).data)


def _state(assignment: Assignment) -> Response:
    """Answer with the assignment's new state and the address of the next chat."""
    url = reverse("labeling:next", args=[assignment.job_id])
    return Response(StateOutput({"id": assignment.pk, "state": assignment.state, "next": url}).data)
