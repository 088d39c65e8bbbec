"""Preview and tries of a draft: htmx fragments of the editor's page."""

from typing import Any, cast
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.chat_detail.queries.verdict_detail import verdict_detail
from alignment.prompts.tries.forms import BenchForm, TryForm, ids_in
from alignment.prompts.tries.queries.bench import Bench, bench_of, chats_found
from alignment.prompts.tries.queries.results import TRY_OPTIONS, has_other_recipe
from alignment.prompts.tries.services import (
    MOST_PINS,
    bench_estimates,
    bench_start,
    draft_digest,
    pin_chats,
    tries_cancel,
    unpin_chats,
)
from alignment.prompts.tries.services import prompt_preview as preview_of
from alignment.prompts.views.prompts import base_or_404
from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.drafts import working_prompt
from evaluation.prompts.queries.versions import newest_versions
from evaluation.runs.queries import run_page
from evaluation.runs.queries.progress import run_progress
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.queries.runs import runs_open_to
from evaluation.runs.services.control import CANCELLABLE
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown

LONGEST_SEEN = 2000  # characters of the list of chats that the page shows


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_preview(request: HttpRequest, key: str) -> HttpResponse:
    """The messages that each role receives about one chat."""
    criterion = get_object_or_404(Criterion, key=key)
    author = cast(User, request.user)
    form = TryForm(request.GET, criterion=criterion, user=author)
    context: dict[str, Any] = {"criterion": criterion, "form": form}
    if form.is_valid():
        choice = form.choice(chat_alone=True)
        try:
            context["preview"] = preview_of(criterion=criterion, author=author, choice=choice)
        except InputProblem as problem:
            context["problem"] = str(problem)
        else:
            context["embedded"] = context["preview"].embedded
            context["others"] = _others(criterion, context["preview"].criteria)
            context["chat"] = chats_shown(user=author).get(pk=choice.chat_id or 0)
    return render(request, "alignment/prompts/tries/_preview.html", context)


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "HEAD", "POST"])
def prompt_try(request: HttpRequest, key: str) -> HttpResponse:
    """The chats beside the editor; a post tries the draft on `chats`, or on `only` one of them."""
    criterion, form = _form(request, key)
    context: dict[str, Any] = {}
    if request.method == "POST":
        context["problem"] = _start(criterion, cast(User, request.user), form)
    return _panel(request, criterion, form, **context)


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_try_estimate(request: HttpRequest, key: str) -> HttpResponse:
    """Calls, tokens and cost of a try of the chats that the page shows."""
    criterion, form = _form(request, key)
    context: dict[str, Any] = {"form": form}
    if form.is_valid() and (choice := form.choice()).chat_ids:
        try:
            estimates = bench_estimates(criterion=criterion, author=cast(User, request.user), choice=choice)
        except InputProblem as problem:
            context["problem"] = str(problem)
        else:
            context |= _sums(estimates) | {"budget": choice.budget_usd}
    return render(request, "alignment/prompts/tries/_estimate.html", context)


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_try_progress(request: HttpRequest, key: str) -> HttpResponse:
    """The progress of the tries, with each chat that the page does not show as it is now (`seen`)."""
    criterion, form = _form(request, key)
    seen = frozenset(request.GET.get("seen", "")[:LONGEST_SEEN].split(","))
    context = _context(request, criterion, form, seen=seen) | {"poll": True}
    return render(request, "alignment/prompts/tries/_progress.html", context)


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_try_cancel(request: HttpRequest, key: str) -> HttpResponse:
    """Cancel the author's open tries of this prompt; stored answers are kept."""
    criterion, form = _form(request, key)
    tries_cancel(criterion=criterion, author=cast(User, request.user))
    return _panel(request, criterion, form)


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_pin(request: HttpRequest, key: str) -> HttpResponse:
    """Pin chats beside the editor, or unpin one with `unpin`; the page's address then pins none again."""
    criterion, form = _form(request, key)
    author, chats = cast(User, request.user), ids_in(request.POST.getlist("chat"))[:MOST_PINS]
    problem = ""
    if "unpin" in request.POST:
        unpin_chats(criterion=criterion, author=author, chat_ids=chats)
    elif pin_chats(criterion=criterion, author=author, chat_ids=chats) < len(chats):
        problem = "Chats that are not train or dev cannot be pinned."
    answer = _panel(request, criterion, form, unpinned=problem)
    if "from_link" in request.POST:
        base = urlencode({"base": request.POST["base"]}) if "base" in request.POST else ""
        answer["HX-Replace-Url"] = f"{reverse('alignment:prompt_edit', args=[key])}?{base}"
    return answer


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_chats(request: HttpRequest, key: str) -> HttpResponse:
    """Train and dev chats to pin, by id or words."""
    criterion = get_object_or_404(Criterion, key=key)
    words = request.GET.get("words", "")[:200]
    chats = chats_found(criterion=criterion, author=cast(User, request.user), words=words)
    context = {"criterion": criterion, "chats": chats}
    return render(request, "alignment/prompts/tries/_found.html", context)


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


