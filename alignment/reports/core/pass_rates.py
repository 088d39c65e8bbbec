"""Pass rates: human, judge, and judge corrected for its errors."""

from enum import StrEnum

import numpy as np

from alignment.comparison.core.codes import HumanCode, JudgeCode
from alignment.comparison.core.tally import Tally
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion
from alignment.statistics.prediction_powered import FEW_FALSE, ppi_share
from alignment.statistics.prevalence_correction import corrected_share, raw_corrected_share

NO_ANSWER = "no chat with a human True or False"
NO_VERDICT = "no verdict of True or False"
ALL_LABELLED = "every chat is labelled, so no correction is needed"
# With fewer labels a normal interval is not reliable; Rogan-Gladen is used instead.
FEWEST_AT_RANDOM, FEWEST_OF_EACH = 60, FEW_FALSE
NEEDS_ONE_TRUTH = "not available against each rater: needs one human answer per chat"


def passing(share: Estimate, *, passes_when: bool) -> Estimate:
    """Return the share that passes, given the share of True.

    >>> passing(Estimate(0.75), passes_when=False).value
    0.25
    """
    return share if passes_when else share.complement()


def human_pass_rate(tally: Tally, *, passes_when: bool) -> Estimate:
    """Return the pass rate of the chats with a human True or False, with a Wilson interval.

    Parameters
    ----------
    tally : the counts of one criterion.
    passes_when : the answer that is good for the chatbot.
    """
    share = proportion(tally.human(HumanCode.TRUE), tally.answered, reason=NO_ANSWER)
    return passing(share, passes_when=passes_when)


def judge_pass_rate(tally: Tally, *, passes_when: bool) -> Estimate:
    """Return the uncorrected pass rate of all chats with a verdict, with a Wilson interval.

    Parameters
    ----------
    tally : the counts of one criterion, with a run.
    passes_when : the answer that is good for the chatbot.
    """
    true, false = tally.judge(JudgeCode.TRUE), tally.judge(JudgeCode.FALSE)
    return passing(proportion(true, true + false, reason=NO_VERDICT), passes_when=passes_when)


class Method(StrEnum):
    """How a judge's pass rate is corrected."""

    PPI = "ppi"
    ROGAN_GLADEN = "rogan_gladen"
    WEIGHTING = "weighting"  # labels sampled by verdict


def method_of(tally: Tally, *, at_random: bool) -> Method | None:
    """Return PPI++ for at least 60 randomly sampled labels with 20 of each answer, else Rogan-Gladen.

    None if every chat is labelled.
    """
    if tally.human(HumanCode.UNLABELLED) == 0:
        return None
    true, false = tally.human(HumanCode.TRUE), tally.human(HumanCode.FALSE)
    enough = true + false >= FEWEST_AT_RANDOM and min(true, false) >= FEWEST_OF_EACH
    return Method.PPI if at_random and enough else Method.ROGAN_GLADEN


def corrected_pass_rate(tally: Tally, *, passes_when: bool, method: Method | None) -> Estimate:
    """Return the pass rate of all chats of the run, corrected for the judge's errors.

    Parameters
    ----------
    tally : the counts of one criterion, with a run.
    passes_when : the answer that is good for the chatbot.
    method : the result of `method_of`.

    Returns
    -------
    Estimate : undefined, with a reason, if every chat is labelled.
    """
    if method is None:
        return Estimate(None, reason=ALL_LABELLED)
    if method is Method.PPI:
        return passing(_prediction_powered(tally).clipped(), passes_when=passes_when)
    true, false = _verdicts(tally)
    share = corrected_share(table=tally.table, judge_true=true, judge_n=true + false)
    return passing(share, passes_when=passes_when)


def raw_corrected(tally: Tally, method: Method) -> float | None:
    """Return the corrected share of True before it is clipped, by PPI++ or Rogan-Gladen."""
    if method is Method.PPI:
        return _prediction_powered(tally).value
    true, false = _verdicts(tally)
    return raw_corrected_share(tally.table, judge_true=true, judge_n=true + false)


def _verdicts(tally: Tally) -> tuple[int, int]:
    """Count the verdicts True and False; chats labelled not applicable, or unresolved, need no correction."""
    true, false = (
        int(tally.joint[[HumanCode.TRUE, HumanCode.FALSE, HumanCode.UNLABELLED], code].sum())
        for code in (JudgeCode.TRUE, JudgeCode.FALSE)
    )
    return true, false


def _prediction_powered(tally: Tally) -> Estimate:
    """Return the share of True by PPI++, not clipped. A chat without a verdict is predicted False."""
    judged_true = tally.joint[:, JudgeCode.TRUE]
    other = tally.joint.sum(axis=1) - judged_true
    cells = [of[code] for code in (HumanCode.TRUE, HumanCode.FALSE) for of in (judged_true, other)]
    labels, verdicts = np.repeat([1.0, 1.0, 0.0, 0.0], cells), np.repeat([1.0, 0.0, 1.0, 0.0], cells)
    unlabelled = [judged_true[HumanCode.UNLABELLED], other[HumanCode.UNLABELLED]]
    return ppi_share(labels, verdicts, np.repeat([1.0, 0.0], unlabelled))
