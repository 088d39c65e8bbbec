"""REST of the rater's side: own queue, own assignments, own answers."""

from typing import cast

from django.http import Http404
from django.urls import reverse
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, LabelsChats, problem
from common.problems import FieldProblem
from labeling.models.labels import Assignment, Label
from labeling.models.people import ApiToken, Rater, User
from labeling.models.rubric import Criterion
from labeling.people.services.roles import rater_for
from labeling.rating.queries.labels import answers_of, asked_criterion, own_assignment, own_work
from labeling.rating.queries.notes import own_notes
from labeling.rating.queries.queue import queue_for
from labeling.rating.serializers import (
    AssignmentOutput,
    ClearInput,
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


class RaterView(APIView):
    """Routes of the rater behind the session."""

    permission_classes = [LabelsChats]

    @cached_property
    def rater(self) -> Rater:
        """The rater who is signed in."""
        return rater_for(user=cast(User, self.request.user))

    def own(self, assignment_id: int) -> Assignment:
        """The rater's own assignment; anybody else's doesn't exist."""
        assignment = own_assignment(assignment_id=assignment_id, rater_id=self.rater.pk)
        if assignment is None:
            raise Http404
        return assignment

    def own_work(self, assignment_id: int) -> tuple[Assignment, Rater]:
        """The same in one query, without the chat, for what only writes."""
        assignment = own_work(assignment_id=assignment_id, user=cast(User, self.request.user))
        if assignment is None:
            raise Http404
        return assignment, cast(Rater, assignment.rater)

    @property
    def source(self) -> Label.Source:
        """Where an answer of this request comes from."""
        return Label.Source.API if isinstance(self.request.auth, ApiToken) else Label.Source.SCREEN

    def handle_exception(self, exc: Exception) -> Response:
        """The services' own errors as 400 and 409."""
        if isinstance(exc, Conflict):
            exc = problem(exc.code, str(exc))
        elif isinstance(exc, Unanswered):
            exc = problem("unanswered", str(exc), criteria=exc.keys)
        elif isinstance(exc, Outdated):
            exc = problem("stale", str(exc), criteria=exc.keys)
        elif isinstance(exc, Incomplete):
            lacking = {"criteria": exc.keys, "evidence": exc.evidence, "comment": exc.comment}
            exc = problem("incomplete", str(exc), **lacking)
        elif isinstance(exc, Stale):
            exc = problem("stale", str(exc), answer=exc.current and LabelOutput(exc.current).data)
        elif isinstance(exc, FieldProblem):
            exc = ValidationError({exc.field: [exc.message]})
        return super().handle_exception(exc)


# ---------- routes ----------


class QueueApi(RaterView):
    """The queue."""

    @extend_schema(operation_id="queue", responses={200: QueueOutput, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request) -> Response:
        """Own jobs with own numbers."""
        return Response(QueueOutput({"jobs": queue_for(rater=self.rater).jobs}).data)


class AssignmentApi(RaterView):
    """One chat to label."""

    @extend_schema(
        operation_id="assignment", responses={200: AssignmentOutput, 403: FORBIDDEN, 404: NOT_FOUND}
    )
    def get(self, request: Request, assignment_id: int) -> Response:
        """The chat, the criteria and the own answers."""
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

    def criterion(self, assignment: Assignment, key: str) -> Criterion:
        """A criterion that the job asks."""
        found = asked_criterion(job_id=assignment.job_id, key=key)
        if found is None:
            raise Http404
        return found

    @extend_schema(
        operation_id="label_save",
        request=LabelInput,
        responses={
            200: LabelOutput,
            400: WRONG,
            **PROBLEMS,
            409: StaleOutput,
        },
    )
    def put(self, request: Request, assignment_id: int, criterion_key: str) -> Response:
        """Save an answer; the same `client_id` again changes nothing and answers the same."""
        assignment, rater = self.own_work(assignment_id)
        criterion = self.criterion(assignment, criterion_key)
        given = LabelInput(data=request.data)
        given.is_valid(raise_exception=True)
        answer = label_save(
            assignment=assignment,
            rater=rater,
            criterion=criterion,
            source=self.source,
            **given.validated_data,
        )
        return Response(LabelOutput(answer).data)

    @extend_schema(
        operation_id="label_clear",
        parameters=[ClearInput],
        responses={204: None, 400: WRONG, **PROBLEMS, 409: StaleOutput},
    )
    def delete(self, request: Request, assignment_id: int, criterion_key: str) -> Response:
        """Withdraw a draft answer."""
        assignment, rater = self.own_work(assignment_id)
        criterion = self.criterion(assignment, criterion_key)
        given = ClearInput(data=request.query_params)
        given.is_valid(raise_exception=True)
        label_clear(assignment=assignment, rater=rater, criterion=criterion, **given.validated_data)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SubmitApi(RaterView):
    """Finish a chat."""

    @extend_schema(
        operation_id="assignment_submit",
        request=SubmitInput,
        responses={200: StateOutput, 400: WRONG, **PROBLEMS, 409: IncompleteOutput},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Submit every answer; a second time changes nothing. Everything in the body may be left out."""
        assignment, rater = self.own_work(assignment_id)
        given = SubmitInput(data=request.data)
        given.is_valid(raise_exception=True)
        submitted = assignment_submit(
            assignment=assignment, rater=rater, source=self.source, **given.validated_data
        )
        return state_of(submitted)


class ExtendApi(RaterView):
    """Hold a chat longer."""

    @extend_schema(operation_id="assignment_extend", request=None, responses={200: LeaseOutput, **PROBLEMS})
    def post(self, request: Request, assignment_id: int) -> Response:
        """Begin the lease anew."""
        held = lease_extend(assignment=self.own(assignment_id), rater=self.rater)
        return Response(LeaseOutput({"expires_at": held.lease_expires_at}).data)


class SkipApi(RaterView):
    """Give a chat back."""

    @extend_schema(
        operation_id="assignment_skip",
        request=SkipInput,
        responses={200: StateOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        """Skip with a reason; another rater gets the chat."""
        assignment = self.own(assignment_id)
        given = SkipInput(data=request.data)
        given.is_valid(raise_exception=True)
        text = given.validated_data.get("text", "").strip()
        reason = given.validated_data["reason"] + (f": {text}" if text else "")
        return state_of(assignment_skip(assignment=assignment, rater=self.rater, reason=reason))


def state_of(assignment: Assignment) -> Response:
    """An assignment's new state with the way to the next chat."""
    following = reverse("labeling:next", args=[assignment.job_id])
    return Response(StateOutput({"id": assignment.pk, "state": assignment.state, "next": following}).data)