def _form(request: HttpRequest, key: str) -> tuple[Criterion, BenchForm]:
    criterion = get_object_or_404(Criterion, key=key)
    data = request.POST if request.method == "POST" else request.GET
    return criterion, BenchForm(data, criterion=criterion, user=cast(User, request.user))


def _run_or_404(request: HttpRequest, key: str, run_id: int) -> tuple[Criterion, Run]:
    """Return a try of this criterion: the user's own, or any if the user may start runs."""
    criterion = get_object_or_404(Criterion, key=key)
    runs = runs_open_to(request.user).filter(purpose=Run.Purpose.TRY)
    run = get_object_or_404(runs, pk=run_id)
    if run.options[TRY_OPTIONS]["criterion"] != key:
        raise Http404
    return criterion, run


def _start(criterion: Criterion, author: User, form: BenchForm) -> str:
    """Start the tries; return why none was started, "" if they were."""
    if not form.is_valid():
        errors = ((form.fields[name].label or name, found[0]) for name, found in form.errors.items())
        return " ".join(f"{label}: {error}" for label, error in errors)
    try:
        bench_start(criterion=criterion, author=author, choice=form.choice())
    except InputProblem as problem:
        return str(problem)
    return ""


def _panel(request: HttpRequest, criterion: Criterion, form: BenchForm, **more: Any) -> HttpResponse:
    context = _context(request, criterion, form, seen=frozenset())
    return render(request, "alignment/prompts/tries/_bench.html", context | more)


def _context(
    request: HttpRequest, criterion: Criterion, form: BenchForm, *, seen: frozenset[str]
) -> dict[str, Any]:
    author, number = cast(User, request.user), str(form["base"].value() or "")
    form.is_valid()
    base = base_or_404(criterion, number if number.isdecimal() else "")
    prompt = working_prompt(criterion=criterion, author=author, base=base)
    bench = bench_of(
        criterion=criterion,
        author=author,
        base=prompt.base,
        digest=draft_digest(author=author, prompt=prompt),
        **form.counts(),
    )
    # The fields show what was chosen, or the usual numbers.
    blank = BenchForm(None, criterion=criterion, user=author)
    chosen = {name: form[name].value() for name in ("profile", "budget_usd") if form[name].value()}
    blank.initial.update(base=prompt.base.number, **form.counts(), **chosen)
    return {
        "criterion": criterion,
        "form": blank,
        "bench": bench,
        "new": [one for one in bench.chats if one.token not in seen],
        "seen": ",".join(one.token for one in bench.chats),
        **_progress(bench, author),
    }


def _progress(bench: Bench, author: User) -> dict[str, Any]:
    """Return how the newest try goes on, what holds it up, and how its judge differs from the one before."""
    run = bench.newest
    if run is None:
        return {}
    redact_errors([run], user=author)
    progress = run_progress(run)
    before = {one.before.run_id for one in bench.chats if one.before}
    runs = Run.objects.filter(pk__in=before).select_related("judge")
    return {
        "run": run,
        "progress": progress,
        "trouble": run_page.in_words(run.error) if run.state in CANCELLABLE else "",
        "waits_for": run_page.waits_for(run, workers=progress.workers, batches=()) if bench.pending else "",
        "other_recipe": any(has_other_recipe(one.judge, run.judge) for one in runs),
        "others": _others_of(run),
    }


def _sums(estimates: Any) -> dict[str, Any]:
    """Return calls, tokens and cost of the estimates of several sets; None if a price is unknown."""
    names = ("chats", "calls", "reused", "expected_prompt_tokens", "expected_completion_tokens")
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in estimates) for name in names}
    for name in ("expected_cost_usd", "cost_usd"):
        costs = [getattr(one, name) for one in estimates]
        sums[name] = None if None in costs else sum(costs)
    return sums | {"estimated": True}


def _others_of(run: Run) -> list[Criterion]:
    keys = run.judge.prompts.values_list("criterion__key", flat=True)
    return _others(Criterion.objects.get(key=run.options[TRY_OPTIONS]["criterion"]), keys)


def _others(criterion: Criterion, keys: Any) -> list[Criterion]:
    """Return the other criteria in the same call."""
    rows = Criterion.objects.filter(key__in=list(keys)).exclude(pk=criterion.pk)
    return list(rows.order_by("dimension__position", "position"))
