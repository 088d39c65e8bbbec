"""Regression gate: decide by a policy whether the candidate may replace the champion."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from alignment.comparison.core.codes import in_clusters
from alignment.regression.core import advice
from alignment.regression.core.evidence import ClassChange, CriterionEvidence, Evidence, PooledEvidence
from alignment.regression.core.policy import GatePolicy
from alignment.regression.core.unread import remedy_of, state_words
from alignment.reports.core.judge_side import judge_rates

UNCHANGED = "this test does not change its prompt"
NOTHING_BLOCKS = "directional only: no criterion of this test can block"
NO_CHATS = "no labelled chats to compare"


class Gate(StrEnum):
    """Answer of the gate."""

    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Decision:
    """Answer of the gate with its reasons, one sentence each.

    cautions : what does not decide but should be read before a release.
    more_labels : about how many more labelled chats are needed for a decision at the observed rates; None if
        it is decided, or if labels do not decide.
    advice : what decides an inconclusive test; '' if it is decided.
    bound : one-sided lower bound of the change of accuracy, as a share: Tango's for a criterion released
        alone, else of the mean over criteria. None if undefined.
    """

    gate: Gate
    reasons: tuple[str, ...]
    more_labels: int | None = None
    cautions: tuple[str, ...] = ()
    advice: str = ""
    bound: float | None = None


def decide(evidence: Evidence, *, policy: GatePolicy) -> Decision:
    """Apply the policy: FAIL if harm is found, PASS if it is ruled out, otherwise INCONCLUSIVE.

    Parameters
    ----------
    evidence : result of `count_evidence`. A single blocking criterion is decided by Tango's bound, several
        by Holm's family of tests and by their mean. Where chats share clusters, every test, bound and minimum
        counts clusters.
    policy : the limits.

    Returns
    -------
    Decision : a test of subjective criteria passes with the reason "directional only". Missing verdicts are
        the first reason.

    Examples
    --------
    >>> import numpy as np
    >>> from alignment.regression.core import PairedVerdicts, count_evidence
    >>> human = np.repeat([0, 1], 60).astype(np.int8)
    >>> evidence = count_evidence([PairedVerdicts("polite", "simple", human, human, human)])
    >>> decide(evidence, policy=GatePolicy()).gate.value
    'pass'
    """
    if not evidence.blocking:
        return Decision(Gate.PASS, (NOTHING_BLOCKS,))
    bound = _bound(evidence, policy)
    findings = _Findings.of(evidence, policy, bound)
    if findings.harm:
        reasons = (*findings.missing, *findings.harm)
        return Decision(Gate.FAIL, reasons, cautions=findings.cautions, bound=bound)
    if findings.opens:
        more, words = _advice(findings, evidence, policy)
        return Decision(Gate.INCONCLUSIVE, findings.open_reasons, more, findings.cautions, words, bound)
    # The missing verdicts of a champion that the candidate does not share stop nothing.
    cautions = (*findings.missing, *findings.cautions)
    return Decision(Gate.PASS, (_harmless(evidence, policy, bound or 0.0),), cautions=cautions, bound=bound)


def confirm(first: Decision, second: Decision) -> Decision:
    """Combine a FAIL with the decision on the candidate's second run: FAIL if both fail, else inconclusive.

    Raises
    ------
    ValueError : if the first decision is not a FAIL.
    """
    if first.gate is not Gate.FAIL:
        raise ValueError(f"only a FAIL is confirmed, not {first.gate.value}")
    if second.gate is Gate.FAIL:
        reasons = (*first.reasons, "a second run of the candidate failed too")
        return Decision(Gate.FAIL, reasons, cautions=first.cautions, bound=first.bound)
    unconfirmed = (
        f"a second run of the candidate did not fail ({second.gate.value}): judge noise may be the cause"
    )
    return Decision(
        Gate.INCONCLUSIVE,
        (unconfirmed, *first.reasons),
        second.more_labels,
        first.cautions,
        second.advice or advice.RUNS_DIFFER,
        first.bound,
    )


@dataclass(frozen=True)
class _Findings:
    """What each rule found, one sentence each.

    harm : it fails. missing, stopped : missing verdicts that end the advice on labels, and whether they keep
    the test open. remedy : what to do about answers that nobody can read, '' if there are none.
    few : too few labels, named only while verdicts are not the obstacle. unproven : harm is not ruled out.
    lost : a large drop, or a loss on one human answer.
    floors : below the floor or the human ceiling, and worse than the champion there.
    unusable : labels of a revised criterion that cannot measure a judge.
    """

    harm: tuple[str, ...]
    missing: tuple[str, ...]
    stopped: bool
    remedy: str
    few: tuple[str, ...]
    unproven: tuple[str, ...]
    lost: tuple[str, ...]
    floors: tuple[str, ...]
    unusable: tuple[str, ...]
    cautions: tuple[str, ...]

    @classmethod
    def of(cls, evidence: Evidence, policy: GatePolicy, bound: float | None) -> "_Findings":
        blocking, alone = evidence.blocking, len(evidence.blocking) == 1
        limit = policy.largest_left_out
        many = [row for row in blocking if row.missing.share_above(limit) or _mostly_unread(row)]
        few = [row for row in blocking if row not in many]
        judged = [finding for row in blocking for finding in _floors(row, policy)]
        problems = [row for row in blocking if row.problem]
        drops = () if alone else _drops(evidence, policy)
        return cls(
            harm=tuple((_single_harm if alone else _family_harm)(evidence, policy)),
            missing=tuple(sentence for row in many for sentence in _missing(row)),
            stopped=any(row.missing.stops(limit) for row in many),
            remedy=remedy_of(_unread_states(many)),
            few=tuple((_single_few if alone else _family_few)(evidence, policy, bound)),
            unproven=tuple((_single_unproven if alone else _family_unproven)(evidence, policy, bound)),
            lost=(*drops, *(sentence for row in blocking for sentence in _class_losses(row, policy))),
            floors=tuple(sentence for sentence, worse in judged if worse),
            unusable=tuple(f"{row.key}: {row.problem}" for row in problems if row.revised),
            cautions=(
                *(f"{row.key}: {row.problem}; {UNCHANGED}" for row in problems if not row.revised),
                *(sentence for row in few for sentence in _missing(row)),
                *(sentence for sentence, worse in judged if not worse),
            ),
        )

    @property
    def open_reasons(self) -> tuple[str, ...]:
        """Why the test cannot pass. A number of labels is no reason while verdicts are the obstacle."""
        few = () if self.stopped else self.few
        return (*self.missing, *self.unusable, *few, *self.unproven, *self.lost, *self.floors)

    @property
    def opens(self) -> bool:
        """Whether the test cannot pass."""
        return bool(self.stopped or self.few or self.unproven or self.lost or self.floors or self.unusable)


def _advice(findings: _Findings, evidence: Evidence, policy: GatePolicy) -> tuple[int | None, str]:
    """Return the number of labels that would decide, if they can, and what to do."""
    if findings.missing:
        return None, advice.verdicts_needed(findings.remedy)
    if findings.unusable:
        return None, advice.UNUSABLE
    if findings.floors:
        return None, advice.FLOORS
    more = advice.labels_to_decide(evidence, policy=policy, passable=not findings.lost)
    if not any(row.n for row in evidence.blocking):
        return more, advice.NO_LABELS if more is None else advice.labels_needed(more)
    if more is None:
        return None, advice.TRADE
    clustered = any(row.clusters for row in evidence.blocking)
    return more, f"at these rates {advice.labels_needed(more, clustered=clustered)}"


def _bound(evidence: Evidence, policy: GatePolicy) -> float | None:
    if len(evidence.blocking) == 1:
        return evidence.blocking[0].low(policy.bound_alpha)
    return evidence.pooled.low(policy.bound_alpha)


def _single_harm(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Test a criterion released alone."""
    (row,) = evidence.blocking
    if row.p_worse <= policy.single_alpha:
        yield f"{_got_worse(row)} ({chance(row.p_worse)}, limit {policy.single_alpha:g})"


