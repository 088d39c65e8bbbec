"""Criteria: the list, a criterion's page, one version of its prompt, restoring a version."""

from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST, require_safe

from alignment.prompts.queries.criterion_list import criteria_worst_first
from alignment.prompts.queries.criterion_page import criterion_page
from alignment.prompts.queries.version_page import version_page
from alignment.reports.queries.reports import POLICY
from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.services.restores import RestoreRefused, prompt_restore
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.rubric.queries.lineage import retired_criteria
from labeling.rubric.services.owners import criterion_assign


@permission_or_404("labeling.see_judge")
@require_safe
def criterion_list(request: HttpRequest) -> HttpResponse:
    """Every criterion by rubric, critical and worst first, with the released version's alignment."""
    rows = criteria_worst_first(user=request.user)
    context = {"rows": rows, "retired": retired_criteria(), "policy": POLICY}
    return render(request, "alignment/prompts/criterion_list.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def criterion_detail(request: HttpRequest, key: str) -> HttpResponse:
    """One criterion; `?on=SET-SPLIT` selects the set and split of the chart."""
    query = request.GET
    context = criterion_page(
        criterion=criterion_or_404(key), user=request.user, place=query.get("on", ""), page=query.get("page")
    )
    return render(request, "alignment/prompts/criterion_detail.html", context)


@permission_or_404("labeling.edit_prompts")
@require_POST
def criterion_assigned(request: HttpRequest, key: str) -> HttpResponse:
    """Store who looks after the criterion."""
    owner = request.POST.get("owner", "")
    try:
        criterion_assign(criterion=criterion_or_404(key), owner=owner, by=cast(User, request.user))
    except InputProblem as problem:
        messages.error(request, f"Not assigned: {problem}.")
    else:
        messages.success(request, f"Assigned to {owner}." if owner else "Unassigned.")
    return redirect("alignment:criterion_detail", key)


@permission_or_404("labeling.see_judge")
@require_safe
def prompt_version(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """One version; `?against=M` shows what changed from version M."""
    return _version(request, key, number, against=request.GET.get("against", ""))


@permission_or_404("labeling.edit_prompts")
@require_POST
def prompt_restored(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """Restore the version as a new one; if that is refused, the page says why and keeps the reason."""
    version = get_object_or_404(PromptVersion, criterion=criterion_or_404(key), number=number)
    reason = request.POST.get("reason", "")
    try:
        added = prompt_restore(version=version, reason=reason, by=cast(User, request.user))
    except RestoreRefused as problem:
        return _version(request, key, number, refused=str(problem), reason=reason)
    edit = f"{reverse('alignment:prompt_edit', args=[key])}?base={added.number}"
    words = 'Version {} was restored as version {}, a draft. <a href="{}">Edit from version {}</a>'
    messages.success(request, format_html(words, number, added.number, edit, added.number))
    return redirect("alignment:prompt_version", key, added.number)


def criterion_or_404(key: str) -> Criterion:
    """Return the criterion of an address; retired ones included."""
    return get_object_or_404(Criterion.objects.select_related("dimension", "rubric", "owner"), key=key)


def _version(request: HttpRequest, key: str, number: int, *, against: str = "", **more: Any) -> HttpResponse:
    context = version_page(criterion=criterion_or_404(key), number=number, user=request.user, against=against)
    if context is None:
        raise Http404
    return render(request, "alignment/prompts/version.html", context | more)
