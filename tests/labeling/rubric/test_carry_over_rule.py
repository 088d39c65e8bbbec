"""Which labels of a chat carry over when questions merge, and agreement between raters afterwards."""

from random import Random

import numpy as np
import pytest

from alignment.statistics.agreement import percent_agreement
from labeling.consensus.core.votes import Decision
from labeling.rubric.core.carry_over import ChatCarryOver, OldAnswers, chat_carry_over


def answers(*labels: bool | None, decision: Decision | None = None) -> OldAnswers:
    """Labels of raters 1, 2, …"""
    return OldAnswers(dict(enumerate(labels, 1)), decision)


def sources(*olds: OldAnswers) -> dict[int, int] | None:
    found = chat_carry_over(olds)
    return None if found is None else dict(found.sources)


ALL_FIRST = {1: 0, 2: 0, 3: 0}


def test_where_consensuses_agree_every_rater_keeps_the_label_to_the_first_question() -> None:
    found = chat_carry_over([answers(True, True, False), answers(False, True, True)])
    assert found == ChatCarryOver(ALL_FIRST, differing=2)


@pytest.mark.parametrize("other", [False, None])
def test_where_consensuses_differ_the_chat_is_excluded_even_if_a_rater_answered_alike(
    other: bool | None,
) -> None:
    assert sources(answers(True, True, other), answers(other, other, other)) is None


def test_an_adjudication_is_the_consensus() -> None:
    false = Decision(value=False)
    assert sources(answers(True, True, False, decision=false), answers(False, False, True)) == ALL_FIRST
    assert sources(answers(True, True, False, decision=false), answers(True, True, True)) is None
    assert sources(OldAnswers({}, false), answers(True, True)) is None
    assert sources(OldAnswers({}, false), OldAnswers({}, false)) == {}


def test_an_unresolved_consensus_differs_from_no_answer() -> None:
    assert sources(answers(True, False), answers(True, True)) == {1: 0, 2: 0}
    assert sources(answers(True, True), answers(True, False)) == {1: 0, 2: 0}
    assert sources(answers(True, False), answers(False, True)) == {1: 0, 2: 0}


def test_who_answered_one_question_only_keeps_that_label() -> None:
    assert sources(OldAnswers({1: True}), OldAnswers({2: True})) == {1: 0, 2: 1}
    assert sources(answers(), answers(True, True)) == {1: 1, 2: 1}
    assert sources(answers(True, True)) == {1: 0, 2: 0}


def test_labels_that_together_have_another_majority_do_not_carry_over() -> None:
    some, more = OldAnswers({1: True, 2: True, 3: False}), {1: True, 2: True, 3: True, 4: False, 5: False}
    assert sources(some, OldAnswers(more)) is None
    tied = {1: True, 2: True, 4: False}
    assert sources(some, OldAnswers(tied)) == {1: 0, 2: 0, 3: 0, 4: 1}


# ---------- planted raters ----------

CHATS = 3_000
MARGIN = 0.015  # over two standard errors of agreement on the carried chats


def panel(truth: bool, accuracy: float, raters: int, draw: Random) -> OldAnswers:
    return OldAnswers({n: truth is (draw.random() < accuracy) for n in range(raters)})


def planted(raters: int, accuracy: float, *, same: float, seed: int) -> list[list[OldAnswers]]:
    """Two questions; on a share `same` of the chats they have one truth, elsewhere two independent ones."""
    draw = Random(seed)
    chats = []
    for _ in range(CHATS):
        first = draw.random() < 0.5
        second = first if draw.random() < same else draw.random() < 0.5
        chats.append([panel(truth, accuracy, raters, draw) for truth in (first, second)])
    return chats


def agreement(labels: list[list[bool | None]]) -> float:
    counts = [[row.count(True), row.count(False), 0] for row in labels]
    value = percent_agreement(np.array(counts))
    assert value is not None
    return value


def carried(chats: list[list[OldAnswers]]) -> list[list[bool | None]]:
    found = [(olds, chat_carry_over(olds)) for olds in chats]
    return [[olds[n].labels[one] for one, n in row.sources.items()] for olds, row in found if row]


@pytest.mark.parametrize("raters", [2, 3, 4, 5])
@pytest.mark.parametrize("same", [0, 0.9])
def test_agreement_after_a_merge_is_not_overstated(raters: int, same: float) -> None:
    accuracy = 0.975
    true = accuracy**2 + (1 - accuracy) ** 2  # .951
    after = carried(planted(raters, accuracy, same=same, seed=raters))
    assert agreement(after) < true + MARGIN
    assert agreement(after) > true - (0.06 if raters == 2 else MARGIN)
    assert {len(row) for row in after} == {raters}


def test_keeping_only_raters_who_answered_alike_would_overstate_it() -> None:
    chats = planted(3, 0.975, same=0, seed=1)
    alike = [[value for one, value in a.labels.items() if b.labels[one] is value] for a, b in chats]
    assert agreement([row for row in alike if row]) > 0.985


def test_a_majority_for_each_question_would_leave_two_raters_without_a_disagreement() -> None:
    chats = planted(2, 0.975, same=1, seed=2)
    agreed = [a for a, b in chats if a.state == b.state != "unresolved"]
    assert agreement([list(one.labels.values()) for one in agreed]) == 1
    assert agreement(carried(chats)) == pytest.approx(0.951, abs=MARGIN)


def test_with_independent_questions_no_majority_is_made_from_a_dissenter() -> None:
    for a, b in planted(3, 0.975, same=0, seed=3):
        assert (chat_carry_over([a, b]) is None) == (a.state != b.state)
