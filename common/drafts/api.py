"""The drafts of one's own forms; for the pages of this site, not for programs."""

from http import HTTPStatus
from typing import Any, ClassVar, cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import INVALID, ApiView, QueryInput, StrictInput, validated
from common.drafts.services import DraftConflict, form_draft_delete, form_draft_save
from common.models import FormDraft

MOST_CHARACTERS = 500_000
MOST_VALUES = 2_000


class KeyQuery(QueryInput):
    """Which form."""

    key = serializers.CharField(max_length=500)


class FormDraftInput(StrictInput):
    """A draft to save; `revision` is 0 where the page knows of none."""

    key = serializers.CharField(max_length=500)
    values = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField(allow_blank=True, trim_whitespace=False))
    )
    base = serializers.CharField(max_length=32)
    revision = serializers.IntegerField(min_value=0)

    def validate_values(self, values: dict[str, list[str]]) -> dict[str, list[str]]:
        """Refuse more than a form of this site holds."""
        texts = [text for one in values.values() for text in one]
        if len(texts) > MOST_VALUES or sum(map(len, texts)) > MOST_CHARACTERS:
            raise serializers.ValidationError(
                f"More than {MOST_CHARACTERS:,} characters or {MOST_VALUES} values."
            )
        return values


class FormDraftOutput(serializers.ModelSerializer[FormDraft]):
    """A draft."""

    class Meta:
        model = FormDraft
        fields = ("key", "values", "base", "revision", "updated_at")


class FormDraftAnswer(serializers.Serializer[Any]):
    """The draft, null where there is none."""

    draft = FormDraftOutput(allow_null=True)


class WithoutToken(BasePermission):
    """A draft may hold what a token's scopes hide: only its owner's browser reads it."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raise Http404 for a token."""
        if request.auth is not None:
            raise Http404
        return True


class FormDraftApi(ApiView):
    """The draft of one form."""

    permission_classes = [IsAuthenticated, WithoutToken]
    query_classes: ClassVar = {"GET": KeyQuery, "DELETE": KeyQuery}

    @extend_schema(operation_id="form_draft", responses={200: FormDraftAnswer})
    def get(self, request: Request) -> Response:
        """The draft of a form, if any."""
        return _answer(FormDraft.objects.filter(user_id=_user_id(request), key=self.query["key"]).first())

    @extend_schema(
        operation_id="form_draft_save",
        request=FormDraftInput,
        responses={200: FormDraftAnswer, 400: INVALID, 409: FormDraftAnswer},
    )
    def put(self, request: Request) -> Response:
        """Save the draft. 409 with the newer one where another tab has saved since."""
        body = validated(FormDraftInput, request.data)
        try:
            return _answer(form_draft_save(user_id=_user_id(request), **body))
        except DraftConflict as conflict:
            return _answer(conflict.draft, status=HTTPStatus.CONFLICT)

    @extend_schema(operation_id="form_draft_delete", responses={204: None})
    def delete(self, request: Request) -> Response:
        """Delete the draft; without one do nothing."""
        form_draft_delete(user_id=_user_id(request), key=self.query["key"])
        return Response(status=HTTPStatus.NO_CONTENT)


def _user_id(request: Request) -> int:
    return cast(int, request.user.pk)


def _answer(draft: FormDraft | None, *, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(FormDraftAnswer({"draft": draft}).data, status=status)
