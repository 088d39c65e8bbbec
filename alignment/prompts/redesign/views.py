"""Redesigning a criterion: propose it; retire, replace, split or merge it, or bring it back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.utils.text import get_text_list
from django.views.decorators.http import require_http_methods, require_POST

from alignment.models.requests import RedesignProposal
from alignment.prompts.redesign.forms import ConfirmForm, Questions
from alignment.prompts.redesign.queries import open_tests, redesign_preview, redesign_proposals
from alignment.prompts.redesign.services import redesign_carry_out, redesign_propose, redesign_refuse
from common.access import permission_or_404
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rubric.core.redesign import KINDS, Kind, Redesign
from labeling.rubric.queries.lineage import lineage_of
from labeling.rubric.services.redesign import Redesigned, criterion_bring_back

PAGE = "alignment/prompts/redesign/redesign.html"
DONE = {
    "retire": "is retired",
    "replace": "is replaced by",
    "split": "is split into",
    "merge": "are merged into",
}


@permission_or_404("labeling.manage_labeling")
@require_http_methods(["GET", "POST"])
def redesign(request: HttpRequest, key: str) -> HttpResponse:
    """Choose the kind, fill in the new questions, preview, confirm with a reason."""
    criterion = get_object_or_404(Criterion.objects.select_related("rubric", "dimension"), key=key)
    if criterion.state == Criterion.State.RETIRED:
        return _bring_back(request, criterion)
    others = _others(criterion)
    olds = _chosen(criterion, others, request)
    context = {
        "criterion": criterion,
        "version": criterion.versions.latest("number"),
        "others": others,
        "olds": olds,
        "tests": open_tests(criteria=olds),
        "proposals": redesign_proposals(criterion),
    }
    kind = next((one for one in KINDS if one == request.GET.get("kind")), None)
    if kind is None or (kind == "merge" and len(olds) == 1):
        return render(request, PAGE, context | {"choose": kind or "kind"})
    return _steps(request, kind, olds, context | {"kind": kind})


@permission_or_404("labeling.edit_prompts")
@require_POST
def redesign_proposed(request: HttpRequest, key: str) -> HttpResponse:
    """Propose a redesign to the leads."""
    criterion = get_object_or_404(Criterion, key=key)
    try:
        redesign_propose(criterion=criterion, note=request.POST.get("note", ""), by=cast(User, request.user))
    except InputProblem as problem:
        messages.error(request, f"Not proposed: {problem}.")
    else:
        messages.success(request, "Proposed. The leads have it in their inbox; you get the answer in yours.")
    return redirect("alignment:criterion_detail", key)


@permission_or_404("labeling.manage_labeling")
@require_POST
def redesign_refused(request: HttpRequest, key: str, proposal_id: int) -> HttpResponse:
    """Refuse a proposed redesign with a reason."""
    row = get_object_or_404(RedesignProposal, pk=proposal_id, criterion__key=key)
    try:
        reason = request.POST.get("reason", "")
        redesign_refuse(proposal=row, reason=reason, by=cast(User, request.user))
    except InputProblem as problem:
        messages.error(request, f"Not answered: {problem}.")
    else:
        messages.success(request, f"Answered. {row.by} finds it in the inbox.")
    return redirect("alignment:criterion_detail", key)


def _others(criterion: Criterion) -> list[Criterion]:
    """Return the criteria to merge with."""
    active = criterion.rubric.criteria.filter(state=Criterion.State.ACTIVE).exclude(pk=criterion.pk)
    return list(active.select_related("dimension").order_by("dimension__position", "position", "pk"))


def _chosen(criterion: Criterion, others: Sequence[Criterion], request: HttpRequest) -> list[Criterion]:
    """Return the criteria that end, in the rubric's order."""
    named = request.GET.getlist("others") if request.GET.get("kind") == "merge" else []
    chosen = [row for row in others if row.key in named]
    return sorted([criterion, *chosen], key=lambda row: (row.position, row.pk))


# ---------- the steps of a redesign ----------


