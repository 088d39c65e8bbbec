"""The figures that a lead reads in stored reports, by criterion and prompt text."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db.models import Max

from alignment.comparison.queries.cached_documents import subject_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.prompts.queries.version_metrics import VersionMetrics, recipe_of
from alignment.reports.core.status import Decision, HumanLabels, Status
from alignment.reports.queries.report_list import current_pins
from alignment.reports.queries.reports import BODY_VERSION
from alignment.reports.queries.weighted_rates import RATES
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, Interval
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import EVALUATIONS, FINISHED, Run
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion

Key = tuple[int, str]  # criterion id, content hash of the prompt


def report_figures(
    criteria: Collection[Criterion], *, contents: Collection[str]
) -> dict[Key, tuple[VersionMetrics, ...]]:
    """Return by criterion and prompt the figures of its newest stored report on each set, newest first.

    Counts only reports of whole runs. Nothing is computed; constant number of queries.
    NB: only for users who can see the holdout.
    """
    prompts = JudgePrompt.objects.filter(
        criterion__in=criteria, prompt_version__content_hash__in=contents
    ).values_list("judge_id", "criterion_id", "prompt_version__content_hash", "group")
    judged: dict[int, list[tuple[int, str, int]]] = {}
    for judge, criterion, content, group in prompts:
        judged.setdefault(judge, []).append((criterion, content, group))
    chosen: dict[tuple[int, str, int | None], tuple[int, int]] = {}  # run and group of the prompt
    for run in _with_report(judged):
        for criterion, content, group in judged[run.judge_id]:
            chosen.setdefault((criterion, content, run.chat_set_id), (run.pk, group))
    runs = Run.objects.select_related("judge", "chat_set").in_bulk({pk for pk, _ in chosen.values()})
    entries, outdated = _entries(runs)
    by_id = {row.pk: row for row in criteria}
    figures: dict[Key, tuple[VersionMetrics, ...]] = {}
    for (criterion, content, _), (pk, group) in chosen.items():
        entry = entries.get(pk, {}).get(by_id[criterion].key)
        if entry is not None:
            recipe = recipe_of(runs[pk], group)
            one = _metrics(entry, runs[pk], by_id[criterion], recipe, outdated=pk in outdated)
            figures[criterion, content] = (*figures.get((criterion, content), ()), one)
    return figures


def _with_report(judges: Iterable[int]) -> list[Run]:
    """Return the finished runs of these judges whose whole report is stored, without their judges.

    Newest first; runs over part of a set come last.
    """
    ended = Run.objects.filter(
        judge__in=list(judges),
        chat_set__in=ChatSet.objects.listed(),  # a night's few labels say little of the judge
        state__in=FINISHED,
        purpose__in=EVALUATIONS,
    )
    rows = ended.select_related("chat_set").only("judge", "options", "chat_set__name")
    subjects = {_subject(run): run for run in rows if not run.options.get("split")}
    stored = Report.objects.filter(subject__in=list(subjects)).values_list("subject", flat=True)
    runs = [subjects[subject] for subject in set(stored)]
    return sorted(runs, key=lambda run: (run.options.get("limit") is None, run.pk), reverse=True)


def _subject(run: Run) -> str:
    return subject_of(Scope(run.chat_set, run), Report.Kind.REPORT)


def _entries(runs: Mapping[int, Run]) -> tuple[dict[int, dict[str, Any]], set[int]]:
    """Return the criteria of each run's newest stored report by key, and the runs whose report is old."""
    subjects = [_subject(run) for run in runs.values()]
    newest = Report.objects.filter(subject__in=subjects).values("subject").annotate(newest=Max("pk"))
    rows = Report.objects.filter(pk__in=newest.values("newest"), body__pinned__form=BODY_VERSION)
    stored = {run: (pin, body) for run, pin, body in rows.values_list("run_id", "pin", "body__criteria")}
    entries = {run: {entry["key"]: entry for entry in body} for run, (_, body) in stored.items()}
    scopes = {run: Scope(runs[run].chat_set, runs[run]) for run in entries}
    pins = current_pins(scopes, {run: list(own) for run, own in entries.items()})
    return entries, {run for run, (pin, _) in stored.items() if pin != pins[run]}


def _metrics(
    entry: Mapping[str, Any], run: Run, criterion: Criterion, recipe: str, *, outdated: bool
) -> VersionMetrics:
    cells, unresolved = entry["confusion"], entry["unresolved"]
    unjudged = entry["unjudged"]
    labelled = entry["n"] + unresolved + entry["not_applicable"] + unjudged["true"] + unjudged["false"]
    status = Status(entry["status"]) if entry["status"] else None
    return VersionMetrics(
        run=run,
        criterion=criterion,
        split="",
        table=Confusion(cells["tp"], cells["fn"], cells["fp"], cells["tn"]),
        labels=HumanLabels(labelled, unresolved, entry["human"]),
        unjudged=(unjudged["true"], unjudged["false"]),
        recipe=recipe,
        sampled=entry["drawn_by_verdict"],
        rates={name: _estimate(entry, name) for name in RATES},
        reported_decision=Decision(status, tuple(entry["reasons"]), tuple(entry["cautions"])),
        outdated=outdated,
    )


def _estimate(entry: Mapping[str, Any], name: str) -> Estimate:
    rate, undefined = entry[name], entry["undefined"]
    interval = None if rate["low"] is None else Interval(rate["low"], rate["high"])
    reason = undefined.get(name) or undefined.get(f"{name}.interval") or ""
    return Estimate(rate["value"], interval, reason)
