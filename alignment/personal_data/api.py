"""API of personal data: export and deletion of what is stored about one chat or one person; leads only."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.archive.queries import own_chats_to_label
from alignment.personal_data.queries.rows import Person, chat_rows, person_of, person_rows, personal_lines
from alignment.personal_data.services.chats import chat_erase, chat_exported
from alignment.personal_data.services.people import person_erase, person_exported
from common.api import NO_ACCESS, PROBLEMS, DownloadView, QueryInput, problem
from common.downloads import TYPES, lines_file
from common.problems import InputProblem
from labeling.models.chats import Chat
from labeling.models.people import Rater, User
from labeling.people.api.permissions import ManagesLabeling
from labeling.people.queries.people import is_lead
from labeling.people.queries.visibility import chats_shown

NOT_CONFIRMED = "confirm has another name than the one to delete. Nothing was deleted."
OWN_CHATS_FIRST = "The export holds labels. Label your own chats first, or ask another lead."
EXPORTED: dict[Any, Any] = {(200, TYPES["jsonl"]): OpenApiTypes.STR, **NO_ACCESS}


class ManagesPersonalData(ManagesLabeling):
    """Leads. NB: a token must not get by an export what its scopes hide from it."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return False without a sign-in. Raises Http404 but for leads with the rights to see everything."""
        if not super().has_permission(request, view):
            return False
        user = cast(User, request.user)
        if not user.has_perms(["labeling.see_judge", "labeling.see_holdout"]) or not is_lead(user=user):
            raise Http404
        return True


# ---------- what is asked ----------


class ChatQuery(QueryInput):
    """Which chat."""

    chat = serializers.CharField(max_length=200, help_text="The id of the chat.")
    source = serializers.CharField(  # type: ignore[assignment]  # a parameter, not the field's own
        required=False, max_length=80, help_text="The system that sent it; without it: imported from a file."
    )


class ChatDeletionQuery(ChatQuery):
    """Which chat, named twice."""

    confirm = serializers.CharField(max_length=200, help_text="The id of the chat once more.")


class PersonQuery(QueryInput):
    """Whose data: that of an account with its rater, or of a rater."""

    user = serializers.CharField(required=False, max_length=150, help_text="The user name of an account.")
    rater = serializers.CharField(required=False, max_length=120, help_text="The name of a rater.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse none and both."""
        if ("user" in attrs) == ("rater" in attrs):
            raise serializers.ValidationError({"user": ["Name either a user or a rater."]})
        return attrs


class PersonDeletionQuery(PersonQuery):
    """Whose data, named twice."""

    confirm = serializers.CharField(max_length=150, help_text="The user name or the rater's once more.")


# ---------- what stays ----------


class ChatDeletionOutput(serializers.Serializer[Any]):
    """What stays of a deleted chat, as numbers."""

    labels = serializers.IntegerField()
    verdicts = serializers.IntegerField()


class PersonDeletionOutput(serializers.Serializer[Any]):
    """The pseudonym of a deleted person, and the labels that stay under it."""

    pseudonym = serializers.CharField()
    labels = serializers.IntegerField()


# ---------- routes ----------


class ChatPersonalData(DownloadView):
    """What is stored about one chat."""

    permission_classes = [ManagesPersonalData]
    query_classes: ClassVar = {"GET": ChatQuery, "DELETE": ChatDeletionQuery}

    @extend_schema(operation_id="chat_personal_data", responses=EXPORTED)
    def get(self, request: Request) -> StreamingHttpResponse:
        """Every row about the chat as JSON Lines, the tables and their counts first."""
        chat = self._chat(request)
        chat_exported(chat=chat, by=_lead(request))
        lines = personal_lines(chat_rows(chat), chat=chat.external_id, source=chat.source)
        return lines_file(lines, (), name=f"chat-{chat.pk}-personal-data", kind="jsonl")

    @extend_schema(
        operation_id="chat_personal_data_delete",
        request=None,
        responses={200: ChatDeletionOutput, **PROBLEMS},
    )
    def delete(self, request: Request) -> Response:
        """Delete all text of the chat; labels, verdicts and figures stay."""
        chat = self._chat(request)
        _check_confirmed(self.query["confirm"], name=chat.external_id)
        if chat.text_deleted_at is not None:
            raise problem("deleted", "The text of this chat is deleted already.")
        left = _erased(lambda: chat_erase(chat=chat, by=_lead(request)))
        return Response(ChatDeletionOutput(left).data)

    def _chat(self, request: Request) -> Chat:
        """Return the chat; 404 where the lead has still to label it: its data has the others' answers."""
        named = {"external_id": self.query["chat"], "source": self.query.get("source", "")}
        return get_object_or_404(chats_shown(user=_lead(request)), **named)


class PersonPersonalData(DownloadView):
    """What is stored about one person."""

    permission_classes = [ManagesPersonalData]
    query_classes: ClassVar = {"GET": PersonQuery, "DELETE": PersonDeletionQuery}

    @extend_schema(operation_id="person_personal_data", responses=EXPORTED | PROBLEMS)
    def get(self, request: Request) -> StreamingHttpResponse:
        """Every row about the person as JSON Lines, without passwords and keys."""
        person, lead = self._person(), _lead(request)
        if person.user != lead and own_chats_to_label(lead):
            raise problem("own_chats_first", OWN_CHATS_FIRST)
        person_exported(person=person, by=lead)
        lines = personal_lines(person_rows(person), person=self._name())
        return lines_file(lines, (), name="person-personal-data", kind="jsonl")

    @extend_schema(
        operation_id="person_personal_data_delete",
        request=None,
        responses={200: PersonDeletionOutput, **PROBLEMS},
    )
    def delete(self, request: Request) -> Response:
        """Delete what identifies a person; answers stay under a pseudonym. Deactivate an account first."""
        person = self._person()
        _check_confirmed(self.query["confirm"], name=self._name())
        if person.deleted:
            raise problem("deleted", "The data of this person is deleted already.")
        done = _erased(lambda: person_erase(person=person, by=_lead(request)))
        return Response(PersonDeletionOutput(done).data)

    def _person(self) -> Person:
        if name := self.query.get("user"):
            return person_of(user=get_object_or_404(User, username=name))
        raters = Rater.objects.select_related("user")
        return person_of(rater=get_object_or_404(raters, name=self.query["rater"]))

    def _name(self) -> str:
        return str(self.query.get("user") or self.query["rater"])


def _lead(request: Request) -> User:
    return cast(User, request.user)


def _check_confirmed(confirm: str, *, name: str) -> None:
    """Raise a 400 unless the name is confirmed, as on the page."""
    if confirm != name.strip():
        raise serializers.ValidationError({"confirm": [NOT_CONFIRMED]})


def _erased(erase: Callable[[], Any]) -> Any:
    """Delete; what the service refuses is a 409."""
    try:
        return erase()
    except InputProblem as refused:
        raise problem("not_now", str(refused)) from refused
