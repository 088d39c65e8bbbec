"""The prompt editor: the page, saving a version, and the fragments that the page loads."""

from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from alignment.comparison.views import back_of
from alignment.prompts.forms import SaveForm
from alignment.prompts.queries.editor import editor_of, start_of
from alignment.prompts.services import draft_publish, example_choices_for
from alignment.prompts.tries.forms import ids_in
from alignment.prompts.views.criterion import criterion_or_404
from common.access import permission_or_404
from common.problems import FieldProblem
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.core.changes import section_changes
from evaluation.prompts.core.costar import COSTAR
from evaluation.prompts.core.lint import Finding, Level
from evaluation.prompts.queries.drafts import draft_of, examples_as_lines, working_prompt
from evaluation.prompts.services.drafts import (
    FaultyPrompt,
    NewerVersions,
    SavedVersion,
    StaleDraft,
    draft_discard,
)
from evaluation.prompts.services.examples import LONGEST_PROMPT, PromptRefused
from evaluation.prompts.services.lint import EXAMPLES, prompt_lint
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.people import User
from labeling.models.rubric import Criterion

TOO_LONG = f"This text is longer than {LONGEST_PROMPT:,} characters. Shorten it."
MARKDOWN = "markdown"  # ?as=markdown: one pane with the whole text
STALE = "This draft was changed in another tab or on another device. Check the text, then save again."


def base_or_404(criterion: Criterion, number: str) -> PromptVersion:
    """Return the version with that number; "" is the version that new drafts start from."""
    versions = PromptVersion.objects.filter(criterion=criterion)
    known = number.isdecimal() and len(number) < 10
    base = (versions.filter(number=number).first() if known else None) if number else start_of(criterion)
    if base is None:
        raise Http404
    return base


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "HEAD", "POST"])
def prompt_edit(request: HttpRequest, key: str) -> HttpResponse:
    """The author's draft; `?base=N` starts one from version N, `?as=markdown` shows the whole text.

    `?pin=ID` makes the page pin a chat beside it, and may be repeated. A post saves the stored draft as a
    version.
    """
    criterion = criterion_or_404(key)
    number = request.GET.get("base", "")
    base = base_or_404(criterion, number) if number else start_of(criterion)
    if base is None:
        return render(request, "alignment/prompts/start.html", {"criterion": criterion})
    if request.method != "POST":
        return _page(request, criterion, base, SaveForm(initial=_initial(request, criterion, base)))
    form = SaveForm(request.POST)
    context: dict[str, Any] = {}
    if form.is_valid():
        try:
            return _saved(request, _publish(request, criterion, base, form))
        except FaultyPrompt as faulty:
            context["faults"] = faulty.findings
        except NewerVersions as newer:
            context["newer_found"] = True
            form.data = request.POST.copy()
            form.data["confirmed"] = str(newer.versions[-1].number)
        except StaleDraft:
            form.add_error(None, STALE)
        except (FieldProblem, PromptRefused) as problem:
            form.add_error("reason" if problem.field == "reason" else None, problem.message)
    return _page(request, criterion, base, form, failed=True, **context)


def _publish(request: HttpRequest, criterion: Criterion, base: PromptVersion, form: SaveForm) -> SavedVersion:
    data = form.cleaned_data
    return draft_publish(
        criterion=criterion,
        author=cast(User, request.user),
        base=base,
        revision=data["revision"],
        reason=data["reason"],
        confirmed=data["confirmed"] or 0,
    )


def _saved(request: HttpRequest, saved: SavedVersion) -> HttpResponse:
    """Redirect to the version's page, with a message about the next step."""
    version, key = saved.version, saved.version.criterion.key
    if saved.added and version.promotions.exists():
        messages.success(request, f"Version {version.number} is the released one: its text is the same.")
    elif saved.added:
        start = f"{reverse('alignment:regression_new')}?criterion={key}&version={version.number}"
        words = 'Version {} is saved, not released. <a href="{}">Test version {}</a>'
        messages.success(request, format_html(words, version.number, start, version.number))
    else:
        messages.info(request, f"No new version: version {version.number} has the same text.")
    return redirect("alignment:prompt_version", key, version.number)


def _initial(request: HttpRequest, criterion: Criterion, base: PromptVersion) -> dict[str, Any]:
    prompt = working_prompt(criterion=criterion, author=cast(User, request.user), base=base)
    return {"revision": prompt.revision}


