"""A judge's statistics on labels sampled by verdict, weighted to all chats with a verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import CriterionData, HumanCode, JudgeCode
from alignment.comparison.core.tally import Tally
from alignment.reports.core.judge_side import (
    BOOTSTRAPPED,
    NAMES,
    NO_JUDGE_TRUE,
    NO_PAIR,
    PREVALENCE,
    constant_estimate,
    doubled,
)
from alignment.statistics.agreement import Confusion, formulas
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import RESAMPLES, Pseudo, Resamples, bootstrap_estimate, resample_chats
from alignment.statistics.macro_rates import NO_HUMAN_FALSE, NO_HUMAN_TRUE

ONE_VERDICT = "no labelled chat has the verdict {}: labels sampled by verdict need at least one"
# Largest share of the represented chats that had no chance of selection.
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
    """Compute every statistic and `prevalence`, as they are over all chats with a verdict.

    Over-sampling chats with the verdict False would overstate TNR and understate TPR. So within each verdict
    the sampled chats weigh the inverse of their inclusion probability, with mean 1. Chats that were labelled
    anyway weigh 1. The labelled chats of each verdict represent all chats with that verdict.

    Parameters
    ----------
    data : one criterion with `inverse`.
    counts : its tally.
    seed, resamples : settings of the bootstrap. It resamples chats with half a chat for each cell, and how
        many chats have each verdict.

    Returns
    -------
    dict of Estimate : all undefined if no labelled chat has one of the judge's verdicts.

    Notes
    -----
    Begg & Greenes (1983), Biometrics 39:207, verification by the test's result; inverse probabilities:
    Horvitz & Thompson (1952), JASA 47:663.
    """
    weighted = _over_all(data, groups=2, seed=seed, resamples=resamples)
    if isinstance(weighted, str):
        return dict.fromkeys((*NAMES, PREVALENCE), Estimate(None, reason=weighted))
    value, resampled = weighted.sums[:4], weighted.resampled
    if resampled.sums is not None:
        resampled = Resamples(resampled.sums[:, :4])
    estimates = {
        name: _estimate(name, counts.table, value, formula, resampled) for name, formula in _FORMULAS.items()
    }
    if counts.table.n:
        missing = estimates["tpr"] if counts.table.human_true == 0 else estimates["tnr"]
        balanced = estimates["balanced_accuracy"]
        estimates["balanced_accuracy"] = missing if balanced.value is None else balanced
    return estimates | {"pabak": doubled(estimates["accuracy"])}


def represents(data: CriterionData) -> bool:
    """Return whether the sampled chats represent the unlabelled ones: these had a chance of selection too.

    Chats sampled by another judge's verdicts, or from some topics only, may not represent them.
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


def abstention_share(data: CriterionData, code: HumanCode) -> float | None:
    """Return the weighted share of abstentions among the chats with this human answer.

    Sampled chats weigh the inverse of their inclusion probability, others weigh 1 (Horvitz & Thompson 1952).
    None without such a chat.
    """
    assert data.judge is not None and data.inverse is not None  # noqa: S101  a run and sampled labels
    abstained = np.isin(data.judge, data.abstentions)
    asked = (data.human == code) & (abstained | (data.judge <= JudgeCode.FALSE))
    weights = np.where(data.inverse > 0, data.inverse, 1.0)[asked]
    return float(weights[abstained[asked]].sum() / weights.sum()) if weights.size else None


def human_share(data: CriterionData, *, seed: int, resamples: int = RESAMPLES) -> Estimate:
    """Return the human share of True over all chats, with or without a verdict.

    Works like `weighted_statistics` with a third group: chats without True or False from the judge. The group
    is excluded if none of them is labelled.
    """
    weighted = _over_all(data, groups=3, seed=seed, resamples=resamples)
    if isinstance(weighted, str):
        return Estimate(None, reason=weighted)
    value = formulas.scalar(_share_of_true(weighted.sums))
    return bootstrap_estimate(value, _share_of_true, weighted.resampled, reason=NO_PAIR)


