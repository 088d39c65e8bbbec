"""REST of labelling jobs: leads list, open, look, close and start them; raters take the next chat."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib.auth.models import Group
from django.core import exceptions
from django.db import transaction
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import FORBIDDEN, NOT_FOUND, WRONG, ProblemOutput, problem
from labeling.jobs.queries.job_page import JobPage, job_page
from labeling.jobs.queries.jobs import JobRow, job_rows
from labeling.jobs.services import job_close, job_open, job_start
from labeling.models.chats import ChatSet
from labeling.models.labels import LabelingJob
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import LabelsChats, ManagesLabeling
from labeling.people.services.roles import rater_for
from labeling.rating.queries.queue import jobs_of
from labeling.rating.services.leases import Conflict, assignment_next
from labeling.sets.queries import labellers

MOST_RATERS = 500

# ---------- what goes in and out ----------


class JobInput(serializers.Serializer[Any]):
    """A job to open; sets, criteria, accounts and the group by their names."""

    name = serializers.CharField(max_length=120)
    set = serializers.CharField()
    criteria = serializers.ListField(child=serializers.CharField(), required=False, max_length=MOST_RATERS)
    raters = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        max_length=MOST_RATERS,
        help_text="User names of accounts that may label.",
    )
    group = serializers.CharField(required=False)
    overlap = serializers.IntegerField(min_value=1, max_value=20, default=1)
    overlap_share = serializers.FloatField(required=False)
    order = serializers.ChoiceField(choices=LabelingJob.Order.choices, default=LabelingJob.Order.TOPIC)
    seed = serializers.IntegerField(min_value=0, max_value=2_147_483_647, default=0)
    due_at = serializers.DateTimeField(required=False)
    gold_set = serializers.CharField(required=False)
    gold_rate = serializers.FloatField(default=0.0)
    calibration_set = serializers.CharField(required=False)


class JobOutput(serializers.Serializer[JobRow]):
    """A job with labels submitted of those wanted, gold chats left out."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    set = serializers.CharField(source="chat_set")
    state = serializers.CharField()
    overlap = serializers.IntegerField()
    overlap_share = serializers.FloatField(allow_null=True)
    raters = serializers.ListField(child=serializers.CharField())
    group = serializers.CharField()
    due_at = serializers.DateTimeField(allow_null=True)
    submitted = serializers.IntegerField()
    wanted = serializers.IntegerField()


class RaterProgressOutput(serializers.Serializer[Any]):
    """What one rater has done in the job."""

    name = serializers.CharField()
    submitted = serializers.IntegerField()
    gold = serializers.IntegerField()
    in_work = serializers.IntegerField()
    skipped = serializers.IntegerField()
    last_at = serializers.DateTimeField(allow_null=True)


class TopicProgressOutput(serializers.Serializer[Any]):
    """Labels of one topic."""

    topic = serializers.CharField()
    chats = serializers.IntegerField()
    submitted = serializers.IntegerField()
    in_work = serializers.IntegerField()
    wanted = serializers.IntegerField()


class SkippedOutput(serializers.Serializer[Any]):
    """A chat that was given back."""

    chat = serializers.CharField()
    rater = serializers.CharField()
    reason = serializers.CharField()


class ProgressOutput(serializers.Serializer[JobPage]):
    """How far a job is; the newest 50 of the skipped chats, of those that the reader may see."""

    raters = RaterProgressOutput(many=True)
    topics = TopicProgressOutput(many=True)
    skipped = SkippedOutput(many=True)
    skipped_total = serializers.IntegerField()
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Who has not finished its calibration round."
    )


class JobDetailOutput(JobOutput):
    """One job in full."""

    criteria = serializers.ListField(child=serializers.CharField())
    order = serializers.CharField()
    seed = serializers.IntegerField()
    guideline = serializers.IntegerField(allow_null=True)
    gold_set = serializers.CharField(allow_null=True)
    gold_rate = serializers.FloatField()
    calibration = serializers.IntegerField(allow_null=True, help_text="The job that is its round.")
    progress = ProgressOutput()


class StartedJobOutput(JobOutput):
    """A started job, and who had not finished its round."""

    missing = serializers.ListField(child=serializers.CharField())


class NextInput(serializers.Serializer[Any]):
    """Which chat: the one after the chat in work, or, with false, the chat in work itself."""

    ahead = serializers.BooleanField(default=True)


class NextOutput(serializers.Serializer[Any]):
    """The chat that is the rater's now; nulls when nothing is left."""

    assignment = serializers.IntegerField(allow_null=True)
    url = serializers.CharField(allow_null=True)


class JobPages(CursorPagination):
    """Newest first, 100 a page."""

    page_size = 100
    ordering = "-id"


# ---------- routes ----------


