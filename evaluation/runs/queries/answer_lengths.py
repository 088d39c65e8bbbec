"""How long the stored answers of a model are, by role."""

from collections.abc import Collection, Mapping

from django.db.models import Avg, Count, Max

from evaluation.core.types import ModelAt
from evaluation.models.runs import ModelCall

FEWEST = 5  # answers; fewer give no reliable mean
RECENT = 20_000  # the latest calls of the workspace, so that the time of the query is limited

ANSWERED = (ModelCall.State.ANSWERED, ModelCall.State.CUT_OFF)


def mean_answer_tokens(*, models: Collection[ModelAt]) -> Mapping[tuple[str, ModelAt], float]:
    """Return the mean completion tokens by role and model, where enough answers are stored; two queries."""
    latest = ModelCall.objects.aggregate(latest=Max("pk"))["latest"] or 0
    recent = ModelCall.objects.filter(
        pk__gt=latest - RECENT,
        endpoint__in={at.endpoint for at in models},
        model__in={at.model for at in models},
        state__in=ANSWERED,
        completion_tokens__isnull=False,
    )
    rows = recent.values("role", "endpoint", "model").order_by()
    rows = rows.annotate(n=Count("pk"), mean=Avg("completion_tokens"))
    return {
        (row["role"], ModelAt(row["endpoint"], row["model"])): row["mean"]
        for row in rows
        if row["n"] >= FEWEST
    }
