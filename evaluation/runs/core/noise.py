"""The judge's own noise, from repeated answers to one question."""

from collections.abc import Iterable
from statistics import fmean

from evaluation.core.types import Votes


def flip_rate(votes: Votes) -> float | None:
    """Return the chance that two different answers disagree; None for fewer than two answers.

    1 − Σ nᵢ(nᵢ − 1) / n(n − 1) over the answers True, False and not applicable. This is one minus the
    agreement within an item (Fleiss, "Measuring nominal scale agreement among many raters", 1971), with the
    samples as raters. It is an unbiased estimate of how often a repeated answer would differ. Unreadable
    answers are not among the votes.

    Examples
    --------
    >>> flip_rate(Votes(true=2, false=1, not_applicable=0))
    0.6666666666666667
    """
    counts = (votes.true, votes.false, votes.not_applicable)
    n = sum(counts)
    if n < 2:
        return None
    return 1 - sum(count * (count - 1) for count in counts) / (n * (n - 1))


def mean_flip_rate(votes: Iterable[Votes]) -> float | None:
    """Return the mean flip rate over chats and criteria; None if none of them has two answers.

    Examples
    --------
    >>> mean_flip_rate([Votes(3, 0, 0), Votes(0, 1, 1), Votes(1, 0, 0)])
    0.5
    """
    rates = [rate for each in votes if (rate := flip_rate(each)) is not None]
    return fmean(rates) if rates else None
