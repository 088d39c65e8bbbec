"""Preview and tries of a draft: htmx fragments of the editor's page."""

from typing import Any, cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.chat_detail.queries.verdict_detail import verdict_detail
from alignment.prompts.tries.forms import TryForm
from alignment.prompts.tries.queries import TRY_OPTIONS, TryResult, has_other_recipe, last_try, try_result
from alignment.prompts.tries.services import MOST_CHATS, USUAL_CHATS, try_cancel, try_estimate, try_start
from alignment.prompts.tries.services import prompt_preview as preview_of
from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.gateway.current import current_endpoint
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.drafts import draft_of
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries import run_page
from evaluation.runs.queries.progress import run_progress
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.queries.runs import runs_open_to
from evaluation.runs.services.control import CANCELLABLE
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown

LONGEST_SEEN = 1000  # characters of the list of finished chats


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_preview(request: HttpRequest, key: str) -> HttpResponse:
    """The messages that each role receives about one chat."""
    criterion, form = _form(request, key)
    context: dict[str, Any] = {"criterion": criterion, "form": form}
    if form.is_valid():
        author, choice = cast(User, request.user), form.choice(chat_alone=True)
        try:
            context["preview"] = preview_of(criterion=criterion, author=author, choice=choice)
        except InputProblem as problem:
            context["problem"] = str(problem)
        else:
            context["embedded"] = current_endpoint().embedded
            context["others"] = _others(criterion, context["preview"].criteria)
            context["chat"] = chats_shown(user=author).get(pk=choice.chat_id or 0)
    return render(request, "alignment/prompts/tries/_preview.html", context)


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "HEAD", "POST"])
def prompt_try(request: HttpRequest, key: str) -> HttpResponse:
    """The form with the author's last try; a post starts a try."""
    criterion, form = _form(request, key)
    author = cast(User, request.user)
    if request.method != "POST":
        return render(request, "alignment/prompts/tries/_try.html", _form_context(criterion, author, form))
    if not form.is_valid():
        return _result(request, criterion, None, form=form)
    try:
        run = try_start(criterion=criterion, author=author, choice=form.choice())
    except InputProblem as problem:
        return _result(request, criterion, None, problem=str(problem))
    return _result(request, criterion, run)


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_try_estimate(request: HttpRequest, key: str) -> HttpResponse:
    """Calls and cost of the chosen try."""
    criterion, form = _form(request, key)
    if not form.is_valid():
        return render(request, "evaluation/runs/_estimate.html", {"form": form})
    author = cast(User, request.user)
    try:
        estimate = try_estimate(criterion=criterion, author=author, choice=form.choice())
    except InputProblem as problem:
        return render(request, "evaluation/runs/_estimate.html", {"problem": str(problem)})
    return render(request, "evaluation/runs/_estimate.html", {"estimate": estimate})


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_try_progress(request: HttpRequest, key: str, run_id: int) -> HttpResponse:
    """The progress of a try, with each chat that the page has not `seen` finished."""
    criterion, run = _run_or_404(request, key, run_id)
    return render(
        request,
        "alignment/prompts/tries/_progress.html",
        _result_context(request, criterion, run) | {"poll": True},
    )


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_try_cancel(request: HttpRequest, key: str, run_id: int) -> HttpResponse:
    """Cancel a try; stored answers are kept."""
    criterion, run = _run_or_404(request, key, run_id)
    try_cancel(run=run, author=cast(User, request.user))
    return _result(request, criterion, _run_or_404(request, key, run_id)[1])


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_try_chat(request: HttpRequest, key: str, run_id: int, chat_id: int) -> HttpResponse:
    """The judge's steps on one chat of a try."""
    criterion, run = _run_or_404(request, key, run_id)
    shown = chats_shown(user=request.user).filter(pk__in=run.run_chats.values("chat_id"))
    chat = get_object_or_404(shown, pk=chat_id)
    verdict = Verdict.objects.filter(run=run, chat=chat, criterion=criterion).first()
    version = newest_versions(criteria=[criterion])[criterion.pk]
    focus = verdict_detail(run, chat, verdict, criterion, version)
    context = {"criterion": criterion, "version": version, "run": run, "chat": chat, "focus": focus}
    return render(request, "alignment/prompts/tries/_chat.html", context | {"messages": chat.messages})


