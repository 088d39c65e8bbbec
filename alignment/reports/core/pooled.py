"""Agreement pooled over the criteria of a dimension, of a tier, or over all criteria."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode, ReportData
from alignment.comparison.core.tally import joint_codes, tally
from alignment.reports.core.judge_side import NO_PAIR, averaged_statistics
from alignment.statistics.agreement import Confusion, formulas
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import (
    Patterns,
    bootstrap_estimate,
    digits,
    half_of_each,
    packed_patterns,
    resample_chats,
)

NO_BOTH_CLASSES = "needs a human True and a human False"
NO_RUN = "no run: human labels only"
POOLED = ("accuracy", "balanced_accuracy")


def _cell_by_code() -> NDArray[np.int64]:
    """Return joint code -> one-hot (tp, fn, fp, tn); all 0 without True or False from both."""
    cells = np.zeros((len(HumanCode), len(JudgeCode), 4), dtype=np.int64)
    for cell in range(4):
        cells[cell // 2, cell % 2, cell] = 1
    return cells.reshape(-1, 4)


_CELLS = _cell_by_code()


def chat_patterns(criteria: Sequence[CriterionData], *, chats: int) -> Patterns:
    """Return each chat's counts of tp, fn, fp, tn over the criteria, as patterns.

    Parameters
    ----------
    criteria : criteria with verdicts.
    chats : number of chats.
    """
    base = len(criteria) + 1
    packed_cells = _CELLS @ digits(base, 4)
    packed = np.zeros(chats, dtype=np.int64)
    for criterion in criteria:
        if criterion.judge is not None:
            packed += packed_cells[joint_codes(criterion.human, criterion.judge)]
    return packed_patterns(packed, base=base, width=4)


def pooled(data: ReportData, criteria: Sequence[CriterionData], *, seed: int) -> dict[str, Any]:
    """Compute `n`, accuracy and balanced accuracy over all pairs of chat and criterion.

    Parameters
    ----------
    data : the report's data.
    criteria : the criteria to pool.
    seed : seed of the bootstrap, which resamples chats: the criteria of a chat are not independent.

    Returns
    -------
    dict : `n` counts the compared pairs; without a run it counts pairs with a human True or False, and the
        rest is None. Labels sampled by verdict are excluded. Against each rater the results are pooled by
        rater, then averaged, without intervals.
    """
    criteria = [criterion.without_sampled for criterion in criteria]
    tallies = [tally(criterion, each_rater=data.each_rater) for criterion in criteria]
    if not data.has_run:
        answered = sum(one.answered for one in tallies)
        return {
            "n": answered,
            "accuracy": None,
            "balanced_accuracy": None,
            "undefined": {"judge": NO_RUN},
        }
    table = sum((one.table for one in tallies), Confusion(0, 0, 0, 0))
    if data.each_rater:
        estimates = _averaged(criteria)
    else:
        estimates = _bootstrapped(chat_patterns(criteria, chats=len(data.chat_ids)), table, seed=seed)
    return {
        "n": table.n,
        **{name: estimates[name].as_json() for name in POOLED},
        "undefined": undefined_reasons(estimates),
    }


def _averaged(criteria: Sequence[CriterionData]) -> dict[str, Estimate]:
    by_rater: dict[str, Confusion] = {}
    for criterion in criteria:
        for rater, table in criterion.rater_tables.items():
            by_rater[rater] = by_rater.get(rater, Confusion(0, 0, 0, 0)) + table
    return averaged_statistics(by_rater, names=POOLED)


def _bootstrapped(chats: Patterns, table: Confusion, *, seed: int) -> dict[str, Estimate]:
    pseudo = half_of_each(table.n / max(1, int(chats.chats.sum())))
    resampled = resample_chats(chats.rows, chats.chats, seed=seed, pseudo=pseudo)
    both = NO_BOTH_CLASSES if table.n else NO_PAIR
    return {
        "accuracy": bootstrap_estimate(table.accuracy, formulas.accuracy, resampled, reason=NO_PAIR),
        "balanced_accuracy": bootstrap_estimate(
            table.balanced_accuracy, formulas.balanced_accuracy, resampled, reason=both
        ),
    }
