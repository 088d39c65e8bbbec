"""Runs: list, page and actions."""

from typing import Any, cast

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from common.access import permission_or_404
from evaluation.judges.queries.recipes import judge_roles, judge_settings
from evaluation.models.runs import Run
from evaluation.prompts.queries.definitions import older_notices
from evaluation.runs.queries import run_page
from evaluation.runs.queries.engine_stats import run_engine_stats
from evaluation.runs.queries.ledger import run_ledger
from evaluation.runs.queries.progress import run_progress
from evaluation.runs.queries.redact_errors import redact_errors
from evaluation.runs.queries.runs import (
    KINDS,
    RunFilter,
    kind_of,
    run_filters,
    run_notices,
    run_rows,
    runs_open_to,
)
from evaluation.runs.queries.runs import run_list as all_runs
from evaluation.runs.services.control import (
    CANCELLABLE,
    PAUSABLE,
    RESUMABLE,
    run_cancel,
    run_pause,
    run_resume,
)
from evaluation.runs.views.control import Control, perform_action, polls, replace_page, resume_form
from labeling.models.people import User

RUNS_A_PAGE = 50
CONTROL = Control(
    name="Run",
    url="evaluation:run_detail",
    argument="run",
    services={"pause": run_pause, "resume": run_resume, "cancel": run_cancel},
)


@permission_or_404("labeling.see_judge")
@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    """Show the runs, newest first, filtered by the address."""
    state, chat_set, engine, purpose = (
        request.GET.get(name, "") for name in ("state", "set", "engine", "purpose")
    )
    kind = kind_of(purpose)
    only = RunFilter(state, chat_set, engine, purpose or kind)
    page = Paginator(all_runs(only, among=runs_open_to(request.user)), RUNS_A_PAGE).get_page(
        request.GET.get("page")
    )
    runs = list(page)
    redact_errors(runs, user=request.user)
    rows = run_rows(runs)
    context = {
        "page_obj": page,
        "runs": rows,
        "filters": run_filters(only) if rows or only.narrows else [],
        "narrows": only.narrows,
        "kind": kind,
        "kinds": [(key, words) for key, (words, _) in KINDS.items()],
        "active": any(row.active for row in rows),
    }
    return render(request, "evaluation/runs/list.html", context)


@permission_or_404("labeling.see_judge")
@require_safe
def run_detail(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show one run: coverage, progress and cost.

    The page requests its progress with the state it has `seen`; after a change of state, and after the last
    pending call, the whole page reloads. It requests its other counts less often, as the `part` "counts".
    """
    run = get_object_or_404(runs_open_to(request.user).select_related("started_by"), pk=run_id)
    redact_errors([run], user=request.user)
    user, again = cast(User, request.user), polls(request)
    progress = _progress(run, user)
    if again and request.GET.get("part") == "counts":
        return render(request, "evaluation/runs/_counts.html", progress | _counts(run, user))
    seen, ended = request.GET.get("seen"), not progress["progress"].active
    if again and (seen is None or (seen == run.state and not ended)):
        return render(request, "evaluation/runs/_progress.html", progress | {"polled": True})
    response = render(request, "evaluation/runs/detail.html", progress | _whole(run, user))
    return replace_page(response) if again else response


@permission_or_404("labeling.see_judge")
@require_safe
def run_engine(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the statistics of a run's engine, loaded later because counting verdicts can take seconds."""
    run = get_object_or_404(runs_open_to(request.user), pk=run_id)
    return render(request, "evaluation/runs/_engine.html", {"engine": run_engine_stats(run)})


@permission_or_404("labeling.start_runs")
@require_POST
def run_act(request: HttpRequest, run_id: int, act: str) -> HttpResponse:
    """Pause, resume or cancel; the page shows a refusal."""
    run = get_object_or_404(Run.objects.select_related("judge"), pk=run_id)
    return perform_action(request, CONTROL, run, act)


def _progress(run: Run, user: User) -> dict[str, Any]:
    row, progress, batches = run_rows([run])[0], run_progress(run), run_page.run_batches(run, user=user)
    return {
        "run": row,
        "progress": progress,
        # An ended run stores its cost; until then the record of its requests is summed.
        "cost": row.cost_usd if row.ended else progress.costs.cost_usd,
        "shares": run_page.shares(run),
        "trouble": run_page.in_words(run.error),
        "next_step": run_page.next_step(run),
        "batches": batches,
        "waits_for": run_page.waits_for(run, workers=progress.workers, batches=batches),
    }


def _counts(run: Run, user: User) -> dict[str, Any]:
    """Return what counts every verdict and request: too slow for each poll of the progress."""
    return {
        "missing": run_page.run_missing(run),
        "failures": run_page.run_failures(run, user=user),
        "outcomes": run_page.run_outcomes(run),
        "ledger": run_ledger(run),
    }


def _whole(run: Run, user: User) -> dict[str, Any]:
    chats = run.run_chats.count()
    return _counts(run, user) | {
        "record": run,
        "notices": [*run_notices(run), *older_notices([run.judge])],
        "chats": chats,
        "took": (run.finished_at - run.created_at).total_seconds() if run.finished_at else None,
        "resume": resume_form(run.budget_usd),
        "settings": judge_settings(run.judge, run),
        "roles": judge_roles(run.judge),
        "prompts": run.judge.prompts.select_related(
            "criterion__dimension", "prompt_version", "criterion_version"
        ),
        "can": {
            "pause": run.state in PAUSABLE,
            "resume": run.state in RESUMABLE,
            "cancel": run.state in CANCELLABLE,
        },
    }
