"""Pass rates in production: uncorrected, and corrected for the judge's errors with human labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from alignment.monitoring.core.two_phase import PRIOR_LABELS, AuditLabels, TwoPhases
from alignment.monitoring.core.weighted_rates import (
    REASONS,
    Reason,
    StratumSums,
    WeightedRate,
    effective_answers,
    share_interval,
    weighted_rate,
)
from alignment.reports.core.pass_rates import FEWEST_AT_RANDOM
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate
from alignment.statistics.prediction_powered import FEW_FALSE
from alignment.statistics.prevalence_correction import CLIPPED, WIDEST_USABLE, lang_reiczigel, rogan_gladen

FEW_FLAG = f"fewer than {FEW_FALSE} labels that fail, or that pass: the interval may be too narrow"
OUTSIDE_FLAG = "clipped: the estimate is outside 0 to 1"
MOST_EFFECTIVE = 1e12  # answers, where every chat was judged


class Method(StrEnum):
    """How a production rate is computed."""

    UNCORRECTED = "uncorrected"
    LABELS = "labels"
    LANG_REICZIGEL = "lang_reiczigel"
    PPI = "ppi"


# In a table's cell.
SHORT_NAMES = {
    Method.UNCORRECTED: "uncorrected",
    Method.LABELS: "audit labels alone",
    Method.LANG_REICZIGEL: "curated labels",
    Method.PPI: "random audit",
}
METHOD_NAMES = {
    Method.UNCORRECTED: "Judge's rate, uncorrected",
    Method.LABELS: "Human labels of the audit alone",
    Method.LANG_REICZIGEL: "Corrected with curated labels (Rogan–Gladen, interval by Lang–Reiczigel)",
    Method.PPI: "Corrected with the random audit (PPI++)",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """A pass rate over all chats of a frame, by one method.

    Parameters
    ----------
    method : with its name for pages, `name`.
    estimate : in [0, 1], with its interval.
    reason : why there is none; None if there is one.
    error : standard error; None for Lang-Reiczigel, whose interval is not symmetric.
    labels : human labels used.
    weight : of the verdicts in PPI++, lambda in [0, 1].
    """

    method: Method
    estimate: Estimate
    reason: Reason | None = None
    error: float | None = None
    labels: int = 0
    weight: float | None = None

    @classmethod
    def missing(cls, method: Method, reason: Reason, *, labels: int = 0) -> "Rate":
        """Return no rate, for a reason."""
        return cls(method, Estimate(None, reason=REASONS[reason]), reason, labels=labels)

    @property
    def name(self) -> str:
        """The method's name for pages."""
        return METHOD_NAMES[self.method]

    @property
    def short_name(self) -> str:
        """The method's name in a table's cell."""
        return SHORT_NAMES[self.method]

    @property
    def width(self) -> float:
        """Width of the interval; infinite without one."""
        interval = self.estimate.interval
        return interval.high - interval.low if interval else math.inf


@dataclass(frozen=True, slots=True)
class ProductionRates:
    """One rate by each method; a page shows `uncorrected` under that name only.

    `labels` : None where it was not asked for.
    """

    uncorrected: Rate
    labels: Rate | None
    lang_reiczigel: Rate
    ppi: Rate

    @property
    def corrected(self) -> Rate:
        """The corrected rate to show: PPI++ if the audit allows it, else by curated labels.

        If neither does, no rate: with the reason of the curated labels, or of the audit if there are none.
        """
        if self.ppi.reason is None or self.lang_reiczigel.reason is Reason.NO_LABELS:
            return self.ppi
        other = self.lang_reiczigel.reason is Reason.NEEDS_AUDIT and self.ppi.reason is not Reason.NO_LABELS
        return self.ppi if other else self.lang_reiczigel

    @property
    def all(self) -> tuple[Rate, ...]:
        """The rates in the order of pages."""
        rates = (self.uncorrected, self.lang_reiczigel, self.ppi, self.labels)
        return tuple(rate for rate in rates if rate is not None)

    @property
    def labels_narrower(self) -> bool:
        """Whether the audit's labels alone know the rate better than the correction."""
        return self.labels is not None and self.labels.width < self.corrected.width


