"""What raters read about one criterion: the text in force, its versions, and a new version with a preview."""

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
from labeling.rubric.services.guidelines import CriterionWords, EditConflict, criterion_write


def _criterion(key: str) -> Criterion:
    return get_object_or_404(Criterion.objects.select_related("rubric", "dimension"), key=key)


@permission_or_404("labeling.edit_prompts")
@require_safe
def criterion_text(request: HttpRequest, key: str) -> HttpResponse:
    """The text in force and its versions; `?old=1&new=2` shows what changed between two of them."""
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
@require_http_methods(["GET", "POST"])
def criterion_text_edit(request: HttpRequest, key: str) -> HttpResponse:
    """Write the next version, with what raters will see beside it."""
    criterion = _criterion(key)
    newest = criterion.versions.latest("number")
    start = {"base": newest.number} | {name: getattr(newest, name) for name in TEXTS}
    form = CriterionTextForm(request.POST or None, initial=start)
    context: dict[str, Any] = {"criterion": criterion, "form": form}
    if request.method == "POST" and form.is_valid():
        given = dict(form.cleaned_data)
        reason, base = given.pop("reason"), given.pop("base")
        words = CriterionWords(**given)
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
            messages.success(request, _said(row, newest))
            return redirect("labeling:criterion_text", criterion.key)
    shown = form.data if form.is_bound else start
    context |= {"shown": {name: shown.get(name, "") for name in TEXTS}, "allow_na": newest.allow_na}
    return render(request, "labeling/rubric/criterion_text_edit.html", context)


def _said(row: CriterionVersion, before: CriterionVersion) -> str:
    if row.number == before.number:
        return "Nothing changed, so no version was made."
    if row.content_hash != before.content_hash:
        return (
            f"Version {row.number} is in force and asks anew: with the first label to it all earlier ones "
            "stop counting, and runs started from now on have another judge."
        )
    return (
        f"Version {row.number} is in force. It asks the same question, so labels and judges stay comparable."
    )


@permission_or_404("labeling.edit_prompts")
@require_POST
def criterion_text_preview(request: HttpRequest, key: str) -> HttpResponse:
    """The texts of the form as the rating screen will show them."""
    version = _criterion(key).versions.latest("number")
    shown = {name: request.POST.get(name, "") for name in TEXTS}
    return render(request, "labeling/rubric/_rater_sees.html", {"shown": shown, "allow_na": version.allow_na})
