"""Pages of guidelines: list, one guideline with versions, new version, and the raters' page."""

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
from labeling.rubric.queries.label_counts import active_criteria, labelled_since, labels_of_text
from labeling.rubric.queries.texts import rubric_of_rater, rubric_texts, texts_for_rater
from labeling.rubric.queries.versions import (
    criterion_diff,
    criterion_versions,
    guideline_diff,
    guideline_versions,
    two_of,
)
from labeling.rubric.services.guidelines import EditConflict, guideline_write
from labeling.rubric.services.wording import NotPossible, guideline_undo, guideline_wording_decide


@permission_or_404("labeling.edit_prompts")
@require_safe
def guideline_list(request: HttpRequest) -> HttpResponse:
    """All rubrics with their guidelines and criterion texts."""
    rubrics = rubric_texts(unclear=unclear_counts(notes_for(user=request.user)))
    return render(request, "labeling/rubric/guideline_list.html", {"rubrics": rubrics})


@permission_or_404("labeling.edit_prompts")
@require_safe
def guideline_detail(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """The current guideline and its versions; `?old=1&new=2` compares two of them."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)
    versions = guideline_versions(rubric=rubric)
    context: dict[str, Any] = {"rubric": rubric, "versions": versions}
    if versions:
        newest = versions[0]
        context["undo"] = newest.number > 1 and not labelled_since(newest)
        context["asked"] = [row for row in versions if row.wording == row.Wording.ASKED]
        context["at_stake"] = labels_of_text(active_criteria(rubric.pk)) if context["asked"] else None
    if (pair := two_of(versions, old=request.GET.get("old", ""), new=request.GET.get("new", ""))) is not None:
        context |= {"old": pair.old, "new": pair.new, "diff": guideline_diff(pair.old, pair.new)}
    return render(request, "labeling/rubric/guideline_detail.html", context)


@permission_or_404("labeling.edit_prompts")
@require_http_methods(["GET", "POST"])
def guideline_edit(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """Write the next version; a version that another author saved first is shown, not overwritten."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)
    newest = guideline_in_force(rubric_id=rubric.pk)
    start = {"base": newest.number if newest else 0, "text": newest.text if newest else ""}
    at_stake = labels_of_text(active_criteria(rubric.pk))
    form = GuidelineForm(request.POST or None, initial=start, at_stake=at_stake)
    context: dict[str, Any] = {"rubric": rubric, "form": form}
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data | {"meaning": form.change}
        try:
            row = guideline_write(rubric=rubric, by=cast(User, request.user), **fields)
        except FieldProblem as problem:
            form.refuse(problem)
        except EditConflict as conflict:
            theirs = cast(RubricGuideline, conflict.newest)
            form.rebase(theirs.number)
            yours = RubricGuideline(text=fields["text"])
            context |= {"conflict": conflict, "theirs": theirs, "diff": guideline_diff(theirs, yours)}
        else:
            messages.success(request, _saved(row, changed=row.number != fields["base"]))
            return redirect("labeling:guideline_detail", rubric.pk)
    return render(request, "labeling/rubric/guideline_edit.html", context)


def _saved(row: RubricGuideline, *, changed: bool) -> str:
    if not changed:
        return "No changes, so no new version."
    notice = "Raters who are labelling a chat get a notice."
    if row.wording == row.Wording.ASKED:
        return f"Version {row.number} saved. A lead is asked whether only the wording changed. {notice}"
    return f"Version {row.number} saved. {notice}"


@permission_or_404("labeling.edit_prompts")
@require_POST
def guideline_undone(request: HttpRequest, rubric_id: int, number: int) -> HttpResponse:
    """Undo a version that nobody has labelled by."""
    version = get_object_or_404(RubricGuideline, rubric=rubric_id, number=number)
    try:
        row = guideline_undo(version=version, by=cast(User, request.user))
    except NotPossible as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"Version {number} is undone. Version {row.number} has the earlier text.")
    return redirect("labeling:guideline_detail", rubric_id)


@permission_or_404("labeling.manage_labeling")
@require_POST
def guideline_decide(request: HttpRequest, rubric_id: int, number: int) -> HttpResponse:
    """A lead says whether a version changed the wording only."""
    version = get_object_or_404(RubricGuideline, rubric=rubric_id, number=number)
    only_wording = request.POST.get("meaning") == "wording"
    try:
        guideline_wording_decide(version=version, only_wording=only_wording, by=cast(User, request.user))
    except NotPossible as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, decided(number, only_wording=only_wording))
    return redirect("labeling:guideline_detail", rubric_id)


def decided(number: int, *, only_wording: bool) -> str:
    """Return what a lead's decision on a version does."""
    if only_wording:
        return f"Version {number}: wording only. Labels go on counting."
    return f"Version {number}: new meaning. Earlier labels stop counting with the first label to it."


@permission_or_404("labeling.edit_prompts")
@require_POST
def guideline_preview(request: HttpRequest) -> HttpResponse:
    """The form's text as raters will see it."""
    return render(request, "labeling/rubric/_guideline_preview.html", {"text": request.POST.get("text", "")})


@permission_or_404("labeling.label_chats")
@require_safe
def read_guideline(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """The texts of a rubric for its raters; `?criterion=KEY&was=1` shows the changes since version 1."""
    rater = rater_for(user=cast(User, request.user))
    rubric = rubric_of_rater(rubric_id=rubric_id, rater=rater)
    if rubric is None:
        raise Http404
    context = {
        "rubric": rubric,
        "guideline": guideline_in_force(rubric_id=rubric.pk),
        "dimensions": texts_for_rater(rubric=rubric),
        **_changes(request, rubric),
    }
    return render(request, "labeling/rubric/read_guideline.html", context)


def _changes(request: HttpRequest, rubric: Rubric) -> dict[str, Any]:
    """Return the changes since version `was` of the guideline or of the criterion in the address."""
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