def production_rates(
    strata: Sequence[StratumSums], *, curated: Confusion | None = None, audit: AuditLabels | None = None
) -> ProductionRates:
    """Estimate a rate by every method.

    Parameters
    ----------
    strata : sums of the judge's passing answers, of all nights and topics of the frame.
    curated : curated labels against verdicts, with the passing answer as True.
    audit : labels of a random part of the judged sample.

    Examples
    --------
    >>> night = [StratumSums.of_counts(size=5000, sampled=500, passed=440, failed=60)]
    >>> rates = production_rates(night, curated=Confusion(95, 5, 8, 42))
    >>> rates.corrected.method.value, round(rates.corrected.estimate.value, 3), rates.ppi.reason.value
    ('lang_reiczigel', 0.911, 'no_labels')
    """
    judged = weighted_rate(strata)
    no_audit = {method: Rate.missing(method, Reason.NO_LABELS) for method in (Method.LABELS, Method.PPI)}
    return ProductionRates(
        uncorrected=uncorrected_rate(judged),
        labels=no_audit[Method.LABELS] if audit is None else ppi_rate(strata, audit, weight=0.0),
        lang_reiczigel=lang_reiczigel_rate(judged, curated),
        ppi=no_audit[Method.PPI] if audit is None else ppi_rate(strata, audit),
    )


def uncorrected_rate(judged: WeightedRate) -> Rate:
    """Return the judge's weighted rate, by its name: uncorrected."""
    return Rate(Method.UNCORRECTED, judged.estimate, judged.reason, judged.error)


def lang_reiczigel_rate(judged: WeightedRate, curated: Confusion | None) -> Rate:
    """Correct a weighted rate with the judge's TPR and TNR on curated labels.

    Parameters
    ----------
    judged : the judge's weighted rate. Its effective number of answers takes the place of the chats.
    curated : labels against verdicts, with the passing answer as True, on chats outside the frame.

    Returns
    -------
    Rate : clipped to [0, 1] with a flag. None, with a reason, without labels of both classes, if the judge is
        no better than chance, if the whole interval is outside [0, 1], or if it is wider than 0.5.

    Notes
    -----
    Rogan & Gladen (1978), Am J Epidemiol 107:71; Lang & Reiczigel (2014), Prev Vet Med 113:13. Assumes that
    TPR and TNR are the same on curated and production chats.

    Examples
    --------
    >>> judged = WeightedRate(Estimate(0.3), effective=100)
    >>> found = lang_reiczigel_rate(judged, Confusion(45, 5, 3, 57)).estimate
    >>> round(found.value, 4), round(found.interval.low, 4), round(found.interval.high, 4)
    (0.2941, 0.1711, 0.4197)
    """
    method = Method.LANG_REICZIGEL
    if curated is None or curated.n == 0:
        return Rate.missing(method, Reason.NO_LABELS)
    if judged.estimate.value is None:
        return Rate.missing(method, judged.reason or Reason.NO_ANSWERS, labels=curated.n)
    tpr, tnr = _true_rates(curated)
    if tpr is None or tnr is None:
        return Rate.missing(method, Reason.ONE_CLASS, labels=curated.n)
    judge = {"apparent": judged.estimate.value, "tpr": tpr, "tnr": tnr}
    share = rogan_gladen(**judge)
    n = min(judged.effective, MOST_EFFECTIVE)
    interval = lang_reiczigel(**judge, n=n, n_true=curated.human_true, n_false=curated.human_false)
    if share is None or interval is None:
        return Rate.missing(method, Reason.NO_BETTER_THAN_CHANCE, labels=curated.n)
    if interval.low == interval.high:  # all of it was outside [0, 1]
        return Rate.missing(method, Reason.OUTSIDE_RANGE, labels=curated.n)
    if interval.high - interval.low > WIDEST_USABLE:
        return Rate.missing(method, Reason.TOO_WIDE, labels=curated.n)
    flag = CLIPPED if share.clipped else ""
    return Rate(method, Estimate(share.value, interval.holding(share.value), flag=flag), labels=curated.n)


@lru_cache(maxsize=1000)
def _true_rates(curated: Confusion) -> tuple[float | None, float | None]:
    """TPR and TNR: a page corrects hundreds of rates by the same labels."""
    return curated.tpr, curated.tnr


