"""Writing prompts over HTTP: one's own draft, the lint, new versions."""

from collections.abc import Mapping
from typing import Any, NoReturn, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alignment.prompts.api.criterion import PromptVersions
from alignment.prompts.queries.editor import start_of
from alignment.prompts.queries.example_picker import chosen_examples
from alignment.prompts.services import draft_write, example_choices_for
from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, problem
from common.problems import FieldProblem
from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.core.costar import COSTAR, panes_of
from evaluation.prompts.core.example_lines import LONGEST_RATIONALE
from evaluation.prompts.core.lint import Finding, Level
from evaluation.prompts.queries.drafts import draft_of, examples_as_lines
from evaluation.prompts.services.drafts import (
    FaultyPrompt,
    NewerVersions,
    StaleDraft,
    draft_discard,
    version_save,
)
from evaluation.prompts.services.examples import LONGEST_PROMPT, PromptRefused
from evaluation.prompts.services.lint import prompt_lint
from evaluation.runs.api import SeesJudge
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import WritesTexts

MOST_LINES = 100  # far more than a prompt takes: the service says what is too many
GONE = OpenApiResponse(description="No draft there any more.")

# ---------- what goes in and out ----------


def _text(**given: Any) -> serializers.CharField:
    return serializers.CharField(max_length=LONGEST_PROMPT, trim_whitespace=False, **given)


class ExampleLine(serializers.Serializer[Any]):
    """A worked example: first and last turn of a train chat, what people decided (null: not applicable)."""

    chat = serializers.CharField(max_length=200)
    turns = serializers.ListField(child=serializers.IntegerField(min_value=1), min_length=2, max_length=2)
    value = serializers.BooleanField(allow_null=True)
    rationale = serializers.CharField(
        max_length=LONGEST_RATIONALE, trim_whitespace=False, allow_blank=True, default=""
    )


class SectionsInput(serializers.Serializer[Any]):
    """The six sections; one that is left out is empty."""

    context: Any = _text(allow_blank=True, default="")
    objective = _text(allow_blank=True, default="")
    style: Any = _text(allow_blank=True, default="")
    tone = _text(allow_blank=True, default="")
    audience = _text(allow_blank=True, default="")
    response = _text(allow_blank=True, default="")


class PromptInput(serializers.Serializer[Any]):
    """A prompt: its text and worked examples."""

    text = _text()
    examples = serializers.ListField(child=ExampleLine(), default=list, max_length=MOST_LINES)


