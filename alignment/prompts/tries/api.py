"""Preview and tries of a prompt in work over HTTP: those of the editor's page."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.prompts.tries.forms import TryForm
from alignment.prompts.tries.queries import TRY_OPTIONS, TryChat, members_to_try, try_result
from alignment.prompts.tries.services import (
    CHAT,
    DISAGREEMENTS,
    MOST_CHATS,
    TryChoice,
    prompt_preview,
    try_estimate,
    try_start,
)
from common.api import FORBIDDEN, NOT_FOUND, WRONG, WritesTexts
from common.problems import InputProblem
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run, Verdict
from evaluation.runs.queries.redact_errors import tell_errors
from evaluation.runs.queries.runs import runs_open_to
from evaluation.runs.worker.preview import Preview
from labeling.models.people import User
from labeling.models.rubric import Criterion


class PreviewInput(serializers.Serializer[Any]):
    """By which profile (the default one without it), about which chat; without a draft version `base`."""

    profile = serializers.CharField(max_length=120, required=False, help_text="A judge profile by name.")
    chat = serializers.CharField(max_length=200, required=False, help_text="A chat by its external id.")
    base = serializers.IntegerField(min_value=1, required=False, help_text="A version, else the champion.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """NB: a misspelt name must not be dropped in silence: it may cost money."""
        if unknown := [str(name) for name in self.initial_data if name not in self.fields]:
            raise serializers.ValidationError({unknown[0]: ["There is no such setting."]})
        return attrs


class TryInput(PreviewInput):
    """What to try it on; with `dry_run` nothing is started and the answer is the estimate."""

    what = serializers.ChoiceField([CHAT, DISAGREEMENTS])
    n = serializers.IntegerField(min_value=1, max_value=MOST_CHATS, required=False)
    budget_usd = serializers.DecimalField(12, 4, required=False)
    dry_run = serializers.BooleanField(required=False)


class PromptPreview(APIView):
    """The exact messages of every role."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_preview",
        request=PreviewInput,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="The calls in order, tokens and cost"),
            400: WRONG,
            403: FORBIDDEN,
            404: NOT_FOUND,
        },
    )
    def post(self, request: Request, key: str) -> Response:
        """Put together what the caller's draft would be asked with; nothing is sent."""
        criterion, author = get_object_or_404(Criterion, key=key), cast(User, request.user)
        choice = _choice(PreviewInput(data=request.data), criterion, author, chat_alone=True)
        try:
            found = prompt_preview(criterion=criterion, author=author, choice=choice)
        except InputProblem as problem:
            raise ValidationError({"detail": [str(problem)]}) from problem
        return Response(_preview_json(found))


class PromptTries(APIView):
    """Tries of the caller's draft."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_try",
        request=TryInput,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="The estimate (dry_run)"),
            202: OpenApiResponse(OpenApiTypes.OBJECT, description="The try that has begun: its id"),
            400: WRONG,
            403: FORBIDDEN,
            404: NOT_FOUND,
        },
    )
    def post(self, request: Request, key: str) -> Response:
        """Try the caller's draft, else the champion, on a few chats of train and dev."""
        criterion, author = get_object_or_404(Criterion, key=key), cast(User, request.user)
        given = TryInput(data=request.data)
        choice = _choice(given, criterion, author)
        try:
            if given.validated_data.get("dry_run"):
                found = try_estimate(criterion=criterion, author=author, choice=choice)
                return Response(found.as_json())
            run = try_start(criterion=criterion, author=author, choice=choice)
        except InputProblem as problem:
            raise ValidationError({"detail": [str(problem)]}) from problem
        return Response(
            {"id": run.pk, "state": run.state, "units": run.units_total}, status.HTTP_202_ACCEPTED
        )


class PromptTry(APIView):
    """One try."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_try_result",
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="How far it is, and each chat so far"),
            403: FORBIDDEN,
            404: NOT_FOUND,
        },
    )
    def get(self, request: Request, run_id: int) -> Response:
        """What it came to so far; a chat that is not open to the caller is left out."""
        run = get_object_or_404(runs_open_to(request.user).filter(purpose=Run.Purpose.TRY), pk=run_id)
        criterion = get_object_or_404(Criterion, key=run.options[TRY_OPTIONS]["criterion"])
        tell_errors([run], user=request.user)
        found = try_result(run=run, criterion=criterion, user=cast(User, request.user))
        return Response(
            {
                "id": run.pk,
                "criterion": criterion.key,
                "state": run.state,
                "error": run.error,
                "total": len(found.chats),
                "done": found.ended,
                "calls": run.calls,
                "reused": run.reused,
                "cost_usd": None if run.cost_usd is None else float(run.cost_usd),
                "fixed": found.tally.fixed,
                "broken": found.tally.broken,
                "of": found.tally.of,
                "chats": [_chat_json(one) for one in found.chats],
            }
        )


def _choice(
    given: PreviewInput, criterion: Criterion, author: User, *, chat_alone: bool = False
) -> TryChoice:
    """The body as the page's form takes it, which knows what may be chosen."""
    given.is_valid(raise_exception=True)
    body = {name: value for name, value in given.validated_data.items() if name not in ("profile", "chat")}
    body |= _profile(given.validated_data.get("profile", ""))
    body |= _chat(given.validated_data.get("chat", ""), criterion, author)
    form = TryForm(body, criterion=criterion, user=author)
    if not form.is_valid():
        raise ValidationError({name: [str(error) for error in found] for name, found in form.errors.items()})
    return form.choice(chat_alone=chat_alone)


def _profile(name: str) -> dict[str, Any]:
    if not name:
        return {}
    row = JudgeProfile.objects.filter(name=name).first()
    if row is None:
        raise ValidationError({"profile": [f"There is no judge profile {name!r}."]})
    return {"profile": row.pk}


def _chat(external_id: str, criterion: Criterion, author: User) -> dict[str, Any]:
    if not external_id:
        return {}
    members = members_to_try(criterion=criterion, user=author).filter(chat__external_id=external_id)
    chat = members.values_list("chat_id", flat=True).first()
    if chat is None:
        raise ValidationError({"chat": [f"There is no chat {external_id!r} in train or dev."]})
    return {"chat": chat}


def _preview_json(found: Preview) -> dict[str, Any]:
    return {
        "engine": found.engine,
        "criteria": list(found.criteria),
        "calls": found.count,
        "prompt_tokens": found.prompt_tokens,
        "completion_tokens": found.completion_tokens,
        "cost_usd": None if found.cost_usd is None else float(found.cost_usd),
        "roles": [
            {
                "role": call.role,
                "model": call.model,
                "part": call.part,
                "messages": [{"role": role, "content": text} for role, text in call.messages],
                "prompt_tokens": call.prompt_tokens,
                "completion_tokens": call.completion_tokens,
                "cost_usd": None if call.cost_usd is None else float(call.cost_usd),
                "times": call.times,
                "if_needed": call.if_needed,
            }
            for call in found.calls
        ],
    }


def _chat_json(one: TryChat) -> dict[str, Any]:
    return {
        "chat": one.chat.external_id,
        "split": one.split,
        "people": one.consensus or None,
        "before": _verdict_json(one.before),
        "after": _verdict_json(one.after),
        "change": one.change if one.after else None,
        "error": one.error,
    }


def _verdict_json(verdict: Verdict | None) -> dict[str, Any] | None:
    return {"state": verdict.state, "value": verdict.value} if verdict else None
