"""How many criteria of each run stand where, read from the reports that are kept; nothing is computed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from alignment.comparison.queries.cached_documents import subject_of, version_numbers
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.queries.headline import counted
from alignment.reports.queries.reports import report_pin
from evaluation.models.runs import Run
from labeling.models.rubric import Criterion

PARTS = (  # status, css class of its chip, words
    ("aligned", "aligned", "aligned"),
    ("not_aligned", "not", "not aligned"),
    ("not_enough_labels", "few", "too few labels"),
    ("directional", "dir", "directional"),
)
NOT_COMPUTED = "Not computed yet: open the report"
GOES_ON = "The run goes on"
NO_CRITERION = "No criterion was judged"


@dataclass(frozen=True, slots=True)
class Standing:
    """The chips of a run: css class and words, in the order of PARTS; `why` there are none.

    `changed`: answers, texts or rules are no longer those that were counted.
    """

    parts: tuple[tuple[str, str], ...] = ()
    changed: bool = False
    why: str = ""


def run_standings(runs: Iterable[Run]) -> dict[int, Standing]:
    """By run id, of each run's newest report on all its chats against the consensus; three queries.

    NB: for those who read the holdout; what others may be told of it is not looked at here.
    """
    scopes = {run.pk: Scope(run.chat_set, run) for run in runs}
    subjects = [subject_of(scope, Report.Kind.REPORT) for scope in scopes.values()]
    newest = Report.objects.filter(subject__in=subjects).values("subject").annotate(newest=Max("pk"))
    rows = Report.objects.filter(pk__in=newest.values("newest"))
    kept = {run: (pin, body) for run, pin, body in rows.values_list("run_id", "pin", "body__criteria")}
    pins = _pins_now(scopes, {run: [entry["key"] for entry in body] for run, (_, body) in kept.items()})
    found = {run: _standing(body, changed=pin != pins[run]) for run, (pin, body) in kept.items()}
    return {run: found.get(run) or _unknown(scope) for run, scope in scopes.items()}


def _pins_now(scopes: Mapping[int, Scope], keys: Mapping[int, Collection[str]]) -> dict[int, str]:
    """The pin of each run's report today; a finished run is asked no other criteria than it was."""
    named = {key for own in keys.values() for key in own}
    criteria = Criterion.objects.filter(key__in=named).select_related("dimension")
    rows = list(criteria.order_by("rubric", "dimension__position", "position"))
    numbers = version_numbers(rows)
    return {
        run: report_pin(scopes[run], criteria=[row for row in rows if row.key in own], numbers=numbers)
        for run, own in keys.items()
    }


def _standing(entries: Iterable[Mapping[str, Any]], *, changed: bool) -> Standing:
    number = counted(entries)
    parts = tuple((css, f"{number[name]} {words}") for name, css, words in PARTS if number[name])
    return Standing(parts, changed, why="" if parts else NO_CRITERION)


def _unknown(scope: Scope) -> Standing:
    ended = scope.run is not None and scope.run.finished_at is not None
    return Standing(why=NOT_COMPUTED if ended else GOES_ON)
