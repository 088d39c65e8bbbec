"""Raters among themselves on one criterion, and the judge in the place of each of them."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, JudgeCode
from alignment.rater_quality.core import FALSE, Answers, Pair, majority_of_others, rater_pairs
from alignment.rater_quality.core.answers import Ints
from alignment.reports.core.judge_side import judge_rates
from alignment.statistics.agreement import Confusion
from alignment.statistics.alt_test import EPSILON, MARGIN, MINIMUM_CHATS, RaterCase, Replacement, replacement
from alignment.statistics.estimates import Estimate
from alignment.statistics.label_needs import Decision, LabelCounts, needs

RATERS_SHOWN = 12
NOBODY = "nobody has labelled these chats"
ONE_RATER = "one rater only: no human ceiling, and nobody to compare the judge with"
FEW_CHATS = f"fewer than {MINIMUM_CHATS} chats that the judge, this rater and others answered"


@dataclass(frozen=True)
class RaterRow:
    """A rater and the judge on the same chats, each against the strict majority of the other raters.

    Parameters
    ----------
    rater : the rater's number.
    labels : answers given, not applicable among them.
    own, judge : people against the rater, and against the judge: 2×2 tables over the same chats.
    case : the comparison that decides; None below 30 chats, or with fewer than three such raters.
    """

    rater: int
    labels: int
    own: Confusion
    judge: Confusion
    case: RaterCase | None

    def as_json(self) -> dict[str, Any]:
        """Both balanced accuracies, the balanced gap, and what the alt-test makes of this rater."""
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
class People:
    """Those with the most labels, most first: their pairs and rows; `decision` counts all raters.

    `missing` says which labels such a decision is planned with beyond those that are there, or ''.
    """

    total: int
    shown: list[int]
    pairs: list[list[Pair | None]]
    rows: list[RaterRow]
    decision: Replacement
    missing: str

    def as_json(self) -> dict[str, Any]:
        """`raters` and `pairs` name single raters by number; the rest does not."""
        return {
            "total": self.total,
            "stand_in": _stand_in(self.decision, self.total) | {"missing": self.missing},
            "raters": [row.as_json() for row in self.rows],
            "pairs": [
                _pair(self.shown[i], self.shown[j], pair)
                for i, line in enumerate(self.pairs)
                for j, pair in enumerate(line)
                if j > i and pair is not None
            ],
        }


def people(answers: Answers, judge: Codes, *, raters: int, counts: LabelCounts, seed: int) -> People:
    """
    Everything about raters on one criterion.

    Parameters
    ----------
    answers : of one criterion; `answers.chats` are places in `judge`.
    judge : JudgeCode by chat, shape (chats,).
    raters : how many there are.
    counts : the criterion's labels, as the label plan counts them.
    seed : of the bootstrap of every gap.

    Examples
    --------
    >>> three = Answers(np.zeros(3, int), np.zeros(3, int), np.arange(3), np.array([0, 0, 1]))
    >>> found = people(three, np.zeros(1, dtype=np.int8), raters=3, counts=LabelCounts(1, 0), seed=1)
    >>> found.pairs[0][1].agreement, found.rows[2].own.n, found.rows[2].judge.tp
    (1.0, 1, 1)
    """
    labels = np.bincount(answers.raters, minlength=raters)
    shown = np.argsort(-labels, kind="stable")[:RATERS_SHOWN]
    given = _by_rater(answers, len(judge), raters)
    decision = replacement(given, _judged(judge), seed=seed)
    cases = {case.rater: case for case in decision.cases}
    tables = _tables(answers, judge, raters)
    rows = [
        RaterRow(rater, int(labels[rater]), own, judged, cases.get(rater))
        for rater in shown.tolist()
        for own, judged in [tables[rater]]
    ]
    return People(raters, shown.tolist(), rater_pairs(answers, shown), rows, decision, _missing(counts))


def _tables(answers: Answers, judge: Codes, raters: int) -> list[tuple[Confusion, Confusion]]:
    """By rater: the others' majority against the rater, and against the judge, on the same chats."""
    others, judged = majority_of_others(answers), judge[answers.chats].astype(np.int64)
    compared = (others >= 0) & (others <= FALSE) & (answers.values <= FALSE) & (judged <= FALSE)
    rows = answers.raters[compared] * 4 + others[compared] * 2
    found = [
        np.bincount(rows + said[compared], minlength=4 * raters).reshape(raters, 4).tolist()
        for said in (answers.values, judged)
    ]
    return [(Confusion(*own), Confusion(*other)) for own, other in zip(*found, strict=True)]


def _by_rater(answers: Answers, chats: int, raters: int) -> NDArray[np.int8]:
    """Shape (chats, raters): 1 True, 0 False, -1 neither."""
    labels = np.full((chats, raters), -1, dtype=np.int8)
    told = answers.values <= FALSE
    labels[answers.chats[told], answers.raters[told]] = 1 - answers.values[told]
    return labels


def _missing(counts: LabelCounts) -> str:
    """What the plan asks for before a judge replaces a rater, beyond the labels that are there."""
    need = next(one for one in needs(counts) if one.decision == Decision.REPLACE)
    return "" if need.met else need.sentence


def _judged(judge: Codes) -> Ints:
    return np.where(judge <= JudgeCode.FALSE, 1 - judge, -1).astype(np.int64)


def _balanced(table: Confusion) -> Estimate:
    return judge_rates(table)["balanced_accuracy"]


def _pair(first: int, second: int, pair: Pair) -> dict[str, Any]:
    return {"raters": [first, second], **asdict(pair), "few": pair.few}


def _stand_in(found: Replacement, total: int) -> dict[str, Any]:
    """Whether the judge may stand in for a rater: the balanced gap decides, the alt-test stands beside it."""
    reason = {0: NOBODY, 1: ONE_RATER}.get(total, found.reason)
    beaten = [case.beaten for case in found.cases]
    return {
        "raters": len(found.cases),
        "balanced": found.balanced,
        "beaten": sum(beaten) / len(beaten) if beaten else None,
        "margin": MARGIN,
        "alt_test": found.alt_test,
        "winning_rate": found.winning_rate,
        "epsilon": EPSILON,
        "reason": reason,
    }
