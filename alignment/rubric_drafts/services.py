"""Drafted definitions: prepare, start, cancel. A lead takes the text over in the form, or does not."""

from dataclasses import dataclass, replace
from functools import partial

from django.db import transaction
from django.utils import timezone

from alignment.models.rubric_drafts import CriterionDraft
from alignment.prompts.suggestions.services import judge_model, request_json, writing_request
from alignment.rubric_drafts.core import TIERS, draft_messages, room_for_definition
from alignment.rubric_drafts.queries import draft_material, open_draft
from alignment.rubric_drafts.worker import DRAFTS
from common.problems import InputProblem
from evaluation.core.types import Request
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.runs.worker.single_calls import question_key
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion, Rubric
from labeling.people.services.audit import audit

LONGEST_QUESTION = 2_000


class DraftRefused(InputProblem):
    """The draft cannot be started or cancelled; the message says why."""


@dataclass(frozen=True, slots=True)
class DraftChoice:
    """A criterion as it stands in the form; `criterion` is None for a new one, `dimension` a key."""

    rubric: Rubric
    question: str
    dimension: str
    tier: str
    allow_na: bool = False
    criterion: Criterion | None = None


def draft_prepare(choice: DraftChoice) -> Request:
    """Return the request as it would be sent now. Raises DraftRefused, InputProblem for wrong settings."""
    if not choice.question.strip():
        raise DraftRefused("write the question first")
    if len(choice.question) > LONGEST_QUESTION:
        raise DraftRefused(f"the question is longer than {LONGEST_QUESTION:,} characters")
    if choice.tier not in TIERS:
        raise DraftRefused("choose a tier")
    spec, at = judge_model(default_profile())
    material = draft_material(
        rubric=choice.rubric,
        criterion=choice.criterion,
        question=choice.question,
        dimension=choice.dimension,
        tier=choice.tier,
        allow_na=choice.allow_na,
    )
    return writing_request(
        role="definer",
        messages=draft_messages(material, fence_secret=bytes(Workspace.current().fence_secret)),
        room=room_for_definition,
        choice=spec,
        at=at,
    )


@transaction.atomic
def draft_start(*, choice: DraftChoice, by: User, anew: bool = False) -> CriterionDraft:
    """
    Store a draft and enqueue it. The same material finds its stored answer; `anew` asks once more.

    Raises DraftRefused, also while the user waits for another draft; InputProblem for wrong settings.
    """
    Rubric.objects.select_for_update(no_key=True).get(pk=choice.rubric.pk)
    profiles_ensure()
    if open_draft(rubric=choice.rubric, by=by) is not None:
        raise DraftRefused("your last draft has no answer yet: wait for it or cancel it")
    request = draft_prepare(choice)
    question = question_key(request)
    same = CriterionDraft.objects.filter(question=question).order_by("-sample").first()
    sample = 0 if same is None else same.sample + int(anew)
    row = CriterionDraft.objects.create(
        rubric=choice.rubric,
        criterion=choice.criterion,
        by=by,
        asked=choice.question.strip(),
        model=request.model,
        request=request_json(replace(request, sample=sample)),
        question=question,
        sample=sample,
    )
    audit(
        actor=by,
        verb="definition drafted",
        obj=choice.criterion or choice.rubric,
        rubric=choice.rubric.name,
        question=row.asked,
        model=row.model,
    )
    transaction.on_commit(partial(DRAFTS.enqueue, row.pk))
    return row


@transaction.atomic
def draft_cancel(*, draft: CriterionDraft) -> CriterionDraft:
    """Cancel an open draft; an answer in flight is still stored and paid for. Raises DraftRefused."""
    row = CriterionDraft.objects.select_for_update(of=("self",)).get(pk=draft.pk)
    if not row.is_open:
        raise DraftRefused("the draft is finished and cannot be cancelled")
    row.state, row.finished_at = CriterionDraft.State.CANCELLED, timezone.now()
    row.save(update_fields=["state", "finished_at"])
    return row
