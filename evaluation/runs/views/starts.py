"""Starting a run: form, estimate and start."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from common.access import permission_or_404
from common.problems import InputProblem
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.model_notices import model_notices
from evaluation.runs.forms import StartForm
from evaluation.runs.services.starts import other_engine_estimate, start_estimate, start_run
from labeling.models.people import User

STARTED = "Run {} started. You can leave this page."
STARTED_BEFORE = "This form already started run {}. No second run was started."


@permission_or_404("labeling.start_runs")
@require_http_methods(["GET", "POST"])
def run_new(request: HttpRequest) -> HttpResponse:
    """Show the form and start the run; `?set=` and `?profile=` preselect."""
    if request.method != "POST":
        return render(request, "evaluation/runs/new.html", {"form": StartForm(initial=request.GET.dict())})
    form = StartForm(request.POST)
    if form.is_valid():
        cleaned = form.cleaned_data
        try:
            started = start_run(
                chat_set=cleaned["set"],
                judge=form.judge,
                run=form.run,
                profile=cleaned["profile"],
                by=cast(User, request.user),
            )
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(request, (STARTED_BEFORE if started.again else STARTED).format(started.run.pk))
            return redirect("evaluation:run_detail", started.run.pk)
    return render(request, "evaluation/runs/new.html", {"form": form})


@permission_or_404("labeling.start_runs")
@require_safe
def run_estimate(request: HttpRequest) -> HttpResponse:
    """Show the estimate beside the form."""
    form = StartForm(request.GET)
    if not form.is_valid():
        return render(request, "evaluation/runs/_estimate.html", {"form": form})
    cleaned = form.cleaned_data
    chosen = {"chat_set": cleaned["set"], "judge": form.judge, "run": form.run}
    try:
        estimate, other = start_estimate(**chosen), other_engine_estimate(**chosen)
    except InputProblem as problem:
        return render(request, "evaluation/runs/_estimate.html", {"problem": str(problem)})
    notices = model_notices(choice=form.judge, endpoint=judge_endpoint(form.judge))
    context = {"estimate": estimate, "other": other, "notices": notices}
    return render(request, "evaluation/runs/_estimate.html", context)
