"""What a report's page says before its figures where these are empty, or not all there yet."""

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
class Told:
    """A sentence on top, and what can be done. `blank`: there is no figure at all to show below."""

    title: str
    text: str
    action: str = ""
    url: str = ""
    blank: bool = False


def report_state(
    report: Mapping[str, Any], scope: Scope, *, whole_url: str, judged: bool, user: User | AnonymousUser
) -> Told | None:
    """
    The first that holds; None where the report is simply there.

    Parameters
    ----------
    report : its JSON.
    scope : what it is about.
    whole_url : the same report over all chats.
    judged : whether a run over the set has ended.
    user : who reads it: what they have no right to do is not offered.
    """
    if not report["chats"]:
        if scope.is_part or scope.split:
            return Told("No chats in this part", _why_none(scope), "Show all chats", whole_url, blank=True)
        return Told("No chats here", "The set has no chats yet, or none that you may be told of.", blank=True)
    if scope.run is not None:
        return _of_run(report, scope, scope.run, user)
    if not judged:
        starts = user.has_perm("labeling.start_runs") and scope.chat_set is not None
        query = {"set": scope.chat_set.pk} if scope.chat_set else {}
        url = reverse("evaluation:run_new", query=query) if starts else ""
        text = "Below is how far people agree with each other: what a judge can be asked for."
        return Told("No judge has scored this set yet", text, "Start a run" if starts else "", url)
    return None


def _why_none(scope: Scope) -> str:
    """Why a part has no chats; one query, where days are asked for."""
    if scope.split == Split.HOLDOUT and scope.split in scope.without_holdout:
        return "Holdout chats are for leads here."
    together = "None of the chats is of this split, topic and period together."
    if not (scope.since or scope.until):
        return together
    times = replace(scope, since=None, until=None).members.order_by()
    found = times.aggregate(all=Count("pk"), timed=Count("chat__started_at"))
    if not (none := found["all"] - found["timed"]):
        return together
    timeless = f"{none:,} chat{' has' if none == 1 else 's have'} no start time."
    return f"{together} {timeless}" if found["timed"] else timeless


def _of_run(report: Mapping[str, Any], scope: Scope, run: Run, user: User | AnonymousUser) -> Told | None:
    run_url = reverse("evaluation:run_detail", args=[run.pk])
    if run.state in (Run.State.RUNNING, Run.State.PAUSED):
        words = "The run is still going" if run.state == Run.State.RUNNING else "The run is paused"
        return Told(
            words, "The figures cover the verdicts that are there, and will change.", "Open the run", run_url
        )
    rows = report["criteria"]
    if all(row["unlabelled"] == report["chats"] for row in rows):
        url = plan_url(replace(scope, topic="", since=None, until=None))
        plans = bool(url) and user.has_perm("labeling.manage_labeling")
        text = "There is nothing yet to compare the verdicts with."
        return Told("No labels on these chats yet", text, *(("Plan labels", url) if plans else ()))
    if (
        rows
        and not any(row["n"] or row["judge_not_applicable"] for row in rows)
        and any(row["no_verdict"] for row in rows)
    ):
        text = "The judge's answers are missing, or could not be read; nothing is guessed."
        return Told("No verdict on a labelled chat", text, "See why", run_url)
    return None
