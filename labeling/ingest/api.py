"""API of chats that arrive in production: many at once, sent again without harm; and the rules for them."""

import re
from typing import Any, cast

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    DetailOutput,
    RowOutput,
    StrictInput,
    field_error,
    problem,
    validated,
)
from common.jsonl import Fields
from common.parsers import BulkJSONParser
from common.problems import FieldProblem
from labeling.chats.core.transcript import MAX_MESSAGES, ROLES
from labeling.ingest.core.personal_data import KINDS, NAMED_KINDS
from labeling.ingest.core.topics import MAX_RULES
from labeling.ingest.names import NamesUnavailable
from labeling.ingest.services.chats import MOST_CHATS, KeyConflict, answer_once, chats_ingest, result_json
from labeling.ingest.services.incoming import incoming_change
from labeling.models.ingest import IngestSettings
from labeling.models.people import User
from labeling.people.api.permissions import ManagesLabeling, SendsChats
from labeling.sets.services import UnconfirmedError

SOURCE = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
DEFAULT_SOURCE = "api"
_KEY = re.compile(r"[!-~]{1,200}")  # printable ASCII


class MessageInput(serializers.Serializer[Any]):
    """One message of a chat."""

    role = serializers.ChoiceField(choices=ROLES)
    content = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField(required=False)


class ChatInput(serializers.Serializer[Any]):
    """A chat, as in a file of chats."""

    id = serializers.CharField(max_length=200)
    messages = serializers.ListField(child=MessageInput(), max_length=MAX_MESSAGES)
    topic = serializers.CharField(required=False, max_length=200)
    started_at = serializers.DateTimeField(required=False)
    unit_id = serializers.CharField(
        required=False, max_length=200, help_text="Unit that the experiment assigns to a variant."
    )
    experiment = serializers.CharField(required=False, max_length=80)
    variant = serializers.CharField(required=False, max_length=80)
    cluster = serializers.CharField(required=False, max_length=200, help_text="Such as a customer.")
    metadata = serializers.DictField(required=False)


class ChatsInput(serializers.Serializer[Any]):
    """The chats of one system."""

    source = serializers.RegexField(  # type: ignore[assignment]  # the name of the field in the body
        f"^{SOURCE.pattern}$", default=DEFAULT_SOURCE, help_text="Names the system; its ids are its own."
    )
    chats = serializers.ListField(child=ChatInput(), max_length=MOST_CHATS)


class RowProblemOutput(serializers.Serializer[Any]):
    """Why a chat was not stored; `index` counts from 0."""

    index = serializers.IntegerField()
    id = serializers.CharField(allow_blank=True)
    code = serializers.ChoiceField(choices=["invalid", "refused"])
    field = serializers.CharField(allow_blank=True)
    message = serializers.CharField()


class ChatsOutput(serializers.Serializer[Any]):
    """Counts and errors of a request; `ignored` counts the chats with each unknown field."""

    received = serializers.IntegerField()
    created = serializers.IntegerField()
    updated = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    refused = serializers.IntegerField()
    ignored = serializers.DictField(child=serializers.IntegerField())
    redactions = serializers.DictField(child=serializers.IntegerField())
    errors = RowProblemOutput(many=True)  # type: ignore[assignment]  # the name in the answer


class _NoNames(APIException):
    status_code = 503


def _ingested(rows: Any, source: str) -> dict[str, Any]:
    try:
        return result_json(chats_ingest(rows=rows, source=source))
    except NamesUnavailable as missing:
        raise _NoNames(str(missing)) from None


