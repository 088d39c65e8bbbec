"""Share of chats that pass: by people, by the judge, and by the judge corrected for its errors."""

from enum import StrEnum

import numpy as np

from alignment.comparison.core.codes import HumanCode, JudgeCode
from alignment.comparison.core.tally import Tally
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import proportion
from alignment.statistics.prediction_powered import FEW_FALSE, ppi_share
from alignment.statistics.prevalence_correction import corrected_share

NO_ANSWER = "no chat that people answered True or False"
NO_VERDICT = "no verdict of True or False"
ALL_LABELLED = "every chat is labelled: nothing to correct for"
# On fewer labels, or of one answer, a normal interval is not to be trusted: Rogan-Gladen then, which takes
# any labels.
FEWEST_AT_RANDOM, FEWEST_OF_EACH = 60, FEW_FALSE
NEEDS_ONE_TRUTH = "needs one answer a chat: not against each rater"


def passing(share: Estimate, *, passes_when: bool) -> Estimate:
    """The share that passes, from the share of True.

    >>> passing(Estimate(0.75), passes_when=False).value
    0.25
    """
    return share if passes_when else share.complement()


def human_pass_rate(tally: Tally, *, passes_when: bool) -> Estimate:
    """Share that passes of the chats people answered, with or without a verdict; Wilson interval.

    Parameters
    ----------
    tally : of one criterion.
    passes_when : the answer that is good for the chatbot.
    """
    share = proportion(tally.people(HumanCode.TRUE), tally.answered, reason=NO_ANSWER)
    return passing(share, passes_when=passes_when)


def judge_pass_rate(tally: Tally, *, passes_when: bool) -> Estimate:
    """Share that passes of all chats the judge answered, labelled or not, uncorrected; Wilson interval.

    Parameters
    ----------
    tally : of one criterion, with a run.
    passes_when : the answer that is good for the chatbot.
    """
    true, false = tally.judge(JudgeCode.TRUE), tally.judge(JudgeCode.FALSE)
    return passing(proportion(true, true + false, reason=NO_VERDICT), passes_when=passes_when)


class Method(StrEnum):
    """How a judge's pass rate is corrected."""

    PPI = "ppi"
    ROGAN_GLADEN = "rogan_gladen"
    WEIGHTING = "weighting"  # of labels drawn by verdict


def method_of(tally: Tally, *, at_random: bool) -> Method | None:
    """PPI++ from 60 labels on, 20 of each answer, that were all drawn at random; else Rogan-Gladen.

    None where every chat is labelled.
    """
    if tally.people(HumanCode.UNLABELLED) == 0:
        return None
    true, false = tally.people(HumanCode.TRUE), tally.people(HumanCode.FALSE)
    enough = true + false >= FEWEST_AT_RANDOM and min(true, false) >= FEWEST_OF_EACH
    return Method.PPI if at_random and enough else Method.ROGAN_GLADEN


def corrected_pass_rate(tally: Tally, *, passes_when: bool, method: Method | None) -> Estimate:
    """Share that passes of all chats of the run, labelled or not, corrected for the judge's errors.

    Parameters
    ----------
    tally : of one criterion, with a run.
    passes_when : the answer that is good for the chatbot.
    method : that of `method_of`.

    Returns
    -------
    Estimate : undefined, with the reason, when every chat is labelled.
    """
    if method is None:
        return Estimate(None, reason=ALL_LABELLED)
    if method is Method.PPI:
        return passing(_prediction_powered(tally), passes_when=passes_when)
    # Chats that people called not applicable, or not yet anything, are known and not to be corrected.
    true, false = (
        int(tally.joint[[HumanCode.TRUE, HumanCode.FALSE, HumanCode.UNLABELLED], code].sum())
        for code in (JudgeCode.TRUE, JudgeCode.FALSE)
    )
    share = corrected_share(table=tally.table, judge_true=true, judge_n=true + false)
    return passing(share, passes_when=passes_when)


def _prediction_powered(tally: Tally) -> Estimate:
    """Share of True by PPI++, clipped to 0..1. What the judge left open is predicted False, like a False."""
    said_true = tally.joint[:, JudgeCode.TRUE]
    other = tally.joint.sum(axis=1) - said_true
    cells = [of[code] for code in (HumanCode.TRUE, HumanCode.FALSE) for of in (said_true, other)]
    labels, verdicts = np.repeat([1.0, 1.0, 0.0, 0.0], cells), np.repeat([1.0, 0.0, 1.0, 0.0], cells)
    unlabelled = [said_true[HumanCode.UNLABELLED], other[HumanCode.UNLABELLED]]
    return ppi_share(labels, verdicts, np.repeat([1.0, 0.0], unlabelled)).clipped()
