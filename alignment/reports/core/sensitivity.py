"""Sensitivity of a judge's rates to unresolved chats: the best and the worst case."""

from dataclasses import replace
from typing import Any

import numpy as np

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode
from alignment.comparison.core.tally import tally
from alignment.reports.core.judge_side import judge_rates
from alignment.reports.core.weighted import weighted_statistics

RATES = ("tpr", "tnr", "balanced_accuracy")


def sensitivity(data: CriterionData, *, weighted: bool = False) -> dict[str, Any] | None:
    """Return the rates if every unresolved chat had the judge's answer (best), or the opposite (worst).

    Parameters
    ----------
    data : one criterion with verdicts.
    weighted : whether the labels were sampled by verdict, so that the rates are weighted.

    Returns
    -------
    dict or None : `chats` counts the unresolved chats with the verdict True or False; None without such a
        chat. `best` and `worst` have TPR, TNR and balanced accuracy, None where undefined. No other answers
        to these chats give a higher or lower rate.

    Notes
    -----
    Manski (1989), J Hum Resour 24:343: bounds of a share with missing answers, without assumptions.

    Examples
    --------
    >>> from alignment.comparison.core.codes import CriterionSpec
    >>> spec = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> human, judge = np.array([0, 1, 3], dtype=np.int8), np.array([0, 1, 1], dtype=np.int8)
    >>> found = sensitivity(CriterionData(spec, human, judge, np.zeros((3, 3), dtype=np.int64), 2))
    >>> found["best"]["tnr"], found["worst"]["tpr"]
    (1.0, 0.5)
    """
    assert data.judge is not None  # noqa: S101  a run's report
    open_chats = (data.human == HumanCode.UNRESOLVED) & (data.judge <= JudgeCode.FALSE)
    chats = int(open_chats.sum())
    if not chats:
        return None
    cases = {"best": data.judge, "worst": 1 - data.judge}
    return {
        "chats": chats,
        **{
            name: _rates(replace(data, human=np.where(open_chats, answers, data.human)), weighted=weighted)
            for name, answers in cases.items()
        },
    }


def _rates(data: CriterionData, *, weighted: bool) -> dict[str, float | None]:
    counts = tally(data)
    # One resample: the intervals are not used.
    rates = weighted_statistics(data, counts, seed=0, resamples=1) if weighted else judge_rates(counts.table)
    return {name: rates[name].value for name in RATES}
