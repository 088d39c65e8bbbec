"""A judge's rates as in its report, for labels sampled by verdict and for clusters of chats."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Exists, F, OuterRef, Q

from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.disclosure import SMALL_COUNTS_HIDDEN
from alignment.comparison.queries.inclusion_probabilities import unequal_samples
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.criterion import criterion_entry
from alignment.reports.core.status import Decision, Status
from alignment.reports.queries.reports import POLICY, SEED
from alignment.statistics.estimates import Estimate, Interval
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.labels import Label
from labeling.models.rubric import Criterion

RATES = ("balanced_accuracy", "tpr", "tnr")
Rates = dict[str, Any]
_NOTHING = {"value": None, "low": None, "high": None, "reason": SMALL_COUNTS_HIDDEN}
# Unweighted rates overstate the judge; weighted ones would reveal answers on holdout chats.
WITHHELD: Rates = {
    "chats": 0,
    "rates": dict.fromkeys(RATES, _NOTHING),
    "status": None,
    "reasons": [SMALL_COUNTS_HIDDEN],
}


def weighted_rates(pairs: Collection[tuple[Run, Criterion]]) -> dict[tuple[int, int, str], Rates]:
    """Return rates by run, criterion id and split; as JSON.

    Covers labels that were sampled by verdict, and chats of clusters: a table does not give these rates.
    `chats` is the number sampled, `rates` has balanced accuracy, TPR and TNR, beside `status` and `reasons`.
    Takes two queries without such labels and chats, else some for each run, criterion and split with them.
    """
    weighted = {}
    for run, criterion, split in dict.fromkeys([*_with_draws(pairs), *_with_clusters(pairs)]):
        data = report_data(Scope(run.chat_set, run, split, only=criterion.key))
        entry = criterion_entry(data, data.criteria[0], policy=POLICY, seed=SEED)
        rates = {name: entry[name] | {"reason": _reason(entry, name)} for name in RATES}
        decided = {name: entry[name] for name in ("status", "reasons")}
        weighted[run.pk, criterion.pk, split] = {
            "chats": entry["drawn_by_verdict"],
            "rates": rates,
            **decided,
        }
    return weighted


def estimates_of(kept: Rates) -> dict[str, Estimate]:
    """Return the rates by name."""
    return {name: _estimate(rate) for name, rate in kept["rates"].items()}


def decision_of(kept: Rates) -> Decision:
    """Return the report's decision; without a status if the rates are withheld."""
    return Decision(Status(kept["status"]) if kept["status"] else None, tuple(kept["reasons"]))


def _with_draws(pairs: Collection[tuple[Run, Criterion]]) -> list[tuple[Run, Criterion, str]]:
    """Return the runs, criteria and splits with a labelled chat that was sampled by verdict."""
    samples = unequal_samples()
    if not samples:
        return []
    by_id = {(run.pk, criterion.pk): (run, criterion) for run, criterion in pairs}
    chosen = Q()
    for run, criterion in by_id:
        chosen |= Q(run=run, criterion=criterion)
    same = {"chat": OuterRef("chat"), "criterion": OuterRef("criterion")}
    labels = Label.objects.counted().filter(chat__memberships__chat_set__in=samples, **same)
    rows = Verdict.objects.filter(chosen, Exists(labels), run__run_chats__chat=F("chat")).order_by()
    places = rows.values_list("run_id", "criterion_id", "run__run_chats__split").distinct()
    return [(*by_id[run, criterion], split) for run, criterion, split in places]


def _with_clusters(pairs: Collection[tuple[Run, Criterion]]) -> list[tuple[Run, Criterion, str]]:
    """Return the runs, criteria and splits with a chat of a cluster."""
    runs = {run.pk for run, _ in pairs}
    rows = RunChat.objects.filter(run__in=runs).exclude(chat__cluster="").order_by()
    splits: dict[int, list[str]] = {}
    for run, split in rows.values_list("run_id", "split").distinct():
        splits.setdefault(run, []).append(split)
    return [(run, criterion, split) for run, criterion in pairs for split in splits.get(run.pk, [])]


def _reason(entry: Mapping[str, Any], name: str) -> str:
    undefined = entry["undefined"]
    return str(undefined.get(name) or undefined.get(f"{name}.interval", ""))


def _estimate(rate: Mapping[str, Any]) -> Estimate:
    interval = None if rate["low"] is None else Interval(rate["low"], rate["high"])
    more = {name: rate[name] for name in ("flag", "dropped") if name in rate}
    return Estimate(rate["value"], interval, rate["reason"], **more)
