"""API of experiments: rates and differences, settings, and metric rows for A/B platforms."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.experiments.core.parquet import metric_parquet
from alignment.experiments.queries.documents import (
    COLUMNS,
    all_metrics,
    comparison_json,
    facts_json,
    listed_metrics,
    metric_json,
)
from alignment.experiments.queries.pages import comparison, experiment_facts, experiments
from alignment.experiments.serializers import MetricOutput, MetricsOutput, SettingsInput, settings_of
from alignment.experiments.services import ExperimentSettings, experiment_change
from alignment.models.experiments import Experiment
from common.api import (
    INVALID,
    NO_ACCESS,
    ApiView,
    DownloadView,
    PagedList,
    QueryInput,
    field_error,
    number_parameter,
    validated,
)
from common.files import csv_lines
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.people.api.permissions import ReadsMetrics
from labeling.people.services.audit import audit

ROWS_A_PAGE, MOST_ROWS_A_PAGE = 1000, 10_000
CSV, PARQUET = "csv", "parquet"
TYPES = {CSV: "text/csv; charset=utf-8", PARQUET: "application/vnd.apache.parquet"}
DOCUMENT = OpenApiResponse(OpenApiTypes.OBJECT, description="docs/reference/api.md, Documents")


def _experiment(key: str) -> Experiment:
    return get_object_or_404(experiments(), key=key)


@extend_schema_view(get=extend_schema(operation_id="experiments", responses={200: DOCUMENT, **NO_ACCESS}))
class ExperimentList(PagedList[Experiment]):
    """One page of experiments, newest first."""

    permission_classes = [ReadsMetrics]
    serializer_class = serializers.Serializer[Any]

    def get_queryset(self) -> QuerySet[Experiment]:
        """Return every experiment."""
        return experiments()

    def results(self, page: Sequence[Experiment]) -> Any:
        """Return their variants, units and sample-ratio checks."""
        return [facts_json(one) for one in experiment_facts(page)]


class ExperimentDetail(ApiView):
    """One experiment."""

    permission_classes = [ReadsMetrics]

    @extend_schema(operation_id="experiment", responses={200: DOCUMENT, **NO_ACCESS})
    def get(self, request: Request, experiment_key: str) -> Response:
        """Rates by criterion and variant, and the differences to the control."""
        return Response(comparison_json(comparison(_experiment(experiment_key), user=request.user)))

    @extend_schema(
        operation_id="experiment_change",
        request=SettingsInput,
        responses={200: DOCUMENT, 400: INVALID, **NO_ACCESS},
    )
    def patch(self, request: Request, experiment_key: str) -> Response:
        """Change control, expected shares, start or alpha. The experiment is counted again soon."""
        row = _experiment(experiment_key)
        if not request.user.has_perm("labeling.manage_labeling"):
            raise Http404
        settings = settings_of(ExperimentSettings.of(row), validated(SettingsInput, request.data))
        try:
            experiment_change(row=row, settings=settings, by=cast(User, request.user))
        except FieldProblem as problem:
            raise field_error(problem) from problem
        return Response(facts_json(experiment_facts([_experiment(experiment_key)])[0]))


class MetricsQuery(QueryInput):
    """Where to go on, and how far."""

    cursor = serializers.CharField(required=False, help_text="From the last answer; default: the beginning.")
    page_size = number_parameter(
        "page_size", most=MOST_ROWS_A_PAGE, help_text=f"Rows per page, default {ROWS_A_PAGE}."
    )


class ExperimentMetrics(ApiView):
    """Metric rows of an experiment, page by page."""

    permission_classes = [ReadsMetrics]
    query_classes: ClassVar = {"GET": MetricsQuery}

    @extend_schema(
        operation_id="experiment_metrics", responses={200: MetricsOutput, 400: INVALID, **NO_ACCESS}
    )
    def get(self, request: Request, experiment_key: str) -> Response:
        """Rows in the order in which they were added. The cursor also goes on after the last page, later."""
        row, size = _experiment(experiment_key), int(self.query.get("page_size") or ROWS_A_PAGE)
        after = _read_cursor(self.query.get("cursor", "0"))
        found = list(listed_metrics(row, user=request.user, after=after)[: size + 1])
        page = found[:size]
        answer = {
            "results": MetricOutput([metric_json(row, one) for one in page], many=True).data,
            "cursor": str(page[-1].pk if page else after),
            "has_more": len(found) > size,
        }
        return Response(answer)


def _read_cursor(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ValidationError({"cursor": [f"There is no cursor {text!r}."]})
    return int(text)


class ExperimentExport(DownloadView):
    """All metric rows of an experiment as a download."""

    permission_classes = [ReadsMetrics]

    @extend_schema(
        operation_id="experiment_export",
        parameters=[OpenApiParameter("form", OpenApiTypes.STR, OpenApiParameter.PATH, enum=list(TYPES))],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, TYPES[PARQUET]): OpenApiTypes.BINARY}
        | NO_ACCESS,
    )
    def get(self, request: Request, experiment_key: str, form: str) -> StreamingHttpResponse:
        """A row for each chat and criterion, streamed, as CSV or Parquet."""
        if form not in TYPES:
            raise Http404
        row = _experiment(experiment_key)
        with transaction.atomic():
            audit(actor=cast(User, request.user), verb="metrics exported", obj=row, format=form)
        lines = all_metrics(row, user=request.user)
        pieces: Iterable[Any]
        if form == CSV:
            pieces = csv_lines((one | {"timestamp": one["timestamp"].isoformat()} for one in lines), COLUMNS)
        else:
            pieces = metric_parquet(lines)
        name = f"experiment-{row.pk}-metrics.{form}"
        return StreamingHttpResponse(
            pieces,
            content_type=TYPES[form],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
