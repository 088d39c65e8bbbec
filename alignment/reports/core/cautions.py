"""What easily misleads in a judge's statistics on one criterion, in words."""

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
    table: Confusion, *, kappa: Estimate, balanced: Estimate, drawn: int = 0, set_aside: int = 0
) -> tuple[str, ...]:
    """One sentence a trap; none on fewer than 10 chats, but for labels that were drawn by verdict.

    The judge gave one answer only. Kappa's paradox: agreement of .80 or more and AC1 of .60 or more beside a
    kappa below .40, since one answer is rare. Polarity: kappa's interval lies below 0, or balanced accuracy's
    below .50, as it does where the question is understood the other way round.

    Parameters
    ----------
    table : people against the judge.
    kappa, balanced : Cohen's kappa and balanced accuracy, with intervals.
    drawn : of the chats, those that were drawn for labelling by verdict; then the figures are not the table's
        own, and the paradox is not looked for.
    set_aside : chats drawn by verdict that no figure counts.

    Notes
    -----
    Feinstein & Cicchetti (1990), J Clin Epidemiol 43:543; Gwet (2008), BJMSP 61:29.

    Examples
    --------
    >>> cautions(Confusion(19, 0, 1, 0), kappa=Estimate(0.0), balanced=Estimate(0.5))[0]
    'the judge answered True on all 20 chats'
    """
    found = [_drawn(table, drawn), _set_aside(set_aside)]
    if table.n >= MINIMUM_CHATS:
        found += [_one_answer(table), "" if drawn else _paradox(table), _polarity(kappa, balanced)]
    return tuple(sentence for sentence in found if sentence)


def _drawn(table: Confusion, drawn: int) -> str:
    if not drawn:
        return ""
    return (
        f"{drawn} of the {table.n} compared chats were drawn by verdict: figures are weighted to all"
        " chats that were judged and do not follow from the matrix"
    )


def _set_aside(chats: int) -> str:
    if not chats:
        return ""
    return (
        f"{chats} labelled chats were drawn in a way that gave others of the same verdict no chance, by topic"
        " or by another judge: no figure counts them"
    )


def pass_rate_cautions(counts: Tally, *, corrected: bool) -> tuple[str, ...]:
    """What a corrected pass rate takes for granted, where it is more than a tenth of the chats."""
    if not corrected:
        return ()
    labelled = counts.chats - counts.people(HumanCode.UNLABELLED)
    apart = counts.people(HumanCode.NA) + counts.people(HumanCode.UNRESOLVED)
    silent, asked = counts.silent_in_all, counts.judge(JudgeCode.TRUE) + counts.judge(JudgeCode.FALSE)
    found = []
    if apart > MANY * labelled:
        found.append(
            f"people gave neither True nor False on {apart} of {labelled} labelled chats:"
            " the corrected pass rate is as if they would on all others"
        )
    if silent > MANY * (asked + silent):
        found.append(
            f"the judge left {silent} of {asked + silent} chats open:"
            " the corrected pass rate is as if these passed as often as the others"
        )
    return tuple(found)


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
        f"people answered {rare[0]} on {rare[1]} of {table.n} chats; read TPR and TNR"
    )


def _signed(value: float) -> str:
    """Two decimals, with a true minus.

    >>> _signed(-0.204)
    '−0.20'
    """
    return f"{value:z.2f}".replace("-", "−")


def _polarity(kappa: Estimate, balanced: Estimate) -> str:
    """Kappa first: where it lies below 0 balanced accuracy lies below .50, too."""
    if kappa.value is not None and kappa.interval and kappa.interval.high < 0:
        return f"{INVERTED} kappa is {_signed(kappa.value)} and its interval lies below 0"
    if balanced.interval and balanced.interval.high < CHANCE:
        return (
            f"{INVERTED} balanced accuracy is {balanced.value:.2f} and its interval lies below {CHANCE:.2f}"
        )
    return ""
