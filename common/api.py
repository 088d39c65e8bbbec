"""Shared by the whole API: permissions, request bodies, errors, outputs and pages of lists."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar, cast

from django.db import models
from django.http import Http404
from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.metadata import SimpleMetadata
from rest_framework.pagination import (
    BasePagination,
    CursorPagination,
    LimitOffsetPagination,
    PageNumberPagination,
)
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.problems import FieldProblem

Row = TypeVar("Row", bound=models.Model)

# ---------- permissions ----------


class RequiredPermission(IsAuthenticated):
    """A route that users without `permission` cannot find; each subclass names the permission."""

    permission: ClassVar[str]

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return False without a sign-in. Raises Http404, not 403, without the permission."""
        if not super().has_permission(request, view):
            return False
        if not request.user.has_perm(self.permission):
            raise Http404
        return True


class DownloadView(APIView):
    """A file to download, whose address has the format."""

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Ignore the header Accept."""
        return super().perform_content_negotiation(request, force=True)


class PostPermission(APIView):
    """A route where POST requires `post_permission`, every other method `permission_classes`."""

    post_permission: ClassVar[type[RequiredPermission]]

    def get_permissions(self) -> Sequence[BasePermission]:
        """Return the permission for the request's method."""
        if self.request.method == "POST":
            return [self.post_permission()]
        return cast(Sequence[BasePermission], super().get_permissions())


# ---------- request bodies ----------


class AnswerInput(serializers.Serializer[Any]):
    """An answer: `value` is true, false, or null for not applicable."""

    value = serializers.BooleanField(allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse values such as "yes" and 1, which the field alone would accept."""
        value = cast(Mapping[str, Any], self.initial_data).get("value")
        if value is not None and not isinstance(value, bool):
            raise serializers.ValidationError({"value": "Must be true, false or null."})
        return attrs


class StrictInput(serializers.Serializer[Any]):
    """A body without unknown fields."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """NB: a misspelt setting must be refused: ignoring it may cost money or release a prompt."""
        body = self.initial_data if isinstance(self.initial_data, dict) else {}
        if unknown := {str(name): ["Unknown field."] for name in body if name not in self.fields}:
            raise serializers.ValidationError(unknown)
        return attrs


def validated(body: type[serializers.Serializer[Any]], data: Any, **options: Any) -> dict[str, Any]:
    """Return the fields of a request body. Raises ValidationError, by field."""
    serializer = body(data=data, **options)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


# ---------- errors ----------


class ProblemOutput(serializers.Serializer[Any]):
    """Why the request was refused; `code` is for programs."""

    detail = serializers.CharField()
    code = serializers.CharField()


class ConflictResponse(APIException):
    """A 409 with a code."""

    status_code = status.HTTP_409_CONFLICT


def problem(code: str, message: str, **more: Any) -> ConflictResponse:
    """Return a 409 with the body {"detail", "code", …}."""
    error = ConflictResponse()
    error.detail = cast(Any, {"detail": message, "code": code, **more})
    return error


def field_error(problem: FieldProblem) -> ValidationError:
    """Return a 400 with the problem's message under its field."""
    return ValidationError({problem.field: [problem.message]})


NOT_FOUND = OpenApiResponse(description="Not found, or no permission.")
FORBIDDEN = OpenApiResponse(description="Not signed in, or the CSRF token is missing.")
INVALID = OpenApiResponse(description="Invalid input: messages by field.")
NO_ACCESS: dict[int, Any] = {403: FORBIDDEN, 404: NOT_FOUND}
PROBLEMS: dict[int, Any] = {**NO_ACCESS, 409: ProblemOutput}


# ---------- outputs ----------


class RowOutput(serializers.ModelSerializer[Row]):
    """A row as an answer shows it: the types of the model's fields, without their limits for input."""

    def build_standard_field(self, field_name: str, model_field: Any) -> tuple[Any, dict[str, Any]]:
        """Return a plain field for a column: choices become text, and only `allow_null` is kept."""
        field, options = super().build_standard_field(field_name, model_field)
        if field is serializers.ChoiceField:
            field = serializers.CharField
        return field, {"allow_null": True} if options.get("allow_null") else {}


# ---------- pages of lists ----------

PageStyle = Literal["cursor", "number", "offset"]


class Pages(BasePagination):
    """One page of a list, configured by the attributes of its `PagedView`.

    A page has `results`, and in `next` and `previous` the addresses of its neighbours, null at the ends.
    Pages by number or offset also have `count`.
    """

    style: Any = CursorPagination()

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Return the rows of the page that the request asks for."""
        self.style = _STYLES[view.page_style](view)
        return self.style.paginate_queryset(queryset, request, view)

    def links(self) -> dict[str, str | None]:
        """Return the addresses of the neighbouring pages."""
        return {"next": self.style.get_next_link(), "previous": self.style.get_previous_link()}

    def get_paginated_response(self, data: Any) -> Response:
        """Return the page's answer."""
        return cast(Response, self.style.get_paginated_response(data))

    def get_paginated_response_schema(self, schema: Any) -> Any:
        """Return the OpenAPI schema of a page."""
        return self.style.get_paginated_response_schema(schema)

    def get_schema_operation_parameters(self, view: Any) -> Any:
        """Return the OpenAPI description of the query parameters."""
        return _STYLES[view.page_style](view).get_schema_operation_parameters(view)


class RouteMetadata(SimpleMetadata):
    """The answer to OPTIONS: a route's name and formats. Its fields are in the OpenAPI document."""

    def determine_actions(self, request: Request, view: APIView) -> dict[str, Any]:
        """Return no fields: those of a list's entries are not those that POST expects."""
        return {}


class PagedView(GenericAPIView[Row]):
    """A route with a list in pages; subclasses set the pages' size, order and style."""

    page_style: ClassVar[PageStyle] = "cursor"
    page_size = 100
    page_order = "-id"  # of pages by cursor
    largest_page: int | None = None  # the most that callers may ask for
    metadata_class = RouteMetadata

    @cached_property
    def paginator(self) -> Pages:
        """NB: `pagination_class` only puts the page into the OpenAPI schema, which some lists leave out."""
        return Pages()


class PagedList(PagedView[Row], ListAPIView[Row]):
    """A list in pages."""

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer with one page."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.results(page or []))

    def results(self, page: Sequence[Any]) -> Any:
        """Return the entries of a page; by default as the serializer shows its rows."""
        return self.get_serializer(page, many=True).data


def _by_cursor(view: Any) -> CursorPagination:
    pages = CursorPagination()
    pages.page_size, pages.ordering = view.page_size, view.page_order
    if view.largest_page:
        pages.page_size_query_param, pages.max_page_size = "page_size", view.largest_page
    return pages


def _by_number(view: Any) -> PageNumberPagination:
    pages = PageNumberPagination()
    pages.page_size = view.page_size
    return pages


def _by_offset(view: Any) -> LimitOffsetPagination:
    pages = LimitOffsetPagination()
    pages.default_limit, pages.max_limit = view.page_size, view.largest_page
    return pages


_STYLES = {"cursor": _by_cursor, "number": _by_number, "offset": _by_offset}
