"""Share of chats that pass: by people, by the judge, and by the judge corrected for its errors."""

from dataclasses import replace

from alignment.core.agreement import Confusion
from alignment.core.correction import corrected_share, ppi_share
from alignment.core.estimates import Estimate, Interval
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


def corrected_pass_rate(tally: Tally, *, passes_when: bool, random_labels: bool) -> Estimate:
    """Share that passes of all chats of the run, labelled or not, corrected for the judge's errors.

    Parameters
    ----------
    tally : of one criterion, with a run.
    passes_when : the answer that is good for the chatbot.
    random_labels : the labelled chats are a random sample: PPI++. Curated labels: Rogan-Gladen with
        Lang-Reiczigel.

    Returns
    -------
    Estimate : undefined, with the reason, when every chat is labelled.
    """
    if tally.people(HumanCode.UNLABELLED) == 0:
        return Estimate(None, reason=ALL_LABELLED)
    true, false = tally.judge(JudgeCode.TRUE), tally.judge(JudgeCode.FALSE)
    if random_labels:
        share = _within_bounds(_ppi(tally, tally.table))
    else:
        share = corrected_share(table=tally.table, judge_true=true, judge_n=true + false)
    return passing(share, passes_when=passes_when)


def _ppi(tally: Tally, table: Confusion) -> Estimate:
    true = int(tally.joint[HumanCode.UNLABELLED, JudgeCode.TRUE])
    false = int(tally.joint[HumanCode.UNLABELLED, JudgeCode.FALSE])
    return ppi_share(table=table, unlabelled_true=true, unlabelled_n=true + false)


def _within_bounds(share: Estimate) -> Estimate:
    """PPI++ is not bound to [0, 1]; a report is."""
    if share.value is None or share.interval is None:
        return share
    interval = Interval(_clip(share.interval.low), _clip(share.interval.high))
    return replace(share, value=_clip(share.value), interval=interval)


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))
