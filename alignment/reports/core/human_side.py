"""Agreement between raters on one criterion, and the human ceilings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Clusters
from alignment.reports.core.registry import measures
from alignment.statistics.agreement import (
    fleiss_kappa,
    formulas,
    gwet_ac1_raters,
    krippendorff_alpha,
    leave_one_rater_out,
    percent_agreement,
)
from alignment.statistics.agreement.many_raters import (
    ac1_of_sums,
    ac1_parts,
    alpha_of_sums,
    alpha_parts,
    ceiling_parts,
)
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import (
    RESAMPLES,
    Patterns,
    Pseudo,
    Resamples,
    bootstrap_estimate,
    patterns,
    resample_chats,
)

NO_OVERLAP = "no chat with two raters"
ONE_ANSWER = "raters gave one answer only"
NOT_COMPARED = "no rater with True or False whose answer the others' majority allows to compare"
NO_MAJORITY = "the other raters have no True or no False majority"

WITH_INTERVAL = ("krippendorff_alpha", "ceiling", "accuracy_ceiling")
ALPHA, CEILING = slice(0, 4), slice(4, 8)

# Both True; one True and one False, which happens in two ways; both False.
_TWO_ANSWERS = np.array([[2, 0, 0], [1, 1, 0], [0, 2, 0]])
_HALF_OF_EACH = np.array([0.5, 1.0, 0.5])


@dataclass(frozen=True)
class HumanSide:
    """The `human` object of a criterion, and the reason for each undefined value."""

    body: dict[str, Any]
    undefined: dict[str, str]


def human_side(
    counts: NDArray[np.integer],
    *,
    raters: int,
    seed: int,
    resamples: int = RESAMPLES,
    clusters: Clusters = None,
) -> HumanSide:
    """Compute the agreement between raters.

    Parameters
    ----------
    counts : labels by chat, shape (chats, 3): True, False, not applicable.
    raters : number of raters with labels.
    seed, resamples : settings of the chat bootstrap for alpha, AC1 and the ceilings. It resamples only chats
        with two or more raters.
    clusters : number of each chat's cluster, shape (chats,); the bootstrap then resamples clusters.

    Returns
    -------
    HumanSide : `ceiling` is the balanced accuracy of a rater against the strict majority of the others,
        `accuracy_ceiling` the accuracy in the same table. With two raters a chat this is the share of chats
        on which they agree.

    Examples
    --------
    >>> side = human_side(np.array([[2, 0, 0], [1, 1, 0], [0, 2, 0]]), raters=2, seed=1)
    >>> side.body["overlap"], side.body["percent_agreement"]
    (3, 0.6666666666666666)
    """
    labelled = patterns(counts)
    rows, weights = labelled.rows, labelled.chats
    pairable = rows.sum(axis=1) >= 2
    shared = Patterns(rows[pairable], weights[pairable])
    estimates = {
        "percent_agreement": Estimate(percent_agreement(rows, weights=weights), reason=NO_OVERLAP),
        "fleiss_kappa": Estimate(fleiss_kappa(rows, weights=weights), reason=_reason(shared)),
        **_estimates(
            labelled, pairable, _resampled(shared, counts, clusters, seed=seed, resamples=resamples)
        ),
    }
    body: dict[str, Any] = {"raters": raters, "overlap": int(shared.chats.sum())}
    for name in measures("human"):
        body[name] = estimates[name].as_json() if name in WITH_INTERVAL else estimates[name].value
    # Beside the plain number, which programs rely on.
    ac1 = estimates["gwet_ac1"].interval
    body["gwet_ac1_interval"] = ac1 and {"low": ac1.low, "high": ac1.high}
    return HumanSide(body, _reasons(estimates))


def _reason(shared: Patterns) -> str:
    return ONE_ANSWER if shared.chats.size else NO_OVERLAP


def _resampled(
    shared: Patterns, counts: NDArray[np.integer], clusters: Clusters, *, seed: int, resamples: int
) -> Resamples:
    """Resample the chats with two raters or more, or their clusters."""
    pseudo = _pseudo(shared)
    if clusters is None:
        return resample_chats(
            _parts(shared.rows), shared.chats, seed=seed, resamples=resamples, pseudo=pseudo
        )
    pairable = counts.sum(axis=1) >= 2
    numbers, places = np.unique(clusters[pairable], return_inverse=True)
    parts = np.zeros((numbers.size, pseudo.rows.shape[1]))
    np.add.at(parts, places, _parts(np.asarray(counts[pairable], dtype=np.int64)))
    size = int(pairable.sum()) / max(1, numbers.size)
    return resample_chats(
        parts,
        np.ones(numbers.size, dtype=np.int64),
        seed=seed,
        resamples=resamples,
        pseudo=Pseudo(size * pseudo.rows, pseudo.weights),
    )


def _estimates(labelled: Patterns, pairable: NDArray[np.bool_], resampled: Resamples) -> dict[str, Estimate]:
    shared = Patterns(labelled.rows[pairable], labelled.chats[pairable])
    rows, chats = shared.rows, shared.chats
    ceiling, why = leave_one_rater_out(rows, weights=chats), "" if chats.size else NO_OVERLAP
    return {
        "krippendorff_alpha": bootstrap_estimate(
            krippendorff_alpha(rows, weights=chats),
            lambda sums: alpha_of_sums(sums[:, ALPHA]),
            resampled,
            reason=_reason(shared),
        ),
        "gwet_ac1": _ac1(labelled, pairable, resampled),
        "ceiling": bootstrap_estimate(
            ceiling.balanced_accuracy,
            lambda sums: formulas.balanced_accuracy(sums[:, CEILING]),
            resampled,
            reason=why or NO_MAJORITY,
        ),
        "accuracy_ceiling": bootstrap_estimate(
            ceiling.accuracy,
            lambda sums: formulas.accuracy(sums[:, CEILING]),
            resampled,
            reason=why or NOT_COMPARED,
        ),
    }


def _ac1(labelled: Patterns, pairable: NDArray[np.bool_], resampled: Resamples) -> Estimate:
    """Return AC1; chats with one label add to its chance agreement and are not resampled."""
    rows, chats = labelled.rows, labelled.chats
    estimate = gwet_ac1_raters(rows, weights=chats).estimate
    used = rows.any(axis=0)
    if estimate.value is None or used.sum() == 1:
        return Estimate(estimate.value, reason=NO_OVERLAP if estimate.value is None else ONE_ANSWER)
    alone = chats[~pairable] @ ac1_parts(rows[~pairable])
    columns = np.concatenate([np.full(3, True), used])
    return bootstrap_estimate(
        estimate.value,
        lambda sums: ac1_of_sums((sums[:, CEILING.stop :] + alone)[:, columns]),
        resampled,
        reason="",
    )


def _parts(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what a chat with these labels adds to alpha, to the ceilings' 2×2 table, and to AC1."""
    return np.column_stack([alpha_parts(rows), ceiling_parts(rows), ac1_parts(rows)])


def _pseudo(shared: Patterns) -> Pseudo:
    """Return half a chat for each pair of answers of two raters, weighted like an average chat."""
    labels = int(shared.chats @ shared.rows.sum(axis=1)) / max(1, int(shared.chats.sum()))
    rows = _parts(_TWO_ANSWERS)
    rows[:, : CEILING.stop] *= labels / 2  # AC1 counts each chat once
    return Pseudo(rows, _HALF_OF_EACH)


def _reasons(estimates: dict[str, Estimate]) -> dict[str, str]:
    """Return reasons under `human.`; a plain number needs none for its interval."""
    with_interval = (*WITH_INTERVAL, "gwet_ac1")
    missing = {name: one for name, one in estimates.items() if name in with_interval or one.value is None}
    return {f"human.{name}": reason for name, reason in undefined_reasons(missing).items()}