class ChatsApi(ApiView):
    """Chats of a system in production."""

    permission_classes = [SendsChats]
    parser_classes = [BulkJSONParser]
    body_digest = ""

    @extend_schema(
        operation_id="chats_send",
        request=ChatsInput,
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="The same key and body have the same answer for 24 hours.",
            )
        ],
        responses={
            200: ChatsOutput,
            400: INVALID,
            503: OpenApiResponse(DetailOutput, description="Names cannot be found now: nothing was stored."),
            **PROBLEMS,
        },
    )
    def post(self, request: Request) -> Response:
        """Store up to 5,000 chats; the same chats again change nothing.

        Wrong chats are named in `errors`, all others are stored. A chat may grow by messages
        until it is sampled. The body may be packed with gzip. 409 `other_body`: the Idempotency-Key came with
        another body. 409 `in_progress`: its first request is still at work. 503: names are to be redacted,
        and the server cannot find them now; nothing was stored, send it again.
        """
        try:
            body = Fields(request.data)
            source, rows = _source(body), body.items("chats")
            if extra := sorted(body.unknown(frozenset(("source", "chats")))):
                raise body.refuse(extra[0], "unknown field: a body has source and chats")
            if len(rows) > MOST_CHATS:
                raise body.refuse("chats", f"holds {len(rows):,} chats; {MOST_CHATS:,} is the limit")
        except FieldProblem as wrong:
            raise field_error(FieldProblem(wrong.field or "body", wrong.message)) from None
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return Response(_ingested(rows, source))
        if not _KEY.fullmatch(key):
            raise ValidationError({"Idempotency-Key": ["Must be 1 to 200 printable ASCII characters."]})
        try:
            answer, stored = answer_once(
                by=cast(User, request.user),
                key=key,
                digest=self.body_digest,
                work=lambda: _ingested(rows, source),
            )
        except KeyConflict as conflict:
            raise problem(conflict.code, str(conflict)) from conflict
        return Response(answer, headers={"Idempotent-Replayed": "true"} if stored else None)


class IncomingInput(StrictInput):
    """The rules to change; the others stay."""

    redact = serializers.ListField(
        child=serializers.ChoiceField(choices=(*KINDS, *NAMED_KINDS)),
        required=False,
        help_text="Kinds of personal data; name and place need a model on the server.",
    )
    regions = serializers.ListField(
        child=serializers.CharField(max_length=2),
        required=False,
        max_length=50,
        help_text="Countries whose phone numbers are read without “+”, as ISO 3166 codes.",
    )
    topic_rules = serializers.ListField(child=serializers.DictField(), required=False, max_length=MAX_RULES)
    retention_days = serializers.IntegerField(
        required=False, allow_null=True, help_text="Chats this old lose their text; null keeps it."
    )
    confirmed = serializers.BooleanField(
        default=False, help_text="A shorter retention deletes texts for good: true confirms it."
    )


class IncomingOutput(RowOutput[IngestSettings]):
    """The rules for chats that come in."""

    redact = serializers.ListField(child=serializers.CharField())
    regions = serializers.ListField(child=serializers.CharField())
    topic_rules = serializers.ListField(child=serializers.DictField())

    class Meta:
        model = IngestSettings
        fields = ("redact", "regions", "topic_rules", "retention_days", "texts_deleted")


class IncomingApi(ApiView):
    """The rules for chats that come in."""

    permission_classes = [ManagesLabeling]

    @extend_schema(operation_id="incoming", responses={200: IncomingOutput, **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """What is redacted, how chats get a topic, and when they lose their text."""
        return Response(IncomingOutput(IngestSettings.current()).data)

    @extend_schema(
        operation_id="incoming_change",
        request=IncomingInput,
        responses={200: IncomingOutput, 400: INVALID, **PROBLEMS},
    )
    def patch(self, request: Request) -> Response:
        """Change the rules in the body; chats that are stored already keep what they have.

        409 `unconfirmed`: read how many chats lose their text, then send `confirmed`.
        """
        body = validated(IncomingInput, request.data)
        try:
            incoming_change(confirmed=body.pop("confirmed"), values=body, by=cast(User, request.user))
        except FieldProblem as wrong:
            raise field_error(wrong) from None
        except UnconfirmedError as unconfirmed:
            raise problem("unconfirmed", str(unconfirmed)) from unconfirmed
        return self.get(request)


def _source(body: Fields) -> str:
    source = body.text("source", default=DEFAULT_SOURCE)
    if not SOURCE.fullmatch(source):
        raise body.refuse(
            "source", "must be 1 to 80 small letters, digits, dots, hyphens or underscores, such as shop-bot"
        )
    return source
