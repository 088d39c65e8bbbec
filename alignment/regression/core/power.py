"""What the gate can see before a test is paid for: how often a true loss would be found."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, gammaln, xlogy

from alignment.regression.core.policy import GatePolicy

# The losses that people ask about: six points in a hundred chats, as in docs/gate.md.
LOSS = 0.06
# How many verdicts change between two versions where nobody has measured it.
CHANGING = 0.08
WORDS = (
    (0.9, "is nearly always found"),
    (0.65, "is mostly found"),
    (0.4, "is found about half of the time"),
    (0.1, "is missed most of the time"),
    (0.0, "is nearly always missed"),
)
# Beyond, nothing is missed any more.
MANY = 20_000


def chance_found(n: int, *, loss: float, alpha: float, changing: float = CHANGING) -> float:
    """How often a one-sided mid-p McNemar test at `alpha` finds a true loss.

    Parameters
    ----------
    n : labelled chats.
    loss : true loss of the share right, 0 to 1.
    alpha : one-sided level; of several criteria with Holm, the family's divided by their number.
    changing : share of chats on which exactly one of the two versions is right; never less than the loss.

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


def gate_sight(n: int, *, criteria: int, policy: GatePolicy) -> str:
    """What `n` labelled chats let the gate see of `criteria` criteria that may block, in one sentence.

    >>> gate_sight(100, criteria=1, policy=GatePolicy())
    'With 100 labelled chats a loss of 6 points is mostly found (69%).'
    >>> gate_sight(100, criteria=13, policy=GatePolicy())
    'With 100 labelled chats a loss of 6 points of one criterion is missed most of the time (found in 14%).'
    >>> gate_sight(40, criteria=1, policy=GatePolicy())
    '40 labelled chats are too few to pass: 100 are needed.'
    """
    if criteria == 0:
        return "No criterion of this test may block: it is reported only."
    if criteria == 1 and n < policy.single_minimum:
        return f"{n:,} labelled chats are too few to pass: {policy.single_minimum:,} are needed."
    alpha = policy.single_alpha if criteria == 1 else policy.family_alpha / criteria
    found = chance_found(min(n, MANY), loss=LOSS, alpha=alpha)
    words = next(words for least, words in WORDS if found >= least)
    share = f"{found:.0%}" if "found" in words else f"found in {found:.0%}"
    whose = "" if criteria == 1 else " of one criterion"
    return f"With {n:,} labelled chats a loss of {100 * LOSS:.0f} points{whose} {words} ({share})."


def _power(changed: int, share: float, alpha: float) -> float:
    """Of so many changed chats, each broken with this share: how often enough are broken."""
    broken = np.arange(changed + 1)
    p_values = (_tail(broken, changed) + _tail(broken - 1, changed)) / 2
    return float(_binomial(broken, changed, share)[p_values <= alpha].sum())


def _tail(above: ArrayLike, n: int) -> NDArray[np.float64]:
    """P(X > above), X ~ Binomial(n, 1/2); 1 without a trial."""
    if n == 0:
        return np.ones(np.shape(above))
    above = np.asarray(above)
    return np.where(above < 0, 1.0, bdtrc(np.maximum(above, 0), n, 0.5))


def _binomial(counts: NDArray[np.int_], n: int, share: float) -> NDArray[np.float64]:
    """P(X = count), X ~ Binomial(n, share)."""
    choose = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    return np.asarray(np.exp(choose + xlogy(counts, share) + xlogy(n - counts, 1 - share)))
