"""The report's `briefs`: what the briefs of a debate changed, against the direct run on the same chats."""

from typing import Any

from alignment.comparison.queries.answers import covered_chats, report_data, run_codes
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.brief_effect import all_effects, brief_effect
from evaluation.judges.core.direct_counterpart import debated_criteria
from evaluation.models.runs import Run
from evaluation.runs.queries.direct_runs import direct_run_of


def is_debate(scope: Scope) -> bool:
    """Return whether the report's judge decides at least one of its criteria by debate."""
    return scope.run is not None and any(
        row.key in debated_criteria(scope.run.judge.config) for row in scope.criteria
    )


def briefs_run(scope: Scope) -> Run | None:
    """Return the direct run that shows what the briefs changed.

    None without a debate or a direct run, and against each rater: a chat then has no single human answer.
    """
    if scope.run is None or scope.each_rater or not is_debate(scope):
        return None
    return direct_run_of(scope.run)


def briefs_section(scope: Scope, direct_run: Run | None = None) -> dict[str, Any] | None:
    """Return counts by debated criterion and over all; None without `briefs_run`, which may be known already.

    The counts cover the report's chats. A constant number of queries.
    """
    direct_run = direct_run or briefs_run(scope)
    if direct_run is None or scope.run is None:
        return None
    chats, debated = covered_chats(scope), debated_criteria(scope.run.judge.config)
    ids = {row.key: row.pk for row in scope.criteria}
    direct = run_codes(direct_run, scope, chats)
    # Labels that were sampled by a run's verdicts would favour one of the runs.
    criteria = [one.without_sampled for one in report_data(scope).criteria]
    effects = {
        one.spec.key: brief_effect(human=one.human, direct=direct[ids[one.spec.key]], debate=one.judge)
        for one in criteria
        if one.spec.key in debated and one.judge is not None
    }
    return {
        "direct_run": direct_run.pk,
        "criteria": [{"key": key, **effect.as_json()} for key, effect in effects.items()],
        "overall": all_effects(list(effects.values())).as_json(),
    }
