"""API of the editor's preview and tries."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.prompts.tries.forms import TryForm
from alignment.prompts.tries.queries.results import TRY_OPTIONS, TryChat, members_to_try, try_result
from alignment.prompts.tries.services import (
    CHAT,
    DISAGREEMENTS,
    MOST_CHATS,
    TryChoice,
    prompt_preview,
    try_estimate,
    try_start,
)
from common.api import INVALID, NO_ACCESS, ApiView, StrictInput
from common.problems import InputProblem
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run, Verdict, error_in_words
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.queries.runs import runs_open_to
from evaluation.runs.worker.preview import Preview
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import WritesTexts


class PreviewInput(StrictInput):
    """The judge profile, the chat, and the version to use if you have no draft."""

    profile = serializers.CharField(
        max_length=120, required=False, help_text="A judge profile's name. Default: the default profile."
    )
    chat = serializers.CharField(max_length=200, required=False, help_text="A chat's external id.")
    base = serializers.IntegerField(
        min_value=1, required=False, help_text="A version. Default: the champion."
    )


class TryInput(PreviewInput):
    """The chats to try the prompt on. `dry_run` returns the estimate and starts no try."""

    what = serializers.ChoiceField([CHAT, DISAGREEMENTS])
    n = serializers.IntegerField(min_value=1, max_value=MOST_CHATS, required=False)
    budget_usd = serializers.DecimalField(12, 4, required=False)
    dry_run = serializers.BooleanField(required=False)


class PromptPreview(ApiView):
    """Preview of the rendered prompt."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_preview",
        request=PreviewInput,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="The calls in order, tokens and cost"),
            400: INVALID,
            **NO_ACCESS,
        },
    )
    def post(self, request: Request, key: str) -> Response:
        """The exact messages of every role for your draft. Sends no requests."""
        criterion, author = get_object_or_404(Criterion, key=key), cast(User, request.user)
        choice = _choice(PreviewInput(data=request.data), criterion, author, chat_alone=True)
        try:
            preview = prompt_preview(criterion=criterion, author=author, choice=choice)
        except InputProblem as problem:
            raise ValidationError({"detail": [str(problem)]}) from problem
        return Response(_preview_json(preview))


class PromptTries(ApiView):
    """Tries of your draft."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_try",
        request=TryInput,
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="The estimate (dry_run)"),
            202: OpenApiResponse(OpenApiTypes.OBJECT, description="The started try with its id"),
            400: INVALID,
            **NO_ACCESS,
        },
    )
    def post(self, request: Request, key: str) -> Response:
        """Try your draft, or else the champion, on a few chats of the train and dev splits."""
        criterion, author = get_object_or_404(Criterion, key=key), cast(User, request.user)
        body = TryInput(data=request.data)
        choice = _choice(body, criterion, author)
        try:
            if body.validated_data.get("dry_run"):
                return Response(try_estimate(criterion=criterion, author=author, choice=choice).as_json())
            run = try_start(criterion=criterion, author=author, choice=choice)
        except InputProblem as problem:
            raise ValidationError({"detail": [str(problem)]}) from problem
        return Response(
            {"id": run.pk, "state": run.state, "units": run.units_total}, status.HTTP_202_ACCEPTED
        )


class PromptTry(ApiView):
    """A try."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_try_result",
        responses={
            200: OpenApiResponse(OpenApiTypes.OBJECT, description="Progress, and the finished chats"),
            **NO_ACCESS,
        },
    )
    def get(self, request: Request, run_id: int) -> Response:
        """The try's progress and finished chats, without chats you cannot see."""
        run = get_object_or_404(runs_open_to(request.user).filter(purpose=Run.Purpose.TRY), pk=run_id)
        criterion = get_object_or_404(Criterion, key=run.options[TRY_OPTIONS]["criterion"])
        redact_errors([run], user=request.user)
        result = try_result(run=run, criterion=criterion, user=cast(User, request.user))
        return Response(
            {
                "id": run.pk,
                "criterion": criterion.key,
                "state": run.state,
                "error": error_in_words(run.error),
                "total": len(result.chats),
                "done": result.ended,
                "calls": run.calls,
                "reused": run.reused,
                "cost_usd": None if run.cost_usd is None else float(run.cost_usd),
                "fixed": result.tally.fixed,
                "broken": result.tally.broken,
                "of": result.tally.of,
                "chats": [_chat_json(one) for one in result.chats],
            }
        )


def _choice(body: PreviewInput, criterion: Criterion, author: User, *, chat_alone: bool = False) -> TryChoice:
    """Return the choice that the body describes, checked by the page's form. Raises ValidationError."""
    body.is_valid(raise_exception=True)
    fields = {name: value for name, value in body.validated_data.items() if name not in ("profile", "chat")}
    fields |= _profile(body.validated_data.get("profile", ""))
    fields |= _chat(body.validated_data.get("chat", ""), criterion, author)
    form = TryForm(fields, criterion=criterion, user=author)
    if not form.is_valid():
        raise ValidationError(
            {name: [str(error) for error in errors] for name, errors in form.errors.items()}
        )
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


def _preview_json(preview: Preview) -> dict[str, Any]:
    return {
        "engine": preview.engine,
        "criteria": list(preview.criteria),
        "calls": preview.count,
        "prompt_tokens": preview.prompt_tokens,
        "completion_tokens": preview.completion_tokens,
        "cost_usd": None if preview.cost_usd is None else float(preview.cost_usd),
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
            for call in preview.calls
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
        "error": error_in_words(one.error),
    }


def _verdict_json(verdict: Verdict | None) -> dict[str, Any] | None:
    return {"state": verdict.state, "value": verdict.value} if verdict else None
