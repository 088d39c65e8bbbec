"""The message above a report that is empty or not complete yet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count
from django.urls import reverse

from alignment.comparison.queries.scope import Scope
from alignment.reports.queries.next_steps import plan_url
from evaluation.models.runs import Run
from labeling.models.chats import Split
from labeling.models.people import User


@dataclass(frozen=True, slots=True)
class EmptyState:
    """A message and the action it offers. `blank`: there is nothing to show below it."""

    title: str
    text: str
    action: str = ""
    url: str = ""
    blank: bool = False


def report_state(
    report: Mapping[str, Any], scope: Scope, *, whole_url: str, judged: bool, user: User | AnonymousUser
) -> EmptyState | None:
    """
    Return the first message that applies; None for a complete report.

    Parameters
    ----------
    report : the report's JSON.
    scope : the run or set, and the filters.
    whole_url : address of the same report without filters.
    judged : whether the set has a finished run.
    user : the reader. Actions they may not take are not offered.
    """
    if not report["chats"]:
        if scope.is_part or scope.split:
            return EmptyState("No chats match", _why_none(scope), "Show all chats", whole_url, blank=True)
        return EmptyState("No chats", "The set has no chats that you can see.", blank=True)
    if scope.run is not None:
        return _of_run(report, scope, scope.run, user)
    if not judged:
        starts = user.has_perm("labeling.start_runs") and scope.chat_set is not None
        query = {"set": scope.chat_set.pk} if scope.chat_set else {}
        url = reverse("evaluation:run_new", query=query) if starts else ""
        text = "This page shows the agreement between raters, which a judge should reach."
        return EmptyState("No finished run yet", text, "Start a run" if starts else "", url)
    return None


def _why_none(scope: Scope) -> str:
    """Return why no chat matches the filters; one query if they name days."""
    if scope.split == Split.HOLDOUT and scope.split in scope.without_holdout:
        return "Fewer than 10 holdout chats: only leads see their results."
    together = "No chat has this split, topic and period."
    if not (scope.since or scope.until):
        return together
    times = replace(scope, since=None, until=None).members.order_by()
    counts = times.aggregate(all=Count("pk"), timed=Count("chat__started_at"))
    if not (none := counts["all"] - counts["timed"]):
        return together
    timeless = f"{none:,} chat{' has' if none == 1 else 's have'} no start time."
    return f"{together} {timeless}" if counts["timed"] else timeless


def _of_run(
    report: Mapping[str, Any], scope: Scope, run: Run, user: User | AnonymousUser
) -> EmptyState | None:
    run_url = reverse("evaluation:run_detail", args=[run.pk])
    if run.state in (Run.State.RUNNING, Run.State.PAUSED):
        title = "Run in progress" if run.state == Run.State.RUNNING else "Run paused"
        return EmptyState(
            title, "Results cover the verdicts received up to now and will change.", "Open the run", run_url
        )
    if run.state == Run.State.CANCELLED and run.coverage:
        text = "Results cover the chats judged until then, and will not change."
        return EmptyState(f"Run {run.standing[:1].lower()}{run.standing[1:]}", text, "Open the run", run_url)
    rows = report["criteria"]
    if all(row["unlabelled"] == report["chats"] for row in rows):
        url = plan_url(replace(scope, topic="", since=None, until=None))
        plans = bool(url) and user.has_perm("labeling.manage_labeling")
        text = "Verdicts can be compared once raters have labelled these chats."
        return EmptyState("No labels yet", text, *(("Plan labels", url) if plans else ()))
    if (
        rows
        and not any(row["n"] or row["judge_not_applicable"] for row in rows)
        and any(row["no_verdict"] for row in rows)
    ):
        text = "On labelled chats, the judge's answers are missing or unreadable."
        return EmptyState("No verdicts to compare", text, "Open the run", run_url)
    return None
