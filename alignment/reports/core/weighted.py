"""A judge's statistics on labels that were drawn by verdict, weighted to all chats that it judged."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import SILENT, CriterionData, HumanCode, JudgeCode
from alignment.comparison.core.tally import Tally
from alignment.reports.core.judge_side import (
    BOOTSTRAPPED,
    NAMES,
    NO_HUMAN_FALSE,
    NO_HUMAN_TRUE,
    NO_JUDGE_TRUE,
    NO_PAIR,
    constant_estimate,
    doubled,
)
from alignment.statistics.agreement import Confusion, formulas
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import RESAMPLES, Pseudo, Resamples, bootstrap_estimate, resample_chats

ONE_VERDICT = "no labelled chat among those that the judge answered {}: labels drawn by verdict need some"
PREVALENCE = "prevalence"
# Of the chats that drawn ones stand for, those that may have had no chance themselves.
MOST_WITHOUT_CHANCE = 0.05
Formula = Callable[[NDArray[Any]], formulas.Floats]

_FORMULAS: dict[str, Formula] = {
    "accuracy": formulas.accuracy,
    "balanced_accuracy": formulas.balanced_accuracy,
    "tpr": formulas.tpr,
    "tnr": formulas.tnr,
    "precision": formulas.precision,
    **{name: one.statistic for name, one in BOOTSTRAPPED.items()},
    PREVALENCE: lambda cells: formulas.ratio(cells[..., 0] + cells[..., 1], cells.sum(axis=-1)),
}
_UNDEFINED = {
    "tpr": NO_HUMAN_TRUE,
    "tnr": NO_HUMAN_FALSE,
    "precision": NO_JUDGE_TRUE,
    **{name: one.undefined for name, one in BOOTSTRAPPED.items()},
}


def weighted_statistics(
    data: CriterionData, counts: Tally, *, seed: int, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Every statistic of the report by name, and `prevalence`, as they are over all chats with a verdict.

    Chats drawn more often where the judge says False would flatter its TNR and spoil its TPR. So within
    either verdict the drawn chats weigh the inverse of their probability (1 on the mean, as much as one that
    was labelled anyway), and each verdict's labelled chats stand for all that have this verdict.

    Parameters
    ----------
    data : one criterion with `inverse`.
    counts : its tally.
    seed, resamples : of the bootstrap: chats are drawn with half a chat for each cell, and how many chats
        have which verdict is drawn as well.

    Returns
    -------
    dict of Estimate : undefined, all of them, where the judge gave a verdict that no labelled chat has.

    Notes
    -----
    Begg & Greenes (1983), Biometrics 39:207, verification by the test's result; inverse probabilities:
    Horvitz & Thompson (1952), JASA 47:663.
    """
    found = _over_all(data, groups=2, seed=seed, resamples=resamples)
    if isinstance(found, str):
        return dict.fromkeys((*NAMES, PREVALENCE), Estimate(None, reason=found))
    value, drawn = found.sums[:4], found.drawn
    if drawn.sums is not None:
        drawn = Resamples(drawn.sums[:, :4])
    estimates = {
        name: _estimate(name, counts.table, value, formula, drawn) for name, formula in _FORMULAS.items()
    }
    if counts.table.n:
        missing = estimates["tpr"] if counts.table.human_true == 0 else estimates["tnr"]
        balanced = estimates["balanced_accuracy"]
        estimates["balanced_accuracy"] = missing if balanced.value is None else balanced
    return estimates | {"pabak": doubled(estimates["accuracy"])}


def represents(data: CriterionData) -> bool:
    """Whether the drawn chats of either verdict stand for its unlabelled ones: these had a chance as well.

    Chats that were drawn by another judge's verdicts, or from some topics alone, may not.
    """
    if data.chance is None or data.inverse is None or data.judge is None:
        return True
    for verdict in (JudgeCode.TRUE, JudgeCode.FALSE):
        own = data.judge == verdict
        chances = data.chance[own & (data.human == HumanCode.UNLABELLED)]
        without = np.count_nonzero(chances == 0)
        if (data.inverse[own] > 0).any() and without > MOST_WITHOUT_CHANCE * chances.size:
            return False
    return True


def silent_share(data: CriterionData, code: HumanCode) -> float | None:
    """Of the chats that people answer so and the judge was asked about, the share it leaves open, weighted.

    Drawn chats weigh the inverse of their probability, others stand for themselves (Horvitz & Thompson 1952).
    None without such a chat.
    """
    assert data.judge is not None and data.inverse is not None  # noqa: S101  what this is about
    silent = np.isin(data.judge, SILENT)
    asked = (data.human == code) & (silent | (data.judge <= JudgeCode.FALSE))
    weights = np.where(data.inverse > 0, data.inverse, 1.0)[asked]
    return float(weights[silent[asked]].sum() / weights.sum()) if weights.size else None


