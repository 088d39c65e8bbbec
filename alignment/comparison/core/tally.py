"""Counts of the chats of a criterion, by human answer and verdict; each chat counts once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import NO_VERDICT, CriterionData, HumanCode, JudgeCode, abstentions
from alignment.statistics.agreement import Confusion

_JUDGE_CODES = len(JudgeCode)


@dataclass(frozen=True)
class Tally:
    """Number of chats by (HumanCode, JudgeCode), shape (5, 9), or (5,) without a run.

    `complete` : whether the run has ended, so that a missing verdict is an abstention.
    """

    joint: NDArray[np.int64]
    complete: bool = True

    @property
    def has_run(self) -> bool:
        """Whether there are verdicts."""
        return self.joint.ndim == 2

    def human(self, code: HumanCode) -> int:
        """Chats with this human answer, with any verdict or none."""
        return int(self.joint[code].sum())

    def judge(self, code: JudgeCode) -> int:
        """Chats with this verdict, labelled or not."""
        return int(self.joint[:, code].sum())

    def both_answered(self, code: JudgeCode) -> int:
        """Chats with a human True or False and this verdict."""
        return int(self.joint[[HumanCode.TRUE, HumanCode.FALSE], code].sum())

    def abstentions(self, code: HumanCode) -> int:
        """Chats with this human answer on which the judge abstained."""
        return int(self.joint[code, self._abstentions].sum())

    @property
    def chats(self) -> int:
        """Number of chats."""
        return int(self.joint.sum())

    @property
    def all_abstentions(self) -> int:
        """Chats on which the judge abstained, labelled or not."""
        return int(self.joint[:, self._abstentions].sum())

    @property
    def _abstentions(self) -> list[int]:
        return list(abstentions(complete=self.complete))

    @property
    def without_verdict(self) -> int:
        """Chats without a verdict, labelled or not; *not applicable* is a verdict."""
        return int(self.joint[:, list(NO_VERDICT)].sum())

    @property
    def not_judged_yet(self) -> int:
        """Chats, labelled or not, whose verdict may still come; 0 once the run has ended."""
        return 0 if self.complete else self.judge(JudgeCode.NONE)

    @property
    def labelled(self) -> int:
        """Chats with a label that counts."""
        return self.chats - self.human(HumanCode.UNLABELLED)

    def unjudged(self, code: HumanCode) -> int:
        """Chats with this human answer and without a verdict of True or False, for any reason."""
        return self.human(code) - int(self.joint[code, : JudgeCode.NA].sum())

    @property
    def answered(self) -> int:
        """Chats with a human True or False."""
        return self.human(HumanCode.TRUE) + self.human(HumanCode.FALSE)

    @property
    def table(self) -> Confusion:
        """The 2x2 table of human answers × verdicts."""
        tp, fn, fp, tn = self.joint[:2, :2].ravel().tolist()
        return Confusion(tp, fn, fp, tn)

    @property
    def no_verdict_by(self) -> dict[str, int]:
        """Chats with a human True or False and without a verdict, by reason; zeros are omitted."""
        counts = {code.name.lower(): self.both_answered(code) for code in NO_VERDICT}
        return {name: n for name, n in counts.items() if n}


def human_codes(data: CriterionData, *, each_rater: bool) -> NDArray[np.int8]:
    """HumanCode by chat, shape (chats,). Against each rater, one True or False label answers a chat."""
    if not each_rater:
        return data.human
    answered = data.counts[:, 0] + data.counts[:, 1] > 0
    not_answered = np.where(data.counts[:, 2] > 0, HumanCode.NA, HumanCode.UNLABELLED)
    return np.where(answered, HumanCode.TRUE, not_answered).astype(np.int8)


def joint_codes(human: NDArray[np.int8], judge: NDArray[np.int8]) -> NDArray[np.int8]:
    """One code per chat for the pair (HumanCode, JudgeCode), 0..44; arrays of shape (chats,)."""
    return human * np.int8(_JUDGE_CODES) + judge


def tally(data: CriterionData, *, each_rater: bool = False) -> Tally:
    """Count the chats of one criterion.

    >>> from alignment.comparison.core.codes import CriterionSpec
    >>> spec = CriterionSpec("polite", "compliance", "Compliance", "simple", True)
    >>> human, judge = np.array([0, 0, 1], dtype=np.int8), np.array([0, 1, 1], dtype=np.int8)
    >>> tally(CriterionData(spec, human, judge, np.zeros((3, 3), dtype=np.int64), 1)).table
    Confusion(tp=1, fn=1, fp=0, tn=1)
    """
    human = human_codes(data, each_rater=each_rater)
    if data.judge is None:
        return Tally(np.bincount(human, minlength=len(HumanCode)), data.complete)
    joint = np.bincount(joint_codes(human, data.judge), minlength=len(HumanCode) * _JUDGE_CODES)
    return Tally(joint.reshape(len(HumanCode), _JUDGE_CODES), data.complete)
