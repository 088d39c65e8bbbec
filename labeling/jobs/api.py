"""API of labelling jobs: leads list, open, read, close and start them; raters lease the next chat."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from django.contrib.auth.models import Group
from django.core import exceptions
from django.db import transaction
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from common.access import found_or_404
from common.api import INVALID, NO_ACCESS, PROBLEMS, ApiView, PagedList, problem, validated
from labeling.jobs.queries.job_page import JobPage, job_page
from labeling.jobs.queries.jobs import JobRow, job_rows
from labeling.jobs.services import job_close, job_open, job_raters_add, job_start
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

# ---------- bodies ----------


class JobInput(serializers.Serializer[Any]):
    """A job to open; chat sets, raters and the group by name, criteria by key."""

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
    """A job with its `submitted` and required (`wanted`) labels, without gold chats.

    `unreachable` of the wanted labels can be given by nobody: too few raters are left for their chats.
    """

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
    unreachable = serializers.IntegerField()


class RaterProgressOutput(serializers.Serializer[Any]):
    """A rater's progress in the job."""

    name = serializers.CharField()
    submitted = serializers.IntegerField()
    gold = serializers.IntegerField()
    in_work = serializers.IntegerField()
    skipped = serializers.IntegerField()
    last_at = serializers.DateTimeField(allow_null=True)
    unavailable = serializers.CharField(help_text="Why they can label nothing any more; empty if they can.")


class TopicProgressOutput(serializers.Serializer[Any]):
    """Progress of one topic."""

    topic = serializers.CharField()
    chats = serializers.IntegerField()
    submitted = serializers.IntegerField()
    in_work = serializers.IntegerField()
    wanted = serializers.IntegerField()


class SkippedOutput(serializers.Serializer[Any]):
    """A skipped chat."""

    chat = serializers.CharField()
    rater = serializers.CharField()
    reason = serializers.CharField()


class DroppedOutput(serializers.Serializer[Any]):
    """Labels on a criterion that answer older texts (`versions`) than the one that counts (`counting`)."""

    criterion = serializers.CharField(source="key")
    labels = serializers.IntegerField()
    versions = serializers.ListField(child=serializers.IntegerField())
    counting = serializers.IntegerField()


class ProgressOutput(serializers.Serializer[JobPage]):
    """Progress of a job. `skipped` lists the newest 50 skipped chats that you can see."""

    raters = RaterProgressOutput(many=True)
    topics = TopicProgressOutput(many=True)
    skipped = SkippedOutput(many=True)
    skipped_total = serializers.IntegerField()
    dropped_labels = DroppedOutput(many=True, source="dropped")
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Raters with an unfinished calibration round."
    )


class JobDetailOutput(JobOutput):
    """One job in full."""

    criteria = serializers.ListField(child=serializers.CharField())
    order = serializers.CharField()
    seed = serializers.IntegerField()
    guideline = serializers.IntegerField(allow_null=True)
    gold_set = serializers.CharField(allow_null=True)
    gold_rate = serializers.FloatField()
    calibration = serializers.IntegerField(allow_null=True, help_text="Id of its calibration round.")
    progress = ProgressOutput()


class RatersInput(serializers.Serializer[Any]):
    """Accounts to add to a job."""

    raters = serializers.ListField(
        child=serializers.CharField(),
        max_length=MOST_RATERS,
        help_text="User names of accounts that may label.",
    )


class StartedJobOutput(JobOutput):
    """A started job; `missing` lists raters with an unfinished calibration round."""

    missing = serializers.ListField(child=serializers.CharField())


class NextInput(serializers.Serializer[Any]):
    """`ahead`: true for the chat after the one in progress, false for the one in progress."""

    ahead = serializers.BooleanField(default=True)


class NextOutput(serializers.Serializer[Any]):
    """The rater's leased chat; both fields are null when the queue is empty."""

    assignment = serializers.IntegerField(allow_null=True)
    url = serializers.CharField(allow_null=True)


# ---------- routes ----------


@extend_schema_view(
    get=extend_schema(
        operation_id="jobs",
        responses={200: JobOutput(many=True), **NO_ACCESS},
    )
)
class JobsApi(PagedList[Any]):
    """One page of jobs, newest first."""

    permission_classes = [ManagesLabeling]
    serializer_class = JobOutput
    queryset = LabelingJob.objects.all()

    def results(self, page: Sequence[LabelingJob]) -> Any:
        """Return the page's jobs with their progress."""
        rows = job_rows(jobs=LabelingJob.objects.filter(pk__in=[job.pk for job in page]))
        return super().results(rows)

    @extend_schema(
        operation_id="job_open", request=JobInput, responses={201: JobOutput, 400: INVALID, **NO_ACCESS}
    )
    def post(self, request: Request) -> Response:
        """Open a job. Without `criteria` it asks every active criterion."""
        body = validated(JobInput, request.data)
        try:
            with transaction.atomic():  # a refused job creates no rater
                job = job_open(by=cast(User, request.user), **_arguments(body))
        except exceptions.ValidationError as refused:
            raise ValidationError(_by_api_field(refused)) from refused
        return Response(JobOutput(_row(job)).data, status=status.HTTP_201_CREATED)


