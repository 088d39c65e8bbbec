"""Input of a report: codes of human answers and verdicts by chat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.question_versions import Questions
from alignment.statistics.agreement import Confusion
from labeling.consensus.core.dropped import DroppedLabels

Codes = NDArray[np.int8]
Clusters = NDArray[np.int64] | None  # number of each chat's cluster, shape (chats,); None without clusters


def cluster_numbers(names: Sequence[str]) -> Clusters:
    """Number the clusters of chats by name, shape (chats,); a chat without one is a cluster of its own.

    >>> cluster_numbers(["ann", "", "ann", ""]).tolist(), cluster_numbers(["", ""])
    ([0, 1, 0, 2], None)
    """
    if not any(names):
        return None
    numbers: dict[str | int, int] = {}
    places = (name or place for place, name in enumerate(names))
    return np.array([numbers.setdefault(one, len(numbers)) for one in places], dtype=np.int64)


def in_clusters(chats: str, clusters: int | None) -> str:
    """Name the number of clusters behind a number of chats, if there are clusters.

    >>> in_clusters("240 chats", 60), in_clusters("240 chats", None)
    ('240 chats in 60 clusters', '240 chats')
    """
    return chats if clusters is None else f"{chats} in {clusters:,} cluster{'' if clusters == 1 else 's'}"


class HumanCode(IntEnum):
    """Human answer on a chat: the consensus, or one rater's label."""

    TRUE = 0
    FALSE = 1
    NA = 2
    UNRESOLVED = 3
    UNLABELLED = 4


class JudgeCode(IntEnum):
    """Verdict on a chat, or why there is none."""

    TRUE = 0
    FALSE = 1
    NA = 2
    UNPARSED = 3
    REFUSED = 4
    CUT_OFF = 5
    TOO_LONG = 6
    FAILED = 7
    NONE = 8


NO_VERDICT = tuple(code for code in JudgeCode if code > JudgeCode.NA)
CONSENSUS = "consensus"
EACH_RATER = "each-rater"


def abstentions(*, complete: bool) -> tuple[JudgeCode, ...]:
    """Codes of a judge's abstentions; before the run has ended a chat may still get its verdict.

    >>> JudgeCode.NONE in abstentions(complete=True), JudgeCode.NONE in abstentions(complete=False)
    (True, False)
    """
    return (JudgeCode.NA, *(code for code in NO_VERDICT if complete or code is not JudgeCode.NONE))


@dataclass(frozen=True)
class CriterionSpec:
    """Key, dimension, tier and passing answer of a criterion; failing a critical one fails the chat."""

    key: str
    dimension: str
    dimension_name: str
    tier: str
    passes_when: bool
    critical: bool = False


@dataclass(frozen=True)
class CriterionData:
    """Answers on one criterion, by chat in the report's order.

    Parameters
    ----------
    spec : the criterion.
    human : HumanCode by chat, shape (chats,), int8: the consensus, or the rater the report is against.
    judge : JudgeCode by chat, shape (chats,), int8; None without a run.
    counts : number of labels of all raters, shape (chats, 3): True, False, not applicable.
    raters : number of raters who gave them.
    rater_tables : each rater's labels × verdicts; used only in reports against each rater.
    questions : versions of the criterion's text that labels and verdicts answer.
    inverse : 1 / inclusion probability of each chat sampled by verdict, else 0, shape (chats,); None without
        such chats.
    chance : probability of each chat to be in one of these samples, shape (chats,); None without a sample.
    at_random : whether all labels are on a random sample of all chats.
    carried : number of labels that carried over from other criteria, by key; several after a merge.
    dropped : labels that answer an older text and no longer count; None without such labels.
    complete : whether the run has ended. Until then a chat without a verdict may still get one.

    Raises
    ------
    ValueError : shapes differ, a code is unknown or a count is negative. The message names the criterion.
    """

    spec: CriterionSpec
    human: Codes
    judge: Codes | None
    counts: NDArray[np.integer]
    raters: int
    rater_tables: Mapping[str, Confusion] = field(default_factory=dict)
    questions: Questions = field(default_factory=Questions)
    inverse: NDArray[np.float64] | None = None
    chance: NDArray[np.float64] | None = None
    at_random: bool = False
    carried: Mapping[str, int] = field(default_factory=dict)
    dropped: DroppedLabels | None = None
    complete: bool = True

    def __post_init__(self) -> None:
        chats = len(self.human)
        if self.counts.shape != (chats, 3) or (self.judge is not None and len(self.judge) != chats):
            raise ValueError(f"{self.spec.key}: human, judge and counts differ in length")
        for name, codes, last in (
            ("human", self.human, max(HumanCode)),
            ("judge", self.judge, max(JudgeCode)),
        ):
            if codes is not None and codes.size and not 0 <= codes.min() <= codes.max() <= last:
                raise ValueError(f"{self.spec.key}: unknown {name} code")
        if self.counts.size and self.counts.min() < 0:
            raise ValueError(f"{self.spec.key}: negative label count")

    @property
    def abstentions(self) -> tuple[JudgeCode, ...]:
        """Codes of abstentions: neither True nor False, for any reason, once a verdict was due."""
        return abstentions(complete=self.complete)

    @property
    def without_sampled(self) -> "CriterionData":
        """A copy in which chats sampled by verdict are unlabelled."""
        if self.inverse is None:
            return self
        human = np.where(self.inverse > 0, HumanCode.UNLABELLED, self.human).astype(np.int8)
        return replace(self, human=human, inverse=None)


@dataclass(frozen=True)
class ReportData:
    """Input of a report.

    Parameters
    ----------
    chat_ids : external ids, in the set's order.
    criteria : in the rubric's order; arrays as long as `chat_ids`.
    against : "consensus", "each-rater" or "rater:NAME".
    clusters : number of each chat's cluster, 0, 1, …, shape (chats,): chats that belong together. None if
        every chat is alone.

    Raises
    ------
    ValueError : an array differs in length from `chat_ids`, or only some criteria have verdicts.
    """

    chat_ids: Sequence[str]
    criteria: tuple[CriterionData, ...]
    against: str = CONSENSUS
    clusters: Clusters = None

    def __post_init__(self) -> None:
        if self.clusters is not None and len(self.clusters) != len(self.chat_ids):
            raise ValueError(f"{len(self.clusters)} cluster numbers for {len(self.chat_ids)} chats")
        for criterion in self.criteria:
            if len(criterion.human) != len(self.chat_ids):
                raise ValueError(
                    f"{criterion.spec.key}: {len(criterion.human)} codes for {len(self.chat_ids)} chats"
                )
        if len({criterion.judge is None for criterion in self.criteria}) > 1:
            raise ValueError("judge codes for some criteria and none for others")

    @property
    def each_rater(self) -> bool:
        """Whether statistics are computed against each rater and averaged."""
        return self.against == EACH_RATER

    @property
    def has_run(self) -> bool:
        """Whether there are verdicts; without them the report covers human labels only."""
        return any(criterion.judge is not None for criterion in self.criteria)
