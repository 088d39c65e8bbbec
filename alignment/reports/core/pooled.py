"""Agreement over the criteria of a dimension, of a tier, or over all criteria."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode, ReportData
from alignment.comparison.core.tally import tally
from alignment.reports.core.judge_side import AVERAGED, NO_PAIR
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.macro_rates import ClassCounts, macro_rates, too_few

NO_RUN = "no run: human labels only"
NOWHERE = "undefined against every rater"
POOLED = ("accuracy", "balanced_accuracy", "tpr", "tnr")


def pooled(data: ReportData, criteria: Sequence[CriterionData]) -> dict[str, Any]:
    """Compute `n`, accuracy, and the means over criteria of balanced accuracy, TPR and TNR.

    Parameters
    ----------
    data : the report's data.
    criteria : the criteria of the group.

    Returns
    -------
    dict : `n` counts the compared pairs of chat and criterion, accuracy is over all of them. The means are
        those of `macro_rates`; `criteria_averaged` counts the criteria with both human answers, and
        `criteria_left_out` has the keys of the others. Without a run `n` counts pairs with a human True or
        False, and the rest is None. Labels sampled by verdict are excluded. Against each rater the results
        are computed by rater, then averaged, without intervals.
    """
    criteria = [criterion.without_sampled for criterion in criteria]
    tallies = [tally(criterion, each_rater=data.each_rater) for criterion in criteria]
    if not data.has_run:
        answered = sum(one.answered for one in tallies)
        nothing = dict.fromkeys((*POOLED, "criteria_averaged", "criteria_left_out"))
        return {"n": answered, **nothing, "undefined": {"judge": NO_RUN}}
    if data.each_rater:
        tables = {one.spec.key: one.rater_tables for one in criteria}
        estimates = _averaged(tables)
        averaged = [key for key, by_rater in tables.items() if any(_both(one) for one in by_rater.values())]
    else:
        estimates = _of_all(data, criteria)
        averaged = [
            one.spec.key for one, counts in zip(criteria, tallies, strict=True) if _both(counts.table)
        ]
    keys = [one.spec.key for one in criteria]
    return {
        "n": sum(one.table.n for one in tallies),
        **{name: estimates[name].as_json() for name in POOLED},
        "criteria_averaged": len(averaged),
        "criteria_left_out": [key for key in keys if key not in averaged],
        "undefined": undefined_reasons(estimates),
    }


def _both(table: Confusion) -> bool:
    return bool(table.human_true and table.human_false)


def _of_all(data: ReportData, criteria: Sequence[CriterionData]) -> dict[str, Estimate]:
    human = np.stack([one.human for one in criteria])
    judge = np.stack([one.judge for one in criteria if one.judge is not None])
    true, false = _compared(human, judge, HumanCode.TRUE), _compared(human, judge, HumanCode.FALSE)
    right = human == judge  # the codes of True and False are equal
    n = ClassCounts.of(true=true, false=false, clusters=data.clusters)
    right_answers = ClassCounts.of(true=true & right, false=false & right, clusters=data.clusters)
    estimates = macro_rates(right_answers, n, reason=NO_PAIR)
    few = too_few(n, clustered=data.clusters is not None)
    if not few:
        return estimates
    return {name: replace(one, interval=None, reason=one.reason or few) for name, one in estimates.items()}


def _compared(human: NDArray[np.int8], judge: NDArray[np.int8], code: HumanCode) -> NDArray[np.bool_]:
    """Whether a chat has this human answer, and a verdict of True or False."""
    compared: NDArray[np.bool_] = (human == code) & (judge <= JudgeCode.FALSE)
    return compared


def _averaged(tables: Mapping[str, Mapping[str, Confusion]]) -> dict[str, Estimate]:
    """Compute the rates against each rater from tables by criterion and rater, then average them."""
    by_rater: dict[str, list[Confusion]] = {}
    for of_criterion in tables.values():
        for rater, table in of_criterion.items():
            if table.n:
                by_rater.setdefault(rater, []).append(table)
    rates = {
        "accuracy": [sum(of, Confusion(0, 0, 0, 0)).accuracy for of in by_rater.values()],
        **{
            name: [_mean([getattr(one, name) for one in of]) for of in by_rater.values()]
            for name in ("balanced_accuracy", "tpr", "tnr")
        },
    }
    return {name: _over_raters(values, any_rater=bool(by_rater)) for name, values in rates.items()}


def _over_raters(values: Sequence[float | None], *, any_rater: bool) -> Estimate:
    value = _mean(values)
    return Estimate(value, reason=AVERAGED if value is not None else NOWHERE if any_rater else NO_PAIR)


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
