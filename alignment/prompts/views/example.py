"""The editor's worked examples: the list to pick from, one chat, and the chosen ones."""

import json
from typing import Any, cast

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.prompts.forms import ANSWERS, ExampleForm
from alignment.prompts.queries.example_picker import (
    VALUES,
    PickFilter,
    chats_of_lines,
    chosen_examples,
    judge_wrong,
    opinions_on,
    pick_filtered,
    pick_rows,
    pick_topics,
    pickable,
)
from alignment.prompts.services import draft_write, example_choices_for
from alignment.prompts.views.criterion import criterion_or_404
from alignment.prompts.views.prompts import base_or_404
from common.access import permission_or_404
from evaluation.models.prompts import PromptDraft
from evaluation.prompts.core.example_lines import MOST_EXAMPLES, MOST_TURNS
from evaluation.prompts.queries.drafts import WorkingPrompt, working_prompt
from evaluation.prompts.services.drafts import StaleDraft
from evaluation.prompts.services.examples import PromptRefused, examples_check
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion

CHATS_A_PAGE = 20
LABELS = {"": "Any answer", "true": "True", "false": "False", "na": "Not applicable"}
FIELDS = {"turns": "last", "value": "value", "rationale": "rationale"}


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_examples(request: HttpRequest, key: str) -> HttpResponse:
    """Train chats with their consensus, filtered by `label`, `topic`, `wrong` and `q`."""
    criterion = criterion_or_404(key)
    user, query = cast(User, request.user), request.GET
    every = pickable(criterion=criterion, user=user)
    pick_filter = PickFilter(
        label=query.get("label", "") if query.get("label") in LABELS else "",
        topic=query.get("topic", ""),
        words=query.get("q", "")[:200],
        wrong="wrong" in query,
    )
    wrong = judge_wrong(criterion=criterion)
    page = Paginator(pick_filtered(every, pick_filter, wrong=wrong), CHATS_A_PAGE).get_page(query.get("page"))
    prompt = _stored(request, criterion)
    context = {
        "criterion": criterion,
        "page_obj": page,
        "rows": pick_rows(list(page), taken=prompt.examples, wrong=wrong),
        "filter": pick_filter,
        "labels": _labels(criterion),
        "topics": pick_topics(every),
    }
    return render(request, "alignment/prompts/_pick_list.html", context)


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "HEAD", "POST"])
def prompt_example(request: HttpRequest, key: str, chat_id: int) -> HttpResponse:
    """One train chat and a form for its turns; a post adds it to the draft's examples."""
    criterion, user = criterion_or_404(key), cast(User, request.user)
    chat: Any = get_object_or_404(pickable(criterion=criterion, user=user), pk=chat_id)
    opinions = opinions_on(chat=chat, criterion=criterion, value=VALUES[chat.consensus], user=user)
    start = {
        "first": 1,
        "last": min(chat.message_count, MOST_TURNS),
        "value": chat.consensus,
        "rationale": opinions[0].text if opinions else "",
    }
    form = ExampleForm(request.POST or None, initial=start, allow_na=_allow_na(criterion))
    prompt = _stored(request, criterion)
    if request.method == "POST" and form.is_valid():
        try:
            draft = _write(request, prompt, criterion, [*prompt.examples, form.line(chat.external_id)])
            return _chosen(request, criterion, draft)
        except StaleDraft:
            return HttpResponse(status=409)
        except PromptRefused as problem:
            _refuse(form, problem, new=len(prompt.examples))
    context = {
        "consensus": VALUES[chat.consensus],
        "opinions": opinions,
        "refused": "" if form.is_bound else _refusal(criterion, prompt, chat, user),
        "save_url": reverse("alignment:prompt_example", args=[key, chat.pk]),
    }
    return _one_chat(request, criterion, chat, form, **context)


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "HEAD", "POST"])
def prompt_example_edit(request: HttpRequest, key: str, index: int) -> HttpResponse:
    """The turns, answer and reason of an example of the draft; a post replaces them."""
    criterion, user = criterion_or_404(key), cast(User, request.user)
    prompt = _stored(request, criterion)
    lines = list(prompt.examples)
    chats = chats_of_lines(user=user, lines=lines[index : index + 1])
    if not chats:
        raise Http404
    line, (chat,) = lines[index], chats
    start = {
        "first": line["turns"][0],
        "last": line["turns"][1],
        "value": next(name for name, value in ANSWERS.items() if value is line["value"]),
        "rationale": line["rationale"],
    }
    form = ExampleForm(request.POST or None, initial=start, allow_na=_allow_na(criterion))
    if request.method == "POST" and form.is_valid():
        lines[index] = form.line(chat.external_id)
        try:
            return _chosen(request, criterion, _write(request, prompt, criterion, lines))
        except StaleDraft:
            return HttpResponse(status=409)
        except PromptRefused as problem:
            _refuse(form, problem, new=index)
    consensus = (
        Consensus.objects.filter(chat=chat, criterion=criterion).values_list("state", flat=True).first()
    )
    context = {
        "consensus": VALUES.get(consensus or "", "none"),
        "opinions": opinions_on(chat=chat, criterion=criterion, value=line["value"], user=user),
        "save_url": reverse("alignment:prompt_example_edit", args=[key, index]),
        "edited": True,
    }
    return _one_chat(request, criterion, chat, form, **context)


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_example_remove(request: HttpRequest, key: str, index: int) -> HttpResponse:
    """Remove an example. The order does not matter: the judge derives it from its seed."""
    criterion = criterion_or_404(key)
    prompt = _stored(request, criterion)
    lines = list(prompt.examples)
    if index >= len(lines):
        raise Http404
    del lines[index]
    try:
        return _chosen(request, criterion, _write(request, prompt, criterion, lines, check=False))
    except StaleDraft:
        return HttpResponse(status=409)


