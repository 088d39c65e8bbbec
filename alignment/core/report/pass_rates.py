"""Share of chats that pass: by people, by the judge, and by the judge corrected for its errors."""

from enum import StrEnum

import numpy as np

from alignment.core.correction import corrected_share
from alignment.core.estimates import Estimate
from alignment.core.intervals import proportion
from alignment.core.ppi import ppi_share
from alignment.core.report.data import HumanCode, JudgeCode
from alignment.core.report.tally import Tally

NO_ANSWER = "no chat that people answered True or False"
NO_VERDICT = "no verdict of True or False"
ALL_LABELLED = "every chat is labelled: nothing to correct for"
# On fewer labels a normal interval is not to be trusted: Rogan-Gladen then, which takes any labels.
FEWEST_AT_RANDOM = 60
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
    """PPI++ from 60 labels on that were all drawn at random, Rogan-Gladen for labels on chosen chats.

    None where every chat is labelled.
    """
    if tally.people(HumanCode.UNLABELLED) == 0:
        return None
    return Method.PPI if at_random and tally.table.n >= FEWEST_AT_RANDOM else Method.ROGAN_GLADEN


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
    true, false = tally.judge(JudgeCode.TRUE), tally.judge(JudgeCode.FALSE)
    if method is Method.PPI:
        share = _prediction_powered(tally)
    else:
        share = corrected_share(table=tally.table, judge_true=true, judge_n=true + false)
    return passing(share, passes_when=passes_when)


def _prediction_powered(tally: Tally) -> Estimate:
    """Share of True by PPI++, clipped to 0..1."""
    cells = tally.table.cells
    labels, verdicts = np.repeat([1.0, 1.0, 0.0, 0.0], cells), np.repeat([1.0, 0.0, 1.0, 0.0], cells)
    unlabelled = tally.joint[HumanCode.UNLABELLED, : JudgeCode.NA]
    return ppi_share(labels, verdicts, np.repeat([1.0, 0.0], unlabelled)).clipped()
