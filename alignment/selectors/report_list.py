"""What can be reported on: runs against people, and sets with labels."""

from typing import Any

from django.db.models import Count, Q
from django.urls import reverse

from evaluation.selectors.runs import run_list, run_rows
from labeling.models.chats import ChatSet

SHOWN = 100


def report_list() -> dict[str, Any]:
    """The template context of the reports page; the number of queries does not grow with the data."""
    runs = run_rows(list(run_list()[:SHOWN]))
    sets = ChatSet.objects.select_related("rubric").annotate(
        chats=Count("members"), holdout=Count("members", filter=Q(members__split="holdout"))
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
            }
            for row in sets.order_by("name")
        ],
    }