class JobApi(ApiView):
    """One job."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="job", responses={200: JobDetailOutput, **NO_ACCESS})
    def get(self, request: Request, job_id: int) -> Response:
        """The job's settings and progress."""
        related = ("chat_set", "group", "guideline", "gold_set", "calibration__chat_set")
        job = get_object_or_404(LabelingJob.objects.select_related(*related), pk=job_id)
        details = {
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
        return Response({**JobOutput(_row(job)).data, **details})


class JobCloseApi(ApiView):
    """Close a job."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="job_close",
        request=None,
        responses={200: JobOutput, **PROBLEMS},
    )
    def post(self, request: Request, job_id: int) -> Response:
        """Close the job permanently. Repeating it changes nothing."""
        job = get_object_or_404(LabelingJob, pk=job_id)
        return Response(JobOutput(_row(_act(job_close, job, request))).data)


class JobRatersApi(ApiView):
    """Add raters to a job."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="job_raters_add",
        request=RatersInput,
        responses={200: JobOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, job_id: int) -> Response:
        """Add raters to the job and its calibration round. Repeating it changes nothing."""
        job = get_object_or_404(LabelingJob, pk=job_id)
        accounts = _accounts(validated(RatersInput, request.data)["raters"])
        with transaction.atomic():  # a refused change creates no rater
            raters = [rater_for(user=user) for user in accounts]
            _act(partial(job_raters_add, raters=raters), job, request)
        return Response(JobOutput(_row(job)).data)


class JobStartApi(ApiView):
    """Start a job that waits for its calibration round."""

    permission_classes = [ManagesLabeling]

    @extend_schema(
        operation_id="job_start",
        request=None,
        responses={200: StartedJobOutput, **PROBLEMS},
    )
    def post(self, request: Request, job_id: int) -> Response:
        """Start the job. 409 until a rater has finished the calibration round."""
        started = _act(job_start, get_object_or_404(LabelingJob, pk=job_id), request)
        return Response({**JobOutput(_row(started.job)).data, "missing": list(started.missing)})


class NextApi(ApiView):
    """The next chat of a rater."""

    permission_classes = [LabelsChats]

    @extend_schema(
        operation_id="job_next",
        request=NextInput,
        responses={200: NextOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, job_id: int) -> Response:
        """Lease the chat after the one in progress, or the first. Repeating it returns the same chat.

        409 `round_first`: finish the job's calibration round first.
        """
        ahead = validated(NextInput, request.data)["ahead"]
        rater = rater_for(user=cast(User, request.user))
        job = found_or_404(jobs_of(rater_id=rater.pk).filter(pk=job_id).first())
        try:
            assignment = assignment_next(rater=rater, job=job, ahead=ahead)
        except Conflict as refused:
            raise problem(refused.code, str(refused)) from refused
        if assignment is None:
            return Response({"assignment": None, "url": None})
        return Response({"assignment": assignment.pk, "url": reverse("labeling:rate", args=[assignment.pk])})


# ---------- names in the body, rows in the services ----------


def _row(job: LabelingJob) -> JobRow:
    return job_rows(jobs=LabelingJob.objects.filter(pk=job.pk))[0]


def _act(act: Callable[..., Any], job: LabelingJob, request: Request) -> Any:
    try:
        return act(job=job, by=cast(User, request.user))
    except exceptions.ValidationError as refused:
        raise problem("refused", " ".join(refused.messages)) from refused


def _arguments(body: dict[str, Any]) -> dict[str, Any]:
    """Return the service's arguments. Raises ValidationError with the field of an unknown name."""
    chat_set = _set(body["set"], "set")
    same = ("name", "overlap", "overlap_share", "order", "seed", "due_at", "gold_rate")
    return {name: body[name] for name in same if name in body} | {
        "chat_set": chat_set,
        "criteria": _criteria(chat_set, body.get("criteria")),
        "raters": [rater_for(user=user) for user in _accounts(body.get("raters", []))],
        "group": _group(body.get("group")),
        "gold_set": _optional_set(body, "gold_set"),
        "calibration_set": _optional_set(body, "calibration_set"),
    }


def _set(name: str, field: str) -> ChatSet:
    chat_set = ChatSet.objects.select_related("rubric").filter(name=name).first()
    if chat_set is None:
        raise ValidationError({field: [f"There is no chat set {name!r}."]})
    return chat_set


def _optional_set(body: dict[str, Any], field: str) -> ChatSet | None:
    return _set(body[field], field) if field in body else None


def _criteria(chat_set: ChatSet, keys: list[str] | None) -> list[Criterion]:
    active = {row.key: row for row in chat_set.rubric.criteria.filter(state=Criterion.State.ACTIVE)}
    if keys is None:
        return list(active.values())
    if unknown := [key for key in keys if key not in active]:
        raise ValidationError({"criteria": [f"{unknown[0]} is not active in the set's rubric."]})
    return [active[key] for key in dict.fromkeys(keys)]


def _accounts(names: list[str]) -> list[User]:
    accounts = {user.get_username(): user for user in labellers().filter(username__in=names)}
    if unknown := [name for name in names if name not in accounts]:
        raise ValidationError({"raters": [f"No account {unknown[0]!r} may label."]})
    return list(accounts.values())


def _group(name: str | None) -> Group | None:
    if name is None:
        return None
    group = Group.objects.filter(name=name).first()
    if group is None:
        raise ValidationError({"group": [f"There is no group {name!r}."]})
    return group


def _by_api_field(refused: exceptions.ValidationError) -> dict[str, list[str]]:
    """Return the messages by the API's field: the service's `chat_set` is `set`."""
    if not hasattr(refused, "error_dict"):
        return {"detail": refused.messages}
    return {"set" if field == "chat_set" else field: text for field, text in refused.message_dict.items()}
