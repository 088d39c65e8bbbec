"""Shared by the whole API: permissions, query parameters, bodies, errors, outputs and pages of lists."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar, cast

from django.db import models
from django.http import Http404, QueryDict
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, NotFound, ValidationError
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


# ---------- query parameters ----------


class QueryInput(serializers.Serializer[Any]):
    """The query parameters of a route. Others, one given twice, and invalid values are refused by name.

    Used without fields by routes that take none. In lists, `context["paging"]` adds those of the page.
    """

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the filters, then the parameters of the page."""
        return {**super().get_fields(), **self.context.get("paging", {})}

    def to_internal_value(self, data: QueryDict) -> Any:
        """Return the values. Raises ValidationError, by parameter."""
        if problems := {name: [text] for name in sorted(data) if (text := self._problem(name, data))}:
            raise ValidationError(problems)
        return super().to_internal_value(data)

    def _problem(self, name: str, data: QueryDict) -> str:
        if name not in self.fields:
            names = ", ".join(self.fields)
            return f"There is no parameter {name!r}: " + (
                f"known are {names}." if names else "none is known here."
            )
        if len(data.getlist(name)) > 1 and not isinstance(self.fields[name], serializers.ListField):
            return f"{name} is given more than once."
        return "" if all(data.getlist(name)) else f"{name} is empty: give a value, or leave it out."


def choice_parameter(name: str, values: Sequence[str], **options: Any) -> serializers.ChoiceField:
    """Return an optional parameter with one of these values."""
    wrong = f"{name} must be one of {', '.join(values)}, not '{{input}}'."
    return serializers.ChoiceField(
        list(values), required=False, error_messages={"invalid_choice": wrong}, **options
    )


class WholeNumber(serializers.IntegerField):
    """Digits alone: the paginators read the text themselves, and would not understand 10.0."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the number. Raises ValidationError."""
        if not (str(data).isascii() and str(data).isdecimal()):
            self.fail("invalid")
        return super().to_internal_value(data)


def number_parameter(
    name: str, *, least: int = 1, most: int = 2**31 - 1, **options: Any
) -> serializers.IntegerField:
    """Return an optional parameter with a whole number."""
    wrong = f"{name} must be a whole number from {least:,} to {most:,}."
    messages: dict[str, Any] = dict.fromkeys(
        ("invalid", "min_value", "max_value", "max_string_length"), wrong
    )
    return WholeNumber(min_value=least, max_value=most, required=False, error_messages=messages, **options)


def row_parameter(
    what: str, rows: models.QuerySet[Any], field: str, **options: Any
) -> "serializers.SlugRelatedField[Any]":
    """Return an optional parameter that names a row by this field."""
    messages: dict[str, Any] = dict.fromkeys(
        ("does_not_exist", "invalid"), f"There is no {what} '{{value}}'."
    )
    return serializers.SlugRelatedField(
        slug_field=field, queryset=rows, required=False, error_messages=messages, **options
    )


class ApiView(APIView):
    """A route of the API: it takes no query parameters but those that `query_classes` has for its method."""

    query_classes: ClassVar[Mapping[str, type[QueryInput]]] = {}
    query: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check permissions, then the query. Raises ValidationError, by parameter."""
        super().initial(request, *args, **kwargs)
        query = self.query_input("GET" if request.method == "HEAD" else str(request.method))
        query.initial_data = request.query_params
        query.is_valid(raise_exception=True)
        self.query = dict(query.validated_data)

    def query_input(self, method: str) -> QueryInput:
        """Return the query parameters of a method; the OpenAPI document lists the same ones."""
        paging = self.paging_parameters() if method == "GET" else {}
        context = {"request": self.request, "paging": paging}
        return self.query_classes.get(method, QueryInput)(data=QueryDict(), context=context)

    def paging_parameters(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the parameters that choose a page: none, unless the route is a list in pages."""
        return {}


class ApiSchema(AutoSchema):
    """The OpenAPI description of a route, with the query parameters that it reads."""

    def get_override_parameters(self) -> list[Any]:
        """Return the query parameters of the method."""
        if not isinstance(self.view, ApiView):
            return []
        query = self.view.query_input(self.method)
        return [query] if query.fields else []


