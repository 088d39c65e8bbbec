"""Compared answers of several judges, by criterion and chat."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Clusters, Codes, HumanCode, JudgeCode
from alignment.statistics.agreement import Confusion, leave_one_rater_out
from alignment.statistics.macro_rates import ClassCounts

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class CriterionAnswers:
    """Answers on one criterion by chat. All criteria of a league have the same chats and judges.

    Parameters
    ----------
    key, tier : of the criterion.
    human : HumanCode by chat, shape (chats,).
    judges : JudgeCode by judge and chat, shape (judges, chats).
    counts : labels by chat, shape (chats, 3): True, False, not applicable.
    problem : why the labels cannot measure a judge, or ''. No answer on the criterion is compared then.

    Raises
    ------
    ValueError : if the arrays differ in length; names the criterion.
    """

    key: str
    tier: str
    human: Codes
    judges: Codes
    counts: NDArray[np.integer]
    problem: str = ""

    def __post_init__(self) -> None:
        chats = len(self.human)
        if self.judges.ndim != 2 or self.judges.shape[1] != chats or self.counts.shape != (chats, 3):
            raise ValueError(f"{self.key}: human, judges and counts differ in length")


@dataclass(frozen=True)
class ComparedAnswers:
    """Answers of several criteria. Compared: chats with True or False from the consensus and every judge.

    Parameters
    ----------
    keys, tiers : of the criteria.
    human_true, human_false : whether the consensus is True, or False, shape (criteria, chats).
    answered : whether a judge has True or False, shape (judges, criteria, chats).
    right : whether a judge has the answer of the consensus, shape (judges, criteria, chats).
    labels : labels by chat, shape (criteria, chats, 3).
    problems : by criterion, why its labels cannot measure a judge, or ''. It has no human answers then.
    clusters : number of each chat's cluster.
    """

    keys: tuple[str, ...]
    tiers: tuple[str, ...]
    human_true: Flags
    human_false: Flags
    answered: Flags
    right: Flags
    labels: Ints
    problems: tuple[str, ...]
    clusters: Clusters = None

    def of_tier(self, tier: str) -> "ComparedAnswers":
        """The criteria of this tier."""
        places = [place for place, own in enumerate(self.tiers) if own == tier]
        return ComparedAnswers(
            keys=tuple(self.keys[place] for place in places),
            tiers=(tier,) * len(places),
            human_true=self.human_true[places],
            human_false=self.human_false[places],
            answered=self.answered[:, places],
            right=self.right[:, places],
            labels=self.labels[places],
            problems=tuple(self.problems[place] for place in places),
            clusters=self.clusters,
        )

    def counts(self, chosen: Flags | bool = True) -> ClassCounts:
        """Count the compared answers that are `chosen`, by criterion and cluster."""
        return self._counts(self.compared & chosen)

    def counts_of_asked(self, chosen: Flags | bool = True) -> ClassCounts:
        """Count the human answers that are `chosen`, on criteria that are compared, judged or not."""
        return self._counts(self.asked & chosen)

    def _counts(self, chosen: Flags) -> ClassCounts:
        true, false = self.human_true & chosen, self.human_false & chosen
        return ClassCounts.of(true=true, false=false, clusters=self.clusters)

    @cached_property
    def human(self) -> Flags:
        """Whether the consensus is True or False, shape (criteria, chats)."""
        return self.human_true | self.human_false

    @cached_property
    def compared(self) -> Flags:
        """Whether an answer is compared, shape (criteria, chats)."""
        return self.human & self.answered.all(axis=0)

    @cached_property
    def asked(self) -> Flags:
        """Human answers on the criteria of which some are compared, shape (criteria, chats)."""
        return self.human & self.compared.any(axis=1, keepdims=True)

    @property
    def n(self) -> int:
        """Compared answers."""
        return int(np.count_nonzero(self.compared))

    @property
    def chats(self) -> int:
        """Chats with a compared answer."""
        return int(np.count_nonzero(self.compared.any(axis=0)))

    @cached_property
    def answerers(self) -> Ints:
        """Human answers by the set of judges that answered too, shape (2**judges,); bit 0 is the first."""
        by_judge = self.answered[:, self.human]
        judges = len(by_judge)
        sets = (by_judge << np.arange(judges)[:, np.newaxis]).sum(axis=0)
        return np.bincount(sets, minlength=1 << judges)

    @cached_property
    def ceilings(self) -> tuple[Confusion, ...]:
        """Each rater against the others on the compared answers, by criterion."""
        chosen = zip(self.labels, self.compared, strict=True)
        return tuple(leave_one_rater_out(labels[compared]) for labels, compared in chosen)

    @property
    def ceiling(self) -> float | None:
        """Balanced accuracy of a rater against the others, averaged over criteria; None if never defined."""
        values = [one.balanced_accuracy for one in self.ceilings]
        defined = [value for value in values if value is not None]
        return sum(defined) / len(defined) if defined else None

    def unjudged_shares(self, judge: int) -> tuple[float, float]:
        """The judge's share of human True, and of human False, without True or False.

        Means over the criteria that the judge answers at all: others are not compared.
        """
        return self._unjudged(judge, self.human_true), self._unjudged(judge, self.human_false)

    def _unjudged(self, judge: int, human: Flags) -> float:
        answered, asked = self.answered[judge], human.sum(axis=1)
        chosen = (self.human & answered).any(axis=1) & (asked > 0)
        if not chosen.any():
            return 0.0
        return float(np.mean((human & ~answered).sum(axis=1)[chosen] / asked[chosen]))


def compared_answers(criteria: Sequence[CriterionAnswers], clusters: Clusters = None) -> ComparedAnswers:
    """
    Collect the answers of the consensus and the judges.

    Parameters
    ----------
    criteria : one or more.
    clusters : number of each chat's cluster, shape (chats,); None if every chat is alone.

    Examples
    --------
    >>> codes = np.array([[0, 0, 3], [0, 1, 0]], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", codes[1], codes, np.zeros((3, 3), dtype=np.int64))
    >>> answers = compared_answers([one])
    >>> answers.n, int(answers.human.sum()), answers.unjudged_shares(0)
    (2, 3, (0.5, 0.0))
    """
    # An unusable criterion has no human answer that is compared.
    human = np.stack(
        [np.full_like(one.human, HumanCode.UNRESOLVED) if one.problem else one.human for one in criteria]
    )
    judges = np.stack([one.judges for one in criteria], axis=1)
    # Human and judge codes are equal for True and False.
    return ComparedAnswers(
        keys=tuple(one.key for one in criteria),
        tiers=tuple(one.tier for one in criteria),
        human_true=human == HumanCode.TRUE,
        human_false=human == HumanCode.FALSE,
        answered=judges <= JudgeCode.FALSE,
        right=judges == human,
        labels=np.stack([one.counts for one in criteria]),
        problems=tuple(one.problem for one in criteria),
        clusters=clusters,
    )
