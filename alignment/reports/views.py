"""Pages of alignment reports: list, report, lists of chats, stored report and its CSV."""

from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from alignment.baselines.queries.page import baselines_page
from alignment.baselines.services import baselines_get
from alignment.certificates.forms import IssueForm
from alignment.certificates.queries.certificates import certificates_of_report
from alignment.certificates.queries.page import headline, uses_of
from alignment.certificates.services.certificates import certifiable, nothing_to_certify
from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.answers import knows_rater
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.run_choice import HUMAN_ONLY, RunChoice, newest_fitting
from alignment.comparison.queries.scope import Scope
from alignment.comparison.views import back_of, comparison_view, run_and_scope, scope_or_404
from alignment.reports.core.csv_rows import HEAD, csv_rows
from alignment.reports.queries import chat_lists as cells
from alignment.reports.queries.knowledge_gaps import knowledge_gaps
from alignment.reports.queries.page import CELLS, cell_title, notices, report_page, scope_query
from alignment.reports.queries.report_list import report_list as all_reports
from alignment.reports.queries.reports import is_running
from alignment.reports.queries.shown import ShownReport, can_cancel, is_waiting, refresh_of, shown_report
from alignment.reports.queries.stored import readable_report, stored_csv_rows, stored_page
from alignment.reports.services import ReportRefused, report_cancel, report_share, report_update
from common.access import found_or_404, permission_or_404
from common.downloads import table_file
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import kind_of
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit

PAGE = 50


@permission_or_404("labeling.see_judge")
def report_list(request: HttpRequest) -> HttpResponse:
    """List runs and sets; with `run` in the query string, redirect to the chosen report."""
    choice = RunChoice.read(request.GET)
    if "run" in request.GET:
        return _chosen_report(request, choice)
    kind = "tests" if kind_of(request.GET.get("purpose", "")) == "tests" else "evaluations"
    return render(request, "alignment/reports/list.html", all_reports(choice, user=request.user, kind=kind))


@permission_or_404("labeling.see_judge")
@require_safe
@comparison_view
def report_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the alignment report of a run; the newest stored one if labels have changed since."""
    run, scope = run_and_scope(request, run_id)
    shown = shown_report(scope, user=request.user)
    if shown.report is None:
        return render(request, "alignment/reports/waiting.html", _state(scope, shown))
    leads = request.user.has_perm("labeling.release_prompts") and scope.against == CONSENSUS
    more = baselines_page(scope, baselines_get(scope, wait=False))
    if leads and not certifiable(run):
        more |= _certify(shown, scope)
    return _report(request, scope, shown, **more)


@permission_or_404("labeling.see_judge")
@require_safe
@comparison_view
def report_set(request: HttpRequest, set_id: int) -> HttpResponse:
    """Show the agreement between raters on a set, without a judge."""
    scope = scope_or_404(request, get_object_or_404(ChatSet, pk=set_id), None)
    return _report(request, scope, shown_report(scope, user=request.user))


@permission_or_404("labeling.see_judge")
@require_safe
@comparison_view
def report_state(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show whether a worker still computes the report: the fragment that reloads the page at the end."""
    _, scope = run_and_scope(request, run_id)
    refresh = refresh_of(scope)
    state = _state(scope, ShownReport(None, refresh=refresh))
    answer = render(request, "alignment/reports/_state.html", state)
    if not is_waiting(refresh):
        answer.headers["HX-Refresh"] = "true"
    return answer


@permission_or_404("labeling.see_judge")
@require_POST
@comparison_view
def report_update_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Compute the report anew, for all its readers; a worker does it where it takes long."""
    run, scope = run_and_scope(request, run_id)
    cancels = "cancel" in request.POST
    try:
        report_cancel(scope) if cancels else report_update(scope)
    except ReportRefused as problem:
        messages.error(request, f"Not {'cancelled' if cancels else 'updated'}: {problem}.")
    return redirect(reverse("alignment:report_run", args=[run.pk]) + scope_query(scope))


@permission_or_404("labeling.see_judge")
@require_POST
@comparison_view
def report_share_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Store the report of a run under a link that stays."""
    run, scope = run_and_scope(request, run_id)
    return _share(request, scope, reverse("alignment:report_run", args=[run.pk]))


@permission_or_404("labeling.see_judge")
@require_POST
@comparison_view
def report_share_set(request: HttpRequest, set_id: int) -> HttpResponse:
    """Store the report of a set under a link that stays."""
    scope = scope_or_404(request, get_object_or_404(ChatSet, pk=set_id), None)
    return _share(request, scope, reverse("alignment:report_set", args=[set_id]))