def _share_of_true(sums: NDArray[Any]) -> formulas.Floats:
    true, false = sums[..., :3].sum(axis=-1), sums[..., 3:6].sum(axis=-1)
    return formulas.ratio(true, true + false)


def _estimate(
    name: str, table: Confusion, value: NDArray[np.float64], formula: Formula, resampled: Resamples
) -> Estimate:
    reason = _UNDEFINED.get(name, NO_PAIR) if table.n else NO_PAIR
    point = formulas.scalar(formula(value)) if table.n else None
    return constant_estimate(name, table) or bootstrap_estimate(point, formula, resampled, reason=reason)


@dataclass(frozen=True)
class _WeightedSums:
    """Weighted sums over all chats, and by replicate, shape (…, 3 * groups).

    The columns are human True by group, human False by group, and neither by group. With two groups the first
    four are tp, fn, fp, tn.
    """

    sums: NDArray[np.float64]
    resampled: Resamples


def _over_all(data: CriterionData, *, groups: int, seed: int, resamples: int) -> _WeightedSums | str:
    """Weight the labelled chats to all chats of their group: verdict True, verdict False, third: neither.

    Returns the reason as text if no chat with one of the verdicts is labelled. A third group without labels
    counts nothing.
    """
    assert data.judge is not None and data.inverse is not None  # noqa: S101  a run and sampled labels
    group = np.minimum(data.judge, JudgeCode.NA)
    rows, chats = _patterns(data, group, groups)
    sums = chats @ rows
    labelled = sums.reshape(3, groups).sum(axis=0) > 0
    sizes = np.bincount(group, minlength=groups)[:groups]
    for verdict, word in ((JudgeCode.TRUE, "True"), (JudgeCode.FALSE, "False")):
        if sizes[verdict] and not labelled[verdict]:
            return ONE_VERDICT.format(word)
    sizes *= labelled
    pseudo = Pseudo(np.eye(3 * groups)[: 2 * groups], np.full(2 * groups, 0.5))
    resampled = resample_chats(rows, chats, seed=seed, resamples=resamples, pseudo=pseudo)
    if resampled.sums is not None:
        random = np.random.default_rng([seed, 1])
        by_group = random.multinomial(sizes.sum(), sizes / sizes.sum(), resamples)
        resampled = Resamples(_of_size(resampled.sums, by_group))
    return _WeightedSums(_of_size(sums, sizes), resampled)


def _of_size(sums: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Scale (…, 3 * groups) sums to (…, groups) numbers of chats."""
    by_answer = sums.reshape(*sums.shape[:-1], 3, sizes.shape[-1])
    whole = by_answer.sum(axis=-2)
    scale = np.divide(sizes, whole, out=np.zeros_like(whole), where=whole > 0)
    scaled: NDArray[np.float64] = (by_answer * scale[..., np.newaxis, :]).reshape(sums.shape)
    return scaled


def _patterns(
    data: CriterionData, group: NDArray[np.int8], groups: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return distinct rows of weights, in the columns of `_WeightedSums`, and the labelled chats of each."""
    assert data.inverse is not None  # noqa: S101  sampled labels
    chosen = (data.human != HumanCode.UNLABELLED) & (group < groups)
    human, of = np.minimum(data.human[chosen], HumanCode.NA), group[chosen]
    cells, weights = groups * human + of, _weights(data.inverse[chosen], of)
    distinct, chats = np.unique(np.column_stack([cells, weights]), axis=0, return_counts=True)
    rows = distinct[:, 1:] * np.eye(3 * groups)[distinct[:, 0].astype(np.int64)]
    return rows, chats.astype(np.int64)


def _weights(inverse: NDArray[np.float64], judge: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return 1, or for sampled chats the inverse probability divided by its mean in their verdict."""
    weights = np.ones(inverse.size)
    for verdict in np.unique(judge):
        sampled = (inverse > 0) & (judge == verdict)
        if sampled.any():
            weights[sampled] = inverse[sampled] / inverse[sampled].mean()
    return weights