class DownloadView(ApiView):
    """A file to download, whose address has the format."""

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Ignore the header Accept."""
        return super().perform_content_negotiation(request, force=True)


class PostPermission(ApiView):
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


class DetailOutput(serializers.Serializer[Any]):
    """Why there is no answer."""

    detail = serializers.CharField()


NOT_FOUND = OpenApiResponse(DetailOutput, description="Not found, or no permission.")
FORBIDDEN = OpenApiResponse(DetailOutput, description="Not signed in, or the CSRF token is missing.")
INVALID = OpenApiResponse(OpenApiTypes.OBJECT, description="Invalid input: messages by field.")
NO_ACCESS: dict[int, Any] = {403: FORBIDDEN, 404: NOT_FOUND}
PROBLEMS: dict[int, Any] = {**NO_ACCESS, 409: ProblemOutput}


def document_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add to every operation of the OpenAPI document the errors that each route may answer."""
    errors = {
        "400": (
            "Invalid input: messages by field or parameter.",
            {"type": "object", "additionalProperties": {}},
        ),
        "401": ("The token is unknown, revoked or expired.", {"$ref": "#/components/schemas/DetailOutput"}),
        "406": ("Only JSON is answered.", {"$ref": "#/components/schemas/DetailOutput"}),
    }
    body_errors = {"415": ("The body is no JSON.", {"$ref": "#/components/schemas/DetailOutput"})}
    for operation in (one for path in result["paths"].values() for one in path.values()):
        for code, (text, schema) in (errors | (body_errors if "requestBody" in operation else {})).items():
            answer = {"description": text, "content": {"application/json": {"schema": schema}}}
            operation["responses"].setdefault(code, answer)
    return result


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
        try:
            return self.style.paginate_queryset(queryset, request, view)
        except NotFound as error:
            name = "page" if view.page_style == "number" else "cursor"
            raise ValidationError({name: [f"There is no {name} {request.query_params[name]!r}."]}) from error

    def links(self) -> dict[str, str | None]:
        """Return the addresses of the neighbouring pages."""
        return {"next": self.style.get_next_link(), "previous": self.style.get_previous_link()}

    def get_paginated_response(self, data: Any) -> Response:
        """Return the page's answer."""
        return cast(Response, self.style.get_paginated_response(data))

    def get_paginated_response_schema(self, schema: Any) -> Any:
        """Return the OpenAPI schema of a page."""
        body = self.style.get_paginated_response_schema(schema)
        return body | {"required": list(body["properties"])}

    def get_schema_operation_parameters(self, view: Any) -> Any:
        """Return none: `paging_parameters` of the view are in the OpenAPI document with the filters."""
        return []


class RouteMetadata(SimpleMetadata):
    """The answer to OPTIONS: a route's name and formats. Its fields are in the OpenAPI document."""

    def determine_actions(self, request: Request, view: APIView) -> dict[str, Any]:
        """Return no fields: those of a list's entries are not those that POST expects."""
        return {}


class PagedView(ApiView, GenericAPIView[Row]):
    """A route with a list in pages; subclasses set the pages' size, order and style."""

    page_style: ClassVar[PageStyle] = "cursor"
    page_size = 100
    page_order = "-id"  # of pages by cursor
    largest_page: int | None = None  # the most that callers may ask for
    metadata_class = RouteMetadata
    pagination_class = Pages
    filter_backends = ()

    def paging_parameters(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the parameters of the page's style."""
        if self.page_style == "number":
            return {"page": number_parameter("page")}
        if self.page_style == "offset":
            most = self.largest_page or self.page_size
            limit = number_parameter(
                "limit", most=most, help_text=f"Entries per page, default {self.page_size}."
            )
            return {"limit": limit, "offset": number_parameter("offset", least=0)}
        cursor = serializers.CharField(required=False, help_text="From `next` or `previous`.")
        if not self.largest_page:
            return {"cursor": cursor}
        size = number_parameter(
            "page_size", most=self.largest_page, help_text=f"Entries per page, default {self.page_size}."
        )
        return {"cursor": cursor, "page_size": size}


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
