"""The panel beside the criterion form that drafts a definition."""

from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST

from alignment.rubric_drafts.queries import newest_draft, open_draft
from alignment.rubric_drafts.services import DraftChoice, draft_cancel, draft_prepare, draft_start
from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.runs.worker.single_calls import question_estimate
from labeling.models.people import User
from labeling.models.rubric import Rubric


@permission_or_404("labeling.manage_labeling")
@require_POST
def criterion_draft(request: HttpRequest, rubric_id: int) -> HttpResponse:
    """
    The panel's contents for the form that is sent; `act` is show, start, again or cancel.

    The panel polls with the state it has `seen`; the response is empty while that state lasts.
    """
    rubric, user = get_object_or_404(Rubric, pk=rubric_id), cast(User, request.user)
    choice, act, problem = _choice(request, rubric), request.POST.get("act", "show"), ""
    try:
        if act in ("start", "again"):
            draft_start(choice=choice, by=user, anew=act == "again")
        elif act == "cancel" and (open_one := open_draft(rubric=rubric, by=user)) is not None:
            draft_cancel(draft=open_one)
    except InputProblem as refused:
        problem = str(refused)
    waiting = open_draft(rubric=rubric, by=user)
    seen = f"{waiting.pk} {waiting.state} {waiting.error}" if waiting else ""
    if seen and act == "poll" and request.POST.get("seen") == seen:
        return HttpResponse(status=204)
    context: dict[str, Any] = {"rubric": rubric, "waiting": waiting, "seen": seen, "problem": problem}
    if waiting is None:
        context |= {"draft": newest_draft(rubric=rubric, by=user, question=choice.question), **_offer(choice)}
    return render(request, "alignment/rubric_drafts/_panel.html", context)


def _choice(request: HttpRequest, rubric: Rubric) -> DraftChoice:
    """Return the criterion as it stands in the form."""
    key = request.POST.get("criterion", "")
    return DraftChoice(
        rubric=rubric,
        question=request.POST.get("question", "").replace("\r\n", "\n"),
        dimension=request.POST.get("dimension", ""),
        tier=request.POST.get("tier", ""),
        allow_na="allow_na" in request.POST,
        criterion=rubric.criteria.filter(key=key).first() if key else None,
    )


def _offer(choice: DraftChoice) -> dict[str, Any]:
    """Return the request that could be sent now with its estimate, or why there is none."""
    try:
        profiles_ensure()
        prepared = draft_prepare(choice)
        return {"model": prepared.model, "estimate": question_estimate(prepared)}
    except InputProblem as problem:
        return {"refused": str(problem)}