def _form(request: HttpRequest, key: str) -> tuple[Criterion, TryForm]:
    criterion = get_object_or_404(Criterion, key=key)
    data = request.POST if request.method == "POST" else request.GET
    return criterion, TryForm(data, criterion=criterion, user=cast(User, request.user))


def _run_or_404(request: HttpRequest, key: str, run_id: int) -> tuple[Criterion, Run]:
    """Return a try of this criterion: the user's own, or any if the user may start runs."""
    criterion = get_object_or_404(Criterion, key=key)
    runs = runs_open_to(request.user).filter(purpose=Run.Purpose.TRY)
    run = get_object_or_404(runs, pk=run_id)
    if run.options[TRY_OPTIONS]["criterion"] != key:
        raise Http404
    return criterion, run


def _form_context(criterion: Criterion, author: User, form: TryForm) -> dict[str, Any]:
    """Return the context of the form as first shown, with the author's last try."""
    blank = TryForm(None, criterion=criterion, user=author)
    blank.initial["base"] = form["base"].value()
    offered = blank.offer()
    last = last_try(criterion=criterion, author=author)
    context = {
        "criterion": criterion,
        "form": blank,
        "offered": offered,
        "usual_chats": USUAL_CHATS,
        "most_chats": MOST_CHATS,
    }
    return context | (_try_context(criterion, last, author, seen=frozenset()) if last else {})


def _result(request: HttpRequest, criterion: Criterion, run: Run | None, **more: Any) -> HttpResponse:
    """Render the part of the page below the form."""
    context = _result_context(request, criterion, run) if run else {"criterion": criterion}
    return render(request, "alignment/prompts/tries/_result.html", context | more)


def _result_context(request: HttpRequest, criterion: Criterion, run: Run) -> dict[str, Any]:
    finished = request.GET.get("seen", "")[:LONGEST_SEEN].split(",")
    seen = frozenset(int(part) for part in finished if part.isdecimal())
    return _try_context(criterion, run, cast(User, request.user), seen=seen)


def _try_context(criterion: Criterion, run: Run, author: User, *, seen: frozenset[int]) -> dict[str, Any]:
    redact_errors([run], user=author)
    result, progress = try_result(run=run, criterion=criterion, user=author), run_progress(run)
    over = not progress.active
    return {
        "criterion": criterion,
        "result": result,
        "progress": progress,
        "over": over,
        "new": [one for one in result.chats if one.chat.pk not in seen],
        "seen": ",".join(str(one.chat.pk) for one in result.chats if one.ended),
        # A finished run stores its cost; until then it is computed from its requests.
        "cost": progress.costs.cost_usd if run.state in CANCELLABLE else run.cost_usd,
        "trouble": run_page.in_words(run.error),
        "waits_for": run_page.waits_for(run, workers=progress.workers, batches=()),
        "can_cancel": run.state in CANCELLABLE,
        "others": _others(criterion, run.judge.prompts.values_list("criterion__key", flat=True)),
        **_before(result),
        **_prompt(result, author),
    }


def _before(result: TryResult) -> dict[str, Any]:
    """Return the runs of the verdicts before, and whether their judges differ in more than the prompt."""
    ids = {one.before.run_id for one in result.chats if one.before}
    runs = list(Run.objects.filter(pk__in=ids).select_related("judge").order_by("-pk"))
    other_recipe = any(has_other_recipe(run.judge, result.run.judge) for run in runs)
    return {"before_runs": runs, "other_recipe": other_recipe}


def _prompt(result: TryResult, author: User) -> dict[str, Any]:
    """Return the tried prompt, and whether the author's draft has changed since."""
    row = PromptVersion._base_manager.get(pk=result.options["prompt"])
    draft = draft_of(criterion=result.criterion, author=author)
    return {"prompt": row, "changed_since": draft is not None and draft.text != row.text}


def _others(criterion: Criterion, keys: Any) -> list[Criterion]:
    """Return the other criteria in the same call."""
    rows = Criterion.objects.filter(key__in=list(keys)).exclude(pk=criterion.pk)
    return list(rows.order_by("dimension__position", "position"))
