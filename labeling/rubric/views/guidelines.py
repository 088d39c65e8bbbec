"""Guidelines for raters: the overview, one guideline with its versions, a new version, and reading it."""

from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.access import permission_or_404
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Rubric, RubricGuideline
from labeling.people.services.roles import rater_for
from labeling.rating.queries.notes import notes_for, unclear_counts
from labeling.rubric.forms import GuidelineForm
from labeling.rubric.queries.guidelines import guideline_in_force
from labeling.rubric.queries.texts import rubric_of_rater, rubric_texts, texts_for_rater
from labeling.rubric.queries.versions import (
    criterion_diff,
    criterion_versions,
    guideline_diff,
    guideline_versions,
    two_of,
)
from labeling.rubric.services.guidelines import EditConflict, guideline_write


@permission_or_404("labeling.edit_prompts")
@require_safe
def guideline_list(request: HttpRequest) -> HttpResponse:
    """Every rubric: its guideline, and what raters are told about each criterion."""
    rubrics = rubric_texts(unclear=unclear_counts(notes_for(user=request.user)))
    return render(request, "labeling/rubric/guideline_list.html", {"rubrics": rubrics})


@permission_or_404("labeling.edit_prompts")
@require_safe
def guideline_detail(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """The guideline in force and its versions; `?old=1&new=2` shows what changed between two of them."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)
    versions = guideline_versions(rubric=rubric)
    context: dict[str, Any] = {"rubric": rubric, "versions": versions}
    if (pair := two_of(versions, old=request.GET.get("old", ""), new=request.GET.get("new", ""))) is not None:
        context |= {"old": pair.old, "new": pair.new, "diff": guideline_diff(pair.old, pair.new)}
    return render(request, "labeling/rubric/guideline_detail.html", context)


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "POST"])
def guideline_edit(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """Write the next version; what somebody else wrote meanwhile is shown instead of being overwritten."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)
    newest = guideline_in_force(rubric_id=rubric.pk)
    start = {"base": newest.number if newest else 0, "text": newest.text if newest else ""}
    form = GuidelineForm(request.POST or None, initial=start)
    context: dict[str, Any] = {"rubric": rubric, "form": form}
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            row = guideline_write(rubric=rubric, by=cast(User, request.user), **given)
        except FieldProblem as problem:
            form.refuse(problem)
        except EditConflict as conflict:
            theirs = cast(RubricGuideline, conflict.newest)
            form.rebase(theirs.number)
            yours = RubricGuideline(text=given["text"])
            context |= {"conflict": conflict, "theirs": theirs, "diff": guideline_diff(theirs, yours)}
        else:
            messages.success(request, _said(row, changed=row.number != given["base"]))
            return redirect("labeling:guideline_detail", rubric.pk)
    return render(request, "labeling/rubric/guideline_edit.html", context)


def _said(row: RubricGuideline, *, changed: bool) -> str:
    if not changed:
        return "Nothing changed, so no version was made."
    return f"Version {row.number} is in force. Raters in the middle of a chat are told."


@permission_or_404("labeling.edit_prompts")
@require_POST
def guideline_preview(request: HttpRequest) -> HttpResponse:
    """The text of the form as raters will read it."""
    return render(request, "labeling/rubric/_guideline_preview.html", {"text": request.POST.get("text", "")})


@permission_or_404("labeling.label_chats")
@require_safe
def read_guideline(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """What a rater may read of a rubric they label by; `?criterion=KEY&was=1` shows what changed since."""
    rater = rater_for(user=cast(User, request.user))
    rubric = rubric_of_rater(rubric_id=rubric_id, rater=rater)
    if rubric is None:
        raise Http404
    context = {
        "rubric": rubric,
        "guideline": guideline_in_force(rubric_id=rubric.pk),
        "dimensions": texts_for_rater(rubric=rubric),
        **_news(request, rubric),
    }
    return render(request, "labeling/rubric/read_guideline.html", context)


def _news(request: HttpRequest, rubric: Rubric) -> dict[str, Any]:
    """What changed since the version `was` of the guideline, or of the criterion that the address names."""
    was, key = request.GET.get("was", ""), request.GET.get("criterion", "")
    if not was.isdigit():
        return {}
    if not key:
        rows = guideline_versions(rubric=rubric)
        old = next((row for row in rows if str(row.number) == was), None)
        return {"was": was, "changes": [("Guideline", guideline_diff(old, rows[0]))]} if rows else {}
    criterion = rubric.criteria.filter(key=key).first()
    versions = criterion_versions(criterion=criterion) if criterion else []
    before = next((row for row in versions if str(row.number) == was), None)
    if criterion is None or before is None:
        return {}
    changed = [(change.name, change.parts) for change in criterion_diff(before, versions[0])]
    return {"was": was, "changed": criterion, "changes": changed}
