"""Evidence of the gate: counts of champion and candidate against the consensus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
# Cells of the paired table, and the labelled chats excluded from it.
CELLS = ("fixed", "broken", "still_right", "still_wrong", "no_verdict")
# Failures of the endpoint do not count against the prompt; other missing answers do.
OUTER = (JudgeCode.FAILED, JudgeCode.NONE)
# Answers without a readable verdict. They count as wrong.
UNREAD = (JudgeCode.CUT_OFF, JudgeCode.UNPARSED, JudgeCode.REFUSED, JudgeCode.TOO_LONG)


@dataclass(frozen=True)
class PairedVerdicts:
    """Answers on one criterion by chat. All criteria of a test have the same chats.

    Parameters
    ----------
    key, tier : of the criterion.
    human : HumanCode by chat, shape (chats,).
    champion, candidate : JudgeCode by chat, shape (chats,).
    ceiling : human balanced accuracy, each rater against the others; None if undefined.

    Raises
    ------
    ValueError : if the arrays differ in length.

    Notes
    -----
    A judge is right if its answer equals the consensus. N/A, unparsed, refused, cut off and too long are
    wrong answers. Chats without human True or False are excluded, and chats on which a call of either judge
    failed.
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
        """Whether the criterion can block a release; subjective ones cannot."""
        return self.tier != SUBJECTIVE

    @cached_property
    def answered(self) -> Bools:
        """Chats with human True or False."""
        return np.isin(self.human, (HumanCode.TRUE, HumanCode.FALSE))

    @cached_property
    def compared(self) -> Bools:
        """Labelled chats without failed calls of either judge."""
        return self.answered & ~np.isin(self.champion, OUTER) & ~np.isin(self.candidate, OUTER)

    @cached_property
    def cells(self) -> dict[str, Bools]:
        """Chats of each of CELLS. Each labelled chat is in exactly one."""
        # Human and judge codes are equal for True and False.
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
        """Change by chat: 1 fixed, -1 broken, 0 unchanged or not compared."""
        return self.cells["fixed"].astype(np.int8) - self.cells["broken"].astype(np.int8)

    def count(self, cell: str, among: Bools | None = None) -> int:
        """Count the chats of a cell, of all or of those `among`."""
        chats = self.cells[cell]
        return int((chats if among is None else chats & among).sum())

    def table(self, among: Bools | None = None) -> PairedTable:
        """Return the paired table by which judge is right, the candidate first; of all chats or `among`."""
        names = ("still_right", "fixed", "broken", "still_wrong")
        return PairedTable(*(self.count(name, among) for name in names))


