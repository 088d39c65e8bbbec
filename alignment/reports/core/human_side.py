"""Agreement among people on one criterion, and the ceiling it sets for a judge."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
ONE_ANSWER = "people gave one answer only"
NO_MAJORITY = "no chat where the other raters have both a True and a False majority to compare with"

# Both True; one True and one False, which can come about in two ways; both False.
_TWO_ANSWERS = np.array([[2, 0, 0], [1, 1, 0], [0, 2, 0]])
_HALF_OF_EACH = np.array([0.5, 1.0, 0.5])


@dataclass(frozen=True)
class HumanSide:
    """The `human` part of a criterion and the reason of each value that is missing."""

    body: dict[str, Any]
    undefined: dict[str, str]


def human_side(
    counts: NDArray[np.integer], *, raters: int, seed: int, resamples: int = RESAMPLES
) -> HumanSide:
    """Agreement of people with each other.

    Parameters
    ----------
    counts : labels by chat, shape (chats, 3): True, False, not applicable.
    raters : how many different raters gave them.
    seed, resamples : of the chat bootstrap for alpha and the ceiling. Only chats with two or more raters are
        drawn.

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
    found = {
        "percent_agreement": Estimate(percent_agreement(rows, weights=weights), reason=NO_OVERLAP),
        "fleiss_kappa": Estimate(fleiss_kappa(rows, weights=weights), reason=_reason(shared)),
        **_bootstrapped(shared, seed=seed, resamples=resamples),
        "gwet_ac1": Estimate(gwet_ac1_raters(rows, weights=weights).estimate.value, reason=NO_OVERLAP),
    }
    body: dict[str, Any] = {"raters": raters, "overlap": int(shared.chats.sum())}
    for name in ("percent_agreement", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "ceiling"):
        with_interval = name in ("krippendorff_alpha", "ceiling")
        body[name] = found[name].as_json() if with_interval else found[name].value
    return HumanSide(body, _reasons(found))


def _reason(shared: Patterns) -> str:
    return ONE_ANSWER if shared.chats.size else NO_OVERLAP


def _bootstrapped(shared: Patterns, *, seed: int, resamples: int) -> dict[str, Estimate]:
    rows, chats = shared.rows, shared.chats
    width = rows.shape[1] + 1
    drawn = resample_chats(_parts(rows), chats, seed=seed, resamples=resamples, pseudo=_pseudo(shared))
    return {
        "krippendorff_alpha": bootstrap_estimate(
            krippendorff_alpha(rows, weights=chats),
            lambda sums: alpha_of_sums(sums[:, :width]),
            drawn,
            reason=_reason(shared),
        ),
        "ceiling": bootstrap_estimate(
            leave_one_rater_out(rows, weights=chats).balanced_accuracy,
            lambda sums: formulas.balanced_accuracy(sums[:, width:]),
            drawn,
            reason=NO_MAJORITY if chats.size else NO_OVERLAP,
        ),
    }


def _parts(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """What a chat with these labels adds to alpha, then to the ceiling's 2x2 table."""
    return np.column_stack([alpha_parts(rows), ceiling_parts(rows)])


def _pseudo(shared: Patterns) -> Pseudo:
    """Half a chat for each two answers of two raters, weighing as many labels as a chat has on average."""
    labels = int(shared.chats @ shared.rows.sum(axis=1)) / max(1, int(shared.chats.sum()))
    return Pseudo(labels / 2 * _parts(_TWO_ANSWERS), _HALF_OF_EACH)


def _reasons(found: dict[str, Estimate]) -> dict[str, str]:
    """Reasons under `human.`; the plain numbers have no interval to miss."""
    plain = {"percent_agreement", "fleiss_kappa", "gwet_ac1"}
    missing = {name: one for name, one in found.items() if name not in plain or one.value is None}
    return {f"human.{name}": reason for name, reason in undefined_reasons(missing).items()}