def _one_chat(
    request: HttpRequest, criterion: Criterion, chat: Any, form: ExampleForm, **more: Any
) -> HttpResponse:
    wrong = judge_wrong(criterion=criterion).filter(chat=chat.pk)
    context = {
        "criterion": criterion,
        "chat": chat,
        "form": form,
        "most_turns": MOST_TURNS,
        "judge_wrong": wrong.exists(),
    }
    return render(request, "alignment/prompts/_pick_chat.html", context | more)


def _labels(criterion: Criterion) -> list[tuple[str, str]]:
    return [(value, words) for value, words in LABELS.items() if value != "na" or _allow_na(criterion)]


def _allow_na(criterion: Criterion) -> bool:
    return criterion.versions.latest("number").allow_na


def _stored(request: HttpRequest, criterion: Criterion) -> WorkingPrompt:
    """Return the draft, or the version that the page shows if there is none."""
    data = request.POST if request.method == "POST" else request.GET
    base = base_or_404(criterion, data.get("base", ""))
    return working_prompt(criterion=criterion, author=cast(User, request.user), base=base)


def _write(
    request: HttpRequest,
    prompt: WorkingPrompt,
    criterion: Criterion,
    lines: list[dict[str, Any]],
    *,
    check: bool = True,
) -> PromptDraft:
    revision = request.POST.get("revision", "")
    return draft_write(
        criterion=criterion,
        author=cast(User, request.user),
        base=prompt.base,
        revision=int(revision) if revision.isdecimal() and len(revision) < 10 else -1,
        lines=lines,
        check=check,
    )


def _refusal(criterion: Criterion, prompt: WorkingPrompt, chat: Any, user: User) -> str:
    """Return why this chat cannot be an example with any turns, "" if it can."""
    if len(prompt.examples) >= MOST_EXAMPLES:
        return f"A prompt has at most {MOST_EXAMPLES} examples. Remove one first."
    if any(line["chat"] == chat.external_id for line in prompt.examples):
        return "This chat is already an example."
    line = {"chat": chat.external_id, "turns": [1, 1], "value": VALUES[chat.consensus], "rationale": "-"}
    try:
        examples_check(criterion=criterion, examples=example_choices_for(user, [line]))
    except PromptRefused as problem:
        if problem.field == "chat_id":
            return f"This chat {problem.message.removeprefix(repr(chat.external_id)).strip()}."
    return ""


def _refuse(form: ExampleForm, problem: PromptRefused, *, new: int) -> None:
    """Show the problem at its field; a problem with the chat or another example above the form."""
    if problem.index == new:
        form.add_error(FIELDS.get(problem.field), problem.message)
    else:
        form.add_error(None, str(problem))


def _chosen(request: HttpRequest, criterion: Criterion, draft: PromptDraft) -> HttpResponse:
    """Render the draft's examples and send the page its new revision."""
    context = {
        "criterion": criterion,
        "examples": chosen_examples(user=cast(User, request.user), lines=draft.examples, criterion=criterion),
    }
    answer = render(request, "alignment/prompts/_chosen_examples.html", context)
    answer["HX-Retarget"] = "#chosen"
    answer["HX-Trigger"] = json.dumps({"draft-stored": {"revision": draft.revision}})
    return answer
