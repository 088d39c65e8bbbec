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
from labeling.rubric.queries.label_counts import labelled_since, labels_of_earlier_text, labels_of_text
from labeling.rubric.queries.versions import TEXTS, criterion_diff, criterion_versions, two_of
from labeling.rubric.services.guidelines import (
    CriterionWords,
    EditConflict,
    criterion_evidence_set,
    criterion_write,
)
from labeling.rubric.services.wording import NotPossible, criterion_undo, criterion_wording_decide
from labeling.rubric.views.guidelines import decided


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
        "undo": _can_be_undone(versions[0]),
        "asked": [(row, labels_of_earlier_text(row)) for row in versions if row.wording == row.Wording.ASKED],
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
    at_stake = labels_of_text([criterion])
    form = CriterionTextForm(request.POST or None, initial=start, at_stake=at_stake)
    context: dict[str, Any] = {"criterion": criterion, "form": form}
    if request.method == "POST" and form.is_valid():
        fields = dict(form.cleaned_data)
        reason, base, _ = (fields.pop(name) for name in ("reason", "base", "meaning"))
        words = CriterionWords(**fields)
        try:
            row = criterion_write(
                criterion=criterion,
                words=words,
                reason=reason,
                base=base,
                by=cast(User, request.user),
                meaning=form.change,
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
    judge = " New runs use a new judge." if row.content_hash != before.content_hash else ""
    if row.wording == row.Wording.ASKED:
        return f"Version {row.number} saved.{judge} A lead is asked whether only the wording changed."
    if row.meaning != before.meaning:
        return (
            f"Version {row.number} saved.{judge} Earlier labels stop counting as soon as someone labels the "
            "new text."
        )
    if row.wording:
        return f"Version {row.number} saved.{judge} Labels go on counting."
    return f"Version {row.number} saved. The question is the same, so labels and judges stay comparable."


def _can_be_undone(newest: CriterionVersion) -> bool:
    return newest.number > 1 and not newest.guideline_version_id and not labelled_since(newest)


@permission_or_404("labeling.edit_prompts")
@require_POST
def criterion_text_undone(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """Undo a version that nobody has labelled."""
    version = get_object_or_404(CriterionVersion, criterion__key=key, number=number)
    try:
        row = criterion_undo(version=version, by=cast(User, request.user))
    except NotPossible as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"Version {number} is undone. Version {row.number} has the earlier text.")
    return redirect("labeling:criterion_text", key)


@permission_or_404("labeling.manage_labeling")
@require_POST
def criterion_text_decide(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """A lead says whether a version changed the wording only."""
    version = get_object_or_404(CriterionVersion, criterion__key=key, number=number)
    only_wording = request.POST.get("meaning") == "wording"
    try:
        criterion_wording_decide(version=version, only_wording=only_wording, by=cast(User, request.user))
    except NotPossible as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, decided(number, only_wording=only_wording))
    return redirect("labeling:criterion_text", key)


@permission_or_404("labeling.edit_prompts")
@require_POST
def criterion_text_preview(request: HttpRequest, key: str) -> HttpResponse:
    """The form's texts as the rating screen shows them."""
    version = _criterion(key).versions.latest("number")
    shown = {name: request.POST.get(name, "") for name in TEXTS}
    return render(request, "labeling/rubric/_rater_sees.html", {"shown": shown, **_rule(version)})