def _steps(request: HttpRequest, kind: Kind, olds: list[Criterion], context: dict[str, Any]) -> HttpResponse:
    step = request.POST.get("step", "")
    versions = CriterionVersion.objects.filter(criterion__in=olds).order_by("number")
    newest = {row.criterion_id: row for row in versions}
    data = request.POST if step and kind != "retire" else None
    questions = Questions(kind, olds, newest[olds[0].pk], data)
    context |= {"questions": questions, "old_texts": [(row, newest[row.pk]) for row in olds]}
    if step in ("add", "less", "edit"):
        questions.resized({"add": 1, "less": -1}.get(step, 0))
    elif kind == "retire" or (step in ("preview", "confirm") and questions.is_valid()):
        return _previewed(request, questions, context)
    return render(request, PAGE, context)


def _previewed(request: HttpRequest, questions: Questions, context: dict[str, Any]) -> HttpResponse:
    """Preview the redesign; carry it out once the reason is confirmed."""
    try:
        requested = questions.redesign(same_answers=request.POST.get("same_answers") == "on")
        # The lead confirms it on this page, so the preview assumes it.
        preview = redesign_preview(redesign=replace(requested, same_answers=True))
    except FieldProblem as problem:
        return _refused(request, questions, context, problem)
    confirmed = request.POST if request.POST.get("step") == "confirm" else None
    form = ConfirmForm(confirmed, carries=requested.carries)
    context |= {"preview": preview, "pairs": _pairs(requested, preview.olds), "form": form}
    if form.is_valid():
        try:
            done = redesign_carry_out(
                redesign=requested, reason=form.cleaned_data["reason"], by=cast(User, request.user)
            )
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, _message(requested, done))
            return redirect("alignment:criterion_detail", _next_key(requested, done))
    return render(request, PAGE, context)


def _refused(
    request: HttpRequest, questions: Questions, context: dict[str, Any], problem: FieldProblem
) -> HttpResponse:
    if not questions.refuse(problem):
        context["refusal"] = problem.message
    return render(request, PAGE, context)


def _pairs(requested: Redesign, olds: Sequence[Criterion]) -> list[dict[str, Any]]:
    """Return each new question with the old ones whose labels carry over."""
    texts = {row.key: row.versions.latest("number") for row in olds}
    return [
        {
            "spec": successor.spec,
            "olds": [(row, texts[row.key]) for row in olds if row.key in successor.carries],
        }
        for successor in requested.into
    ]


def _message(requested: Redesign, done: Redesigned) -> str:
    olds, new = (get_text_list([row.name for row in rows], "and") for rows in (done.olds, done.new))
    carried = sum(row.labels.carried for row in done.carried)
    labels = f" {carried:,} label{pluralize(carried)} carried over." if done.carried else ""
    excluded = sum(row.chats.excluded for row in done.carried)
    chats = f" {excluded:,} chat{pluralize(excluded)} with different answers did not." if excluded else ""
    return f"{olds} {DONE[requested.kind]} {new}".strip() + f".{labels}{chats} Labels and history stay."


def _next_key(requested: Redesign, done: Redesigned) -> str:
    """Return the key of the page to show next: the only new criterion, otherwise the old one."""
    return done.new[0].key if len(done.new) == 1 else requested.olds[0]


# ---------- bringing back ----------


def _bring_back(request: HttpRequest, criterion: Criterion) -> HttpResponse:
    form = ConfirmForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            reason, by = form.cleaned_data["reason"], cast(User, request.user)
            criterion_bring_back(criterion=criterion, reason=reason, by=by)
        except FieldProblem as problem:
            form.refuse(problem)
        else:
            messages.success(request, f"{criterion.name} is active again.")
            return redirect("alignment:criterion_detail", criterion.key)
    context = {
        "criterion": criterion,
        "version": criterion.versions.latest("number"),
        "form": form,
        "lineage": lineage_of(criterion),
    }
    return render(request, "alignment/prompts/redesign/restore.html", context)
