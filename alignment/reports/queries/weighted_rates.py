"""A judge's rates where labels were drawn by verdict: those of its report, weighted to all chats judged."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Exists, F, OuterRef, Q

from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.disclosure import CONCEALED
from alignment.comparison.queries.inclusion_probabilities import unequal_draws
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.criterion import criterion_entry
from alignment.reports.core.status import Decision, Status
from alignment.reports.queries.reports import POLICY, SEED
from alignment.statistics.estimates import Estimate, Interval
from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Label
from labeling.models.rubric import Criterion

RATES = ("balanced_accuracy", "tpr", "tnr")
Rates = dict[str, Any]
_NOTHING = {"value": None, "low": None, "high": None, "reason": CONCEALED}
# Unweighted they would flatter the judge; weighted they would tell of held-out chats.
KEPT_BACK: Rates = {
    "chats": 0,
    "rates": dict.fromkeys(RATES, _NOTHING),
    "status": None,
    "reasons": [CONCEALED],
}


def drawn_rates(pairs: Collection[tuple[Run, Criterion]]) -> dict[tuple[int, int, str], Rates]:
    """By run, criterion id and split, where labels were drawn by verdict; as JSON that can be kept.

    `chats` were drawn, `rates` are balanced accuracy, TPR and TNR; `status` and `reasons`. One query where
    nothing was drawn, else some for each run, criterion and split with such labels.
    """
    found = {}
    for run, criterion, split in _with_draws(pairs):
        data = report_data(Scope(run.chat_set, run, split, only=criterion.key))
        entry = criterion_entry(data, data.criteria[0], policy=POLICY, seed=SEED)
        rates = {name: entry[name] | {"reason": _reason(entry, name)} for name in RATES}
        decided = {name: entry[name] for name in ("status", "reasons")}
        found[run.pk, criterion.pk, split] = {"chats": entry["drawn_by_verdict"], "rates": rates, **decided}
    return found


def estimates_of(kept: Rates) -> dict[str, Estimate]:
    """The rates by name."""
    return {name: _estimate(told) for name, told in kept["rates"].items()}


def decision_of(kept: Rates) -> Decision:
    """What the report decides; nothing where the rates are kept back."""
    return Decision(Status(kept["status"]) if kept["status"] else None, tuple(kept["reasons"]))


def _with_draws(pairs: Collection[tuple[Run, Criterion]]) -> list[tuple[Run, Criterion, str]]:
    """Where a labelled chat is in a set that was drawn by verdict."""
    drawn = unequal_draws()
    if not drawn:
        return []
    asked = {(run.pk, criterion.pk): (run, criterion) for run, criterion in pairs}
    chosen = Q()
    for run, criterion in asked:
        chosen |= Q(run=run, criterion=criterion)
    same = {"chat": OuterRef("chat"), "criterion": OuterRef("criterion")}
    labels = Label.objects.counted().filter(chat__memberships__chat_set__in=drawn, **same)
    rows = Verdict.objects.filter(chosen, Exists(labels), run__run_chats__chat=F("chat")).order_by()
    places = rows.values_list("run_id", "criterion_id", "run__run_chats__split").distinct()
    return [(*asked[run, criterion], split) for run, criterion, split in places]


def _reason(entry: Mapping[str, Any], name: str) -> str:
    undefined = entry["undefined"]
    return str(undefined.get(name) or undefined.get(f"{name}.interval", ""))


def _estimate(told: Mapping[str, Any]) -> Estimate:
    interval = None if told["low"] is None else Interval(told["low"], told["high"])
    more = {name: told[name] for name in ("flag", "dropped") if name in told}
    return Estimate(told["value"], interval, told["reason"], **more)
