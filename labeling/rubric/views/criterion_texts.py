"""Pages of a criterion's text for raters: current text, versions, new version with preview."""

from dataclasses import asdict
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rating.queries.notes import notes_for, unclear_counts
from labeling.rubric.forms import CriterionTextForm
from labeling.rubric.queries.versions import TEXTS, criterion_diff, criterion_versions, two_of
from labeling.rubric.services.guidelines import (
    CriterionWords,
    EditConflict,
    criterion_evidence_set,
    criterion_write,
)


def _criterion(key: str) -> Criterion:
    return get_object_or_404(Criterion.objects.select_related("rubric", "dimension"), key=key)


@permission_or_404("labeling.edit_prompts")
@require_safe
def criterion_text(request: HttpRequest, key: str) -> HttpResponse:
    """The current text and its versions; `?old=1&new=2` compares two of them."""
    criterion = _criterion(key)
    versions = criterion_versions(criterion=criterion)
    context: dict[str, Any] = {
        "criterion": criterion,
        "version": versions[0],
        "versions": versions,
        "unclear": unclear_counts(notes_for(user=request.user)).get(criterion.pk, 0),
    }
    if (pair := two_of(versions, old=request.GET.get("old", ""), new=request.GET.get("new", ""))) is not None:
        context |= {"old": pair.old, "new": pair.new, "changes": criterion_diff(pair.old, pair.new)}
    return render(request, "labeling/rubric/criterion_text.html", context)


@permission_or_404("labeling.edit_prompts")
@require_POST
def criterion_evidence(request: HttpRequest, key: str) -> HttpResponse:
    """Set whether a failing answer needs evidence."""
    criterion = _criterion(key)
    needed = bool(request.POST.get("needed"))
    criterion_evidence_set(criterion=criterion, evidence_on_fail=needed, by=cast(User, request.user))
    messages.success(
        request,
        "Failing answers now need evidence." if needed else "Failing answers no longer need evidence.",
    )
    return redirect("labeling:criterion_text", criterion.key)


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "POST"])
def criterion_text_edit(request: HttpRequest, key: str) -> HttpResponse:
    """Write the next version with a preview beside it."""
    criterion = _criterion(key)
    newest = criterion.versions.latest("number")
    start = {"base": newest.number} | {name: getattr(newest, name) for name in TEXTS}
    form = CriterionTextForm(request.POST or None, initial=start)
    context: dict[str, Any] = {"criterion": criterion, "form": form}
    if request.method == "POST" and form.is_valid():
        fields = dict(form.cleaned_data)
        reason, base = fields.pop("reason"), fields.pop("base")
        words = CriterionWords(**fields)
        try:
            row = criterion_write(
                criterion=criterion, words=words, reason=reason, base=base, by=cast(User, request.user)
            )
        except FieldProblem as problem:
            form.refuse(problem)
        except EditConflict as conflict:
            theirs = cast(CriterionVersion, conflict.newest)
            form.rebase(theirs.number)
            changes = criterion_diff(theirs, CriterionVersion(**asdict(words)))
            context |= {"conflict": conflict, "theirs": theirs, "changes": changes}
        else:
            messages.success(request, _saved(row, newest))
            return redirect("labeling:criterion_text", criterion.key)
    shown = form.data if form.is_bound else start
    context |= {"shown": {name: shown.get(name, "") for name in TEXTS}, **_rule(newest)}
    return render(request, "labeling/rubric/criterion_text_edit.html", context)


def _rule(version: CriterionVersion) -> dict[str, bool]:
    """Return what the answers mean; no text changes it."""
    return {"allow_na": version.allow_na, "passes_when": version.passes_when}


def _saved(row: CriterionVersion, before: CriterionVersion) -> str:
    if row.number == before.number:
        return "No changes, so no new version."
    if row.content_hash != before.content_hash:
        return (
            f"Version {row.number} saved. New runs use a new judge. Earlier labels stop counting as soon as "
            "someone labels the new text."
        )
    return f"Version {row.number} saved. The question is the same, so labels and judges stay comparable."


@permission_or_404("labeling.edit_prompts")
@require_POST
def criterion_text_preview(request: HttpRequest, key: str) -> HttpResponse:
    """The form's texts as the rating screen shows them."""
    version = _criterion(key).versions.latest("number")
    shown = {name: request.POST.get(name, "") for name in TEXTS}
    return render(request, "labeling/rubric/_rater_sees.html", {"shown": shown, **_rule(version)})
