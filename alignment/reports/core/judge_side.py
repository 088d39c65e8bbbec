"""A judge's statistics on one criterion, each with an interval or the reason why it has none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alignment.reports.core.registry import measures
from alignment.statistics.agreement import Confusion, formulas
from alignment.statistics.estimates import Estimate, Interval
from alignment.statistics.intervals import (
    RESAMPLES,
    bootstrap_estimate,
    half_of_each,
    modified_wilson,
    mover_mean,
    proportion,
    resample_chats,
)
from alignment.statistics.macro_rates import NO_HUMAN_FALSE, NO_HUMAN_TRUE

NO_PAIR = "no chat with both a human answer and a verdict"
NO_JUDGE_TRUE = "no chat with the verdict True"
NO_TRUE = "neither raters nor judge answered True"
ONE_SIDED = "raters or judge gave one answer only"
SAME_SINGLE_ANSWER = "raters and judge gave the same single answer"
AVERAGED = "averaged over raters, without an interval"

PREVALENCE = "prevalence"
MOST_FREQUENT = "most_frequent_accuracy"
# The judge's statistics; the other two describe the human answers.
NAMES = tuple(name for name in measures("") if name not in (PREVALENCE, MOST_FREQUENT))


@dataclass(frozen=True)
class BootstrapStatistic:
    """A statistic whose interval comes from resampled chats, and why it is undefined."""

    statistic: Callable[[np.ndarray[Any, Any]], formulas.Floats]
    undefined: str


BOOTSTRAPPED = {
    "f1": BootstrapStatistic(formulas.f1, NO_TRUE),
    "mcc": BootstrapStatistic(formulas.mcc, ONE_SIDED),
    "kappa": BootstrapStatistic(lambda sums: formulas.cohen_kappa(formulas.tables(sums)), SAME_SINGLE_ANSWER),
    "gwet_ac1": BootstrapStatistic(lambda sums: formulas.gwet_ac1(formulas.tables(sums)), NO_PAIR),
}


def judge_statistics(table: Confusion, *, seed: int, resamples: int = RESAMPLES) -> dict[str, Estimate]:
    """Compute every statistic of the judge, by name in the order of the JSON.

    Parameters
    ----------
    table : human answers against verdicts, one pair per chat.
    seed, resamples : settings of the chat bootstrap for F1, MCC, kappa and AC1.

    Returns
    -------
    dict of Estimate : Wilson intervals for shares, modified for precision; MOVER for balanced accuracy; 2 ×
        accuracy - 1 for PABAK.
        If raters or judge gave one answer only, kappa is 0 with a flag and without an interval. If both gave
        the same single answer, AC1 is 1 without an interval.

    Examples
    --------
    >>> kappa = judge_statistics(Confusion(95, 0, 5, 0), seed=1)["kappa"]
    >>> kappa.value, kappa.flag
    (0.0, 'the judge gave one answer only')
    """
    accuracy = proportion(table.tp + table.tn, table.n, reason=NO_PAIR)
    estimates = {
        "accuracy": accuracy,
        **judge_rates(table),
        "precision": precision_of(table),
        **_bootstrapped(table, seed=seed, resamples=resamples),
        "pabak": doubled(accuracy),
    }
    return {name: estimates[name] for name in NAMES}


def precision_of(table: Confusion) -> Estimate:
    """Return precision. Its denominator is random and its value often almost 1, so Wilson is modified.

    >>> precision_of(Confusion(25, 0, 1, 0)).interval.high > precision_of(Confusion(25, 5, 2, 0)).value
    True
    """
    if not table.judge_true:
        return Estimate(None, reason=NO_JUDGE_TRUE)
    return Estimate(table.precision, modified_wilson(table.tp, table.judge_true))


def judge_rates(table: Confusion) -> dict[str, Estimate]:
    """Compute TPR, TNR and balanced accuracy with their intervals, which need no resampling.

    >>> judge_rates(Confusion(3, 1, 0, 4))["balanced_accuracy"].value
    0.875
    """
    tpr = proportion(table.tp, table.human_true, reason=NO_HUMAN_TRUE)
    tnr = proportion(table.tn, table.human_false, reason=NO_HUMAN_FALSE)
    return {"balanced_accuracy": mover_mean(tpr, tnr), "tpr": tpr, "tnr": tnr}


def doubled(accuracy: Estimate) -> Estimate:
    """Return PABAK: twice the accuracy minus 1, for value and bounds."""
    if accuracy.value is None or accuracy.interval is None:
        return Estimate(None, reason=accuracy.reason)
    interval = Interval(2 * accuracy.interval.low - 1, 2 * accuracy.interval.high - 1)
    return Estimate(2 * accuracy.value - 1, interval)


def _bootstrapped(table: Confusion, *, seed: int, resamples: int) -> dict[str, Estimate]:
    resampled = resample_chats(np.eye(4), table.cells, seed=seed, resamples=resamples, pseudo=half_of_each())
    estimates = {}
    for name, one in BOOTSTRAPPED.items():
        reason = one.undefined if table.n else NO_PAIR
        estimates[name] = constant_estimate(name, table) or bootstrap_estimate(
            getattr(table, name), one.statistic, resampled, reason=reason
        )
    return estimates


def constant_estimate(name: str, table: Confusion) -> Estimate | None:
    """Return kappa or AC1 if one-sided answers fix its value, else None."""
    if name == "gwet_ac1" and table.constant_human and table.constant_judge and table.gwet_ac1 == 1:
        return Estimate(1.0, reason=SAME_SINGLE_ANSWER)
    if name == "kappa" and table.kappa == 0 and (table.constant_human or table.constant_judge):
        flag = " and ".join(
            who for who, one in (("raters", table.constant_human), ("the judge", table.constant_judge)) if one
        )
        return Estimate(0.0, reason=ONE_SIDED, flag=f"{flag} gave one answer only")
    return None


def averaged_statistics(
    tables: Mapping[str, Confusion], *, names: Sequence[str] = NAMES
) -> dict[str, Estimate]:
    """Compute statistics against each rater, averaged over the raters for whom they are defined.

    Parameters
    ----------
    tables : each rater against the judge, by rater.
    names : the statistics to compute.

    Returns
    -------
    dict of Estimate : values without intervals. A value is undefined if it is undefined for every rater.

    Examples
    --------
    >>> averaged_statistics({"a": Confusion(3, 1, 0, 0), "b": Confusion(2, 2, 0, 4)})["accuracy"].value
    0.75
    """
    compared = [table for table in tables.values() if table.n]
    estimates = {}
    for name in names:
        values = [value for table in compared if (value := getattr(table, name)) is not None]
        reason = "undefined against every rater" if compared else NO_PAIR
        estimates[name] = (
            Estimate(sum(values) / len(values), reason=AVERAGED) if values else Estimate(None, reason=reason)
        )
    return estimates
