"""Counts of right answers of several judges, by chat."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode
from alignment.statistics.agreement import Confusion, leave_one_rater_out

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CriterionAnswers:
    """Answers on one criterion by chat. All criteria of a league have the same chats and judges.

    Parameters
    ----------
    key, tier : of the criterion.
    human : HumanCode by chat, shape (chats,).
    judges : JudgeCode by judge and chat, shape (judges, chats).
    counts : labels by chat, shape (chats, 3): True, False, not applicable.

    Raises
    ------
    ValueError : if the arrays differ in length; names the criterion.
    """

    key: str
    tier: str
    human: Codes
    judges: Codes
    counts: NDArray[np.integer]

    def __post_init__(self) -> None:
        chats = len(self.human)
        if self.judges.ndim != 2 or self.judges.shape[1] != chats or self.counts.shape != (chats, 3):
            raise ValueError(f"{self.key}: human, judges and counts differ in length")


@dataclass(frozen=True)
class Tallies:
    """Counts of compared answers: chats × criteria with True or False from consensus and every judge.

    Parameters
    ----------
    true, false : compared answers with human True, and False, by chat, shape (chats,).
    tp, tn : right answers among them by judge and chat, shape (judges, chats).
    both_tp, both_tn : answers on which both judges are right, shape (judges, judges).
    answerers : human answers, compared or not, by the set of judges that answered too, shape (2**judges,);
        bit 0 is the first judge.
    ceiling : each rater against the others on the compared answers.
    """

    true: Ints
    false: Ints
    tp: Ints
    tn: Ints
    both_tp: Ints
    both_tn: Ints
    answerers: Ints
    ceiling: Confusion

    @property
    def by_chat(self) -> Ints:
        """Compared answers by chat."""
        return self.true + self.false

    @property
    def n(self) -> int:
        """Compared answers."""
        return int(self.by_chat.sum())

    @property
    def answered(self) -> int:
        """Chats × criteria with human True or False, compared or not."""
        return int(self.answerers.sum())

    @property
    def chats(self) -> int:
        """Chats with a compared answer."""
        return int((self.by_chat > 0).sum())

    @property
    def right(self) -> Ints:
        """Right answers by judge and chat."""
        return self.tp + self.tn

    def __add__(self, other: "Tallies") -> "Tallies":
        names = (field.name for field in fields(self))
        return Tallies(*(getattr(self, name) + getattr(other, name) for name in names))


def tally(criteria: Sequence[CriterionAnswers]) -> Tallies:
    """
    Count the answers on several criteria together.

    Parameters
    ----------
    criteria : one or more.

    Examples
    --------
    >>> codes = np.array([[0, 0, 3], [0, 1, 0]], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", codes[1], codes, np.zeros((3, 3), dtype=np.int64))
    >>> counts = tally([one])
    >>> counts.n, counts.answered, counts.both_tp.tolist()
    (2, 3, [[1, 1], [1, 1]])
    """
    first, *others = criteria
    total = _of_one(first)
    for one in others:
        total += _of_one(one)
    return total


def _of_one(one: CriterionAnswers) -> Tallies:
    # Human and judge codes are equal for True and False.
    answered, by_judge = one.human <= HumanCode.FALSE, one.judges <= JudgeCode.FALSE
    compared = answered & by_judge.all(axis=0)
    true, false = compared & (one.human == HumanCode.TRUE), compared & (one.human == HumanCode.FALSE)
    right = one.judges == one.human
    tp, tn = right & true, right & false
    return Tallies(
        true=true.astype(np.int64),
        false=false.astype(np.int64),
        tp=tp.astype(np.int64),
        tn=tn.astype(np.int64),
        both_tp=_both(tp),
        both_tn=_both(tn),
        answerers=_answerers(by_judge[:, answered]),
        ceiling=leave_one_rater_out(one.counts[compared]),
    )


def _both(right: NDArray[np.bool_]) -> Ints:
    exact = right.astype(np.float64)  # NB: float products are much faster, and exact up to 2**53
    return (exact @ exact.T).astype(np.int64)


def _answerers(by_judge: NDArray[np.bool_]) -> Ints:
    judges = len(by_judge)
    sets = (by_judge << np.arange(judges)[:, np.newaxis]).sum(axis=0)
    return np.bincount(sets, minlength=1 << judges)
