"""API of criteria and of single prompt versions: reading, comparing and restoring."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.contrib.auth.models import AnonymousUser
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.prompts.queries.criterion_list import criterion_list, criterion_row
from alignment.prompts.queries.version_page import row_of
from alignment.prompts.queries.versions import VersionRow, version_rows, with_figures
from alignment.prompts.serializers import (
    CriteriaOutput,
    CriterionDetailOutput,
    VersionDetailOutput,
    criterion_body,
    criterion_detail_body,
    version_detail_body,
)
from common.access import found_or_404
from common.api import INVALID, NO_ACCESS, PROBLEMS, ApiView, QueryInput, number_parameter, problem, validated
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.services.restores import RestoreRefused, prompt_restore
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import SeesJudge, WritesTexts


class RestoreInput(serializers.Serializer[Any]):
    """Why the version is restored."""

    reason = serializers.CharField(max_length=500)


class AgainstQuery(QueryInput):
    """The version to compare with."""

    against = number_parameter("against", help_text="Also return the changes since this version.")


class CriteriaApi(ApiView):
    """Every criterion."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="criteria", responses={200: CriteriaOutput, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Criteria by rubric and dimension, retired ones last, with the text in force and the champion."""
        return Response({"criteria": [criterion_body(row) for row in criterion_list(user=request.user)]})


class CriterionApi(ApiView):
    """One criterion."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="criterion", responses={200: CriterionDetailOutput, **NO_ACCESS})
    def get(self, request: Request, key: str) -> Response:
        """The criterion with the champion's alignment by set and split, and all releases."""
        return Response(criterion_detail_body(criterion_row(criterion_or_404(key), user=request.user)))


class PromptVersionApi(ApiView):
    """One version."""

    permission_classes = [SeesJudge]
    query_classes: ClassVar = {"GET": AgainstQuery}

    @extend_schema(
        operation_id="prompt_version",
        responses={200: VersionDetailOutput, 400: INVALID, **NO_ACCESS},
    )
    def get(self, request: Request, key: str, number: int) -> Response:
        """The version's text and examples. Examples from chats you cannot see are only counted."""
        rows = criterion_versions(criterion_or_404(key))
        row, against = _version(rows, number, request.user), self.query.get("against")
        other = None if against is None else _other(rows, against)
        return Response(version_detail_body(row, user=cast(User, request.user), other=other))


class PromptRestore(ApiView):
    """Restoring a version."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_restore",
        request=RestoreInput,
        responses={201: VersionDetailOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, key: str, number: int) -> Response:
        """Add a version with the text and examples of this one.

        409 with the reason, such as that the champion or the newest version is the same.
        """
        criterion = criterion_or_404(key)
        version = get_object_or_404(PromptVersion, criterion=criterion, number=number)
        body, user = validated(RestoreInput, request.data), cast(User, request.user)
        try:
            added = prompt_restore(version=version, by=user, **body)
        except RestoreRefused as refused:
            raise problem("not_restored", str(refused)) from refused
        row = _version(criterion_versions(criterion), added.number or 0, user)
        return Response(version_detail_body(row, user=user), status=status.HTTP_201_CREATED)


def criterion_or_404(key: str) -> Criterion:
    """Return the criterion with its rubric and dimension. Raises Http404."""
    return get_object_or_404(Criterion.objects.select_related("dimension", "rubric"), key=key)


def criterion_versions(criterion: Criterion) -> list[VersionRow]:
    """Return the versions of the criterion's prompt, newest first."""
    return version_rows(criteria=[criterion])[criterion.pk]


def _version(rows: Sequence[VersionRow], number: int, user: User | AnonymousUser) -> VersionRow:
    """Return the version with this number, with its figures. Raises Http404."""
    row = found_or_404(row_of(rows, number))
    return with_figures([row], of=[row], user=user)[0]


def _other(rows: Sequence[VersionRow], against: int) -> VersionRow:
    row = row_of(rows, against)
    if row is None:
        raise ValidationError({"against": [f"This criterion has no version {against}."]})
    return row
