"""API for writing prompts: your own draft, the lint, and versions."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.prompts.api.criterion import criterion_or_404, criterion_versions
from alignment.prompts.queries.example_picker import chosen_examples
from alignment.prompts.queries.versions import VersionRow, with_figures
from alignment.prompts.serializers import VersionOutput, version_body
from alignment.prompts.services import draft_write, example_choices_for
from common.access import found_or_404
from common.api import (
    INVALID,
    NO_ACCESS,
    PROBLEMS,
    ApiView,
    PagedList,
    PostPermission,
    field_error,
    problem,
    validated,
)
from common.problems import FieldProblem
from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.core.costar import COSTAR, panes_of
from evaluation.prompts.core.example_lines import LONGEST_RATIONALE
from evaluation.prompts.core.lint import Finding, Level
from evaluation.prompts.queries.drafts import draft_of, examples_as_lines
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.drafts import (
    FaultyPrompt,
    NewerVersions,
    StaleDraft,
    draft_discard,
    version_save,
)
from evaluation.prompts.services.examples import LONGEST_PROMPT, PromptRefused
from evaluation.prompts.services.lint import prompt_lint
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.api.permissions import SeesJudge, WritesTexts

MOST_LINES = 100  # far above what the service accepts
GONE = OpenApiResponse(description="The draft is deleted.")

# ---------- bodies ----------


def _text(**options: Any) -> serializers.CharField:
    return serializers.CharField(max_length=LONGEST_PROMPT, trim_whitespace=False, **options)


class ExampleLine(serializers.Serializer[Any]):
    """A worked example: the first and last turn of a train chat, and the consensus (null: not applicable)."""

    chat = serializers.CharField(max_length=200)
    turns = serializers.ListField(child=serializers.IntegerField(min_value=1), min_length=2, max_length=2)
    value = serializers.BooleanField(allow_null=True)
    rationale = serializers.CharField(
        max_length=LONGEST_RATIONALE, trim_whitespace=False, allow_blank=True, default=""
    )


class SectionsInput(serializers.Serializer[Any]):
    """The six sections; a missing section is empty."""

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
    """A draft to save. Missing fields stay unchanged; send either `text` or `sections`.

    `revision` is the draft's revision that you know, 0 for none. `base` is the number of the version that the
    draft started from.
    """

    base = serializers.IntegerField(min_value=1)
    revision = serializers.IntegerField(min_value=0)
    text = _text(required=False, allow_blank=True)
    sections = SectionsInput(required=False)
    examples = serializers.ListField(child=ExampleLine(), required=False, max_length=MOST_LINES)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a text together with sections."""
        if "text" in attrs and "sections" in attrs:
            raise serializers.ValidationError({"sections": "Send either text or sections."})
        return attrs