@permission_or_404("labeling.see_judge")
@require_safe
@comparison_view
def report_table_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Download the report that the page of a run shows, as CSV."""
    run, scope = run_and_scope(request, run_id)
    return _table(request, scope, run, f"alignment-report-run-{run.pk}.csv")


@permission_or_404("labeling.see_judge")
@require_safe
@comparison_view
def report_table_set(request: HttpRequest, set_id: int) -> HttpResponse:
    """Download the report on a set, as CSV."""
    chat_set = get_object_or_404(ChatSet, pk=set_id)
    scope = scope_or_404(request, chat_set, None)
    return _table(request, scope, chat_set, f"alignment-report-set-{set_id}.csv")


@permission_or_404("labeling.see_judge")
@require_safe
@comparison_view
def no_verdict(request: HttpRequest, run_id: int, key: str) -> HttpResponse:
    """List the labelled chats without a verdict on a criterion; a single one opens at once."""
    run, scope = run_and_scope(request, run_id)
    criterion = get_object_or_404(Criterion, key=key)
    if scope.each_rater:
        raise Http404
    places = cells.no_verdict_places(scope, key, request.user)
    context = _chat_list(request, scope, run, places)
    if len(places.rows) == 1:
        return redirect(f"{context['items'][0].url}#verdict")
    return render(
        request, "alignment/reports/cell.html", context | _criterion(criterion) | {"cell": "no verdict"}
    )


@permission_or_404("labeling.see_judge")
@comparison_view
def cell(request: HttpRequest, run_id: int, key: str, cell: str) -> HttpResponse:
    """List the chats of one cell of a criterion's matrix."""
    run, scope = run_and_scope(request, run_id)
    criterion = get_object_or_404(Criterion, key=key)
    text = criterion.versions.latest("number")
    if cell not in (*CELLS, cells.DISAGREEMENTS) or scope.each_rater:
        raise Http404
    places = cells.cell_places(scope, key, cell, request.user)
    context = _chat_list(request, scope, run, places)
    context |= _criterion(criterion) | {"cell": cell_title(cell, passes_when=text.passes_when)}
    return render(request, "alignment/reports/cell.html", context)


@permission_or_404("labeling.see_judge")
@comparison_view
def disagreements(request: HttpRequest, run_id: int) -> HttpResponse:
    """List the disagreements of a run."""
    run, scope = run_and_scope(request, run_id)
    places = cells.disagreements(scope, request.user)
    context = _chat_list(request, scope, run, places) | {"hidden": places.hidden}
    context |= {"split": scope.split, "ground_truth": scope.ground_truth}
    return render(request, "alignment/reports/disagreements.html", context)


