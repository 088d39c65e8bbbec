"""Cautions: sentences about a judge's statistics that are easily misread."""

from collections.abc import Mapping

from alignment.comparison.core.codes import HumanCode, JudgeCode
from alignment.comparison.core.tally import Tally
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import MINIMUM_CHATS

HIGH_AGREEMENT = 0.80
LOW_KAPPA = 0.40
HIGH_AC1 = 0.60
CHANCE = 0.50
MANY = 0.10
INVERTED = "is the answer inverted?"


def cautions(
    table: Confusion, *, kappa: Estimate, balanced: Estimate, by_verdict: int = 0, unused: int = 0
) -> tuple[str, ...]:
    """Return the cautions that apply, one sentence each.

    On fewer than 10 chats only labels sampled by verdict give a caution. The others are: one answer only;
    the kappa paradox (agreement from 0.80 and AC1 from 0.60, but kappa below 0.40, because one answer is
    rare); and inverted answers (kappa's interval below 0, or balanced accuracy's below 0.50), as if the judge
    read the question the other way round.

    Parameters
    ----------
    table : human answers against verdicts.
    kappa, balanced : Cohen's kappa and balanced accuracy, with intervals.
    by_verdict : number of these chats that were sampled for labelling by verdict. The statistics are then
        weighted and not those of the table, so the paradox is not checked.
    unused : number of chats sampled by verdict whose labels no statistic uses.

    Notes
    -----
    Feinstein & Cicchetti (1990), J Clin Epidemiol 43:543; Gwet (2008), BJMSP 61:29.

    Examples
    --------
    >>> cautions(Confusion(19, 0, 1, 0), kappa=Estimate(0.0), balanced=Estimate(0.5))[0]
    'the judge answered True on all 20 chats'
    """
    sentences = [_by_verdict(table, by_verdict), _unused(unused)]
    if table.n >= MINIMUM_CHATS:
        paradox = "" if by_verdict else _paradox(table)
        sentences += [_one_answer(table), paradox, _polarity(kappa, balanced)]
    return tuple(filter(None, sentences))


def _by_verdict(table: Confusion, chats: int) -> str:
    if not chats:
        return ""
    return (
        f"{chats} of the {table.n} compared chats were sampled by verdict: statistics are weighted to all"
        " chats with a verdict, so they do not follow from the matrix"
    )


def _unused(chats: int) -> str:
    if not chats:
        return ""
    return (
        f"labels of {chats} chats are excluded: the chats were sampled by topic or by another judge's"
        " verdicts, and other chats with the same verdict had no chance of selection"
    )


def carried_caution(carried: Mapping[str, int], *, labels: int) -> str:
    """Return which of a criterion's `labels` raters gave to other questions; empty if there are none.

    `carried` : number of labels that carried over, by key of the retired criterion; several after a merge.

    Examples
    --------
    >>> carried_caution({"polite": 30}, labels=120)[:52]
    '30 of 120 labels were carried over from polite: rate'
    """
    if not carried:
        return ""
    *first, last = carried
    names = f"{', '.join(first)} and {last}" if first else last
    effect = (
        "raters answered those questions, and chats on which their consensuses differ were excluded"
        if first
        else "raters answered that question, not this one"
    )
    return f"{sum(carried.values()):,} of {labels:,} labels were carried over from {names}: {effect}"


def pass_rate_cautions(counts: Tally, *, corrected: bool) -> tuple[str, ...]:
    """Return what a corrected pass rate assumes, if it assumes it of more than 10% of the chats."""
    if not corrected:
        return ()
    labelled = counts.chats - counts.human(HumanCode.UNLABELLED)
    neither = counts.human(HumanCode.NA) + counts.human(HumanCode.UNRESOLVED)
    answered = counts.judge(JudgeCode.TRUE) + counts.judge(JudgeCode.FALSE)
    abstained = counts.all_abstentions
    sentences = []
    if neither > MANY * labelled:
        sentences.append(
            f"{neither} of {labelled} labelled chats have no human True or False:"
            " the corrected pass rate assumes that all unlabelled chats would have one"
        )
    if abstained > MANY * (answered + abstained):
        sentences.append(
            f"the judge abstained on {abstained} of {answered + abstained} chats:"
            " the corrected pass rate assumes that these pass as often as the others"
        )
    return tuple(sentences)


def _one_answer(table: Confusion) -> str:
    if not table.constant_judge:
        return ""
    return f"the judge answered {'True' if table.judge_true else 'False'} on all {table.n} chats"


def _paradox(table: Confusion) -> str:
    agreement, kappa, ac1 = table.accuracy, table.kappa, table.gwet_ac1
    if agreement is None or kappa is None or ac1 is None:
        return ""
    if agreement < HIGH_AGREEMENT or kappa >= LOW_KAPPA or ac1 < HIGH_AC1:
        return ""
    rare = min(("True", table.human_true), ("False", table.human_false), key=lambda one: one[1])
    return (
        f"agreement is {agreement:.2f} and AC1 {ac1:.2f}, but kappa {_signed(kappa)}: "
        f"only {rare[1]} of {table.n} chats have a human {rare[0]}; read TPR and TNR"
    )


def _signed(value: float) -> str:
    """Return two decimals with a true minus sign.

    >>> _signed(-0.204)
    '−0.20'
    """
    return f"{value:z.2f}".replace("-", "−")


def _polarity(kappa: Estimate, balanced: Estimate) -> str:
    """Check kappa first: if it is below 0, balanced accuracy is below 0.50 as well."""
    if kappa.value is not None and kappa.interval and kappa.interval.high < 0:
        return f"{INVERTED} kappa is {_signed(kappa.value)} and its interval lies below 0"
    if balanced.interval and balanced.interval.high < CHANCE:
        return (
            f"{INVERTED} balanced accuracy is {balanced.value:.2f} and its interval lies below {CHANCE:.2f}"
        )
    return ""
