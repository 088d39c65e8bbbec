"""What the gate decides on: champion and candidate beside the human answers, counted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from alignment.comparison.core.codes import Codes, HumanCode, JudgeCode
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion
from alignment.statistics.paired_tests import PairedTable, holm, mcnemar_midp, tango_interval

Bools = NDArray[np.bool_]
SUBJECTIVE = "subjective"
# The paired table, and the answered chats that are left out of it.
CELLS = ("fixed", "broken", "still_right", "still_wrong", "no_verdict")
# An endpoint's trouble says nothing of the prompt; any other lack of an answer is the judge's own.
OUTER = (JudgeCode.FAILED, JudgeCode.NONE)


@dataclass(frozen=True)
class PairedVerdicts:
    """One criterion's answers, by chat; the same chats for all criteria of a test.

    Parameters
    ----------
    key, tier : of the criterion.
    human : HumanCode by chat, shape (chats,).
    champion, candidate : JudgeCode by chat, shape (chats,).
    ceiling : human balanced accuracy, each rater against the others; None where nobody can say.

    Raises
    ------
    ValueError : arrays that differ in length.

    Notes
    -----
    A judge is right where it answers as people did. N/A, unparsed, refused, cut off and too long are wrong
    answers; where either judge failed for outer reasons, or people have no True or False, the chat is left
    out.
    """

    key: str
    tier: str
    human: Codes
    champion: Codes
    candidate: Codes
    ceiling: float | None = None

    def __post_init__(self) -> None:
        if not len(self.human) == len(self.champion) == len(self.candidate):
            raise ValueError(f"{self.key}: human, champion and candidate differ in length")

    @property
    def blocks(self) -> bool:
        """A subjective criterion is reported and never blocks."""
        return self.tier != SUBJECTIVE

    @cached_property
    def answered(self) -> Bools:
        """Chats that people answered True or False."""
        return np.isin(self.human, (HumanCode.TRUE, HumanCode.FALSE))

    @cached_property
    def compared(self) -> Bools:
        """Answered chats on which neither judge failed for outer reasons."""
        return self.answered & ~np.isin(self.champion, OUTER) & ~np.isin(self.candidate, OUTER)

    @cached_property
    def cells(self) -> dict[str, Bools]:
        """Which chats fall into each of CELLS; together they are the answered ones, each once."""
        # True and False have the same codes on both sides.
        new, old = self.candidate == self.human, self.champion == self.human
        compared = self.compared
        return {
            "fixed": compared & new & ~old,
            "broken": compared & old & ~new,
            "still_right": compared & new & old,
            "still_wrong": compared & ~new & ~old,
            "no_verdict": self.answered & ~compared,
        }

    @cached_property
    def change(self) -> NDArray[np.int8]:
        """By chat: 1 fixed, -1 broken, 0 unchanged or not compared."""
        return self.cells["fixed"].astype(np.int8) - self.cells["broken"].astype(np.int8)

    def count(self, cell: str, among: Bools | None = None) -> int:
        """How many chats fall into a cell, of all or of those `among`."""
        found = self.cells[cell]
        return int((found if among is None else found & among).sum())

    def table(self, among: Bools | None = None) -> PairedTable:
        """The paired table by who is right, the candidate first; of all chats or of those `among`."""
        names = ("still_right", "fixed", "broken", "still_wrong")
        return PairedTable(*(self.count(name, among) for name in names))


@dataclass(frozen=True)
class ClassChange:
    """What changed on the chats that people gave one answer: counts, and the one-sided mid-p of a loss."""

    answer: bool
    n: int
    fixed: int
    broken: int

    @property
    def p_worse(self) -> float:
        """One-sided mid-p value of McNemar's test."""
        return mcnemar_midp(self.broken, self.fixed)


@dataclass(frozen=True)
class CriterionEvidence:
    """One criterion, champion against candidate.

    `table` counts by who is right, the candidate first: `first` are fixed, `second` broken. `left_out` are
    answered chats that lack an answer for outer reasons. `p_worse` is the one-sided mid-p value, `p_holm` the
    same adjusted over all criteria that may block (None for the others).
    """

    key: str
    tier: str
    table: PairedTable
    left_out: int
    classes: tuple[ClassChange, ClassChange]
    before: Confusion
    after: Confusion
    ceiling: float | None
    p_worse: float
    p_holm: float | None = None

    @property
    def n(self) -> int:
        """Chats compared."""
        return self.table.n

    @property
    def fixed(self) -> int:
        """Chats on which only the candidate is right."""
        return self.table.first

    @property
    def broken(self) -> int:
        """Chats on which only the champion is right."""
        return self.table.second

    @property
    def blocks(self) -> bool:
        """A subjective criterion is reported and never blocks."""
        return self.tier != SUBJECTIVE

    @property
    def difference(self) -> Estimate:
        """Candidate's share right minus champion's, with Tango's 95% interval."""
        return Estimate(self.table.difference, tango_interval(self.table), reason="" if self.n else "no chat")


