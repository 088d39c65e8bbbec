"""Changes by the briefs of a debate: its verdicts beside those of the same judge without briefs."""

from collections.abc import Sequence
from dataclasses import dataclass

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode


@dataclass(frozen=True, slots=True)
class BriefEffect:
    """Counts of chats with a human True or False and a readable verdict with and without briefs.

    Attributes
    ----------
    mended : wrong without briefs, right with them.
    broke : right without briefs, wrong with them.
    still_right, still_wrong : unchanged.
    """

    mended: int
    broke: int
    still_right: int
    still_wrong: int

    @property
    def n(self) -> int:
        """All counted chats."""
        return self.mended + self.broke + self.still_right + self.still_wrong

    def as_json(self) -> dict[str, int]:
        """Return the counts, with `n`."""
        return {
            "n": self.n,
            "mended": self.mended,
            "broke": self.broke,
            "still_right": self.still_right,
            "still_wrong": self.still_wrong,
        }


def brief_effect(*, human: Codes, direct: Codes, debate: Codes) -> BriefEffect:
    """Compare the verdicts of a debate with direct ones, on one criterion.

    A verdict of not applicable is wrong, because a human answer exists. A chat with an unreadable verdict on
    either side is not counted.

    Parameters
    ----------
    human, direct, debate : HumanCode and JudgeCode by chat, shape (chats,).

    Examples
    --------
    >>> import numpy as np
    >>> human = np.array([0, 0, 1, 1], dtype=np.int8)
    >>> brief_effect(human=human, direct=1 - human, debate=human).as_json()
    {'n': 4, 'mended': 4, 'broke': 0, 'still_right': 0, 'still_wrong': 0}
    """
    counted = (human <= HumanCode.FALSE) & (direct <= JudgeCode.NA) & (debate <= JudgeCode.NA)
    before, after = (direct == human)[counted], (debate == human)[counted]
    return BriefEffect(
        mended=int((~before & after).sum()),
        broke=int((before & ~after).sum()),
        still_right=int((before & after).sum()),
        still_wrong=int((~before & ~after).sum()),
    )


def all_effects(effects: Sequence[BriefEffect]) -> BriefEffect:
    """Return the counts of all criteria together."""
    return BriefEffect(
        mended=sum(one.mended for one in effects),
        broke=sum(one.broke for one in effects),
        still_right=sum(one.still_right for one in effects),
        still_wrong=sum(one.still_wrong for one in effects),
    )
