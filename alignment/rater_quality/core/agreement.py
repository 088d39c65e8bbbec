"""Agreement of each rater with a reference answer, with intervals clustered by chat."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment.rater_quality.core.answers import Ints
from alignment.statistics.agreement import cohen_kappa, formulas
from alignment.statistics.agreement.two_raters import t_interval
from alignment.statistics.estimates import Estimate
from alignment.statistics.intervals import MINIMUM_CHATS, Statistic, wilson

FEW = 30  # fewer compared answers are an indication only
NOTHING = "no answers to compare"
ONE_ANSWER = "both gave the same single answer"
TOO_FEW = f"needs {MINIMUM_CHATS} chats for an interval"
NO_SPREAD = "no interval: the value is the same without any one chat"
ONE_CHAT = "no interval: κ is undefined without one of the chats"


@dataclass(frozen=True)
class Agreement:
    """Agreement of a rater, or of all raters, with the reference on the same questions.

    n, chats : compared answers, and their chats. agreeing : answers equal to the reference.
    share, kappa : share of agreeing answers and Cohen's kappa, with 95% intervals.
    """

    n: int
    chats: int
    agreeing: int
    share: Estimate
    kappa: Estimate

    @property
    def few(self) -> bool:
        """Whether the answers are too few for more than an indication."""
        return self.n < FEW or self.chats < MINIMUM_CHATS


@dataclass(frozen=True)
class _ByChat:
    """3×3 tables (reference in rows) of each rater's answers on one chat; `owner` is the rater."""

    tables: NDArray[np.int64]
    owner: Ints


def agreements(*, raters: Ints, chats: Ints, reference: Ints, values: Ints, number: int) -> list[Agreement]:
    """
    Compute each rater's agreement with the reference.

    Parameters
    ----------
    raters, chats, reference, values : arrays with one entry per answer; raters from 0 to `number` - 1;
        reference and values are TRUE, FALSE or NA.
    number : number of raters.

    Returns
    -------
    list of Agreement : one per rater; n = 0 and undefined values for a rater without compared answers.

    Notes
    -----
    Share: Wilson's interval with the effective number of answers, n / design effect (Dean & Pagano 2015, J
    Surv Stat Methodol 3:484), because answers on one chat are correlated. Kappa: delete-one-chat
    jackknife with Student's t (Efron & Tibshirani 1993, chapter 11). Simulated, nominal .95: 50 chats of one
    criterion, 90% True, TPR .95, TNR .75: .93, the textbook interval .88; 40 chats of ten criteria whose
    errors are correlated on three chats in ten: .90, the textbook interval .81.

    Examples
    --------
    >>> zeros, ones = np.zeros(4, int), np.array([0, 0, 1, 1])
    >>> (one,) = agreements(raters=zeros, chats=np.arange(4), reference=ones, values=ones, number=1)
    >>> one.n, one.agreeing, one.kappa.value
    (4, 4, 1.0)
    """
    grouped = _by_chat(raters, chats, reference, values)
    totals = np.zeros((number, 3, 3), dtype=np.int64)
    np.add.at(totals, grouped.owner, grouped.tables)
    chats_of = np.bincount(grouped.owner, minlength=number)
    share_error = _jackknife(grouped, totals, chats_of, _share)
    kappa_error = _jackknife(grouped, totals, chats_of, formulas.cohen_kappa)
    return [
        _agreement(totals[place], int(chats_of[place]), share_error[place], kappa_error[place])
        for place in range(number)
    ]


def pooled(*, chats: Ints, reference: Ints, values: Ints) -> Agreement:
    """
    Compute the agreement of all raters together.

    >>> pooled(chats=np.arange(2), reference=np.array([0, 1]), values=np.array([0, 0])).share.value
    0.5
    """
    one = np.zeros(len(chats), dtype=np.int64)
    return agreements(raters=one, chats=chats, reference=reference, values=values, number=1)[0]


def _by_chat(raters: Ints, chats: Ints, reference: Ints, values: Ints) -> _ByChat:
    width = int(chats.max(initial=0)) + 1
    keys, group = np.unique(raters * width + chats, return_inverse=True)
    cells = np.bincount(group * 9 + reference * 3 + values, minlength=9 * keys.size)
    return _ByChat(cells.reshape(-1, 3, 3), keys // width)


def _share(tables: formulas.Floats) -> formulas.Floats:
    return formulas.ratio(np.trace(tables, axis1=-2, axis2=-1), tables.sum(axis=(-2, -1)))


def _jackknife(
    grouped: _ByChat, totals: NDArray[np.int64], chats: NDArray[np.int64], statistic: Statistic
) -> formulas.Floats:
    """Return the standard error by rater; NaN if the statistic is undefined without one of the chats."""
    without = statistic((totals[grouped.owner] - grouped.tables).astype(np.float64))
    number = chats.astype(np.float64)
    mean = formulas.ratio(np.bincount(grouped.owner, without, minlength=number.size).astype(float), number)
    deviation = (without - mean[grouped.owner]) ** 2
    squares = np.bincount(grouped.owner, deviation, minlength=number.size).astype(float)
    error: formulas.Floats = np.sqrt(formulas.ratio((number - 1) * squares, number))
    return error


def _agreement(table: NDArray[np.int64], chats: int, share_error: float, kappa_error: float) -> Agreement:
    n, agreeing = int(table.sum()), int(np.trace(table))
    if n == 0:
        nothing = Estimate(None, reason=NOTHING)
        return Agreement(0, 0, 0, nothing, nothing)
    share = _share_estimate(agreeing, n, chats=chats, error=share_error)
    return Agreement(n, chats, agreeing, share, _kappa_estimate(table, chats=chats, error=kappa_error))


def _share_estimate(agreeing: int, n: int, *, chats: int, error: float) -> Estimate:
    share = agreeing / n
    independent = share * (1 - share) / n
    # Without an estimate of the correlation within chats, a chat counts as one answer.
    estimable = independent and error > 0 and chats >= MINIMUM_CHATS
    effect = max(1.0, error**2 * (chats - 1) / chats / independent) if estimable else n / chats
    return Estimate(share, wilson(agreeing / effect, n / effect))


def _kappa_estimate(table: NDArray[np.int64], *, chats: int, error: float) -> Estimate:
    kappa = cohen_kappa(table)
    if kappa.value is None:
        return Estimate(None, reason=ONE_ANSWER)
    flag = "one of the two gave a single answer" if kappa.constant_rows or kappa.constant_columns else ""
    if chats < MINIMUM_CHATS or np.isnan(error) or error == 0:
        reason = TOO_FEW if chats < MINIMUM_CHATS else ONE_CHAT if np.isnan(error) else NO_SPREAD
        return Estimate(kappa.value, reason=reason, flag=flag)
    return Estimate(kappa.value, t_interval(kappa.value, error, degrees=chats - 1), flag=flag)
