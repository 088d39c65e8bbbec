"""Power of the gate: how often a true loss is found."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, gammaln, xlogy

from alignment.comparison.core.codes import in_clusters
from alignment.regression.core.policy import GatePolicy
from alignment.statistics.label_needs import Decision, LabelCounts, Minimums, need_of

# The loss for which pages state the power.
LOSS = 0.06
# Assumed share of verdicts that change between two versions.
CHANGING = 0.08
WORDS = (
    (0.9, "is nearly always found"),
    (0.65, "is mostly found"),
    (0.4, "is found about half of the time"),
    (0.1, "is mostly missed"),
    (0.0, "is nearly always missed"),
)
# With more chats the power is practically 1.
MANY = 20_000


def chance_found(n: int, *, loss: float, alpha: float, changing: float = CHANGING) -> float:
    """Compute how often a one-sided mid-p McNemar test at `alpha` finds a true loss.

    Parameters
    ----------
    n : labelled chats.
    loss : true loss of accuracy, 0 to 1.
    alpha : one-sided level; for several criteria with Holm, the family level divided by their number.
    changing : share of chats on which exactly one of the two versions is right, at least the loss.

    Examples
    --------
    >>> round(chance_found(100, loss=0.05, alpha=0.05), 2)
    0.52
    """
    changing = max(changing, loss)
    changed = np.arange(n + 1)
    weights = _binomial(changed, n, changing)
    share = (changing + loss) / (2 * changing)
    power = [_power(int(count), share, alpha) for count in changed[weights > 1e-9]]
    return float(np.dot(weights[weights > 1e-9], power))


def gate_power(n: int, *, criteria: int, policy: GatePolicy, clusters: int | None = None) -> str:
    """Describe the power with `n` labelled chats and `criteria` blocking criteria in one sentence.

    `clusters` : number of clusters of these chats; None without. The power is then the least possible, that
    of so many chats: how much a cluster's chats change together is known only after the test.

    >>> gate_power(100, criteria=1, policy=GatePolicy())
    'With 100 labelled chats a loss of 6 points is mostly found (69%).'
    >>> gate_power(100, criteria=13, policy=GatePolicy())
    'With 100 labelled chats a loss of 6 points of one criterion is mostly missed (found in 14%).'
    >>> gate_power(4, criteria=3, policy=GatePolicy())
    '4 labelled chats are too few to pass. Label 28 more for the gate, 32 in all.'
    >>> gate_power(40, criteria=1, policy=GatePolicy())
    '40 labelled chats are too few to pass. Label 60 more for the gate, 100 in all.'
    >>> gate_power(400, criteria=1, policy=GatePolicy(), clusters=80)
    '400 labelled chats in 80 clusters are too few to pass. Label chats of 20 more clusters for the gate.'
    >>> gate_power(400, criteria=1, policy=GatePolicy(), clusters=100)
    'With 400 labelled chats in 100 clusters a loss of 6 points is mostly found (at least 69%).'
    """
    units = n if clusters is None else clusters
    chats = in_clusters(f"{n:,} labelled chats", clusters)
    if criteria == 0:
        return "No criterion of this test can block: for information only."
    minimum = policy.single_minimum if criteria == 1 else policy.together_minimum
    if units < minimum:
        least = Minimums(gate_alone=minimum)
        more = need_of(Decision.GATE_ALONE, LabelCounts(units, 0), least).missing_chats
        if clusters is not None:
            other = f"{more:,} more cluster{'' if more == 1 else 's'}"
            return f"{chats} are too few to pass. Label chats of {other} for the gate."
        return f"{chats} are too few to pass. Label {more:,} more for the gate, {least.gate_alone:,} in all."
    alpha = policy.single_alpha if criteria == 1 else policy.family_alpha / criteria
    power = chance_found(min(units, MANY), loss=LOSS, alpha=alpha)
    words = next(words for least, words in WORDS if power >= least)
    share = f"{'' if clusters is None else 'at least '}{power:.0%}"
    share = share if "found" in words else f"found in {share}"
    which = "" if criteria == 1 else " of one criterion"
    return f"With {chats} a loss of {100 * LOSS:.0f} points{which} {words} ({share})."


def _power(changed: int, share: float, alpha: float) -> float:
    """Return the power given the number of changed chats, each broken with probability `share`."""
    broken = np.arange(changed + 1)
    p_values = (_tail(broken, changed) + _tail(broken - 1, changed)) / 2
    return float(_binomial(broken, changed, share)[p_values <= alpha].sum())


def _tail(above: ArrayLike, n: int) -> NDArray[np.float64]:
    """P(X > above), X ~ Binomial(n, 1/2); 1 for n = 0."""
    if n == 0:
        return np.ones(np.shape(above))
    above = np.asarray(above)
    return np.where(above < 0, 1.0, bdtrc(np.maximum(above, 0), n, 0.5))


def _binomial(counts: NDArray[np.int_], n: int, share: float) -> NDArray[np.float64]:
    """P(X = count), X ~ Binomial(n, share)."""
    choose = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    return np.asarray(np.exp(choose + xlogy(counts, share) + xlogy(n - counts, 1 - share)))
