"""Agreement between raters on one criterion, and the human ceiling."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.reports.core.registry import measures
from alignment.statistics.agreement import (
    fleiss_kappa,
    formulas,
    gwet_ac1_raters,
    krippendorff_alpha,
    leave_one_rater_out,
    percent_agreement,
)
from alignment.statistics.agreement.many_raters import alpha_of_sums, alpha_parts, ceiling_parts
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import (
    RESAMPLES,
    Patterns,
    Pseudo,
    bootstrap_estimate,
    patterns,
    resample_chats,
)

NO_OVERLAP = "no chat with two raters"
ONE_ANSWER = "raters gave one answer only"
NO_MAJORITY = "the other raters have no True or no False majority"

WITH_INTERVAL = ("krippendorff_alpha", "ceiling")

# Both True; one True and one False, which happens in two ways; both False.
_TWO_ANSWERS = np.array([[2, 0, 0], [1, 1, 0], [0, 2, 0]])
_HALF_OF_EACH = np.array([0.5, 1.0, 0.5])


@dataclass(frozen=True)
class HumanSide:
    """The `human` object of a criterion, and the reason for each undefined value."""

    body: dict[str, Any]
    undefined: dict[str, str]


def human_side(
    counts: NDArray[np.integer], *, raters: int, seed: int, resamples: int = RESAMPLES
) -> HumanSide:
    """Compute the agreement between raters.

    Parameters
    ----------
    counts : labels by chat, shape (chats, 3): True, False, not applicable.
    raters : number of raters with labels.
    seed, resamples : settings of the chat bootstrap for alpha and the ceiling. It resamples only chats with
        two or more raters.

    Returns
    -------
    HumanSide : `ceiling` is the balanced accuracy of a rater against the strict majority of the others.

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
        **_bootstrapped(shared, seed=seed, resamples=resamples),
        "gwet_ac1": Estimate(gwet_ac1_raters(rows, weights=weights).estimate.value, reason=NO_OVERLAP),
    }
    body: dict[str, Any] = {"raters": raters, "overlap": int(shared.chats.sum())}
    for name in measures("human"):
        body[name] = estimates[name].as_json() if name in WITH_INTERVAL else estimates[name].value
    return HumanSide(body, _reasons(estimates))


def _reason(shared: Patterns) -> str:
    return ONE_ANSWER if shared.chats.size else NO_OVERLAP


def _bootstrapped(shared: Patterns, *, seed: int, resamples: int) -> dict[str, Estimate]:
    rows, chats = shared.rows, shared.chats
    width = rows.shape[1] + 1
    resampled = resample_chats(_parts(rows), chats, seed=seed, resamples=resamples, pseudo=_pseudo(shared))
    return {
        "krippendorff_alpha": bootstrap_estimate(
            krippendorff_alpha(rows, weights=chats),
            lambda sums: alpha_of_sums(sums[:, :width]),
            resampled,
            reason=_reason(shared),
        ),
        "ceiling": bootstrap_estimate(
            leave_one_rater_out(rows, weights=chats).balanced_accuracy,
            lambda sums: formulas.balanced_accuracy(sums[:, width:]),
            resampled,
            reason=NO_MAJORITY if chats.size else NO_OVERLAP,
        ),
    }


def _parts(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what a chat with these labels adds to alpha, then to the ceiling's 2×2 table."""
    return np.column_stack([alpha_parts(rows), ceiling_parts(rows)])


def _pseudo(shared: Patterns) -> Pseudo:
    """Return half a chat for each pair of answers of two raters, weighted like an average chat."""
    labels = int(shared.chats @ shared.rows.sum(axis=1)) / max(1, int(shared.chats.sum()))
    return Pseudo(labels / 2 * _parts(_TWO_ANSWERS), _HALF_OF_EACH)


def _reasons(estimates: dict[str, Estimate]) -> dict[str, str]:
    """Return reasons under `human.`; a plain number needs none for its interval."""
    missing = {name: one for name, one in estimates.items() if name in WITH_INTERVAL or one.value is None}
    return {f"human.{name}": reason for name, reason in undefined_reasons(missing).items()}