class DraftOutput(serializers.Serializer[Any]):
    """Your own draft. `sections` is null unless the text consists of the six sections in their order.

    `hidden` is the number of examples from chats that you can no longer see.
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
    """A new version; `base` is the number of the version it started from, by default the champion.

    `confirmed` is the number of the newest version that you know.
    """

    reason = serializers.CharField(max_length=500)
    base = serializers.IntegerField(min_value=1, required=False)
    confirmed = serializers.IntegerField(min_value=0, default=0)


class WrittenVersion(serializers.Serializer[Any]):
    """The version with the text and examples that were sent."""

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
    """A problem in a prompt; `section` is '' for the whole prompt."""

    level: Any = serializers.ChoiceField(choices=[level.value for level in Level])
    section = serializers.CharField()
    message = serializers.CharField()


class LintOutput(serializers.Serializer[Any]):
    """The problems in a prompt; with `blocked` an error prevents saving. Warnings do not."""

    blocked = serializers.BooleanField()
    findings = FindingOutput(many=True)


# ---------- routes ----------


class DraftApi(ApiView):
    """Your own draft of a criterion's prompt, visible only to you."""

    permission_classes = [WritesTexts]

    @extend_schema(operation_id="prompt_draft", responses={200: DraftOutput, **NO_ACCESS})
    def get(self, request: Request, key: str) -> Response:
        """Your draft. 404 without one."""
        draft = found_or_404(draft_of(criterion=_criterion(key), author=_author(request)))
        return Response(_body(draft, _author(request)))

    @extend_schema(
        operation_id="prompt_draft_save",
        request=DraftInput,
        responses={200: DraftOutput, 400: INVALID, **PROBLEMS},
    )
    def put(self, request: Request, key: str) -> Response:
        """Save the draft. 409 with the stored draft if its revision is not `revision`."""
        criterion, author = _criterion(key), _author(request)
        body = validated(DraftInput, request.data)
        try:
            draft = draft_write(
                criterion=criterion,
                author=author,
                base=_base(criterion, body["base"]),
                revision=body["revision"],
                text=body.get("text"),
                panes=body.get("sections"),
                lines=_lines(body["examples"]) if "examples" in body else None,
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

    @extend_schema(operation_id="prompt_draft_discard", responses={204: GONE, **NO_ACCESS})
    def delete(self, request: Request, key: str) -> Response:
        """Delete the draft."""
        draft_discard(criterion=_criterion(key), author=_author(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class LintApi(ApiView):
    """Lint of a prompt."""

    permission_classes = [WritesTexts]

    @extend_schema(
        operation_id="prompt_lint",
        request=PromptInput,
        responses={200: LintOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Problems in the prompt, errors first. The prompt is not stored."""
        criterion = _criterion(key)
        body = validated(PromptInput, request.data)
        try:
            examples = example_choices_for(_author(request), _lines(body["examples"]))
        except PromptRefused as refused:
            raise ValidationError({"examples": [str(refused)]}) from refused
        findings = prompt_lint(criterion=criterion, text=body["text"], examples=examples)
        blocked = any(finding.level == Level.ERROR for finding in findings)
        return Response(LintOutput({"blocked": blocked, "findings": findings}).data)


@extend_schema_view(
    get=extend_schema(
        operation_id="prompt_versions",
        responses={200: VersionOutput(many=True), **NO_ACCESS},
    )
)
class PromptVersionsApi(PostPermission, PagedList[Any]):
    """Versions of a prompt, newest first, with state, tests and measured alignment, without texts."""

    permission_classes = [SeesJudge]
    post_permission = WritesTexts
    serializer_class = VersionOutput
    page_style = "number"
    page_size = 50

    def get_queryset(self) -> Any:
        """Return all versions. Raises Http404."""
        return criterion_versions(criterion_or_404(self.kwargs["key"]))

    def results(self, page: Sequence[VersionRow]) -> Any:
        """Return the page's versions with their figures."""
        return [version_body(row) for row in with_figures(page, of=page, user=self.request.user)]

    @extend_schema(
        operation_id="prompt_version_write",
        request=NewVersionInput,
        responses={200: WrittenVersion, 201: WrittenVersion, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, key: str) -> Response:
        """Save a version and delete an equal draft. 200 with the earlier version if it has the same content.

        409 if versions newer than `base` are not `confirmed`; `versions` lists them.
        """
        criterion, author = _criterion(key), _author(request)
        body = validated(NewVersionInput, request.data)
        try:
            saved = version_save(
                criterion=criterion,
                author=author,
                text=body["text"],
                examples=example_choices_for(author, _lines(body["examples"])),
                reason=body["reason"],
                base=_base(criterion, body["base"]) if "base" in body else _usual_base(criterion),
                confirmed=body["confirmed"],
            )
        except NewerVersions as newer:
            versions = [_version(one) for one in newer.versions]
            raise problem("newer_version", str(newer), versions=versions) from newer
        except (FaultyPrompt, PromptRefused, FieldProblem) as refused:
            _refuse(refused)
        answer = WrittenVersion(_version(saved.version) | _content(saved.version)).data
        return Response(answer, status=status.HTTP_201_CREATED if saved.added else status.HTTP_200_OK)


def _refuse(refused: FaultyPrompt | PromptRefused | FieldProblem) -> NoReturn:
    """Raise the refusal as a ValidationError, by field."""
    if isinstance(refused, FaultyPrompt):
        raise ValidationError({"text": [finding.line for finding in refused.findings]}) from refused
    if isinstance(refused, PromptRefused):
        field = "text" if refused.field == "prompt" else "examples"
        raise ValidationError({field: [str(refused)]}) from refused
    raise field_error(refused) from refused


def _author(request: Request) -> User:
    return cast(User, request.user)


def _criterion(key: str) -> Criterion:
    return get_object_or_404(Criterion, key=key)


def _usual_base(criterion: Criterion) -> PromptVersion | None:
    """Return the champion, otherwise the newest version."""
    champion = champions(criteria=[criterion]).get(criterion.pk)
    return champion or PromptVersion.objects.filter(criterion=criterion).order_by("-number").first()


def _base(criterion: Criterion, number: int) -> PromptVersion:
    base = PromptVersion.objects.filter(criterion=criterion, number=number).first()
    if base is None:
        raise ValidationError({"base": [f"There is no version {number}."]})
    return base


def _lines(examples: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(line) for line in examples]


def _body(draft: PromptDraft, user: User) -> Any:
    shown = [
        one for one in chosen_examples(user=user, lines=draft.examples, criterion=draft.criterion) if one.chat
    ]
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