def ppi_rate(
    strata: Sequence[StratumSums],
    audit: AuditLabels,
    *,
    weight: float | None = None,
    judged: WeightedRate | None = None,
) -> Rate:
    """Correct the judge's rate with a random audit of the judged sample: PPI++ in two phases.

    The rate t solves w F + Y - w f - t (w B + A - w b) = 0, where w is the weight of the verdicts (lambda),
    F and B are weighted means of the judge's y and a over the judged chats, and Y, A, f, b weighted means of
    the raters' and the judge's y and a over the labelled chats. If every chat has one answer, the rate is
    w mean(f, judged) + mean(y - w f, labelled).

    Parameters
    ----------
    strata : sums of the judge's answers over all judged chats.
    audit : the labelled ones among them.
    weight : lambda; None: the one of least variance, within [0, 1]; 0: labels only.
    judged : the judge's weighted rate, if it is known.

    Returns
    -------
    Rate : Wilson's interval on the effective number of answers, as `weighted_rate`. For the interval the
        spread of y - w f is mixed with that of y, as if 20 more labels had shown it. None, with a reason, for
        fewer than 60 labels, labels that all pass or all fail, or a group without labels. Flagged below 20
        labels of a class.

    Notes
    -----
    PPI++: Angelopoulos, Duchi & Zrnic (2023), arXiv 2311.01453. Here the labelled chats are part of the
    judged ones, so that their lambda is w (1 - labelled / judged). Two phases: Särndal, Swensson & Wretman
    (1992), Model Assisted Survey Sampling, chapter 9. The variance is that of the raters' answers if they had
    labelled all judged chats (without a gain from strata), plus that of y - w f from labelling only some.

    Examples
    --------
    >>> y = np.repeat([1.0, 0.0], [70, 30])
    >>> ones = np.ones(100)
    >>> audit = AuditLabels(10 * ones, np.zeros(100, np.int64), np.array([1000]), ones, y, ones, y)
    >>> night = [StratumSums.of_counts(size=10000, sampled=1000, passed=720, failed=280)]
    >>> found = ppi_rate(night, audit)
    >>> round(found.estimate.value, 3), found.weight
    (0.72, 1.0)
    """
    method = Method.LABELS if weight == 0 else Method.PPI
    judged = judged or weighted_rate(strata)
    labels = int(np.count_nonzero(audit.human_answers))
    reason = _obstacle(judged, audit)
    if reason is not None:
        return Rate.missing(method, reason, labels=labels)
    phases = TwoPhases.of(strata, audit)
    if weight is None:
        weight = phases.best_weight()
    rate = phases.rate(weight)
    value = min(1.0, max(0.0, rate))
    cautious = phases.variance(weight, rate, prior=PRIOR_LABELS)
    effective = effective_answers(value, cautious, otherwise=phases.kish)
    interval = share_interval(value, effective, degrees=phases.degrees)
    if interval.high - interval.low > WIDEST_USABLE:
        return Rate.missing(method, Reason.TOO_WIDE, labels=labels)
    estimate = Estimate(value, interval, flag=_flag(audit, rate))
    error = math.sqrt(phases.variance(weight, rate))
    return Rate(method, estimate, None, error, labels, weight)


def _obstacle(judged: WeightedRate, audit: AuditLabels) -> Reason | None:
    """Why PPI++ cannot be computed."""
    answers, passes = audit.human_answers.sum(), audit.human_passes.sum()
    labelled = np.bincount(audit.groups, minlength=len(audit.group_sizes))
    if not answers:
        return Reason.NO_LABELS
    if judged.reason is not None:
        return judged.reason
    if ((labelled == 0) & (audit.group_sizes > 0)).any():
        return Reason.UNLABELLED_GROUP
    if np.count_nonzero(audit.human_answers) < FEWEST_AT_RANDOM:
        return Reason.TOO_FEW_LABELS
    return Reason.ONE_CLASS if passes in (0, answers) else None


def _flag(audit: AuditLabels, rate: float) -> str:
    passes = float(audit.human_passes.sum())
    rarer = min(passes, float(audit.human_answers.sum()) - passes)
    flags = {FEW_FLAG: rarer < FEW_FALSE, OUTSIDE_FLAG: not 0 <= rate <= 1}
    return "; ".join(text for text, applies in flags.items() if applies)
