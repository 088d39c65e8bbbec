"""Raters on one criterion: agreement in pairs, and the judge in place of each rater."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, JudgeCode
from alignment.rater_quality.core import FALSE, Answers, Pair, majority_of_others, rater_pairs
from alignment.rater_quality.core.answers import Ints
from alignment.reports.core.judge_side import judge_rates
from alignment.statistics.agreement import Confusion
from alignment.statistics.alt_test import EPSILON, MARGIN, MINIMUM_CHATS, AltTest, RaterCase, alt_test
from alignment.statistics.estimates import Estimate
from alignment.statistics.label_needs import Decision, LabelCounts, needs

RATERS_SHOWN = 12
NOBODY = "no labels on these chats"
ONE_RATER = "one rater only: no human ceiling, and no other raters to compare with"
FEW_CHATS = f"fewer than {MINIMUM_CHATS} chats answered by the judge, this rater and others"


@dataclass(frozen=True)
class RaterRow:
    """A rater and the judge on the same chats, each against the strict majority of the other raters.

    Parameters
    ----------
    rater : the rater's number.
    labels : number of labels, not applicable included.
    own, judge : the others' majority against the rater, and against the judge: 2×2 tables of the same chats.
    case : the comparison that decides; None with fewer than 30 chats or three such raters.
    """

    rater: int
    labels: int
    own: Confusion
    judge: Confusion
    case: RaterCase | None

    def as_json(self) -> dict[str, Any]:
        """Return both balanced accuracies, the balanced gap, and the result of the alt-test."""
        case = self.case
        return {
            "rater": self.rater,
            "labels": self.labels,
            "n": self.own.n,
            "own": _balanced(self.own).as_json(),
            "judge": _balanced(self.judge).as_json(),
            "compared": case.chats if case else None,
            "gap": case.gap.as_json() if case else None,
            "beaten": case.beaten if case else None,
            "advantage": case.advantage if case else None,
            "p_value": case.p_value if case else None,
            "wins": case.wins if case else None,
            "reason": "" if case else FEW_CHATS,
        }


@dataclass(frozen=True)
class RaterComparison:
    """The raters with the most labels, their pairs and rows; `decision` counts all raters.

    `missing` names the labels that the decision still needs according to the label plan, or ''.
    """

    total: int
    shown: list[int]
    pairs: list[list[Pair | None]]
    rows: list[RaterRow]
    decision: AltTest
    missing: str

    def as_json(self) -> dict[str, Any]:
        """Return the JSON; only `raters` and `pairs` name single raters, by number."""
        return {
            "total": self.total,
            "stand_in": _replacement(self.decision, self.total) | {"missing": self.missing},
            "raters": [row.as_json() for row in self.rows],
            "pairs": [
                _pair(self.shown[i], self.shown[j], pair)
                for i, line in enumerate(self.pairs)
                for j, pair in enumerate(line)
                if j > i and pair is not None
            ],
        }


def rater_comparison(
    answers: Answers, judge: Codes, *, raters: int, counts: LabelCounts, seed: int
) -> RaterComparison:
    """Compare raters with each other and with the judge on one criterion.

    Parameters
    ----------
    answers : labels of one criterion; `answers.chats` are positions in `judge`.
    judge : JudgeCode by chat, shape (chats,).
    raters : number of raters.
    counts : the criterion's labels, as the label plan counts them.
    seed : seed of the bootstrap of every gap.

    Examples
    --------
    >>> three = Answers(np.zeros(3, int), np.zeros(3, int), np.arange(3), np.array([0, 0, 1]))
    >>> judge = np.zeros(1, dtype=np.int8)
    >>> result = rater_comparison(three, judge, raters=3, counts=LabelCounts(1, 0), seed=1)
    >>> result.pairs[0][1].agreement, result.rows[2].own.n, result.rows[2].judge.tp
    (1.0, 1, 1)
    """
    labels = np.bincount(answers.raters, minlength=raters)
    shown = np.argsort(-labels, kind="stable")[:RATERS_SHOWN]
    by_rater = _by_rater(answers, len(judge), raters)
    decision = alt_test(by_rater, _true_or_false(judge), seed=seed)
    cases = {case.rater: case for case in decision.cases}
    tables = _tables(answers, judge, raters)
    rows = [
        RaterRow(rater, int(labels[rater]), own, of_judge, cases.get(rater))
        for rater in shown.tolist()
        for own, of_judge in [tables[rater]]
    ]
    return RaterComparison(
        raters, shown.tolist(), rater_pairs(answers, shown), rows, decision, _missing(counts)
    )


def _tables(answers: Answers, judge: Codes, raters: int) -> list[tuple[Confusion, Confusion]]:
    """Return by rater the others' majority against the rater, and against the judge, on the same chats."""
    others, verdicts = majority_of_others(answers), judge[answers.chats].astype(np.int64)
    compared = (others >= 0) & (others <= FALSE) & (answers.values <= FALSE) & (verdicts <= FALSE)
    rows = answers.raters[compared] * 4 + others[compared] * 2
    of_raters, of_judge = (
        np.bincount(rows + codes[compared], minlength=4 * raters).reshape(raters, 4).tolist()
        for codes in (answers.values, verdicts)
    )
    return [(Confusion(*own), Confusion(*judged)) for own, judged in zip(of_raters, of_judge, strict=True)]


def _by_rater(answers: Answers, chats: int, raters: int) -> NDArray[np.int8]:
    """Return shape (chats, raters): 1 True, 0 False, -1 neither."""
    labels = np.full((chats, raters), -1, dtype=np.int8)
    answered = answers.values <= FALSE
    labels[answers.chats[answered], answers.raters[answered]] = 1 - answers.values[answered]
    return labels


def _missing(counts: LabelCounts) -> str:
    """Return the labels that the label plan still needs before a judge replaces a rater."""
    need = next(one for one in needs(counts) if one.decision == Decision.REPLACE)
    return "" if need.met else need.sentence


def _true_or_false(judge: Codes) -> Ints:
    return np.where(judge <= JudgeCode.FALSE, 1 - judge, -1).astype(np.int64)


def _balanced(table: Confusion) -> Estimate:
    return judge_rates(table)["balanced_accuracy"]


def _pair(first: int, second: int, pair: Pair) -> dict[str, Any]:
    return {"raters": [first, second], **asdict(pair), "few": pair.few}


def _replacement(decision: AltTest, total: int) -> dict[str, Any]:
    """Return whether the judge can replace a rater: the balanced gap decides, the alt-test is reported."""
    reason = {0: NOBODY, 1: ONE_RATER}.get(total, decision.reason)
    beaten = [case.beaten for case in decision.cases]
    return {
        "raters": len(decision.cases),
        "balanced": decision.balanced,
        "beaten": sum(beaten) / len(beaten) if beaten else None,
        "margin": MARGIN,
        "alt_test": decision.alt_test,
        "winning_rate": decision.winning_rate,
        "epsilon": EPSILON,
        "reason": reason,
    }
