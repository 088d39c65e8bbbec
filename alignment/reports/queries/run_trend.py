"""Agreement over the runs of a chat set, from stored reports."""

from django.contrib.auth.models import AnonymousUser
from django.db.models import Max
from django.urls import reverse

from alignment.comparison.queries.cached_documents import subject_of
from alignment.comparison.queries.run_choice import RunOptions
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core.run_trend import RunTrend, TrendPoint, run_trend
from common.plots import Estimate
from evaluation.models.runs import FINISHED, Run
from labeling.models.people import User
from labeling.people.queries.visibility import reads_holdout

RUNS_DRAWN = 12


def trend_of_runs(scope: Scope, offered: RunOptions, *, user: User | AnonymousUser) -> RunTrend | None:
    """Return mean balanced accuracy by run, from each run's latest stored report on all chats; one query.

    It computes no report. None with fewer than two runs, for filtered reports, and for users who cannot see
    the holdout.
    """
    if scope.run is None or not scope.is_unfiltered or not reads_holdout(user=user):
        return None
    runs = [run for run in offered.runs if run.state in FINISHED][:RUNS_DRAWN]
    subjects = [subject_of(Scope(run.chat_set, run), Report.Kind.REPORT) for run in runs]
    newest = Report.objects.filter(subject__in=subjects).values("subject").annotate(newest=Max("pk"))
    rows = Report.objects.filter(pk__in=newest.values("newest"))
    stored = dict(rows.values_list("run_id", "body__overall__balanced_accuracy"))
    points = [
        TrendPoint(
            name=f"Run {run.pk}, {offered.version(run).words}, {run.created_at:%-d %b %Y}",
            url=reverse("alignment:report_run", args=[run.pk]),
            value=Estimate(value["value"], value.get("low"), value.get("high")),
            recipe=_recipe(run),
            current=run == scope.run,
        )
        for run in reversed(runs)
        if (value := stored.get(run.pk)) and value["value"] is not None
    ]
    return run_trend(points) if len(points) > 1 else None


def _recipe(run: Run) -> str:
    """Return what makes figures of two runs comparable but for their prompts."""
    return f"{run.judge.engine} {run.judge.model}"
