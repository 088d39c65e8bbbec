"""Certificates of judges: list, page, issue, revoke."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from alignment.certificates.forms import IssueForm, RevokeForm
from alignment.certificates.queries.page import certificate_found, certificate_page, title
from alignment.certificates.queries.page import certificate_list as list_context
from alignment.certificates.queries.plans import plan_certificate
from alignment.certificates.services.certificates import certificate_issue, certificate_revoke
from alignment.models.certificates import Certificate
from common.access import found_or_404, permission_or_404
from common.problems import InputProblem
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.people import User
from labeling.models.sampling import SamplePlan


@permission_or_404("labeling.see_judge")
@require_safe
def certificate_list(request: HttpRequest) -> HttpResponse:
    """Every certificate that the user may see, newest first."""
    return render(request, "alignment/certificates/list.html", list_context(user=request.user))


@permission_or_404("labeling.see_judge")
@require_safe
def certificate_detail(request: HttpRequest, certificate_id: int) -> HttpResponse:
    """One certificate, to read and to print."""
    row = found_or_404(certificate_found(certificate_id, user=request.user))
    return _page(request, row, RevokeForm())


@permission_or_404("labeling.start_runs")
@permission_or_404("labeling.see_judge")
@require_safe
def plan_panel(request: HttpRequest, plan_id: int) -> HttpResponse:
    """The certificate of a sample plan's judge, or the way to one: a part of the plan's page."""
    plan = get_object_or_404(SamplePlan, pk=plan_id)
    found = plan_certificate(plan, user=cast(User, request.user))
    return render(request, "alignment/certificates/_plan.html", {"found": found})


@permission_or_404("labeling.release_prompts")
@require_POST
def certificate_new(request: HttpRequest, run_id: int) -> HttpResponse:
    """Issue a certificate on a run's report; a problem is shown on the report's page."""
    run: Run = get_object_or_404(runs_open_to(request.user), pk=run_id)
    form = IssueForm(request.POST)
    if not form.is_valid():
        text = "; ".join(str(problems[0]) for problems in form.errors.values())
        split = form.cleaned_data.get("split", "")
        return _refused(request, run_id, f"No certificate was issued: {text}", split)
    split = form.cleaned_data["split"]
    try:
        row = certificate_issue(
            run=run, split=split, days=form.cleaned_data["days"], by=cast(User, request.user)
        )
    except InputProblem as problem:
        return _refused(request, run_id, f"No certificate was issued: {problem}", split)
    messages.success(request, f"{title(row)} was issued.")
    return redirect("alignment:certificate_detail", row.pk)


@permission_or_404("labeling.release_prompts")
@require_POST
def certificate_revoked(request: HttpRequest, certificate_id: int) -> HttpResponse:
    """Revoke a certificate, with a reason."""
    row = found_or_404(certificate_found(certificate_id, user=request.user))
    form = RevokeForm(request.POST)
    if form.is_valid():
        try:
            certificate_revoke(
                certificate=row, reason=form.cleaned_data["reason"], by=cast(User, request.user)
            )
        except InputProblem as problem:
            form.add_error("reason", str(problem))
        else:
            messages.success(request, f"Certificate {row.pk} was revoked.")
            return redirect("alignment:certificate_detail", row.pk)
    return _page(request, row, form)


def _page(request: HttpRequest, row: Certificate, form: RevokeForm) -> HttpResponse:
    context = certificate_page(row, user=request.user) | {"form": form}
    return render(request, "alignment/certificates/detail.html", context)


def _refused(request: HttpRequest, run_id: int, words: str, split: str = "") -> HttpResponse:
    messages.error(request, words)
    return redirect(reverse("alignment:report_run", args=[run_id], query={"split": split} if split else {}))
