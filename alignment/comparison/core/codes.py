"""What a report is built from: answer codes of people and judge by chat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.question_versions import Questions
from alignment.statistics.agreement import Confusion

Codes = NDArray[np.int8]


class HumanCode(IntEnum):
    """What people's labels on a chat amount to."""

    TRUE = 0
    FALSE = 1
    NA = 2
    UNRESOLVED = 3
    UNLABELLED = 4


class JudgeCode(IntEnum):
    """What the judge answered on a chat, or why there is no answer."""

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
# The judge was asked and gave neither True nor False: not what failed calls, or no call, left open.
SILENT = (JudgeCode.NA, JudgeCode.UNPARSED, JudgeCode.REFUSED, JudgeCode.CUT_OFF, JudgeCode.TOO_LONG)
CONSENSUS = "consensus"
EACH_RATER = "each-rater"


@dataclass(frozen=True)
class CriterionSpec:
    """A criterion as the report names it."""

    key: str
    dimension: str
    dimension_name: str
    tier: str
    passes_when: bool


@dataclass(frozen=True)
class CriterionData:
    """One criterion's answers, by chat in the report's order.

    Parameters
    ----------
    spec : what the criterion is.
    human : HumanCode by chat, shape (chats,), int8: the consensus, or the rater the report is against.
    judge : JudgeCode by chat, shape (chats,), int8; None when there is no run.
    counts : labels by chat, shape (chats, 3): True, False, not applicable; of all raters.
    raters : how many different raters gave them.
    rater_tables : each rater against the judge; read only against each rater.
    questions : which texts of the criterion labels and judge answer.
    inverse : 1 / probability of each chat whose labels were drawn by verdict, else 0, shape (chats,); None
        where no chat is.
    chance : of each chat to have been drawn by one of those draws, shape (chats,); None without a draw.
    at_random : whether every label is on a chat that was drawn at random among all of them.

    Raises
    ------
    ValueError : shapes that differ, a code that does not exist, a negative count. Names the criterion.
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
    def without_drawn(self) -> "CriterionData":
        """The same, those chats as if nobody had labelled them."""
        if self.inverse is None:
            return self
        human = np.where(self.inverse > 0, HumanCode.UNLABELLED, self.human).astype(np.int8)
        return replace(self, human=human, inverse=None)


@dataclass(frozen=True)
class ReportData:
    """Everything a report is computed from.

    Parameters
    ----------
    chat_ids : external ids in the set's order.
    criteria : one entry a criterion, in the rubric's order; arrays as long as `chat_ids`.
    against : "consensus", "each-rater" or "rater:NAME".

    Raises
    ------
    ValueError : arrays of another length than `chat_ids`, or some criteria with a run and some without.
    """

    chat_ids: Sequence[str]
    criteria: tuple[CriterionData, ...]
    against: str = CONSENSUS

    def __post_init__(self) -> None:
        for criterion in self.criteria:
            if len(criterion.human) != len(self.chat_ids):
                raise ValueError(
                    f"{criterion.spec.key}: {len(criterion.human)} codes for {len(self.chat_ids)} chats"
                )
        if len({criterion.judge is None for criterion in self.criteria}) > 1:
            raise ValueError("judge codes for some criteria and none for others")

    @property
    def each_rater(self) -> bool:
        """Statistics are taken against each rater and averaged."""
        return self.against == EACH_RATER

    @property
    def has_run(self) -> bool:
        """There are verdicts; without them the report shows the human side alone."""
        return any(criterion.judge is not None for criterion in self.criteria)
