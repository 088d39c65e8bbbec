"""Evidence of the gate: counts of champion and candidate against the consensus."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from alignment.comparison.core.codes import NO_VERDICT, Clusters, Codes, HumanCode, JudgeCode
from alignment.reports.core.clustered import ClusteredAnswers
from alignment.statistics.agreement import Confusion
from alignment.statistics.design_effect import (
    EffectivePairs,
    by_cluster,
    effective_pairs,
    mean_error,
    mean_share,
)
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion
from alignment.statistics.paired_tests import PairedTable, holm, mcnemar_midp, tango_bounds

Bools = NDArray[np.bool_]
SUBJECTIVE = "subjective"
# Cells of the paired table, and the labelled chats excluded from it.
CELLS = ("fixed", "broken", "still_right", "still_wrong", "no_verdict")
# Failures of the endpoint do not count against the prompt; other missing answers do.
OUTER = (JudgeCode.FAILED, JudgeCode.NONE)
# Answers without a readable verdict. They count as wrong.
_UNREAD = (JudgeCode.CUT_OFF, JudgeCode.UNPARSED, JudgeCode.REFUSED, JudgeCode.TOO_LONG)


@dataclass(frozen=True)
class PairedVerdicts:
    """Answers on one criterion by chat. All criteria of a test have the same chats.

    Parameters
    ----------
    key, tier : of the criterion.
    human : HumanCode by chat, shape (chats,).
    champion, candidate : JudgeCode by chat, shape (chats,).
    ceiling : human balanced accuracy, each rater against the others; None if undefined.
    problem : why the labels cannot measure a judge, or ''.
    revised : whether the test changes this criterion's judge; False for criteria that only share a call
        with a changed prompt.
    clusters : number of each chat's cluster, shape (chats,); None if every chat is alone.

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
    revised: bool = True
    problem: str = ""
    clusters: Clusters = None

    def __post_init__(self) -> None:
        if not len(self.human) == len(self.champion) == len(self.candidate):
            raise ValueError(f"{self.key}: human, champion and candidate differ in length")
        if self.clusters is not None and len(self.clusters) != len(self.human):
            raise ValueError(f"{self.key}: {len(self.clusters)} cluster numbers for {len(self.human)} chats")

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

    def clusters_of(self, chats: Bools) -> NDArray[np.int64] | None:
        """Return the cluster of each of these chats; None if no two of them share one."""
        return None if self.clusters is None else _shared(self.clusters[chats])

    def pairs(self, among: Bools | None = None) -> EffectivePairs:
        """Return the compared chats as independent ones, of all or of those `among`: fixed ones first.

        Without clusters these are the counts themselves.
        """
        compared = self.compared if among is None else self.compared & among
        clusters = self.clusters_of(compared)
        if clusters is None:
            table = self.table(among)
            return EffectivePairs(table.first, table.second, table.n)
        cells = np.array([self.cells["fixed"], self.cells["broken"], compared])[:, compared]
        return effective_pairs(*by_cluster(cells, clusters))


