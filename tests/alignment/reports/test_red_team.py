"""The right word on every planted judge: a few sets of `python -m bench redteam`, at fixed seeds."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from alignment.comparison.core.codes import HumanCode, JudgeCode
from alignment.statistics.label_needs import Decision
from bench import _redteam_judges as judges
from bench._redteam_cases import CASES
from bench._redteam_expected import ALONE, LABELS, MIXED, OPPOSED, RARE, USUAL, Case, Expected
from bench._redteam_words import Given, Subject
from bench._redteam_worlds import enough, simulated
from bench.redteam import RIGHT, WRONG, Row, rows_of, words_given

OF_ONE, OF_SEVERAL = 10, 2  # sets of a case with one criterion, and with ten or more
SUBJECTS = {
    *(Subject.STATUS, Subject.LEAGUE, Subject.GATE),
    *(Subject.CERTIFICATE, Subject.PLAN, Subject.CONSENSUS),
}
NAMES = [case.name for case in CASES]


def allowed(percent: float, words: int) -> int:
    """Of a few words none may be wrong; the seeds are fixed, so no luck decides."""
    return math.ceil(percent * words / 100) if words >= OF_ONE else 0


def off(row: Row) -> bool:
    """Whether more words are wrong, or fewer right, than the limits allow of so many."""
    return row.wrong_words > allowed(WRONG, row.given.of) or (
        row.expected.must and (not row.of or row.of - row.right_words > allowed(100 - RIGHT, row.of))
    )


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_planted_judge_gets_the_right_words(case: Case) -> None:
    sets = OF_ONE if len(case.world.true) == 1 else OF_SEVERAL
    rows = rows_of(case, [words_given(case, tuple(range(sets)))])
    assert [row.line for row in rows if off(row)] == []


def test_every_planted_judge_has_a_right_word_on_each_subject() -> None:
    assert len(set(NAMES)) == len(NAMES) > 50
    for case in CASES:
        named = [one.subject for one in case.every]
        assert set(named) >= SUBJECTS and len(set(named)) == len(named), case.name
        assert case.why.endswith("."), case.name


def row(expected: Expected, given: Given) -> Row:
    return Row(CASES[0], expected, given)


def test_a_right_word_is_counted_where_the_plan_has_enough_labels_and_a_wrong_one_everywhere() -> None:
    given = Given(Counter(aligned=30, not_enough_labels=10), 40, Counter(aligned=28, not_aligned=2), 30)
    good = row(Expected(Subject.STATUS, ("aligned",), must=True), given)
    assert good.right == pytest.approx(100 * 28 / 30) and good.kept
    bad = row(Expected(Subject.STATUS, ("not_aligned",), never=("aligned",)), given)
    assert (bad.wrong, bad.kept) == (75.0, False)
    assert off(bad) and not off(good)
    one_of_two = row(Expected(Subject.LEAGUE, ("worse",), never=("better",)), Given(Counter(better=1), 2))
    assert off(one_of_two)
    assert [figure.floor for figure in good.figures] + [figure.floor for figure in bad.figures] == [
        True,
        False,
    ]
    assert not list(row(Expected(Subject.STATUS, ("aligned",)), given).figures)


def test_labels_of_a_planned_world_end_where_the_plan_asks_for_no_more() -> None:
    draw = np.random.default_rng(1)
    chats = simulated(RARE, draw)
    assert enough(chats.human[0], Decision.BADGE) and not enough(chats.human[0, :-1], Decision.BADGE)
    assert (chats.human == HumanCode.FALSE).sum() == 30
    assert len(simulated(ALONE, draw)) == 300


def test_raters_and_judges_answer_as_planted() -> None:
    draw = np.random.default_rng(1)
    chats = simulated(replace(USUAL, chats=20_000), draw)
    assert (chats.labels == chats.truth).mean(axis=(1, 2)) == pytest.approx([0.97] * 3, abs=0.01)
    assert (chats.truth == HumanCode.TRUE).mean() == pytest.approx(0.7, abs=0.02)

    right = judges.skilled(0.9, 0.6)(chats, chats.truth, draw) == chats.truth
    by_class = [right[chats.truth == code].mean() for code in (HumanCode.TRUE, HumanCode.FALSE)]
    assert by_class == pytest.approx([0.9, 0.6], abs=0.02)

    silent = judges.without_errors(judges.skilled(0.75), JudgeCode.NONE)(chats, chats.truth, draw)
    assert (silent == JudgeCode.NONE).mean() == pytest.approx(0.25, abs=0.02)
    assert (silent == chats.truth)[silent <= JudgeCode.FALSE].all()

    champion = judges.skilled(0.9)(chats, chats.truth, draw)
    revision = judges.revised(true=judges.EQUAL, false=judges.EQUAL)(chats, champion, draw)
    fixed, broken = (
        (one == chats.truth) & (other != chats.truth) for one, other in _both(revision, champion)
    )
    assert (fixed.mean(), broken.mean()) == pytest.approx((0.04, 0.04), abs=0.01)


def _both(one: np.ndarray, other: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(one, other), (other, one)]


def test_a_judge_may_be_constant_on_each_criterion_and_right_in_nine_of_ten() -> None:
    draw = np.random.default_rng(1)
    chats = simulated(MIXED, draw)
    verdicts = judges.constant(chats, chats.truth, draw)
    assert (np.ptp(verdicts, axis=1) == 0).all()
    assert (verdicts == chats.truth).mean() == pytest.approx(0.9, abs=0.02)


def test_raters_who_oppose_each_other_leave_every_chat_unresolved() -> None:
    chats = simulated(OPPOSED, np.random.default_rng(1))
    assert (chats.human == HumanCode.UNRESOLVED).all()
    assert OPPOSED in LABELS
