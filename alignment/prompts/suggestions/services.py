"""Suggested revisions: start, cancel, use as a draft, restore the earlier draft, dismiss."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from alignment.models.suggestions import Suggestion, SuggestionUse
from alignment.prompts.suggestions.core import Material, room_for, suggestion_messages
from alignment.prompts.suggestions.queries.suggestions import newest_use, takes_back
from alignment.prompts.suggestions.queries.training_examples import (
    TrainDisagreement,
    disagreements_in_full,
    open_notes,
    select_disagreements,
    train_disagreements,
)
from alignment.prompts.suggestions.worker import SUGGESTIONS
from common.problems import InputProblem
from evaluation.core.types import ModelAt, PromptMessage, Request
from evaluation.endpoints.queries import model_profile
from evaluation.gateway.endpoints import SIMULATED, endpoint_name
from evaluation.judges.core.sampling_defaults import default_sampling
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import endpoint_of, judge_endpoint, model_of
from evaluation.judges.queries.profiles import default_profile, profile_choice
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.definitions import definition_of
from evaluation.prompts.queries.drafts import draft_of, examples_as_lines, working_prompt
from evaluation.prompts.queries.versions import champions, newest_versions
from evaluation.prompts.services.drafts import draft_discard, draft_save
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.worker.single_calls import QuestionEstimate, question_estimate, question_key
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion

CHATS, FEWEST, MOST = 8, 2, 16
TEMPERATURE = 0.7  # unlike verdicts, a repeated draft should differ
STILL_OPEN = "the newest suggestion has no answer yet: wait for it or cancel it"


class SuggestionRefused(InputProblem):
    """The suggestion cannot be started or changed; the message says why."""


@dataclass(frozen=True, slots=True)
class SuggestionChoice:
    """At most how many chats to send, the profile that names the model (None: the default), repeat.

    `from_texts` sends no chat: the prompt is written from the raters' texts.
    """

    chats: int = CHATS
    profile: JudgeProfile | None = None
    anew: bool = False
    from_texts: bool = False


@dataclass(frozen=True, slots=True)
class PreparedSuggestion:
    """A request as it would be sent now, from all `disagreements`; `shown` are those in the request."""

    request: Request
    question: str
    base: PromptVersion
    base_text: str
    disagreements: tuple[TrainDisagreement, ...]
    shown: tuple[TrainDisagreement, ...]
    notes: int
    note_chats: tuple[int, ...]


def suggestion_prepare(*, criterion: Criterion, choice: SuggestionChoice, by: User) -> PreparedSuggestion:
    """Return the request without storing it. Raises SuggestionRefused, InputProblem for wrong settings."""
    champion = champions(criteria=[criterion]).get(criterion.pk)
    if champion is None:
        raise SuggestionRefused("there is no prompt yet: the first run makes version 1")
    disagreements = [] if choice.from_texts else _disagreements(criterion, champion, by)
    spec, at = judge_model(choice.profile or default_profile())
    working = working_prompt(criterion=criterion, author=by, base=champion)
    version = newest_versions(criteria=[criterion])[criterion.pk]
    shown = select_disagreements(disagreements, most=choice.chats)
    notes = [] if choice.from_texts else open_notes(criterion=criterion, user=by)
    material = Material(
        asked=definition_of(version),
        prompt=working.text,
        disagreements=disagreements_in_full(shown, criterion=criterion),
        notes=tuple(note.text for note in notes),
    )
    return PreparedSuggestion(
        request=writing_request(
            role="reviser",
            messages=suggestion_messages(material, fence_secret=bytes(Workspace.current().fence_secret)),
            room=partial(room_for, material.prompt),
            choice=spec,
            at=at,
        ),
        question=version.question,
        base=working.base,
        base_text=working.text,
        disagreements=tuple(disagreements),
        shown=tuple(shown),
        notes=len(notes),
        note_chats=tuple(sorted({note.chat_id for note in notes})),
    )


def _disagreements(criterion: Criterion, champion: PromptVersion, by: User) -> list[TrainDisagreement]:
    found = train_disagreements(criterion=criterion, champion=champion, user=by)
    if len(found) < FEWEST:
        count = f"{len(found)} train chat{'' if len(found) == 1 else 's'}"
        raise SuggestionRefused(f"judge and consensus differ on {count}; a revision needs {FEWEST}")
    return found


def suggestion_estimate(prepared: PreparedSuggestion) -> QuestionEstimate:
    """Return the maximum tokens and cost of the request."""
    return question_estimate(prepared.request)


@transaction.atomic
def suggestion_start(*, criterion: Criterion, choice: SuggestionChoice, by: User) -> Suggestion:
    """Store a suggestion and enqueue it. The same material finds its stored answer.

    With `anew` the same request is sent again as the next sample. Raises SuggestionRefused, and InputProblem
    for wrong settings.
    """
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    champions_ensure(criteria=[criterion], by=by)
    profiles_ensure()
    if not FEWEST <= choice.chats <= MOST:
        raise SuggestionRefused(f"a suggestion reads {FEWEST} to {MOST} chats, not {choice.chats}")
    earlier = Suggestion.objects.filter(criterion=criterion)
    if earlier.filter(state__in=(Suggestion.State.OPEN, Suggestion.State.ASKING)).exists():
        raise SuggestionRefused(STILL_OPEN)
    prepared = suggestion_prepare(criterion=criterion, choice=choice, by=by)
    question = question_key(prepared.request)
    same = earlier.filter(question=question).order_by("-sample").first()
    sample = 0 if same is None else same.sample + int(choice.anew)
    row = Suggestion.objects.create(
        criterion=criterion,
        base=prepared.base,
        base_text=prepared.base_text,
        by=by,
        model=prepared.request.model,
        material=_material(prepared),
        request=request_json(replace(prepared.request, sample=sample)),
        question=question,
        sample=sample,
    )
    transaction.on_commit(partial(SUGGESTIONS.enqueue, row.pk))
    return row


@transaction.atomic
def suggestion_cancel(*, suggestion: Suggestion) -> Suggestion:
    """Cancel an open suggestion; an answer in flight is still stored. Raises SuggestionRefused."""
    row = Suggestion.objects.select_for_update(of=("self",)).get(pk=suggestion.pk)
    if not row.is_open:
        raise SuggestionRefused("the suggestion is finished and cannot be cancelled")
    row.state, row.finished_at = Suggestion.State.CANCELLED, timezone.now()
    row.save(update_fields=["state", "finished_at"])
    return row


@transaction.atomic
def suggestion_dismiss(*, suggestion: Suggestion, by: User) -> Suggestion:
    """Close a finished suggestion; it stays in the list. Raises SuggestionRefused."""
    row = Suggestion.objects.select_for_update(of=("self",)).get(pk=suggestion.pk)
    if row.is_open:
        raise SuggestionRefused("the suggestion has no answer yet: cancel it instead")
    row.dismissed_by, row.dismissed_at = by, row.dismissed_at or timezone.now()
    row.save(update_fields=["dismissed_by", "dismissed_at"])
    return row


@transaction.atomic
def suggestion_use(*, suggestion: Suggestion, by: User) -> SuggestionUse:
    """Replace the text of the author's draft with the suggestion; the examples stay.

    The replaced draft is stored with the use. Does nothing if this use is already the draft. Raises
    SuggestionRefused, StaleDraft.
    """
    criterion = Criterion.objects.select_for_update(no_key=True).get(pk=suggestion.criterion_id)
    row = Suggestion.objects.select_related("base").get(pk=suggestion.pk)
    if row.state != Suggestion.State.DONE:
        raise SuggestionRefused("the suggestion has no revised prompt")
    draft = draft_of(criterion=criterion, author=by)
    earlier = newest_use(suggestion=row, by=by)
    if earlier is not None and takes_back(earlier, draft):
        return earlier
    saved = draft_save(
        criterion=criterion,
        author=by,
        base=row.base,
        text=row.text,
        examples=draft.examples if draft else examples_as_lines(row.base),
        revision=draft.revision if draft else 0,
        origin=PromptVersion.Origin.SUGGESTED,
    )
    replaced = draft and {
        "base": draft.base_id,
        "text": draft.text,
        "examples": draft.examples,
        "origin": draft.origin,
    }
    return SuggestionUse.objects.create(
        suggestion=row, by=by, replaced=replaced or None, revision=saved.revision
    )


@transaction.atomic
def suggestion_take_back(*, suggestion: Suggestion, by: User) -> None:
    """Restore the author's draft from before the suggestion. Raises SuggestionRefused."""
    criterion = Criterion.objects.select_for_update(no_key=True).get(pk=suggestion.criterion_id)
    use, draft = newest_use(suggestion=suggestion, by=by), draft_of(criterion=criterion, author=by)
    if use is None or not takes_back(use, draft):
        raise SuggestionRefused("the draft has changed since: the earlier one cannot be restored")
    before = use.replaced
    if before is None:
        draft_discard(criterion=criterion, author=by)
    else:
        draft_save(
            criterion=criterion,
            author=by,
            base=PromptVersion._base_manager.get(pk=before["base"]),
            text=before["text"],
            examples=before["examples"],
            revision=use.revision,
            origin=before["origin"],
        )
    use.undone_at = timezone.now()
    use.save(update_fields=["undone_at"])


