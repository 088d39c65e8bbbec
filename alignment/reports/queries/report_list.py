"""The list of reports: runs with the status of their criteria, and chat sets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse

from alignment.comparison.queries.cached_documents import subject_of, version_numbers
from alignment.comparison.queries.filters import chosen_filter
from alignment.comparison.queries.run_choice import RunChoice, Version, versions_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.queries.headline import status_counts
from alignment.reports.queries.reports import report_pin
from evaluation.models.runs import FINISHED, Run
from evaluation.runs.queries.runs import KINDS, RunFilter, run_list, run_rows
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import reads_holdout
from labeling.people.queries.workspace import subjective_in_session_score

SHOWN = 100
STATUSES = (  # status, css class of its chip, words
    ("aligned", "aligned", "aligned"),
    ("not_aligned", "not", "not aligned"),
    ("not_enough_labels", "few", "too few labels"),
    ("raters_disagree", "apart", "raters disagree"),
    ("directional", "dir", "directional"),
)
NOT_COMPUTED = "Not computed yet"
IN_PROGRESS = "Run in progress"
NO_CRITERION = "No criterion was judged"
KIND = "evaluations"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The chips of a run: css class and words in the order of STATUSES; `reason` says why it has none.

    `changed`: answers, texts or rules have changed since the criteria were counted.
    """

    chips: tuple[tuple[str, str], ...] = ()
    changed: bool = False
    reason: str = ""


def report_list(choice: RunChoice, *, user: User | AnonymousUser, kind: str = KIND) -> dict[str, Any]:
    """Return the template context of the reports page, in a constant number of queries.

    `kind` : one of runs.KINDS; the runs of regression tests are listed apart.

    Only users who can see the holdout get the status of each run's criteria. Others find it in each report.
    """
    # A plan's night has few labels; its report opens from the run and from the plan.
    listed = Q(chat_set=None) | Q(chat_set__in=ChatSet.objects.listed(also=choice.set_id))
    found = run_list(RunFilter(set=choice.set, engine=choice.engine, purpose=kind)).filter(listed)
    newest = list(found[:SHOWN])
    versions = versions_of(newest)
    runs = [run for run in newest if choice.fits(run, versions)]
    # What test runs show is on the page of their test.
    statuses = run_statuses(runs) if reads_holdout(user=user) and kind == KIND else {}
    sets = list(_sets(choice))
    return {
        "runs": _run_rows(runs, versions, statuses),
        "shows_status": bool(statuses),
        "filters": [*_filters(choice, sets, versions.values()), {"name": "purpose", "hidden": kind}],
        "kind": kind,
        "kinds": [(key, KINDS[key][0]) for key in (KIND, "tests")],
        "narrowed": choice.narrows,
        "chosen_set": choice.set_id,
        "sets": [_set_row(row) for row in sets],
    }


def run_statuses(runs: Iterable[Run]) -> dict[int, RunStatus]:
    """Return the statuses by run id, from each run's latest stored report on all chats; three queries.

    It computes no report. NB: only for users who can see the holdout.
    """
    scopes = {run.pk: Scope(run.chat_set, run) for run in runs}
    subjects = [subject_of(scope, Report.Kind.REPORT) for scope in scopes.values()]
    newest = Report.objects.filter(subject__in=subjects).values("subject").annotate(newest=Max("pk"))
    rows = Report.objects.filter(pk__in=newest.values("newest"))
    stored = {run: (pin, body) for run, pin, body in rows.values_list("run_id", "pin", "body__criteria")}
    pins = current_pins(scopes, {run: [entry["key"] for entry in body] for run, (_, body) in stored.items()})
    known = {run: _status(body, changed=pin != pins[run]) for run, (pin, body) in stored.items()}
    return {run: known.get(run) or _without_report(scope) for run, scope in scopes.items()}


def current_pins(scopes: Mapping[int, Scope], keys: Mapping[int, Collection[str]]) -> dict[int, str]:
    """Return the current pin of a report on each scope, whose criteria have these keys; three queries.

    NB: the scopes must be of finished runs, which keep their criteria.
    """
    every_key = {key for own in keys.values() for key in own}
    criteria = Criterion.objects.filter(key__in=every_key).select_related("dimension")
    rows = list(criteria.order_by("rubric", "dimension__position", "position"))
    numbers, subjective = version_numbers(rows), subjective_in_session_score()
    return {
        run: report_pin(
            scopes[run],
            criteria=[row for row in rows if row.key in own],
            numbers=numbers,
            subjective=subjective,
        )
        for run, own in keys.items()
    }


def _status(criteria: Iterable[Mapping[str, Any]], *, changed: bool) -> RunStatus:
    counts = status_counts(criteria)
    chips = tuple((css, f"{counts[name]} {words}") for name, css, words in STATUSES if counts[name])
    return RunStatus(chips, changed, reason="" if chips else NO_CRITERION)


def _without_report(scope: Scope) -> RunStatus:
    ended = scope.run is not None and scope.run.finished_at is not None
    return RunStatus(reason=NOT_COMPUTED if ended else IN_PROGRESS)


def _run_rows(
    runs: Sequence[Run], versions: Mapping[int, Version], statuses: Mapping[int, RunStatus]
) -> list[dict[str, Any]]:
    words = {run.pk: versions[run.judge_id].words for run in runs}
    return [
        {
            "row": row,
            "version": words[row.id],
            "status": statuses.get(row.id),
            "url": reverse("alignment:report_run", args=[row.id]),
        }
        for row in run_rows(runs)
    ]


def _sets(choice: RunChoice) -> QuerySet[Any]:
    """Return the listed sets and the chosen one by name.

    With their numbers of chats, of holdout chats, and of finished runs.
    """
    return (
        ChatSet.objects.listed(also=choice.set_id)
        .select_related("rubric")
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
    known = {version.key: version.words for version in versions}
    if choice.version:
        known.setdefault(choice.version, choice.version)
    return [
        chosen_filter("set", choice.set, [(str(row.pk), row.name) for row in sets]),
        chosen_filter("engine", choice.engine),
        chosen_filter("version", choice.version, list(known.items())),
    ]


def _finished_runs() -> QuerySet[Run, int]:
    """Return the number of a set's runs that a league can compare; null without one."""
    runs = run_list(among=Run.objects.filter(chat_set=OuterRef("pk"), state__in=FINISHED)).order_by()
    return runs.values("chat_set").annotate(n=Count("pk")).values_list("n", flat=True)