@dataclass(frozen=True)
class PooledEvidence:
    """The change of the mean over criteria: mean by chat, its standard error over chats (chats clustered).

    `mean` and `error` are None with fewer than two chats.
    """

    chats: int
    mean: float | None
    error: float | None

    @property
    def z(self) -> float | None:
        """mean / error; None where nothing varies."""
        return self.mean / self.error if self.mean is not None and self.error else None

    def low(self, alpha: float) -> float | None:
        """The one-sided lower bound of level 1 - alpha."""
        if self.mean is None or self.error is None:
            return None
        return self.mean + float(ndtri(alpha)) * self.error


@dataclass(frozen=True)
class Evidence:
    """All criteria in the order given, and the pooled change of those that may block."""

    criteria: tuple[CriterionEvidence, ...]
    pooled: PooledEvidence

    @property
    def blocking(self) -> tuple[CriterionEvidence, ...]:
        """The criteria that may block."""
        return tuple(criterion for criterion in self.criteria if criterion.blocks)


def weigh(criteria: Sequence[PairedVerdicts]) -> Evidence:
    """Count everything the gate looks at.

    Examples
    --------
    >>> people, old, new = (np.array(codes, dtype=np.int8) for codes in ([0, 1, 1], [0, 0, 1], [0, 1, 0]))
    >>> found = weigh([PairedVerdicts("polite", "simple", people, old, new)]).criteria[0]
    >>> found.fixed, found.broken, found.n
    (1, 1, 3)
    """
    counted = [_count(verdicts) for verdicts in criteria]
    blocking = [found for found in counted if found.blocks]
    adjusted = dict(
        zip((found.key for found in blocking), holm([found.p_worse for found in blocking]), strict=True)
    )
    return Evidence(
        tuple(replace(found, p_holm=adjusted.get(found.key)) for found in counted),
        _pooled([verdicts for verdicts in criteria if verdicts.blocks]),
    )


def _count(verdicts: PairedVerdicts) -> CriterionEvidence:
    table = verdicts.table()
    return CriterionEvidence(
        key=verdicts.key,
        tier=verdicts.tier,
        table=table,
        left_out=verdicts.count("no_verdict"),
        classes=(_of_class(verdicts, HumanCode.TRUE), _of_class(verdicts, HumanCode.FALSE)),
        before=_confusion(verdicts, verdicts.champion),
        after=_confusion(verdicts, verdicts.candidate),
        ceiling=verdicts.ceiling,
        p_worse=mcnemar_midp(table.second, table.first),
    )


def _of_class(verdicts: PairedVerdicts, answer: HumanCode) -> ClassChange:
    table = verdicts.table(verdicts.human == answer)
    return ClassChange(answer is HumanCode.TRUE, table.n, table.first, table.second)


def _confusion(verdicts: PairedVerdicts, judge: Codes) -> Confusion:
    """People against one judge on the compared chats, where it answered True or False."""
    here = verdicts.compared & (judge <= JudgeCode.FALSE)
    cells = np.bincount(2 * verdicts.human[here] + judge[here], minlength=4)
    tp, fn, fp, tn = cells.tolist()
    return Confusion(tp, fn, fp, tn)


def _pooled(criteria: Sequence[PairedVerdicts]) -> PooledEvidence:
    """By chat the mean change over its compared criteria; then mean and standard error over chats."""
    if not criteria:
        return PooledEvidence(0, None, None)
    compared = np.array([verdicts.compared for verdicts in criteria]).sum(axis=0)
    change = np.array([verdicts.change for verdicts in criteria]).sum(axis=0)
    means = change[compared > 0] / compared[compared > 0]
    if len(means) < 2:
        return PooledEvidence(len(means), None, None)
    return PooledEvidence(len(means), float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means))))


def flip_share(first: Codes, second: Codes) -> Estimate:
    """Share of verdicts that differ between two runs of one judge, with its 95% Wilson interval.

    This is the judge's noise: what changes when nothing has changed. Chats without an answer for outer
    reasons in either run are left out.

    >>> flip_share(np.array([0, 1, 1], dtype=np.int8), np.array([0, 1, 0], dtype=np.int8)).value
    0.3333333333333333
    """
    both = ~np.isin(first, OUTER) & ~np.isin(second, OUTER)
    return proportion(int((first != second)[both].sum()), int(both.sum()), reason="no verdict in both runs")