def judge_model(profile: JudgeProfile | None) -> tuple[JudgeSpec, ModelAt]:
    """Return the profile's recipe and the model of its judge.

    Raises SuggestionRefused without a profile, and where that model cannot write.
    """
    if profile is None:
        raise SuggestionRefused("there is no default judge profile to take the model from: add one")
    choice = profile_choice(profile)
    endpoint = judge_endpoint(choice)
    model = model_of("judge", choice=choice, endpoint=endpoint)
    at = ModelAt(endpoint_of("judge", choice=choice, endpoint=endpoint), model)
    if at.endpoint.startswith(("embedded:", SIMULATED)):
        raise SuggestionRefused(f"{endpoint_name(at.endpoint)} cannot write texts: connect another model")
    return choice, at


def writing_request(
    *,
    role: str,
    messages: tuple[PromptMessage, ...],
    room: Callable[..., int],
    choice: JudgeSpec,
    at: ModelAt,
) -> Request:
    """Return a request for prose to the model of a judge.

    `room(reasons=…)` is the token limit of the answer, for a model that reasons first or one that does not.
    """
    takes = model_profile(endpoint=at.endpoint, model=at.model)
    sampling = default_sampling(
        role="judge",
        profile=takes,
        endpoint=at.endpoint,
        model=at.model,
        temperature=choice.temperatures.get("judge", TEMPERATURE),
        effort=choice.efforts.get("judge", ""),
    )
    return Request(
        role=role,
        step=1,
        messages=messages,
        model=at.model,
        temperature=sampling.temperature,
        max_tokens=room(reasons=bool(takes.reasons)),
        top_p=None,
        seed=None,
        endpoint=at.endpoint,
        reasoning_effort=sampling.reasoning_effort,
    )


def _material(prepared: PreparedSuggestion) -> dict[str, Any]:
    chats = [
        {
            "id": one.verdict.chat_id,
            "run": one.verdict.run_id,
            "people": one.consensus,
            "judge": one.judge,
        }
        for one in prepared.shown
    ]
    return {
        "question": prepared.question,
        "chats": chats,
        "notes": prepared.notes,
        "note_chats": list(prepared.note_chats),
    }


def request_json(request: Request) -> dict[str, Any]:
    """Return the request as JSON; the worker reads it back."""
    return asdict(request)