def people_share(data: CriterionData, *, seed: int, resamples: int = RESAMPLES) -> Estimate:
    """People's share of True over all chats, those that the judge left open among them.

    As `weighted_statistics` with a third group, chats without True or False from the judge; left out where
    none of them is labelled.
    """
    found = _over_all(data, groups=3, seed=seed, resamples=resamples)
    if isinstance(found, str):
        return Estimate(None, reason=found)
    value = formulas.scalar(_share_of_true(found.sums))
    return bootstrap_estimate(value, _share_of_true, found.drawn, reason=NO_PAIR)


def _share_of_true(sums: NDArray[Any]) -> formulas.Floats:
    true, false = sums[..., :3].sum(axis=-1), sums[..., 3:6].sum(axis=-1)
    return formulas.ratio(true, true + false)


def _estimate(
    name: str, table: Confusion, value: NDArray[np.float64], formula: Formula, drawn: Resamples
) -> Estimate:
    reason = _UNDEFINED.get(name, NO_PAIR) if table.n else NO_PAIR
    point = formulas.scalar(formula(value)) if table.n else None
    return constant_estimate(name, table) or bootstrap_estimate(point, formula, drawn, reason=reason)


@dataclass(frozen=True)
class _Weighted:
    """Sums as over all chats, and by replicate, shape (…, 3 * groups).

    The columns are people's True by group, their False, and neither of these; so of two groups the first four
    are tp, fn, fp, tn.
    """

    sums: NDArray[np.float64]
    drawn: Resamples


def _over_all(data: CriterionData, *, groups: int, seed: int, resamples: int) -> _Weighted | str:
    """Labelled chats weighted to all of their group: judged True, judged False, of three also left open.

    In words what is missing, where no chat of a verdict is labelled; chats left open then count for nothing.
    """
    assert data.judge is not None and data.inverse is not None  # noqa: S101  what this is about
    group = np.minimum(data.judge, JudgeCode.NA)
    rows, chats = _patterns(data, group, groups)
    sums = chats @ rows
    seen = sums.reshape(3, groups).sum(axis=0) > 0
    sizes = np.bincount(group, minlength=groups)[:groups]
    for verdict, word in ((JudgeCode.TRUE, "True"), (JudgeCode.FALSE, "False")):
        if sizes[verdict] and not seen[verdict]:
            return ONE_VERDICT.format(word)
    sizes *= seen
    pseudo = Pseudo(np.eye(3 * groups)[: 2 * groups], np.full(2 * groups, 0.5))
    drawn = resample_chats(rows, chats, seed=seed, resamples=resamples, pseudo=pseudo)
    if drawn.sums is not None:
        draw = np.random.default_rng([seed, 1])
        drawn = Resamples(_of_size(drawn.sums, draw.multinomial(sizes.sum(), sizes / sizes.sum(), resamples)))
    return _Weighted(_of_size(sums, sizes), drawn)


def _of_size(sums: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """(…, 3 * groups) sums and (…, groups) chats -> sums as over so many chats of each group."""
    by_answer = sums.reshape(*sums.shape[:-1], 3, sizes.shape[-1])
    whole = by_answer.sum(axis=-2)
    scale = np.divide(sizes, whole, out=np.zeros_like(whole), where=whole > 0)
    scaled: NDArray[np.float64] = (by_answer * scale[..., np.newaxis, :]).reshape(sums.shape)
    return scaled


def _patterns(
    data: CriterionData, group: NDArray[np.int8], groups: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of weights, in the columns of `_Weighted`, and how many labelled chats have each."""
    assert data.inverse is not None  # noqa: S101  what this is about
    chosen = (data.human != HumanCode.UNLABELLED) & (group < groups)
    human, of = np.minimum(data.human[chosen], HumanCode.NA), group[chosen]
    cells, weights = groups * human + of, _weights(data.inverse[chosen], of)
    distinct, chats = np.unique(np.column_stack([cells, weights]), axis=0, return_counts=True)
    rows = distinct[:, 1:] * np.eye(3 * groups)[distinct[:, 0].astype(np.int64)]
    return rows, chats.astype(np.int64)


def _weights(inverse: NDArray[np.float64], judge: NDArray[np.int8]) -> NDArray[np.float64]:
    """1, and for drawn chats the inverse of the probability over its mean in their verdict."""
    weights = np.ones(inverse.size)
    for verdict in np.unique(judge):
        drawn = (inverse > 0) & (judge == verdict)
        if drawn.any():
            weights[drawn] = inverse[drawn] / inverse[drawn].mean()
    return weights
