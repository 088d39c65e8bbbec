"""How long the stored answers of a model are, by role."""

from collections.abc import Collection, Mapping

from django.db.models import Avg, Count, Max

from evaluation.models.runs import ModelCall

FEWEST = 5  # answers; fewer give no reliable mean
RECENT = 20_000  # the latest calls of the workspace, so that the time of the query is limited

ANSWERED = (ModelCall.State.ANSWERED, ModelCall.State.CUT_OFF)


def mean_answer_tokens(*, endpoint: str, models: Collection[str]) -> Mapping[tuple[str, str], float]:
    """Return the mean completion tokens by role and model, where enough answers are stored; two queries."""
    latest = ModelCall.objects.aggregate(latest=Max("pk"))["latest"] or 0
    recent = ModelCall.objects.filter(
        pk__gt=latest - RECENT,
        endpoint=endpoint,
        model__in=models,
        state__in=ANSWERED,
        completion_tokens__isnull=False,
    )
    rows = recent.values("role", "model").annotate(n=Count("pk"), mean=Avg("completion_tokens")).order_by()
    return {(row["role"], row["model"]): row["mean"] for row in rows if row["n"] >= FEWEST}