class DraftInput(serializers.Serializer[Any]):
    """A draft over revision `revision` of it, 0 for none; what is not given stays as it is.

    `base` is the number of the version that it started from; of `text` and `sections` at most one.
    """

    base = serializers.IntegerField(min_value=1)
    revision = serializers.IntegerField(min_value=0)
    text = _text(required=False, allow_blank=True)
    sections = SectionsInput(required=False)
    examples = serializers.ListField(child=ExampleLine(), required=False, max_length=MOST_LINES)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Two texts would contradict each other."""
        if "text" in attrs and "sections" in attrs:
            raise serializers.ValidationError({"sections": "Give the text or its sections, not both."})
        return attrs


class DraftOutput(serializers.Serializer[Any]):
    """One's own draft. `sections` is null for a text that has more than the six in their order.

    `hidden` counts examples whose chat is not open to you any more.
    """

    base = serializers.IntegerField()
    revision = serializers.IntegerField()
    text = serializers.CharField()
    sections = SectionsInput(allow_null=True)
    examples = ExampleLine(many=True)
    hidden = serializers.IntegerField()
    origin = serializers.CharField()
    updated_at = serializers.DateTimeField()


class NewVersionInput(PromptInput):
    """A new version; `base` is the number of the version it started from, without it the champion.

    `confirmed` is the number of the newest version that the writer knows of.
    """

    reason = serializers.CharField(max_length=500)
    base = serializers.IntegerField(min_value=1, required=False)
    confirmed = serializers.IntegerField(min_value=0, default=0)


class WrittenVersion(serializers.Serializer[Any]):
    """The version that says what was sent."""

    criterion = serializers.CharField()
    number = serializers.IntegerField()
    text = serializers.CharField()
    examples = ExampleLine(many=True)
    content_hash = serializers.CharField()
    origin = serializers.CharField()
    base = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()
    author = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class FindingOutput(serializers.Serializer[Finding]):
    """One thing to look at; `section` is '' for the whole prompt."""

    level: Any = serializers.ChoiceField(choices=[level.value for level in Level])
    section = serializers.CharField()
    message = serializers.CharField()


class LintOutput(serializers.Serializer[Any]):
    """`blocked` by an error the prompt cannot be saved; warnings do not block."""

    blocked = serializers.BooleanField()
    findings = FindingOutput(many=True)


# ---------- routes ----------


class DraftApi(APIView):
    """One's own draft of a criterion's prompt; nobody else sees it."""

    permission_classes = [WritesTexts]

    @extend_schema(operation_id="prompt_draft", responses={200: DraftOutput, 403: FORBIDDEN, 404: NOT_FOUND})
    def get(self, request: Request, key: str) -> Response:
        """The draft."""
        draft = draft_of(criterion=_criterion(key), author=_author(request))
        if draft is None:
            raise Http404
        return Response(_body(draft, _author(request)))

    @extend_schema(
        operation_id="prompt_draft_save",
        request=DraftInput,
        responses={200: DraftOutput, 400: WRONG, **PROBLEMS},
    )
    def put(self, request: Request, key: str) -> Response:
        """Save it; 409 with what is stored where that is another revision than the one this came from."""
        criterion, author = _criterion(key), _author(request)
        given = _read(DraftInput, request)
        try:
            draft = draft_write(
                criterion=criterion,
                author=author,
                base=_base(criterion, given["base"]),
                revision=given["revision"],
                text=given.get("text"),
                panes=given.get("sections"),
                lines=_lines(given["examples"]) if "examples" in given else None,
            )
        except StaleDraft as stale:
            stored = _body(stale.draft, author) if stale.draft else None
            raise problem("stale", str(stale), draft=stored) from stale
        except FieldProblem as wrong:
            field = f"sections.{wrong.field}" if wrong.field in COSTAR else wrong.field
            raise ValidationError({field: [wrong.message]}) from wrong
        except PromptRefused as refused:
            raise ValidationError({"examples": [str(refused)]}) from refused
        return Response(_body(draft, author))

    @extend_schema(operation_id="prompt_draft_discard", responses={204: GONE, 403: FORBIDDEN, 404: NOT_FOUND})
    def delete(self, request: Request, key: str) -> Response:
        """Throw it away."""
        draft_discard(criterion=_criterion(key), author=_author(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class LintApi(APIView):
    """What is wrong with a prompt, before anybody pays for trying it."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_lint",
        request=PromptInput,
        responses={200: LintOutput, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def post(self, request: Request, key: str) -> Response:
        """The findings, errors first. Nothing is kept."""
        criterion = _criterion(key)
        given = _read(PromptInput, request)
        try:
            examples = example_choices_for(_author(request), _lines(given["examples"]))
        except PromptRefused as refused:
            raise ValidationError({"examples": [str(refused)]}) from refused
        findings = prompt_lint(criterion=criterion, text=given["text"], examples=examples)
        blocked = any(finding.level == Level.ERROR for finding in findings)
        return Response(LintOutput({"blocked": blocked, "findings": findings}).data)


class PromptVersionsApi(PromptVersions):
    """The versions of a criterion's prompt: reading and writing."""

    def get_permissions(self) -> list[BasePermission]:
        """Who reads may not be one who writes."""
        return [WritesTexts()] if self.request.method == "POST" else [SeesJudge()]

    @extend_schema(
        operation_id="prompt_version_write",
        request=NewVersionInput,
        responses={200: WrittenVersion, 201: WrittenVersion, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Write a version; 200 with the one that says the same already. Your draft goes if it says the same.

        409 where a version was saved after `base` that is not `confirmed`; `versions` names them.
        """
        criterion, author = _criterion(key), _author(request)
        given = _read(NewVersionInput, request)
        try:
            saved = version_save(
                criterion=criterion,
                author=author,
                text=given["text"],
                examples=example_choices_for(author, _lines(given["examples"])),
                reason=given["reason"],
                base=_base(criterion, given["base"]) if "base" in given else start_of(criterion),
                confirmed=given["confirmed"],
            )
        except NewerVersions as newer:
            versions = [_version(one) for one in newer.versions]
            raise problem("newer_version", str(newer), versions=versions) from newer
        except (FaultyPrompt, PromptRefused, FieldProblem) as refused:
            _refuse(refused)
        body = WrittenVersion(_version(saved.version) | _content(saved.version)).data
        return Response(body, status=status.HTTP_201_CREATED if saved.added else status.HTTP_200_OK)


def _refuse(refused: FaultyPrompt | PromptRefused | FieldProblem) -> NoReturn:
    """As 400, by field."""
    if isinstance(refused, FaultyPrompt):
        raise ValidationError({"text": [finding.line for finding in refused.findings]}) from refused
    if isinstance(refused, PromptRefused):
        field = "text" if refused.field == "prompt" else "examples"
        raise ValidationError({field: [str(refused)]}) from refused
    raise ValidationError({refused.field: [refused.message]}) from refused


def _author(request: Request) -> User:
    return cast(User, request.user)


def _criterion(key: str) -> Criterion:
    return get_object_or_404(Criterion, key=key)


def _base(criterion: Criterion, number: int) -> PromptVersion:
    base = PromptVersion.objects.filter(criterion=criterion, number=number).first()
    if base is None:
        raise ValidationError({"base": [f"There is no version {number}."]})
    return base


def _read(body: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    given = body(data=request.data)
    given.is_valid(raise_exception=True)
    return dict(given.validated_data)


def _lines(given: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(line) for line in given]


def _body(draft: PromptDraft, user: User) -> Any:
    shown = [one for one in chosen_examples(user=user, lines=draft.examples) if one.chat]
    body = {
        "base": draft.base.number,
        "revision": draft.revision,
        "text": draft.text,
        "sections": panes_of(draft.text),
        "examples": [draft.examples[one.index] for one in shown],
        "hidden": len(draft.examples) - len(shown),
        "origin": draft.origin,
        "updated_at": draft.updated_at,
    }
    return DraftOutput(body).data


def _version(row: PromptVersion) -> dict[str, Any]:
    return {
        "criterion": row.criterion.key,
        "number": row.number,
        "reason": row.reason,
        "author": row.author.username if row.author else None,
        "created_at": row.created_at,
    }


def _content(row: PromptVersion) -> dict[str, Any]:
    return {
        "text": row.text,
        "examples": examples_as_lines(row),
        "content_hash": row.content_hash,
        "origin": row.origin,
        "base": row.base.number if row.base else None,
    }
