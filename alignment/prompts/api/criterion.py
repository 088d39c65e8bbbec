"""Criteria and the versions of their prompts over HTTP: reading, comparing, taking up again."""

from collections.abc import Sequence
from typing import Any, cast

from django.contrib.auth.models import AnonymousUser
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.prompts.queries.criterion_list import criterion_list, criterion_row
from alignment.prompts.queries.version_page import row_of
from alignment.prompts.queries.versions import VersionRow, version_rows, with_figures
from alignment.prompts.serializers import (
    CriteriaOutput,
    CriterionDetailOutput,
    VersionDetailOutput,
    VersionOutput,
    criterion_body,
    criterion_detail_body,
    version_body,
    version_detail_body,
)
from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, problem
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.services.restores import RestoreRefused, prompt_restore
from evaluation.runs.api import SeesJudge
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import WritesTexts


class RestoreInput(serializers.Serializer[Any]):
    """Why the version is taken up again."""

    reason = serializers.CharField(max_length=500)


class VersionPages(PageNumberPagination):
    """Newest first, 50 a page."""

    page_size = 50


class CriteriaApi(APIView):
    """Every criterion."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="criteria", responses={200: CriteriaOutput, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request) -> Response:
        """By rubric and dimension, retired ones last: the text in force, and how the prompts stand."""
        return Response({"criteria": [criterion_body(row) for row in criterion_list(user=request.user)]})


class CriterionApi(APIView):
    """One criterion."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="criterion", responses={200: CriterionDetailOutput, 403: FORBIDDEN, 404: NOT_FOUND}
    )
    def get(self, request: Request, key: str) -> Response:
        """The same with what the champion was measured to be on each set and split, and every release."""
        return Response(criterion_detail_body(criterion_row(_criterion(key), user=request.user)))


class PromptVersions(APIView):
    """The versions of a criterion's prompt."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="prompt_versions",
        parameters=[OpenApiParameter("page", OpenApiTypes.INT)],
        responses={200: VersionOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, key: str) -> Response:
        """Newest first, with their state, tests and measured alignment; without their texts."""
        pages = VersionPages()
        rows = cast(Any, _rows(_criterion(key)))
        page: Any = pages.paginate_queryset(rows, request, view=self)
        told = with_figures(page, of=page, user=request.user)
        return pages.get_paginated_response([version_body(row) for row in told])


class PromptVersionApi(APIView):
    """One version."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="prompt_version",
        parameters=[
            OpenApiParameter("against", OpenApiTypes.INT, description="also what changed since this version")
        ],
        responses={200: VersionDetailOutput, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request, key: str, number: int) -> Response:
        """Its text and examples; those on chats that the caller may not read are only counted."""
        rows = _rows(_criterion(key))
        row, against = _told(rows, number, request.user), request.query_params.get("against")
        other = None if against is None else _other(rows, against)
        return Response(version_detail_body(row, user=cast(User, request.user), other=other))


class PromptRestore(APIView):
    """A version taken up again."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_restore",
        request=RestoreInput,
        responses={201: VersionDetailOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, key: str, number: int) -> Response:
        """Add a version with this one's text and examples; 409 where that would say nothing new."""
        criterion = _criterion(key)
        version = get_object_or_404(PromptVersion, criterion=criterion, number=number)
        given = RestoreInput(data=request.data)
        given.is_valid(raise_exception=True)
        user = cast(User, request.user)
        try:
            added = prompt_restore(version=version, by=user, **given.validated_data)
        except RestoreRefused as refused:
            raise problem("not_restored", str(refused)) from refused
        row = _told(_rows(criterion), added.number or 0, user)
        return Response(version_detail_body(row, user=user), status=status.HTTP_201_CREATED)


def _criterion(key: str) -> Criterion:
    return get_object_or_404(Criterion.objects.select_related("dimension", "rubric"), key=key)


def _rows(criterion: Criterion) -> list[VersionRow]:
    return version_rows(criteria=[criterion])[criterion.pk]


def _told(rows: Sequence[VersionRow], number: int, user: User | AnonymousUser) -> VersionRow:
    """The version of this number, with its figures."""
    row = row_of(rows, number)
    if row is None:
        raise Http404
    return with_figures([row], of=[row], user=user)[0]


def _other(rows: Sequence[VersionRow], against: str) -> VersionRow:
    row = row_of(rows, int(against)) if against.isdecimal() and len(against) < 10 else None
    if row is None:
        raise ValidationError({"against": ["Must be the number of a version of this criterion."]})
    return row
