"""What can be reported on: runs against people, and sets with labels."""

from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse

from evaluation.models.runs import FINISHED, Run
from evaluation.selectors.runs import run_list, run_rows
from labeling.models.chats import ChatSet

SHOWN = 100


def report_list() -> dict[str, Any]:
    """The template context of the reports page; the number of queries does not grow with the data."""
    runs = run_rows(list(run_list()[:SHOWN]))
    sets = ChatSet.objects.select_related("rubric").annotate(
        chats=Count("members"),
        holdout=Count("members", filter=Q(members__split="holdout")),
        finished=Subquery(_finished_runs()),
    )
    return {
        "runs": [{"row": row, "url": reverse("alignment:report_run", args=[row.id])} for row in runs],
        "sets": [
            {
                "name": row.name,
                "rubric": row.rubric.name,
                "chats": row.chats,
                "holdout": row.holdout,
                "url": reverse("alignment:report_set", args=[row.pk]),
                "league_url": reverse("alignment:league", args=[row.pk]) if (row.finished or 0) > 1 else "",
            }
            for row in sets.order_by("name")
        ],
    }


def _finished_runs() -> QuerySet[Run, int]:
    """How many runs of a set can stand in a league; null where there is none."""
    runs = run_list(among=Run.objects.filter(chat_set=OuterRef("pk"), state__in=FINISHED)).order_by()
    return runs.values("chat_set").annotate(n=Count("pk")).values_list("n", flat=True)