@dataclass(frozen=True)
class ClassChange:
    """Changes on the chats with one human answer, with the one-sided mid-p value of a loss."""

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
    """Candidate against champion on one criterion.

    table : counts by which judge is right, the candidate first: `first` fixed, `second` broken.
    left_out : labelled chats excluded because a call failed. p_worse : one-sided mid-p value.
    p_holm : p_worse adjusted over all blocking criteria; None for the others.
    no_verdict_before, no_verdict_after : answers other than True and False by state, zeros omitted.
    broken_unread : broken chats on which the candidate's answer is one of UNREAD.
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
    no_verdict_before: Mapping[str, int] = field(default_factory=dict)
    no_verdict_after: Mapping[str, int] = field(default_factory=dict)
    broken_unread: int = 0

    @property
    def n(self) -> int:
        """Compared chats."""
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
        """Whether the criterion can block a release; subjective ones cannot."""
        return self.tier != SUBJECTIVE

    @property
    def difference(self) -> Estimate:
        """Accuracy of the candidate minus the champion's, with Tango's 95% interval."""
        return Estimate(self.table.difference, tango_interval(self.table), reason="" if self.n else "no chat")


@dataclass(frozen=True)
class PooledEvidence:
    """Change of the mean accuracy over criteria, with its standard error over chats as clusters.

    mean, error : None for fewer than two chats.
    """

    chats: int
    mean: float | None
    error: float | None

    @property
    def z(self) -> float | None:
        """mean / error; None if the error is zero or undefined."""
        return self.mean / self.error if self.mean is not None and self.error else None

    def low(self, alpha: float) -> float | None:
        """Return the one-sided lower bound of level 1 - alpha."""
        if self.mean is None or self.error is None:
            return None
        return self.mean + float(ndtri(alpha)) * self.error


@dataclass(frozen=True)
class Evidence:
    """All criteria in order, and the pooled change of the blocking ones."""

    criteria: tuple[CriterionEvidence, ...]
    pooled: PooledEvidence

    @property
    def blocking(self) -> tuple[CriterionEvidence, ...]:
        """The blocking criteria."""
        return tuple(criterion for criterion in self.criteria if criterion.blocks)


def count_evidence(criteria: Sequence[PairedVerdicts]) -> Evidence:
    """Count the evidence of the gate.

    Examples
    --------
    >>> human, old, new = (np.array(codes, dtype=np.int8) for codes in ([0, 1, 1], [0, 0, 1], [0, 1, 0]))
    >>> polite = count_evidence([PairedVerdicts("polite", "simple", human, old, new)]).criteria[0]
    >>> polite.fixed, polite.broken, polite.n
    (1, 1, 3)
    """
    counted = [_count(verdicts) for verdicts in criteria]
    blocking = [row for row in counted if row.blocks]
    adjusted = dict(zip((row.key for row in blocking), holm([row.p_worse for row in blocking]), strict=True))
    return Evidence(
        tuple(replace(row, p_holm=adjusted.get(row.key)) for row in counted),
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
        no_verdict_before=_no_verdict(verdicts, verdicts.champion),
        no_verdict_after=_no_verdict(verdicts, verdicts.candidate),
        broken_unread=verdicts.count("broken", np.isin(verdicts.candidate, UNREAD)),
    )


def _no_verdict(verdicts: PairedVerdicts, judge: Codes) -> dict[str, int]:
    """Count one judge's answers other than True and False on the compared chats, by state."""
    counts = {code: int((judge[verdicts.compared] == code).sum()) for code in (*UNREAD, JudgeCode.NA)}
    names = {JudgeCode.NA: "not_applicable"}
    return {names.get(code, code.name.lower()): n for code, n in counts.items() if n}


def _of_class(verdicts: PairedVerdicts, answer: HumanCode) -> ClassChange:
    table = verdicts.table(verdicts.human == answer)
    return ClassChange(answer is HumanCode.TRUE, table.n, table.first, table.second)


def _confusion(verdicts: PairedVerdicts, judge: Codes) -> Confusion:
    """Count consensus against one judge on the compared chats with its True or False."""
    here = verdicts.compared & (judge <= JudgeCode.FALSE)
    cells = np.bincount(2 * verdicts.human[here] + judge[here], minlength=4)
    tp, fn, fp, tn = cells.tolist()
    return Confusion(tp, fn, fp, tn)


def _pooled(criteria: Sequence[PairedVerdicts]) -> PooledEvidence:
    """Average the change over criteria by chat; then return mean and standard error over chats."""
    if not criteria:
        return PooledEvidence(0, None, None)
    compared = np.array([verdicts.compared for verdicts in criteria]).sum(axis=0)
    change = np.array([verdicts.change for verdicts in criteria]).sum(axis=0)
    means = change[compared > 0] / compared[compared > 0]
    if len(means) < 2:
        return PooledEvidence(len(means), None, None)
    return PooledEvidence(len(means), float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means))))


def flip_share(first: Codes, second: Codes) -> Estimate:
    """Compute the share of verdicts that differ between two runs of one judge, with its 95% Wilson interval.

    This is the judge's noise. Chats with a failed call in either run are excluded.

    >>> flip_share(np.array([0, 1, 1], dtype=np.int8), np.array([0, 1, 0], dtype=np.int8)).value
    0.3333333333333333
    """
    both = ~np.isin(first, OUTER) & ~np.isin(second, OUTER)
    return proportion(int((first != second)[both].sum()), int(both.sum()), reason="no verdict in both runs")
