"""Compared answers of several judges, by criterion and chat."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Compared answers of several criteria: chats with True or False from consensus and every judge.

    Parameters
    ----------
    keys, tiers : of the criteria.
    true, false : whether a compared answer has a human True, or False, shape (criteria, chats).
    right : whether a judge is right there, shape (judges, criteria, chats).
    human : human True and human False answers, compared or not, shape (criteria, 2).
    unjudged : those on which a judge has no True or False, for any reason, shape (judges, criteria, 2).
    answerers : human answers, compared or not, by the set of judges that answered too, shape
        (criteria, 2**judges); bit 0 is the first judge.
    ceilings : each rater against the others on the compared answers, by criterion.
    problems : by criterion, why its labels cannot measure a judge, or ''.
    clusters : number of each chat's cluster.
    """

    keys: tuple[str, ...]
    tiers: tuple[str, ...]
    true: Flags
    false: Flags
    right: Flags
    human: Ints
    unjudged: Ints
    answerers: Ints
    ceilings: tuple[Confusion, ...]
    problems: tuple[str, ...]
    clusters: Clusters = None

    def of_tier(self, tier: str) -> "ComparedAnswers":
        """The criteria of this tier."""
        places = [place for place, own in enumerate(self.tiers) if own == tier]
        return ComparedAnswers(
            keys=tuple(self.keys[place] for place in places),
            tiers=(tier,) * len(places),
            true=self.true[places],
            false=self.false[places],
            right=self.right[:, places],
            human=self.human[places],
            unjudged=self.unjudged[:, places],
            answerers=self.answerers[places],
            ceilings=tuple(self.ceilings[place] for place in places),
            problems=tuple(self.problems[place] for place in places),
            clusters=self.clusters,
        )

    def counts(self, chosen: Flags | bool = True) -> ClassCounts:
        """Count the compared answers that are `chosen`, by criterion and cluster."""
        return ClassCounts.of(true=self.true & chosen, false=self.false & chosen, clusters=self.clusters)

    @property
    def compared(self) -> Flags:
        """Whether an answer is compared, shape (criteria, chats)."""
        return self.true | self.false

    @property
    def n(self) -> int:
        """Compared answers."""
        return int(np.count_nonzero(self.compared))

    @property
    def chats(self) -> int:
        """Chats with a compared answer."""
        return int(np.count_nonzero(self.compared.any(axis=0)))

    @property
    def units(self) -> int:
        """Clusters of chats with a compared answer; chats without clusters."""
        chats = self.compared.any(axis=0)
        return self.chats if self.clusters is None else len(np.unique(self.clusters[chats]))

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
        human, unjudged = self.human, self.unjudged[judge]
        answers = unjudged.sum(axis=1) < human.sum(axis=1)
        shares = []
        for answer in (0, 1):
            asked = answers & (human[:, answer] > 0)
            shares.append(
                float(np.mean(unjudged[asked, answer] / human[asked, answer])) if asked.any() else 0.0
            )
        return shares[0], shares[1]


def compared_answers(criteria: Sequence[CriterionAnswers], clusters: Clusters = None) -> ComparedAnswers:
    """
    Collect the answers that the consensus and every judge gave.

    Parameters
    ----------
    criteria : one or more.
    clusters : number of each chat's cluster, shape (chats,); None if every chat is alone.

    Examples
    --------
    >>> codes = np.array([[0, 0, 3], [0, 1, 0]], dtype=np.int8)
    >>> one = CriterionAnswers("polite", "simple", codes[1], codes, np.zeros((3, 3), dtype=np.int64))
    >>> answers = compared_answers([one])
    >>> answers.n, answers.human.tolist(), answers.unjudged[0].tolist()
    (2, [[2, 1]], [[1, 0]])
    """
    # An unusable criterion has no human answer that is compared.
    human = np.stack(
        [np.full_like(one.human, HumanCode.UNRESOLVED) if one.problem else one.human for one in criteria]
    )
    judges = np.stack([one.judges for one in criteria], axis=1)
    # Human and judge codes are equal for True and False.
    true, false, by_judge = human == HumanCode.TRUE, human == HumanCode.FALSE, judges <= JudgeCode.FALSE
    compared = (true | false) & by_judge.all(axis=0)
    return ComparedAnswers(
        keys=tuple(one.key for one in criteria),
        tiers=tuple(one.tier for one in criteria),
        true=true & compared,
        false=false & compared,
        right=judges == human,
        human=np.stack([true.sum(axis=1), false.sum(axis=1)], axis=-1),
        unjudged=np.stack([(true & ~by_judge).sum(axis=2), (false & ~by_judge).sum(axis=2)], axis=-1),
        answerers=np.stack(
            [
                _answerers(of[:, chosen])
                for of, chosen in zip(by_judge.swapaxes(0, 1), true | false, strict=True)
            ]
        ),
        ceilings=tuple(
            leave_one_rater_out(one.counts[chosen]) for one, chosen in zip(criteria, compared, strict=True)
        ),
        problems=tuple(one.problem for one in criteria),
        clusters=clusters,
    )


def _answerers(by_judge: Flags) -> Ints:
    judges = len(by_judge)
    sets = (by_judge << np.arange(judges)[:, np.newaxis]).sum(axis=0)
    return np.bincount(sets, minlength=1 << judges)
