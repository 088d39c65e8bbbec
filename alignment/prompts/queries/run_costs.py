"""What a criterion's verdicts cost, a chat: counted once for each run, because it never changes."""

from collections.abc import Collection
from typing import Any

from alignment.comparison.queries.cached_documents import (
    hash_of,
    is_storing,
    keep_documents,
    known_bodies,
    stored_ids,
)
from alignment.models.reports import Report
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run
from evaluation.runs.queries.spending import group_costs


def costs_per_chat(pairs: Collection[tuple[Run, int]]) -> dict[tuple[int, int], float]:
    """Return dollars a chat by run id and criterion id; criteria of one call share its cost equally.

    Answers that were reused count with what they cost when they were asked. Pairs without recorded calls or
    with an unknown price are missing. Two queries, and one more for runs that were not counted yet.
    """
    bodies = _bodies({run.pk: run for run, _ in pairs})
    judges = {run.judge_id for run, _ in pairs}
    prompts = list(JudgePrompt.objects.filter(judge__in=judges).values_list("judge", "group", "criterion"))
    sizes: dict[tuple[int, int], int] = {}
    groups: dict[tuple[int, int], int] = {}
    for judge, group, criterion in prompts:
        sizes[judge, group] = sizes.get((judge, group), 0) + 1
        groups[judge, criterion] = group
    costs = {}
    for run, criterion in pairs:
        group = groups.get((run.judge_id, criterion), -1)
        counted = bodies[run.pk].get(str(group))
        if counted and counted["units"] and counted["usd"] is not None:
            costs[run.pk, criterion] = counted["usd"] / counted["units"] / sizes[run.judge_id, group]
    return costs


def run_costs_store(run: Run) -> None:
    """Count the costs of a finished run; inside `documents_stored` store them for all processes."""
    _bodies({run.pk: run})


def _bodies(runs: dict[int, Run]) -> dict[int, dict[str, Any]]:
    pins = {pk: hash_of([*_what(run), run.finished_at]) for pk, run in runs.items()}
    known = known_bodies(set(pins.values()))
    if missing := [pk for pk, pin in pins.items() if pin not in known]:
        rows = [_row(runs[pk], pins[pk]) for pk in missing]
        older = stored_ids(rows) if is_storing() else []
        costs = group_costs(missing)
        for row, pk in zip(rows, missing, strict=True):
            row.body = {
                str(group): {"usd": None if one.cost is None else float(one.cost), "units": one.units}
                for group, one in costs.get(pk, {}).items()
            }
        keep_documents(rows, older=older)
        known |= {row.pin: row.body for row in rows}
    return {pk: known[pin] for pk, pin in pins.items()}


def _row(run: Run, pin: str) -> Report:
    kind = Report.Kind.COSTS
    return Report(kind=kind, run=run, against="", pin=pin, subject=hash_of(_what(run)), policy=0)


def _what(run: Run) -> list[Any]:
    return [Report.Kind.COSTS.value, run.pk]