class JobsApi(APIView):
    """All jobs."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="jobs",
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="One page of jobs"),
            403: FORBIDDEN,
            404: NOT_FOUND,
        },
    )
    def get(self, request: Request) -> Response:
        """One page of jobs, newest first."""
        pages = JobPages()
        page = pages.paginate_queryset(LabelingJob.objects.all(), request, view=self) or []
        rows = job_rows(jobs=LabelingJob.objects.filter(pk__in=[job.pk for job in page]))
        return pages.get_paginated_response([JobOutput(row).data for row in rows])

    @extend_schema(
        operation_id="job_open",
        request=JobInput,
        responses={201: JobOutput, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def post(self, request: Request) -> Response:
        """Open a job; without `criteria` it asks all that are active."""
        given = JobInput(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            with transaction.atomic():  # a refused job leaves no rater behind
                job = job_open(by=cast(User, request.user), **_asked(given.validated_data))
        except exceptions.ValidationError as refused:
            raise ValidationError(_in_its_words(refused)) from refused
        return Response(JobOutput(_row(job)).data, status=status.HTTP_201_CREATED)


class JobApi(APIView):
    """One job."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="job", responses={200: JobDetailOutput, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request, job_id: int) -> Response:
        """What it asks for and how far it is."""
        related = ("chat_set", "group", "guideline", "gold_set", "calibration__chat_set")
        job = get_object_or_404(LabelingJob.objects.select_related(*related), pk=job_id)
        more = {
            "criteria": list(
                job.criteria.order_by("dimension__position", "position").values_list("key", flat=True)
            ),
            "order": job.order,
            "seed": job.seed,
            "guideline": job.guideline.number if job.guideline else None,
            "gold_set": job.gold_set.name if job.gold_set else None,
            "gold_rate": job.gold_rate,
            "calibration": job.calibration_id,
            "progress": ProgressOutput(job_page(job=job, user=cast(User, request.user))).data,
        }
        return Response({**JobOutput(_row(job)).data, **more})


class JobCloseApi(APIView):
    """Close a job."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="job_close",
        request=None,
        responses={200: JobOutput, 403: FORBIDDEN, 404: NOT_FOUND, 409: ProblemOutput},
    )
    def post(self, request: Request, job_id: int) -> Response:
        """For good; a second time changes nothing."""
        job = get_object_or_404(LabelingJob, pk=job_id)
        return Response(JobOutput(_row(_act(job_close, job, request))).data)


class JobStartApi(APIView):
    """Start a job that waits for its calibration round."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="job_start",
        request=None,
        responses={200: StartedJobOutput, 403: FORBIDDEN, 404: NOT_FOUND, 409: ProblemOutput},
    )
    def post(self, request: Request, job_id: int) -> Response:
        """409 while nobody has finished the round."""
        started = _act(job_start, get_object_or_404(LabelingJob, pk=job_id), request)
        return Response({**JobOutput(_row(started.job)).data, "missing": list(started.missing)})


class NextApi(APIView):
    """The next chat of a rater."""

    permission_classes = [LabelsChats]

    @extend_schema(
        operation_id="job_next",
        request=NextInput,
        responses={200: NextOutput, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND, 409: ProblemOutput},
    )
    def post(self, request: Request, job_id: int) -> Response:
        """Lease the chat after the one in work, or the first; asking again gives the same one.

        409 `round_first` while the rater has chats of the job's calibration round left.
        """
        given = NextInput(data=request.data)
        given.is_valid(raise_exception=True)
        rater = rater_for(user=cast(User, request.user))
        job = jobs_of(rater_id=rater.pk).filter(pk=job_id).first()
        if job is None:
            raise Http404
        try:
            taken = assignment_next(rater=rater, job=job, ahead=given.validated_data["ahead"])
        except Conflict as refused:
            raise problem(refused.code, str(refused)) from refused
        url = reverse("labeling:rate", args=[taken.pk]) if taken else None
        return Response({"assignment": taken.pk if taken else None, "url": url})


# ---------- names to rows and back ----------


def _row(job: LabelingJob) -> JobRow:
    return job_rows(jobs=LabelingJob.objects.filter(pk=job.pk))[0]


def _act(act: Callable[..., Any], job: LabelingJob, request: Request) -> Any:
    try:
        return act(job=job, by=cast(User, request.user))
    except exceptions.ValidationError as refused:
        raise problem("refused", " ".join(refused.messages)) from refused


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The service's arguments; a name that is none is a ValidationError at its field."""
    chat_set = _set(given["set"], "set")
    rest = ("name", "overlap", "overlap_share", "order", "seed", "due_at", "gold_rate")
    return {name: given[name] for name in rest if name in given} | {
        "chat_set": chat_set,
        "criteria": _criteria(chat_set, given.get("criteria")),
        "raters": [rater_for(user=user) for user in _accounts(given.get("raters", []))],
        "group": _group(given.get("group")),
        "gold_set": _set_if_given(given, "gold_set"),
        "calibration_set": _set_if_given(given, "calibration_set"),
    }


def _set(name: str, field: str) -> ChatSet:
    found = ChatSet.objects.select_related("rubric").filter(name=name).first()
    if found is None:
        raise ValidationError({field: [f"There is no chat set {name!r}."]})
    return found


def _set_if_given(given: dict[str, Any], field: str) -> ChatSet | None:
    return _set(given[field], field) if field in given else None


def _criteria(chat_set: ChatSet, keys: list[str] | None) -> list[Criterion]:
    active = {row.key: row for row in chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)}
    if keys is None:
        return list(active.values())
    if unknown := [key for key in keys if key not in active]:
        raise ValidationError({"criteria": [f"{unknown[0]} is not active in the set's rubric."]})
    return [active[key] for key in dict.fromkeys(keys)]


def _accounts(names: list[str]) -> list[User]:
    found = {user.get_username(): user for user in labellers().filter(username__in=names)}
    if unknown := [name for name in names if name not in found]:
        raise ValidationError({"raters": [f"No account {unknown[0]!r} may label."]})
    return list(found.values())


def _group(name: str | None) -> Group | None:
    if name is None:
        return None
    found = Group.objects.filter(name=name).first()
    if found is None:
        raise ValidationError({"group": [f"There is no group {name!r}."]})
    return found


def _in_its_words(refused: exceptions.ValidationError) -> dict[str, list[str]]:
    """The service says chat_set, the API set."""
    if not hasattr(refused, "error_dict"):
        return {"detail": refused.messages}
    return {"set" if field == "chat_set" else field: text for field, text in refused.message_dict.items()}
