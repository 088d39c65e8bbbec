"""Alignment reports, their cells, and a run's chats."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from alignment.baselines.queries.page import baselines_page
from alignment.baselines.services import baselines_get
from alignment.certificates.forms import IssueForm
from alignment.certificates.queries.page import allows_nothing, headline, uses_of
from alignment.certificates.services.certificates import certifiable
from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.answers import knows_rater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.run_choice import PEOPLE_ALONE, RunChoice, newest_fitting
from alignment.comparison.queries.scope import Scope
from alignment.comparison.views import run_and_scope, scope_or_404, unknown_rater_404
from alignment.reports.queries import chat_lists as cells
from alignment.reports.queries.knowledge_gaps import knowledge_gaps
from alignment.reports.queries.page import CELLS, notices, report_page, scope_query
from alignment.reports.queries.report_list import report_list as all_reports
from alignment.reports.queries.reports import alignment_report
from common.access import permission_or_404
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion

PAGE = 50


@permission_or_404("labeling.see_judge")
def report_list(request: HttpRequest) -> HttpResponse:
    """Every run and set that can be reported on; with `run` the report that the query string asks for."""
    choice = RunChoice.read(request.GET)
    if "run" in request.GET:
        return _opened(request, choice)
    return render(request, "alignment/reports/list.html", all_reports(choice, user=request.user))


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def report_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """The alignment report of a run."""
    run, scope = run_and_scope(request, run_id)
    leads = request.user.has_perm("labeling.release_prompts") and scope.against == CONSENSUS
    report = alignment_report(scope)
    more = baselines_page(scope, baselines_get(scope, wait=False))
    if leads and not certifiable(run):
        more |= _certify(report, scope)
    return _report(request, scope, report, **more)


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def report_set(request: HttpRequest, set_id: int) -> HttpResponse:
    """People's agreement on a set, without a judge."""
    scope = scope_or_404(request, get_object_or_404(ChatSet, pk=set_id), None)
    return _report(request, scope, alignment_report(scope))


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def cell(request: HttpRequest, run_id: int, key: str, cell: str) -> HttpResponse:
    """The chats of one cell of a criterion's matrix."""
    run, scope = run_and_scope(request, run_id)
    criterion = get_object_or_404(Criterion, key=key)
    if cell not in CELLS or scope.each_rater:
        raise Http404
    found = cells.cell_places(scope, key, cell, request.user)
    context = _listed(request, scope, run, found)
    context |= {
        "criterion": {
            "key": key,
            "name": criterion.name,
            "question": criterion.versions.latest("number").question,
            "url": reverse("alignment:criterion_detail", args=[key]),
        },
        "cell": CELLS[cell],
        "own": found.own,
    }
    return render(request, "alignment/reports/cell.html", context)


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def disagreements(request: HttpRequest, run_id: int) -> HttpResponse:
    """Every chat and criterion on which people and the judge differ."""
    run, scope = run_and_scope(request, run_id)
    found = cells.disagreements(scope, request.user)
    context = _listed(request, scope, run, found) | {"hidden": found.hidden, "own": found.own}
    context |= {"split": scope.split, "ground_truth": scope.ground_truth}
    return render(request, "alignment/reports/disagreements.html", context)


@permission_or_404("labeling.see_judge")
@unknown_rater_404
def gaps(request: HttpRequest, run_id: int) -> HttpResponse:
    """The disagreements that the judge reached without knowledge; `?criterion=` keeps those on one."""
    run, scope = run_and_scope(request, run_id)
    if key := request.GET.get("criterion", ""):
        scope = replace(scope, only=get_object_or_404(Criterion, key=key).key)
    gaps = knowledge_gaps(scope, run, request.user)
    context = _listed(request, scope, run, gaps.found)
    context |= {"hidden": gaps.found.hidden, "own": gaps.found.own}
    context |= {"split": scope.split, "ground_truth": scope.ground_truth}
    return render(
        request, "alignment/reports/knowledge_gaps.html", context | {"mode": gaps.mode, "only": key}
    )


def _opened(request: HttpRequest, choice: RunChoice) -> HttpResponse:
    """To the report of the run that fits, its filters in the address; to the list where none fits.

    Where people alone are asked for, to the report of the set.
    """
    asked = ("engine", "version", "split", "against", "topic", "since", "until")
    held = {name: request.GET.get(name, "") for name in asked}
    if request.GET["run"] == PEOPLE_ALONE and choice.set_id is not None:
        held["against"] = ""  # there is no judge to compare with anybody
        return redirect(reverse("alignment:report_set", args=[choice.set_id], query=_given(held)))
    run = newest_fitting(choice, run_id=request.GET["run"], user=request.user)
    if run is None:
        narrowed = {"set": choice.set, "engine": choice.engine, "version": choice.version}
        return redirect(reverse("alignment:report_list", query=_given(narrowed)))
    scope = requested_scope(run.chat_set, run, held, request.user)
    if scope is not None and not knows_rater(scope):
        held["against"] = ""
        messages.info(request, f"{scope.rater} gave no label on these chats: shown against the consensus.")
    return redirect(reverse("alignment:report_run", args=[run.pk], query=_given(held)))


def _given(held: dict[str, str]) -> dict[str, str]:
    """Without what is not asked for."""
    return {name: value for name, value in held.items() if value and (name, value) != ("against", CONSENSUS)}


def _report(request: HttpRequest, scope: Scope, report: dict[str, Any], **more: Any) -> HttpResponse:
    context = report_page(report, scope, user=request.user)
    return render(request, "alignment/reports/report.html", context | more)


def _certify(report: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """The form that issues a certificate on this report, and what it would say."""
    uses = uses_of(report)
    form = IssueForm(initial={"split": scope.split}, allows_nothing=allows_nothing(uses))
    return {"certify": form, "certify_says": headline(uses)}


def _listed(request: HttpRequest, scope: Scope, run: Run, found: cells.Places) -> dict[str, Any]:
    """What the lists of chats with both answers have in common."""
    page = Paginator(found.rows, PAGE).get_page(request.GET.get("page"))
    return {
        "page_obj": page,
        "items": cells.pair_rows(scope, found.pairs(page), scope_query(scope, start="&")),
        "people": scope.people,
        "run": run,
        "report_url": reverse("alignment:report_run", args=[run.pk]) + scope_query(scope),
        "notices": notices(scope),
    }
