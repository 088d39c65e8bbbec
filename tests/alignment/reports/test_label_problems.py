"""League and gate find the same problem with a criterion's labels as its status does."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from alignment.comparison.core.codes import CriterionData
from alignment.reports.core.label_problems import label_problem
from alignment.reports.core.status import StatusPolicy
from tests.factories.report_data import UNLABELLED, UNRESOLVED, F, T, report
from tests.factories.sampled_labels import sampled


def labelled(*, at_random: Sequence[int], by_verdict: Sequence[int]) -> CriterionData:
    """Labels of a random sample, and of a sample by another judge's verdicts, which represents no others."""
    human = [*at_random, *by_verdict, *[UNLABELLED] * 60]
    judge = [T if place % 2 else F for place in range(len(human))]
    inverse = [0.0] * len(at_random) + [3.0] * len(by_verdict) + [0.0] * 60
    return replace(sampled(human, judge, inverse), chance=np.array([1.0 if one else 0.0 for one in inverse]))


def problem_of(data: CriterionData) -> str:
    return label_problem(data, policy=StatusPolicy(), seed=1)


AGREED = [T, F] * 50


@pytest.mark.parametrize(
    ("at_random", "by_verdict", "problem"),
    [
        (AGREED, [T, F] * 5 + [UNRESOLVED] * 40, ""),
        (
            [*AGREED[25:], *[UNRESOLVED] * 25],
            [T, F] * 50,
            "not enough agreed labels: 25 of 100 labelled chats are unresolved, adjudicate them",
        ),
    ],
)
def test_labels_that_no_statistic_uses_neither_make_nor_hide_a_problem(
    at_random: Sequence[int], by_verdict: Sequence[int], problem: str
) -> None:
    data = labelled(at_random=at_random, by_verdict=by_verdict)
    (entry,) = report(data)["criteria"]
    assert any("were sampled by topic or by another judge's" in words for words in entry["cautions"])
    assert problem_of(data) == problem
    assert (problem in entry["reasons"]) is bool(problem)
    assert entry["unresolved"] == at_random.count(UNRESOLVED)


def test_sampled_labels_that_represent_the_others_count() -> None:
    data = labelled(at_random=AGREED, by_verdict=[T, F] * 5 + [UNRESOLVED] * 40)
    data = replace(data, chance=np.full(len(data.human), 0.3))
    (entry,) = report(data)["criteria"]
    problem = "not enough agreed labels: 40 of 150 labelled chats are unresolved, adjudicate them"
    assert problem_of(data) == entry["reasons"][0] == problem
