"""Share of chats that pass: by people, by the judge, and by the judge corrected for its errors."""

from alignment.core.correction import corrected_share
from alignment.core.estimates import Estimate
from alignment.core.intervals import proportion
from alignment.core.report.data import HumanCode, JudgeCode
from alignment.core.report.tally import Tally

NO_ANSWER = "no chat that people answered True or False"
NO_VERDICT = "no verdict of True or False"
ALL_LABELLED = "every chat is labelled: nothing to correct for"
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


def corrected_pass_rate(tally: Tally, *, passes_when: bool) -> Estimate:
    """Share that passes of all chats of the run, labelled or not, corrected for the judge's errors.

    Parameters
    ----------
    tally : of one criterion, with a run.
    passes_when : the answer that is good for the chatbot.

    Returns
    -------
    Estimate : Rogan-Gladen, since the labelled chats are chosen and not drawn at random.
        Undefined, with the reason, when every chat is labelled.
    """
    if tally.people(HumanCode.UNLABELLED) == 0:
        return Estimate(None, reason=ALL_LABELLED)
    true, false = tally.judge(JudgeCode.TRUE), tally.judge(JudgeCode.FALSE)
    share = corrected_share(table=tally.table, judge_true=true, judge_n=true + false)
    return passing(share, passes_when=passes_when)
