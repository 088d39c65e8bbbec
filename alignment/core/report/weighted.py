"""A judge's statistics on labels that were drawn by verdict, weighted to all chats that it judged."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.core.agreement import Confusion, formulas
from alignment.core.estimates import Estimate
from alignment.core.intervals import (
    RESAMPLES,
    Pseudo,
    Resamples,
    bootstrap_estimate,
    half_of_each,
    resample_chats,
)
from alignment.core.report.data import SILENT, CriterionData, HumanCode, JudgeCode
from alignment.core.report.judge_side import (
    BOOTSTRAPPED,
    NAMES,
    NO_HUMAN_FALSE,
    NO_HUMAN_TRUE,
    NO_JUDGE_TRUE,
    NO_PAIR,
    constant_estimate,
    doubled,
)
from alignment.core.report.tally import Tally

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
# Of the four cells and, by verdict, the labelled chats without True or False from people.
_IS_TRUE = np.array([1, 0, 1, 0, 1, 0], dtype=bool)


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
    judged = counts.judge(JudgeCode.TRUE), counts.judge(JudgeCode.FALSE)
    rows, chats = _patterns(data)
    sums = chats @ rows
    labelled = [sums[side].sum() for side in (_IS_TRUE, ~_IS_TRUE)]
    for n, seen, word in zip(judged, labelled, ("True", "False"), strict=True):
        if n and not seen:
            return dict.fromkeys((*NAMES, PREVALENCE), Estimate(None, reason=ONE_VERDICT.format(word)))
    drawn = _resampled(rows, chats, judged, seed=seed, resamples=resamples)
    value = _as_judged(sums, np.array(judged, dtype=np.float64))
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
        rest = own & (data.human == HumanCode.UNLABELLED)
        if (own & (data.inverse > 0)).any() and (
            data.chance[rest] == 0
        ).sum() > MOST_WITHOUT_CHANCE * rest.sum():
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
    assert data.judge is not None and data.inverse is not None  # noqa: S101  what this is about
    groups = np.minimum(data.judge, JudgeCode.NA)
    chosen = data.human != HumanCode.UNLABELLED
    answers = np.minimum(data.human[chosen], HumanCode.NA)
    weights = _weights(data.inverse[chosen], groups[chosen])
    cells = np.column_stack([3 * groups[chosen] + answers, weights])
    distinct, chats = np.unique(cells, axis=0, return_counts=True)
    rows = distinct[:, 1:] * np.eye(9)[distinct[:, 0].astype(np.int64)]
    sums = chats @ rows
    known = sums.reshape(3, 3).sum(axis=1) > 0
    sizes = np.bincount(groups, minlength=3) * known
    for verdict, word in ((JudgeCode.TRUE, "True"), (JudgeCode.FALSE, "False")):
        if not known[verdict] and (groups == verdict).any():
            return Estimate(None, reason=ONE_VERDICT.format(word))
    half = np.eye(9)[[3 * group + answer for group in np.flatnonzero(known) for answer in (0, 1)]]
    pseudo = Pseudo(half, np.full(len(half), 0.5))
    drawn = resample_chats(rows, chats.astype(np.int64), seed=seed, resamples=resamples, pseudo=pseudo)
    if drawn.sums is not None:
        draw = np.random.default_rng([seed, 1])
        drawn = Resamples(_of_size(drawn.sums, draw.multinomial(sizes.sum(), sizes / sizes.sum(), resamples)))
    value = formulas.scalar(_share_of_true(_of_size(sums, sizes)))
    return bootstrap_estimate(value, _share_of_true, drawn, reason=NO_PAIR)


def _of_size(sums: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.float64]:
    """(…, 9) sums by group and answer, (…, 3) chats by group -> sums as over so many chats."""
    by_group = sums.reshape(*sums.shape[:-1], 3, 3)
    whole = by_group.sum(axis=-1)
    scale = np.divide(sizes, whole, out=np.zeros_like(whole), where=whole > 0)
    scaled: NDArray[np.float64] = (by_group * scale[..., None]).reshape(sums.shape)
    return scaled


def _share_of_true(sums: NDArray[Any]) -> formulas.Floats:
    true, false = sums[..., 0::3].sum(axis=-1), sums[..., 1::3].sum(axis=-1)
    return formulas.ratio(true, true + false)


def _estimate(
    name: str, table: Confusion, value: NDArray[np.float64], formula: Formula, drawn: Resamples
) -> Estimate:
    reason = _UNDEFINED.get(name, NO_PAIR) if table.n else NO_PAIR
    point = formulas.scalar(formula(value)) if table.n else None
    return constant_estimate(name, table) or bootstrap_estimate(point, formula, drawn, reason=reason)


def _patterns(data: CriterionData) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of weights (tp, fn, fp, tn, other True, other False), and how many labelled chats have each."""
    assert data.judge is not None and data.inverse is not None  # noqa: S101  what this is about
    chosen = (data.human != HumanCode.UNLABELLED) & (data.judge <= JudgeCode.FALSE)
    human, judge = np.minimum(data.human[chosen], HumanCode.NA), data.judge[chosen]
    cells, weights = 2 * human + judge, _weights(data.inverse[chosen], judge)
    distinct, chats = np.unique(np.column_stack([cells, weights]), axis=0, return_counts=True)
    rows = distinct[:, 1:] * np.eye(len(_IS_TRUE))[distinct[:, 0].astype(np.int64)]
    return rows, chats.astype(np.int64)


def _weights(inverse: NDArray[np.float64], judge: NDArray[np.int8]) -> NDArray[np.float64]:
    """1, and for drawn chats the inverse of the probability over its mean in their verdict."""
    weights = np.ones(inverse.size)
    for verdict in np.unique(judge):
        drawn = (inverse > 0) & (judge == verdict)
        if drawn.any():
            weights[drawn] = inverse[drawn] / inverse[drawn].mean()
    return weights


def _resampled(
    rows: NDArray[np.float64], chats: NDArray[np.int64], judged: tuple[int, int], *, seed: int, resamples: int
) -> Resamples:
    """Cells as they would be over all chats, by replicate."""
    half = half_of_each()
    pseudo = Pseudo(np.pad(half.rows, ((0, 0), (0, 2))), half.weights)
    drawn = resample_chats(rows, chats, seed=seed, resamples=resamples, pseudo=pseudo)
    if drawn.sums is None:
        return drawn
    n = sum(judged)
    true = np.random.default_rng([seed, 1]).binomial(n, judged[0] / n, size=resamples)
    return Resamples(_as_judged(drawn.sums, np.column_stack([true, n - true]).astype(np.float64)))


def _as_judged(sums: NDArray[np.float64], judged: NDArray[np.float64]) -> NDArray[np.float64]:
    """(…, 6) sums and (…, 2) chats by verdict -> (…, 4) cells."""
    sides = np.stack([sums[..., _IS_TRUE].sum(axis=-1), sums[..., ~_IS_TRUE].sum(axis=-1)], axis=-1)
    scale = np.divide(judged, sides, out=np.zeros_like(sides), where=sides > 0)
    cells: NDArray[np.float64] = sums[..., :4] * np.where(_IS_TRUE[:4], scale[..., :1], scale[..., 1:])
    return cells
