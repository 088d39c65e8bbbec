"""What can be reported on: runs against people, and sets with labels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse

from alignment.comparison.queries.filters import select_filter
from alignment.comparison.queries.run_choice import ENGINES, RunChoice, Version, versions_of
from alignment.reports.queries.run_status import Standing, run_standings
from evaluation.models.runs import FINISHED, Run
from evaluation.runs.queries.runs import RunFilter, run_list, run_rows
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.people.queries.visibility import reads_holdout

SHOWN = 100


def report_list(choice: RunChoice, *, user: User | AnonymousUser) -> dict[str, Any]:
    """The template context of the reports page; the number of queries does not grow with the data.

    Where the criteria of a run stand is for those who read the holdout: others find it in each report.
    """
    newest = list(run_list(RunFilter(set=choice.set, engine=choice.engine))[:SHOWN])
    versions = versions_of(newest)
    fitting = [run for run in newest if choice.fits(run, versions)]
    standings = run_standings(fitting) if reads_holdout(user=user) else {}
    sets = list(_sets())
    return {
        "runs": _run_rows(fitting, versions, standings),
        "shows_standing": bool(standings),
        "filters": _filters(choice, sets, versions.values()),
        "narrowed": choice.narrows,
        "chosen_set": choice.set_id,
        "sets": [_set_row(row) for row in sets],
    }


def _run_rows(
    runs: Sequence[Run], versions: Mapping[int, Version], standings: Mapping[int, Standing]
) -> list[dict[str, Any]]:
    words = {run.pk: versions[run.judge_id].words for run in runs}
    return [
        {
            "row": row,
            "version": words[row.id],
            "standing": standings.get(row.id),
            "url": reverse("alignment:report_run", args=[row.id]),
        }
        for row in run_rows(runs)
    ]


def _sets() -> QuerySet[Any]:
    """Every set by name, with its chats, those held out, and the runs of its league."""
    return (
        ChatSet.objects.select_related("rubric")
        .annotate(
            chats=Count("members"),
            holdout=Count("members", filter=Q(members__split="holdout")),
            finished=Subquery(_finished_runs()),
        )
        .order_by("name")
    )


def _set_row(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "rubric": row.rubric.name,
        "chats": row.chats,
        "holdout": row.holdout,
        "url": reverse("alignment:report_set", args=[row.pk]),
        "league_url": reverse("alignment:league", args=[row.pk]) if (row.finished or 0) > 1 else "",
    }


def _filters(choice: RunChoice, sets: Iterable[ChatSet], versions: Iterable[Version]) -> list[dict[str, Any]]:
    names = [(str(row.pk), row.name) for row in sets]
    known = {version.key: version.words for version in versions}
    if choice.version:
        known.setdefault(choice.version, choice.version)
    return [
        select_filter("set", "Chat set", [("", "all"), *names], choice.set),
        select_filter("engine", "Engine", [("", "all"), *((name, name) for name in ENGINES)], choice.engine),
        select_filter("version", "Version", [("", "all"), *known.items()], choice.version),
    ]


def _finished_runs() -> QuerySet[Run, int]:
    """How many runs of a set can stand in a league; null where there is none."""
    runs = run_list(among=Run.objects.filter(chat_set=OuterRef("pk"), state__in=FINISHED)).order_by()
    return runs.values("chat_set").annotate(n=Count("pk")).values_list("n", flat=True)
