"""A judge's statistics on one criterion, each with its interval or the reason why there is none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alignment.statistics.agreement import Confusion, formulas
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import (
    RESAMPLES,
    bootstrap_estimate,
    half_of_each,
    mover_mean,
    proportion,
    resample_chats,
)

NO_PAIR = "no chat with both a human answer and a verdict"
NO_HUMAN_TRUE = "no chat that people answered True"
NO_HUMAN_FALSE = "no chat that people answered False"
NO_JUDGE_TRUE = "no chat that the judge answered True"
NO_TRUE = "neither people nor the judge answered True"
ONE_SIDED = "people or the judge gave one answer only"
SAME_SINGLE_ANSWER = "people and the judge gave the same single answer"
AVERAGED = "averaged over raters: no interval"

NAMES = (
    "accuracy",
    "balanced_accuracy",
    "tpr",
    "tnr",
    "precision",
    "f1",
    "mcc",
    "kappa",
    "gwet_ac1",
    "pabak",
)


@dataclass(frozen=True)
class Bootstrapped:
    """A statistic whose interval comes from resampled chats."""

    statistic: Callable[[np.ndarray[Any, Any]], formulas.Floats]
    undefined: str


BOOTSTRAPPED = {
    "f1": Bootstrapped(formulas.f1, NO_TRUE),
    "mcc": Bootstrapped(formulas.mcc, ONE_SIDED),
    "kappa": Bootstrapped(lambda sums: formulas.cohen_kappa(formulas.tables(sums)), SAME_SINGLE_ANSWER),
    "gwet_ac1": Bootstrapped(lambda sums: formulas.gwet_ac1(formulas.tables(sums)), NO_PAIR),
}


def judge_statistics(table: Confusion, *, seed: int, resamples: int = RESAMPLES) -> dict[str, Estimate]:
    """Every statistic of the report by name, in the report's order.

    Parameters
    ----------
    table : people against the judge; every chat is one pair.
    seed, resamples : of the chat bootstrap for F1, MCC, kappa and AC1.

    Returns
    -------
    dict of Estimate : Wilson for shares, MOVER for balanced accuracy, 2 x accuracy - 1 for PABAK. Kappa with
        one constant side is 0 with a flag and no interval, AC1 of one class 1 without an interval.

    Examples
    --------
    >>> found = judge_statistics(Confusion(95, 0, 5, 0), seed=1)
    >>> found["kappa"].value, found["kappa"].flag
    (0.0, 'the judge gave one answer only')
    """
    accuracy = proportion(table.tp + table.tn, table.n, reason=NO_PAIR)
    found = {
        "accuracy": accuracy,
        **judge_rates(table),
        "precision": proportion(table.tp, table.judge_true, reason=NO_JUDGE_TRUE),
        **_bootstrapped(table, seed=seed, resamples=resamples),
        "pabak": doubled(accuracy),
    }
    return {name: found[name] for name in NAMES}


def judge_rates(table: Confusion) -> dict[str, Estimate]:
    """TPR, TNR and balanced accuracy with their intervals: what needs no resampling.

    >>> judge_rates(Confusion(3, 1, 0, 4))["balanced_accuracy"].value
    0.875
    """
    tpr = proportion(table.tp, table.human_true, reason=NO_HUMAN_TRUE)
    tnr = proportion(table.tn, table.human_false, reason=NO_HUMAN_FALSE)
    return {"balanced_accuracy": mover_mean(tpr, tnr), "tpr": tpr, "tnr": tnr}


def doubled(accuracy: Estimate) -> Estimate:
    """PABAK: twice the accuracy less 1, bounds likewise."""
    if accuracy.value is None or accuracy.interval is None:
        return Estimate(None, reason=accuracy.reason)
    interval = Interval(2 * accuracy.interval.low - 1, 2 * accuracy.interval.high - 1)
    return Estimate(2 * accuracy.value - 1, interval)


def _bootstrapped(table: Confusion, *, seed: int, resamples: int) -> dict[str, Estimate]:
    drawn = resample_chats(np.eye(4), table.cells, seed=seed, resamples=resamples, pseudo=half_of_each())
    found = {}
    for name, one in BOOTSTRAPPED.items():
        reason = one.undefined if table.n else NO_PAIR
        fixed = constant_estimate(name, table)
        found[name] = fixed or bootstrap_estimate(getattr(table, name), one.statistic, drawn, reason=reason)
    return found


def constant_estimate(name: str, table: Confusion) -> Estimate | None:
    """The two values that hold by construction, whatever chats were drawn."""
    if name == "gwet_ac1" and table.constant_human and table.constant_judge and table.gwet_ac1 == 1:
        return Estimate(1.0, reason=SAME_SINGLE_ANSWER)
    if name == "kappa" and table.kappa == 0 and (table.constant_human or table.constant_judge):
        flag = " and ".join(
            who for who, one in (("people", table.constant_human), ("the judge", table.constant_judge)) if one
        )
        return Estimate(0.0, reason=ONE_SIDED, flag=f"{flag} gave one answer only")
    return None


def averaged_statistics(
    tables: Mapping[str, Confusion], *, names: Sequence[str] = NAMES
) -> dict[str, Estimate]:
    """Statistics against each rater, then the mean over the raters for whom each is defined.

    Parameters
    ----------
    tables : each rater against the judge, by rater.
    names : the statistics to compute.

    Returns
    -------
    dict of Estimate : without intervals. Undefined for the reason given when it is so for every rater.

    Examples
    --------
    >>> averaged_statistics({"a": Confusion(3, 1, 0, 0), "b": Confusion(2, 2, 0, 4)})["accuracy"].value
    0.75
    """
    compared = [table for table in tables.values() if table.n]
    found = {}
    for name in names:
        values = [value for table in compared if (value := getattr(table, name)) is not None]
        reason = "undefined against every rater" if compared else NO_PAIR
        found[name] = (
            Estimate(sum(values) / len(values), reason=AVERAGED) if values else Estimate(None, reason=reason)
        )
    return found
