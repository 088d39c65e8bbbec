"""The verdicts of runs, counted: once when a run has ended, with each look until then."""

from collections.abc import Collection

from django.db.models import Count, Q

from evaluation.models.runs import Run, Verdict

NONE = {"all": 0, "unparsed": 0, "no_verdict": 0}


def verdict_counts(runs: Collection[Run]) -> dict[int, dict[str, int]]:
    """Return the counts by run id: the stored ones, and one query for the runs without."""
    stored = {run.pk: run.verdict_counts for run in runs if run.verdict_counts is not None}
    return stored | verdicts_counted([run.pk for run in runs if run.pk not in stored])


def verdicts_counted(run_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """Count the verdicts of these runs; no query for none."""
    if not run_ids:
        return {}
    counts = (
        Verdict.objects.filter(run__in=run_ids)
        .order_by()
        .values("run")
        .annotate(
            all=Count("id"),
            unparsed=Count("id", filter=Q(state=Verdict.State.UNPARSED)),
            no_verdict=Count("id", filter=~Q(state=Verdict.State.READ)),
        )
    )
    found = {run: dict(zip(NONE, numbers, strict=True)) for run, *numbers in counts.values_list("run", *NONE)}
    return {pk: found.get(pk, NONE) for pk in run_ids}
