"""Runs: list and page."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from evaluation.models.runs import Run
from evaluation.selectors.runs import run_list as all_runs
from evaluation.selectors.runs import run_rows
from labeling.access import permission_or_404


@permission_or_404("labeling.see_judge")
def run_list(request: HttpRequest) -> HttpResponse:
    """Every run, newest first."""
    page = Paginator(all_runs(), 50).get_page(request.GET.get("page"))
    return render(request, "evaluation/run_list.html", {"page_obj": page, "runs": run_rows(list(page))})


@permission_or_404("labeling.see_judge")
def run_detail(request: HttpRequest, run_id: int) -> HttpResponse:
    """One run: what it covers, how far it is, what it cost."""
    run = get_object_or_404(Run.objects.select_related("judge", "chat_set"), pk=run_id)
    prompts = run.judge.prompts.select_related("criterion__dimension", "prompt_version", "criterion_version")
    context = {"run": run_rows([run])[0], "prompts": prompts, "judge": run.judge}
    part = (
        "evaluation/_run_progress.html" if request.headers.get("HX-Request") else "evaluation/run_detail.html"
    )
    return render(request, part, context)