@permission_or_404("labeling.see_judge")
@comparison_view
def gaps(request: HttpRequest, run_id: int) -> HttpResponse:
    """List the knowledge gaps of a run; `?criterion=` narrows them to one criterion."""
    run, scope = run_and_scope(request, run_id)
    criterion = None
    if key := request.GET.get("criterion", ""):
        criterion = get_object_or_404(Criterion, key=key)
        scope = replace(scope, only=criterion.key)
    gaps = knowledge_gaps(scope, run, request.user)
    context = _chat_list(request, scope, run, gaps.places) | {"hidden": gaps.places.hidden}
    context |= {"split": scope.split, "ground_truth": scope.ground_truth}
    context |= {"mode": gaps.mode, "only": criterion, "silent": gaps.silent}
    context |= {"silent_count": gaps.silent_count, "query": scope_query(scope, start="&")}
    return render(request, "alignment/reports/knowledge_gaps.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def report_stored(request: HttpRequest, report_id: int) -> HttpResponse:
    """Show a stored report, with the results and texts it was stored with."""
    row = found_or_404(readable_report(report_id, user=request.user))
    certificates = certificates_of_report(row, user=request.user)
    context = stored_page(row) | {"certificates": certificates}
    return render(request, "alignment/reports/stored.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def report_table(request: HttpRequest, report_id: int) -> HttpResponse:
    """Download a stored report as CSV."""
    row = found_or_404(readable_report(report_id, user=request.user))
    audit(actor=cast(User, request.user), verb="report exported", obj=row, format="csv")
    return table_file(stored_csv_rows(row), HEAD, name=f"alignment-report-{row.pk}.csv")


def _chosen_report(request: HttpRequest, choice: RunChoice) -> HttpResponse:
    """Redirect to the report of the run that matches, with its filters; to the list without one.

    If no run is chosen on purpose, redirect to the report of the set.
    """
    names = ("engine", "version", "split", "against", "topic", "since", "until", "tab")
    query = {name: request.GET.get(name, "") for name in names}
    if request.GET["run"] == HUMAN_ONLY and choice.set_id is not None:
        query["against"] = ""  # without a judge there is no ground truth to choose
        return redirect(reverse("alignment:report_set", args=[choice.set_id], query=_not_default(query)))
    run = newest_fitting(choice, run_id=request.GET["run"], user=request.user)
    if run is None:
        narrowed = {"set": choice.set, "engine": choice.engine, "version": choice.version}
        return redirect(reverse("alignment:report_list", query=_not_default(narrowed)))
    scope = requested_scope(run.chat_set, run, query, request.user)
    if scope is not None and not knows_rater(scope):
        query["against"] = ""
        messages.info(
            request, f"{scope.rater} gave no label on these chats. The report uses the consensus instead."
        )
    return redirect(reverse("alignment:report_run", args=[run.pk], query=_not_default(query)))


def _not_default(query: dict[str, str]) -> dict[str, str]:
    """Return the parameters that differ from their default."""
    return {name: value for name, value in query.items() if value and (name, value) != ("against", CONSENSUS)}


def _report(request: HttpRequest, scope: Scope, shown: ShownReport, **more: Any) -> HttpResponse:
    report = shown.report or {}
    context = report_page(report, scope, user=request.user, query=request.GET) | _state(scope, shown)
    return render(request, "alignment/reports/report.html", context | more)


def _state(scope: Scope, shown: ShownReport) -> dict[str, Any]:
    """Return what the page says about the state of the report, with the addresses of its actions."""
    names: tuple[str, ...] = ("share", "table")
    of = [scope.chat_set.pk] if scope.chat_set else []
    which = "set" if scope.run is None else "run"
    if scope.run is not None:
        names, of = (*names, "update"), [scope.run.pk]
    urls = {f"{name}_url": _address(f"{name}_{which}", of, scope) for name in names}
    if scope.run is not None:
        urls["state_url"] = _address("state", of, scope)
    return urls | {
        "run": scope.run,
        "changed": shown.changed,
        "refresh": shown.refresh,
        "waits": is_waiting(shown.refresh),
        "can_cancel": can_cancel(scope),
        "can_share": not is_running(scope),
    }


def _address(name: str, of: list[int], scope: Scope) -> str:
    return reverse(f"alignment:report_{name}", args=of) + scope_query(scope)


def _share(request: HttpRequest, scope: Scope, page: str) -> HttpResponse:
    """Redirect to the stored report, or back to the page while a worker computes it."""
    try:
        row = report_share(scope)
    except ReportRefused as problem:
        messages.error(request, f"Not shared: {problem}.")
        return redirect(page + scope_query(scope))
    if row is None:
        messages.info(request, "A worker computes this report. Share it again once it is shown.")
        return redirect(page + scope_query(scope))
    return redirect("alignment:report_stored", row.pk)


def _table(request: HttpRequest, scope: Scope, about: Run | ChatSet, name: str) -> HttpResponse:
    shown = shown_report(scope, user=request.user)
    if shown.report is None:
        raise Http404
    audit(actor=cast(User, request.user), verb="report exported", obj=about, format="csv")
    return table_file(csv_rows(shown.report, pin=shown.pin), HEAD, name=name)


def _certify(shown: ShownReport, scope: Scope) -> dict[str, Any]:
    """Return the form that issues a certificate on this report, and its headline; or why there is none."""
    report = shown.report or {}
    if shown.changed:
        return {"certify_problem": "labels have changed since this report, so update it first"}
    if problem := nothing_to_certify(report):
        return {"certify_problem": problem}
    return {"certify": IssueForm(initial={"split": scope.split}), "certify_says": headline(uses_of(report))}


def _criterion(criterion: Criterion) -> dict[str, Any]:
    """Return the criterion of a list of chats."""
    return {
        "criterion": {
            "key": criterion.key,
            "name": criterion.name,
            "question": criterion.versions.latest("number").question,
            "url": reverse("alignment:criterion_detail", args=[criterion.key]),
        }
    }


def _chat_list(request: HttpRequest, scope: Scope, run: Run, places: cells.Places) -> dict[str, Any]:
    """Return the context that all lists of chats share."""
    page = Paginator(places.rows, PAGE).get_page(request.GET.get("page"))
    return {
        "page_obj": page,
        "items": cells.pair_rows(scope, places.pairs(page), scope_query(scope, start="&")),
        "human_head": scope.human_head,
        "own": places.own,
        "run": run,
        "report_url": reverse("alignment:report_run", args=[run.pk]) + scope_query(scope),
        "notices": notices(scope),
        "back": back_of(request),
    }