def _family_harm(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rules A and B: one criterion got worse, the mean got worse."""
    for row in evidence.blocking:
        if row.p_holm is not None and row.p_holm <= policy.family_alpha:
            yield f"{_got_worse(row)} ({chance(row.p_holm)} after Holm, limit {policy.family_alpha:g})"
    pooled, limit = evidence.pooled, evidence.pooled.quantile(policy.pooled_alpha)
    if pooled.z is not None and pooled.mean is not None and pooled.z < limit:
        yield (
            f"over all criteria the candidate's accuracy is {points(-pooled.mean)} lower "
            f"(z = {pooled.z:.2f}, limit {limit:.2f})"
        )


def _got_worse(row: CriterionEvidence) -> str:
    return f"{row.key} got worse: {row.broken} broken, {row.fixed} fixed of {_chats(row)}"


def _chats(row: CriterionEvidence) -> str:
    return in_clusters(f"{row.n} chats", row.clusters)


def _single_few(evidence: Evidence, policy: GatePolicy, low: float | None) -> Iterator[str]:
    """Reasons why the labels of a criterion released alone are too few."""
    (row,) = evidence.blocking
    if low is None:
        yield NO_CHATS
    elif row.units < policy.single_minimum:
        labelled = in_clusters(f"{row.n} labelled chats", row.clusters)
        unit = "" if row.clusters is None else " clusters"
        yield f"{row.key}: {labelled}; {policy.single_minimum}{unit} are needed to pass alone"


def _single_unproven(evidence: Evidence, policy: GatePolicy, low: float | None) -> Iterator[str]:
    """Reasons why Tango's bound does not rule out a loss."""
    (row,) = evidence.blocking
    if low is not None and row.units >= policy.single_minimum and low <= -policy.single_margin:
        worst = _at_worst(low, policy)
        yield f"{row.key}: {worst} on {_chats(row)} (limit {signed(-policy.single_margin)})"


def _family_few(evidence: Evidence, policy: GatePolicy, low: float | None) -> Iterator[str]:
    """Reasons why the labels of several criteria are too few."""
    pooled = evidence.pooled
    if not pooled.chats:
        yield NO_CHATS
    elif low is None:
        labelled = in_clusters(f"{pooled.chats} labelled chats", pooled.clusters)
        yield f"{labelled} are too few to estimate the mean change"
    elif short := _fewest(evidence, policy):
        labelled = in_clusters(f"{short.n} labelled chats", short.clusters)
        unit = "" if short.clusters is None else " clusters"
        yield f"{short.key}: {labelled}; {policy.together_minimum}{unit} are needed to pass"


def _fewest(evidence: Evidence, policy: GatePolicy) -> CriterionEvidence | None:
    """Return the changed criterion with the most chats if they are too few; None if they suffice.

    Few chats without a changed verdict have no error of the mean: its bound would pass them.
    """
    changed = [row for row in evidence.blocking if row.revised] or list(evidence.blocking)
    most = max(changed, key=lambda row: row.units)
    return most if most.units < policy.together_minimum else None


def _family_unproven(evidence: Evidence, policy: GatePolicy, low: float | None) -> Iterator[str]:
    """Rule C: bound of the mean."""
    if low is not None and evidence.pooled.chats and low <= -policy.pooled_margin:
        yield f"over all criteria {_mean_at_worst(evidence.pooled, low, policy)}"


def _at_worst(low: float, policy: GatePolicy) -> str:
    return f"at worst {signed(low)} with {100 * (1 - policy.bound_alpha):g}% confidence"


def _mean_at_worst(pooled: PooledEvidence, low: float, policy: GatePolicy) -> str:
    on = "" if pooled.clusters is None else f" on {in_clusters(f'{pooled.chats} chats', pooled.clusters)}"
    return f"{_at_worst(low, policy)}{on} (limit {signed(-policy.pooled_margin)})"


def _drops(evidence: Evidence, policy: GatePolicy) -> Iterator[str]:
    """Rule C: largest drop of one criterion."""
    for row in evidence.blocking:
        drop = -(row.table.difference or 0.0)
        if drop > policy.largest_drop:
            yield f"{row.key}: accuracy is {points(drop)} lower (limit {points(policy.largest_drop)})"


def _class_losses(row: CriterionEvidence, policy: GatePolicy) -> Iterator[str]:
    """Rule D: a loss on the chats with one human answer."""
    for answer in row.classes:
        if answer.p_worse <= policy.class_alpha / 2:
            yield f"{row.key} may have got worse on human {_class_loss(answer)}"


def _class_loss(row: ClassChange) -> str:
    return f"{row.answer}: {row.broken} broken, {row.fixed} fixed of {row.n} ({chance(row.p_worse)})"


def _mostly_unread(row: CriterionEvidence) -> bool:
    """Whether unread answers of the candidate, which count as wrong, may be most of its broken chats."""
    return 2 * row.missing.unread > row.broken > 0


def _unread_states(rows: Sequence[CriterionEvidence]) -> Mapping[str, int]:
    """Sum missing verdicts by state: the candidate's, or the champion's where the candidate has them all."""
    states: Counter[str] = Counter()
    for row in rows:
        states.update(row.missing.candidate if row.missing.of_candidate else row.missing.champion)
    return states


def _missing(row: CriterionEvidence) -> Iterator[str]:
    """Name the labelled chats on which a judge has no verdict."""
    missing = row.missing
    of, labelled = missing.of_candidate, f"{missing.labelled} labelled chats"
    if of:
        also = f", the champion on {_by_state(missing.champion)}" if missing.of_champion else ""
        yield f"{row.key}: the candidate has no verdict on {_by_state(missing.candidate, labelled)}{also}"
    elif missing.of_champion:
        yield f"{row.key}: the champion has no verdict on {_by_state(missing.champion, labelled)}"


def _by_state(counts: Mapping[str, int], labelled: str = "") -> str:
    states = state_words({state: n for state, n in counts.items() if n})
    return f"{sum(counts.values())}{f' of {labelled}' if labelled else ''} ({states})"


def _floors(row: CriterionEvidence, policy: GatePolicy) -> Iterator[tuple[str, bool]]:
    """Absolute limits that the candidate misses, and whether it is worse than the champion there.

    Missing verdicts count as wrong in the comparison with the champion. A criterion that the test does not
    revise is never worse here: noise would decide.
    """
    before, after = judge_rates(row.before.table), judge_rates(row.after.table)
    for name, key, answer in zip(("TPR", "TNR"), ("tpr", "tnr"), row.classes, strict=True):
        rate, old = after[key].value, before[key].value
        if rate is not None and rate < policy.floor:
            missed = f"{row.key}: {name} {rate:.2f} is below the floor {policy.floor:.2f}"
            lost = f" and worse than the champion's ({answer.broken} broken, {answer.fixed} fixed)"
            kept = f", not worse than the champion's{'' if old is None else f' {old:.2f}'}"
            yield _missed(row, missed, worse=answer.change < 0, lost=lost, kept=kept)
    balanced = after["balanced_accuracy"].value
    if balanced is None or row.ceiling is None or row.ceiling - balanced <= policy.ceiling_gap:
        return
    missed = (
        f"{row.key}: balanced accuracy is {points(row.ceiling - balanced)} below the human ceiling "
        f"(limit {points(policy.ceiling_gap)})"
    )
    change, tolerated = row.balanced_change, policy.pooled_margin
    lost = f" and {points(-change)} lower than the champion's"
    kept = f", not lower than the champion's by more than {points(tolerated)}"
    yield _missed(row, missed, worse=change < -tolerated, lost=lost, kept=kept)


def _missed(row: CriterionEvidence, missed: str, *, worse: bool, lost: str, kept: str) -> tuple[str, bool]:
    if not row.revised:
        return f"{missed}; {UNCHANGED}", False
    return f"{missed}{lost if worse else kept}", worse


def _harmless(evidence: Evidence, policy: GatePolicy, low: float) -> str:
    """Return the reason for a PASS."""
    if len(evidence.blocking) == 1:
        (row,), worst = evidence.blocking, _at_worst(low, policy)
        counts = f"{row.key}: {row.fixed} fixed, {row.broken} broken of {_chats(row)}"
        return f"{counts}; {worst} (limit {signed(-policy.single_margin)})"
    mean = _mean_at_worst(evidence.pooled, low, policy)
    return f"no criterion got significantly worse; over all criteria {mean}"


def chance(p_value: float) -> str:
    """Format a p value.

    >>> chance(0.0004), chance(0.0213)
    ('p < 0.001', 'p = 0.021')
    """
    return f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"


def points(share: float) -> str:
    """Format a share as percentage points.

    >>> points(0.0213)
    '2.1 points'
    """
    return f"{100 * share:.1f} points".replace("-", "−")


def signed(share: float) -> str:
    """Format a change as percentage points.

    >>> signed(-0.062), signed(0.013)
    ('−6.2 points', '+1.3 points')
    """
    return f"{100 * share:+.1f} points".replace("-", "−")