def _page(
    request: HttpRequest, criterion: Criterion, base: PromptVersion, form: SaveForm, **more: Any
) -> HttpResponse:
    editor = editor_of(
        criterion=criterion,
        author=cast(User, request.user),
        base=base,
        requested="base" in request.GET,
        whole=request.GET.get("as") == MARKDOWN,
    )
    if not form.is_bound and editor.newer:
        # The dialog lists them, so saving in it confirms them.
        form.initial["confirmed"] = editor.newer[-1].number
    context = {
        "editor": editor,
        "notices": editor.notices,
        "pins": ids_in(request.GET.getlist("pin")),
        "criterion": criterion,
        "key": criterion.key,
        "form": form,
        "longest": LONGEST_PROMPT,
        "back": back_of(request),
    }
    return render(request, "alignment/prompts/edit.html", context | more)


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_start(request: HttpRequest, key: str) -> HttpResponse:
    """Make version 1, shipped or generated, of a criterion without versions."""
    criterion = criterion_or_404(key)
    champions_ensure(criteria=[criterion], by=cast(User, request.user))
    return redirect("alignment:prompt_edit", criterion.key)


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_discard(request: HttpRequest, key: str) -> HttpResponse:
    """Delete the author's draft; with `base` the next one starts from that version."""
    criterion, number = criterion_or_404(key), request.POST.get("base", "")
    base = base_or_404(criterion, number)
    draft_discard(criterion=criterion, author=cast(User, request.user))
    messages.info(request, f"The draft was discarded. This is version {base.number}.")
    address = reverse("alignment:prompt_edit", args=[criterion.key])
    return redirect(f"{address}?base={base.number}" if number else address)


# ---------- parts of the page ----------


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_findings(request: HttpRequest, key: str) -> HttpResponse:
    """The lint findings of the stored draft."""
    criterion = criterion_or_404(key)
    base = base_or_404(criterion, request.GET.get("base", ""))
    user = cast(User, request.user)
    prompt = working_prompt(criterion=criterion, author=user, base=base)
    try:
        choices = example_choices_for(user, prompt.examples)
        findings = prompt_lint(criterion=criterion, text=prompt.text, examples=choices)
    except PromptRefused as problem:
        problem_finding = Finding(Level.ERROR, EXAMPLES, str(problem))
        findings = (problem_finding, *prompt_lint(criterion=criterion, text=prompt.text))
    whole = "whole" in request.GET
    context = {
        "findings": [(finding, _place(finding.section, whole=whole)) for finding in findings],
        "errors": sum(finding.level == Level.ERROR for finding in findings),
    }
    return render(request, "alignment/prompts/_lint.html", context)


def _place(section: str, *, whole: bool) -> str:
    """Return the id of the place on the page that a finding is about, "" for the whole prompt."""
    if section == EXAMPLES:
        return "examples"
    if whole:
        return "text-text"
    return f"text-{section}" if section in COSTAR else ""


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_markdown(request: HttpRequest, key: str) -> HttpResponse:
    """Preview of one pane; the request names its field."""
    criterion_or_404(key)
    text = request.POST.get(request.GET.get("of", "text"), "")
    if len(text) > LONGEST_PROMPT:
        return HttpResponse(TOO_LONG, status=413)
    return render(request, "alignment/prompts/_markdown.html", {"text": text})


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_changes(request: HttpRequest, key: str) -> HttpResponse:
    """The changes that the text of this page would make to the stored draft."""
    criterion = criterion_or_404(key)
    draft = draft_of(criterion=criterion, author=cast(User, request.user))
    context: dict[str, Any] = {"draft": draft}
    if len(text := _posted_text(request)) > LONGEST_PROMPT:
        return HttpResponse(TOO_LONG, status=413)
    if draft is not None:
        context["changes"] = section_changes(draft.text, text)
    return render(request, "alignment/prompts/_changes.html", context)


@permission_or_404("labeling.edit_prompts")
@require_safe
def prompt_since(request: HttpRequest, key: str) -> HttpResponse:
    """The changes of the stored draft since its base version."""
    criterion = criterion_or_404(key)
    base = base_or_404(criterion, request.GET.get("base", ""))
    prompt = working_prompt(criterion=criterion, author=cast(User, request.user), base=base)
    context = {
        "changes": section_changes(prompt.base.text, prompt.text),
        "examples": prompt.examples != examples_as_lines(prompt.base),
    }
    return render(request, "alignment/prompts/_saved_since.html", context)


def _posted_text(request: HttpRequest) -> str:
    """Return the posted text, joined if it came in sections."""
    if "text" in request.POST:
        return request.POST["text"].replace("\r\n", "\n")
    panes = {name: request.POST.get(name, "").replace("\r\n", "\n").strip() for name in COSTAR}
    return "\n\n".join(f"# {name.capitalize()}\n{text}" for name, text in panes.items() if text)
