"""Who may call, and what fails how, in all of the API."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from django.http import Http404
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers, status
from rest_framework.exceptions import APIException
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request


class Permitted(IsAuthenticated):
    """Who is signed in, but without the permission, finds nothing; each subclass names one."""

    permission: ClassVar[str]

    def has_permission(self, request: Request, view: Any) -> bool:
        """True; False where nobody is signed in; else 404 instead of 403."""
        if not super().has_permission(request, view):
            return False
        if not request.user.has_perm(self.permission):
            raise Http404
        return True


class AnswerInput(serializers.Serializer[Any]):
    """What every answer sent in has: its value, null for not applicable."""

    value = serializers.BooleanField(allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """NB: JSON's true, false and null only; "yes" or 1 would be a guess."""
        given = cast(Mapping[str, Any], self.initial_data).get("value")
        if given is not None and not isinstance(given, bool):
            raise serializers.ValidationError({"value": "Must be true, false or null."})
        return attrs


class ProblemOutput(serializers.Serializer[Any]):
    """Why not; `code` is for programs."""

    detail = serializers.CharField()
    code = serializers.CharField()


class ConflictResponse(APIException):
    """409 with a code."""

    status_code = status.HTTP_409_CONFLICT


def problem(code: str, message: str, **more: Any) -> ConflictResponse:
    """A 409 whose body is {"detail", "code", …}."""
    error = ConflictResponse()
    error.detail = cast(Any, {"detail": message, "code": code, **more})
    return error


NOT_FOUND = OpenApiResponse(description="No such thing for you.")
FORBIDDEN = OpenApiResponse(description="Not signed in, or the CSRF token is missing.")
WRONG = OpenApiResponse(description="What is wrong, by field.")
PROBLEMS = {403: FORBIDDEN, 404: NOT_FOUND, 409: ProblemOutput}