def _shared(clusters: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the numbers; None if each is there once."""
    return clusters if len(np.unique(clusters)) < len(clusters) else None


@dataclass(frozen=True)
class ClassChange:
    """Changes on the chats with one human answer, with the one-sided mid-p value of a loss.

    pairs : these chats as independent ones, which the test counts.
    """

    answer: bool
    n: int
    fixed: int
    broken: int
    pairs: EffectivePairs

    @property
    def p_worse(self) -> float:
        """One-sided mid-p value of McNemar's test."""
        return _p_worse(self.pairs)

    @property
    def change(self) -> float:
        """Candidate minus champion in the share of right verdicts; 0 without a chat."""
        return (self.fixed - self.broken) / self.n if self.n else 0.0


@dataclass(frozen=True)
class MissingVerdicts:
    """Labelled chats without a verdict, by state. Not applicable is a verdict.

    champion, candidate : number of chats by state (unparsed, refused, cut_off, too_long, failed, none).
    uncompared : chats that show nothing about the candidate, because a call of either judge failed or
        neither has a verdict.
    labelled : chats with human True or False.
    """

    champion: Mapping[str, int]
    candidate: Mapping[str, int]
    uncompared: int
    labelled: int

    @property
    def of_champion(self) -> int:
        """Labelled chats on which the champion has no verdict."""
        return sum(self.champion.values())

    @property
    def of_candidate(self) -> int:
        """Labelled chats on which the candidate has no verdict."""
        return sum(self.candidate.values())

    @property
    def unread(self) -> int:
        """Answers of the candidate that cannot be read; they count as wrong."""
        return sum(self.candidate[code.name.lower()] for code in _UNREAD)

    def share_above(self, limit: float) -> bool:
        """Tell whether more than this share of the labelled chats lack a verdict of either judge."""
        most = max(self.of_champion, self.of_candidate, self.uncompared)
        return most > limit * self.labelled

    def stops(self, limit: float) -> bool:
        """Tell whether missing verdicts keep the candidate from passing.

        More than this share is uncompared, or the candidate lacks it and more than its champion lacks.
        """
        lost = self.of_candidate > max(limit * self.labelled, self.of_champion)
        return lost or self.uncompared > limit * self.labelled


@dataclass(frozen=True)
class JudgeCounts:
    """One judge's answers on the compared chats.

    table : human answers against its True and False.
    no_verdict : other answers by state, zeros omitted. They count as wrong.
    right : share of right answers of all compared chats.
    clustered : the table by cluster of chats; None if no two chats share a cluster.
    """

    table: Confusion
    no_verdict: Mapping[str, int]
    right: Estimate
    clustered: ClusteredAnswers | None = None


@dataclass(frozen=True)
class CriterionEvidence:
    """Candidate against champion on one criterion.

    table : counts by which judge is right, the candidate first: `first` fixed, `second` broken.
    pairs : the compared chats as independent ones, which tests and intervals count.
    clusters : number of clusters of the compared chats; None if no two share one.
    left_out : labelled chats excluded because a call failed. p_worse : one-sided mid-p value.
    p_holm : p_worse adjusted over all blocking criteria; None for the others.
    changed : share of fixed and broken chats.
    before, after : the answers of champion and candidate on the compared chats.
    missing : labelled chats without a verdict. revised, problem : as in PairedVerdicts.
    """

    key: str
    tier: str
    table: PairedTable
    pairs: EffectivePairs
    left_out: int
    classes: tuple[ClassChange, ClassChange]
    before: JudgeCounts
    after: JudgeCounts
    ceiling: float | None
    missing: MissingVerdicts
    revised: bool
    problem: str
    p_worse: float
    changed: Estimate
    p_holm: float | None = None
    clusters: int | None = None

    @property
    def n(self) -> int:
        """Compared chats."""
        return self.table.n

    @property
    def units(self) -> int:
        """Compared chats, or their clusters."""
        return self.n if self.clusters is None else self.clusters

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
        return paired_difference(self.table, self.pairs)

    def low(self, alpha: float) -> float | None:
        """Return Tango's one-sided lower bound of the difference, of level 1 - alpha; None without a chat.

        Tango (1998), Stat Med 17:891: the low end of the two-sided interval of level 1 - 2 alpha. From an
        alpha of 0.5 it is the difference itself.
        """
        if not self.n:
            return None
        pairs, confidence = self.pairs, max(0.0, 1 - 2 * alpha)
        return tango_bounds(
            pairs.first, pairs.second, pairs.n, confidence=confidence, degrees=pairs.degrees
        ).low

    @property
    def balanced_change(self) -> float:
        """Change of balanced accuracy, missing verdicts counted as wrong."""
        return sum(answer.change for answer in self.classes) / len(self.classes)


@dataclass(frozen=True)
class PooledEvidence:
    """Change of the mean accuracy over criteria, with its standard error over chats or clusters of chats.

    mean, error : None for fewer than two chats or clusters.
    clusters : number of clusters; None if no two chats share one.
    degrees : degrees of freedom of the error; infinite without clusters.
    """

    chats: int
    mean: float | None
    error: float | None
    clusters: int | None = None
    degrees: float = math.inf

    @property
    def z(self) -> float | None:
        """mean / error; None if the error is zero or undefined."""
        return self.mean / self.error if self.mean is not None and self.error else None

    def low(self, alpha: float) -> float | None:
        """Return the one-sided lower bound of level 1 - alpha."""
        if self.mean is None or self.error is None:
            return None
        return self.mean + self.quantile(alpha) * self.error

    def quantile(self, alpha: float) -> float:
        """Return the `alpha` quantile of z: the normal one, with clusters Student's."""
        return float(ndtri(alpha) if math.isinf(self.degrees) else stdtrit(self.degrees, alpha))


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


def paired_difference(table: PairedTable, pairs: EffectivePairs) -> Estimate:
    """Accuracy of the candidate minus the champion's, with Tango's 95% interval on effective pairs."""
    if not table.n:
        return Estimate(None, reason="no chat")
    interval = tango_bounds(pairs.first, pairs.second, pairs.n, degrees=pairs.degrees)
    return Estimate(table.difference, interval)


def _p_worse(pairs: EffectivePairs) -> float:
    return mcnemar_midp(pairs.second, pairs.first, degrees=pairs.degrees)


def _count(verdicts: PairedVerdicts) -> CriterionEvidence:
    table, pairs = verdicts.table(), verdicts.pairs()
    clusters = verdicts.clusters_of(verdicts.compared)
    return CriterionEvidence(
        key=verdicts.key,
        tier=verdicts.tier,
        table=table,
        pairs=pairs,
        left_out=verdicts.count("no_verdict"),
        classes=(_of_class(verdicts, HumanCode.TRUE), _of_class(verdicts, HumanCode.FALSE)),
        before=_judge_counts(verdicts, verdicts.champion, clusters),
        after=_judge_counts(verdicts, verdicts.candidate, clusters),
        ceiling=verdicts.ceiling,
        missing=_missing(verdicts),
        revised=verdicts.revised,
        problem=verdicts.problem,
        p_worse=_p_worse(pairs),
        changed=share_of(verdicts.change[verdicts.compared] != 0, clusters, reason="no chat"),
        clusters=None if clusters is None else len(np.unique(clusters)),
    )


def _missing(verdicts: PairedVerdicts) -> MissingVerdicts:
    champion, candidate = verdicts.champion, verdicts.candidate
    silent = (champion > JudgeCode.NA) & (candidate > JudgeCode.NA)
    return MissingVerdicts(
        champion=_by_state(champion[verdicts.answered]),
        candidate=_by_state(candidate[verdicts.answered]),
        uncompared=int((verdicts.answered & (silent | ~verdicts.compared)).sum()),
        labelled=int(verdicts.answered.sum()),
    )


def _by_state(judge: Codes) -> dict[str, int]:
    return {code.name.lower(): int((judge == code).sum()) for code in NO_VERDICT}


def _no_verdict(judge: Codes) -> dict[str, int]:
    """Count one judge's answers other than True and False on the compared chats, by state."""
    counts = {code: int((judge == code).sum()) for code in (*_UNREAD, JudgeCode.NA)}
    names = {JudgeCode.NA: "not_applicable"}
    return {names.get(code, code.name.lower()): n for code, n in counts.items() if n}


def _of_class(verdicts: PairedVerdicts, answer: HumanCode) -> ClassChange:
    among = verdicts.human == answer
    table = verdicts.table(among)
    return ClassChange(answer is HumanCode.TRUE, table.n, table.first, table.second, verdicts.pairs(among))


def _judge_counts(verdicts: PairedVerdicts, judge: Codes, clusters: NDArray[np.int64] | None) -> JudgeCounts:
    human, judge = verdicts.human[verdicts.compared], judge[verdicts.compared]
    here = judge <= JudgeCode.FALSE
    tp, fn, fp, tn = np.bincount(2 * human[here] + judge[here], minlength=4).tolist()
    return JudgeCounts(
        Confusion(tp, fn, fp, tn),
        _no_verdict(judge),
        share_of(human == judge, clusters, reason="no chat"),
        None if clusters is None else ClusteredAnswers.of(human, judge, clusters),
    )


def share_of(chats: Bools, clusters: NDArray[np.int64] | None, *, reason: str) -> Estimate:
    """Compute a share of chats with its 95% Wilson interval, which counts clusters of chats as units.

    >>> share_of(np.array([True, False]), None, reason="").value
    0.5
    """
    if clusters is None:
        return proportion(int(chats.sum()), chats.size, reason=reason)
    both = np.array([chats, np.ones_like(chats)])
    hits, n = by_cluster(both, clusters)
    return mean_share(hits[np.newaxis], n[np.newaxis], reason=reason).estimate


def _pooled(criteria: Sequence[PairedVerdicts]) -> PooledEvidence:
    """Average the change over criteria by chat; then return mean and standard error over chats."""
    if not criteria:
        return PooledEvidence(0, None, None)
    compared = np.array([verdicts.compared for verdicts in criteria]).sum(axis=0)
    change = np.array([verdicts.change for verdicts in criteria]).sum(axis=0)
    means = change[compared > 0] / compared[compared > 0]
    clusters = criteria[0].clusters_of(compared > 0)
    error, number = mean_error(means, clusters), None if clusters is None else len(np.unique(clusters))
    if error is None:
        return PooledEvidence(len(means), None, None, number)
    return PooledEvidence(len(means), float(means.mean()), error.error, number, error.degrees)


def flip_share(first: Codes, second: Codes, clusters: Clusters = None) -> Estimate:
    """Compute the share of verdicts that differ between two runs of one judge, with its 95% Wilson interval.

    This is the judge's noise. Chats with a failed call in either run are excluded. `clusters` : number of
    each chat's cluster; the interval then counts clusters.

    >>> flip_share(np.array([0, 1, 1], dtype=np.int8), np.array([0, 1, 0], dtype=np.int8)).value
    0.3333333333333333
    """
    both = ~np.isin(first, OUTER) & ~np.isin(second, OUTER)
    numbers = None if clusters is None else _shared(clusters[both])
    return share_of((first != second)[both], numbers, reason="no verdict in both runs")
