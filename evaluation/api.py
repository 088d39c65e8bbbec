"""Runs over HTTP."""

from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evaluation.selectors.runs import run_json, run_list, run_rows


class SeesJudge(BasePermission):
    """Without the permission the resource does not exist."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """True, or 404."""
        if not request.user.has_perm("labeling.see_judge"):
            raise Http404
        return True


class RunPages(CursorPagination):
    """Newest first, 100 a page."""

    page_size = 100
    ordering = "-id"


class RunList(APIView):
    """All runs."""

    permission_classes = [SeesJudge]

    @extend_schema(responses={200: OpenApiResponse(OpenApiTypes.OBJECT, description="One page of runs")})
    def get(self, request: Request) -> Response:
        """One page of runs, newest first."""
        pages = RunPages()
        page = pages.paginate_queryset(run_list(), request, view=self)
        return pages.get_paginated_response([run_json(row) for row in run_rows(page or [])])
