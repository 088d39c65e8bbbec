"""Agreement over the runs of a chat set, from stored reports."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Max
from django.urls import reverse
from django.utils.timezone import localdate

from alignment.comparison.queries.cached_documents import subject_of
from alignment.comparison.queries.run_choice import RunOptions, run_options
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core.run_trend import RunTrend, TrendPoint, run_trend
from common.plots import Estimate
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import FINISHED, Run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import reads_holdout

RUNS_DRAWN = 12


def trend_of_runs(scope: Scope, offered: RunOptions, *, user: User | AnonymousUser) -> RunTrend | None:
    """Return mean balanced accuracy by run, from each run's latest stored report on all chats; one query.

    It computes no report. None with fewer than two runs, without a chat set, for filtered reports, and for
    users who cannot see the holdout.
    """
    if scope.chat_set is None or not scope.is_unfiltered or not reads_holdout(user=user):
        return None
    runs = [run for run in offered.runs if run.state in FINISHED][:RUNS_DRAWN]
    values = _stored(runs, "body__overall__balanced_accuracy")
    return _chart(
        _point(
            run,
            value,
            prompts=offered.version(run).key,
            words=offered.version(run).words,
            url=reverse("alignment:report_run", args=[run.pk]),
            current=run == scope.run,
        )
        for run in reversed(runs)
        if (value := values.get(run.pk))
    )


def trend_of_criterion(
    criterion: Criterion, chat_set: ChatSet | None, *, user: User | AnonymousUser, current: Run | None = None
) -> RunTrend | None:
    """Return the criterion's balanced accuracy by run of the set, as `trend_of_runs` does; four queries.

    Runs that did not judge the criterion are left out. `current` is the run that the page shows.
    """
    if chat_set is None or not reads_holdout(user=user):
        return None
    offered = run_options(chat_set.pk, user=user, shown=current)
    judges = {run.judge_id for run in offered.runs}
    prompts = JudgePrompt.objects.filter(criterion=criterion, judge__in=judges)
    numbers = dict(prompts.values_list("judge_id", "prompt_version__number"))
    judged = [run for run in offered.runs if run.judge_id in numbers or run.purpose == Run.Purpose.IMPORT]
    runs = [run for run in judged if run.state in FINISHED][:RUNS_DRAWN]
    values = {
        pk: entry["balanced_accuracy"]
        for pk, entries in _stored(runs, "body__criteria").items()
        for entry in entries
        if entry["key"] == criterion.key
    }
    return _chart(
        _point(
            run,
            value,
            prompts=str(number or ""),
            words=f"version {number}" if number else "unknown prompt",
            version=f"v{number}" if number else "",
            url=reverse("alignment:criterion_report", args=[run.pk, criterion.key]),
            current=run == current,
        )
        for run in reversed(runs)
        if (value := values.get(run.pk))
        for number in [numbers.get(run.judge_id)]
    )


def _stored(runs: Sequence[Run], field: str) -> dict[int, Any]:
    """Return a field of each run's latest stored report on all chats, by run id; one query."""
    subjects = [subject_of(Scope(run.chat_set, run), Report.Kind.REPORT) for run in runs]
    newest = Report.objects.filter(subject__in=subjects).values("subject").annotate(newest=Max("pk"))
    return dict(Report.objects.filter(pk__in=newest.values("newest")).values_list("run_id", field))


def _point(run: Run, value: Mapping[str, Any], *, words: str, **more: Any) -> TrendPoint:
    """Return the point of a run; `recipe` is what makes two runs comparable but for their prompts."""
    return TrendPoint(
        name=f"Run {run.pk}, {words}, {run.created_at:%-d %b %Y}",
        day=localdate(run.created_at),
        value=Estimate(value["value"], value.get("low"), value.get("high")),
        recipe=f"{run.judge.engine} {run.judge.model}",
        **more,
    )


def _chart(points: Iterable[TrendPoint]) -> RunTrend | None:
    shown = [point for point in points if point.value.value is not None]
    return run_trend(shown) if len(shown) > 1 else None
