"""Pages of a criterion in the rubric editor: a new one, and its question, definition and settings."""

from dataclasses import asdict
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from common.access import permission_or_404
from common.problems import FieldProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric
from labeling.rubric.core.rubric import CriterionSettings, suggested_key
from labeling.rubric.forms import CriterionEditForm, CriterionForm
from labeling.rubric.queries.editor import key_is_fixed, settings_of
from labeling.rubric.queries.judging import articles
from labeling.rubric.queries.label_counts import is_labelled, labels_of_text
from labeling.rubric.queries.versions import criterion_diff
from labeling.rubric.services.criteria import (
    ChangedCriterion,
    Question,
    SettingsConflict,
    criterion_add,
    criterion_change,
)
from labeling.rubric.services.guidelines import EditConflict

KEY_FIXED = "Fixed: labels, jobs or judges use it."
ANSWER_FIXED = "Fixed: the criterion has labels. To turn it round, replace the criterion."
# What a setting is called where two leads changed it.
SETTINGS = {
    "key": "Key",
    "dimension": "Dimension",
    "tier": "Tier",
    "critical": "Critical",
    "evidence_on_fail": "A failing answer needs evidence",
    "all_articles": "All articles",
    "knowledge": "Articles",
}


def _choices() -> dict[str, Any]:
    return {"dimensions": list(Dimension.objects.values_list("key", "name")), "articles": articles()}


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def criterion_new(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """Add a criterion; `?dimension=KEY` chooses its dimension."""
    rubric = get_object_or_404(Rubric, pk=rubric_id)
    choices = _choices()
    start = {"dimension": request.GET.get("dimension", ""), "passes_when": "True", "tier": "simple"}
    form = CriterionForm(request.POST if request.method == "POST" else None, initial=start, **choices)
    if request.method == "POST" and form.is_valid():
        try:
            row = criterion_add(
                rubric=rubric, spec=form.spec, reason="First version", by=cast(User, request.user)
            )
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, f"{row.name} added, with its first prompt. Its key is {row.key}.")
            return redirect("labeling:rubric_detail", rubric.pk)
    context = {"rubric": rubric, "form": form, "suggested": _suggested(form.data.get("question", ""))}
    return render(request, "labeling/rubric/criterion_new.html", context | choices)


@permission_or_404("labeling.manage_labeling")
@require_POST
def criterion_key(request: HttpRequest) -> HttpResponse:
    """The key that a new criterion gets from its question."""
    suggested = _suggested(request.POST.get("question", ""))
    return render(request, "labeling/rubric/_suggested_key.html", {"suggested": suggested})


def _suggested(question: str) -> str:
    if not question.strip():
        return ""
    return suggested_key(question, taken=set(Criterion.objects.values_list("key", flat=True)))


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def criterion_edit(request: HttpRequest, key: str) -> HttpResponse:
    """Change a criterion's question, definition and settings; what another lead saved first is shown."""
    criterion = get_object_or_404(Criterion.objects.select_related("rubric", "dimension"), key=key)
    version, settings = criterion.versions.latest("number"), settings_of(criterion)
    form = _edit_form(request, criterion, version, settings)
    context: dict[str, Any] = {"criterion": criterion, "rubric": criterion.rubric, "form": form}
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            changed = criterion_change(
                criterion=criterion,
                settings=form.settings,
                question=Question(data["question"], data["definition"], form.passes, data["allow_na"]),
                base=data["base"],
                seen=data["seen"],
                reason=data["reason"],
                by=cast(User, request.user),
                meaning=form.change,
            )
        except FieldProblem as problem:
            form.refuse(problem)
        except EditConflict as conflict:
            context |= _other_text(form, conflict)
        except SettingsConflict as conflict:
            context["others"] = _other_settings(form, conflict)
        else:
            messages.success(request, _saved(changed))
            return redirect("labeling:rubric_detail", criterion.rubric_id)
    return render(request, "labeling/rubric/criterion_edit.html", context)


def _edit_form(
    request: HttpRequest, criterion: Criterion, version: CriterionVersion, settings: CriterionSettings
) -> CriterionEditForm:
    fixed = {"key": KEY_FIXED} if key_is_fixed(criterion) else {}
    fixed |= {"passes_when": ANSWER_FIXED} if is_labelled(criterion) else {}
    return CriterionEditForm(
        request.POST if request.method == "POST" else None,
        initial=CriterionEditForm.start(version, settings),
        at_stake=labels_of_text([criterion]),
        fixed=fixed,
        **_choices(),
    )


def _other_text(form: CriterionEditForm, conflict: EditConflict) -> dict[str, Any]:
    """Return the newer version and how the user's text differs from it; the next save is based on it."""
    theirs = cast(CriterionVersion, conflict.newest)
    form.rebase(theirs.number)
    yours = CriterionVersion(
        question=form.cleaned_data["question"],
        definition=form.cleaned_data["definition"],
        guideline=theirs.guideline,
        true_example=theirs.true_example,
        false_example=theirs.false_example,
    )
    return {"conflict": conflict, "theirs": theirs, "changes": criterion_diff(theirs, yours)}


def _other_settings(form: CriterionEditForm, conflict: SettingsConflict) -> list[tuple[str, Any, Any]]:
    """Return name, stored and own value of each setting that differs; the next save replaces the stored."""
    form.see(conflict.theirs)
    theirs, own = (_shown(settings) for settings in (conflict.theirs, form.settings))
    return [(SETTINGS[name], theirs[name], own[name]) for name in own if own[name] != theirs[name]]


def _shown(settings: CriterionSettings) -> dict[str, Any]:
    return {**asdict(settings), "knowledge": list(settings.knowledge)}


def _saved(changed: ChangedCriterion) -> str:
    """Return what a change did."""
    version, before, name = changed.version, changed.before, changed.criterion.name
    if version.number == before.number:
        return f"{name} saved." if changed.settings else "No changes."
    text = f"{name} saved, text version {version.number}."
    if version.meaning != before.meaning:
        return f"{text} Earlier labels stop counting as soon as someone labels the new text."
    return f"{text} Labels go on counting." if version.wording else text
