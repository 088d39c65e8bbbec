"""The status policy and its reasons."""

from dataclasses import replace

import pytest

from alignment.reports.core.status import (
    DIRECTIONAL,
    Abstentions,
    Decision,
    Status,
    StatusPolicy,
    decide_status,
)
from alignment.statistics.agreement import Confusion
from alignment.statistics.intervals import mover_mean, proportion


def decide(
    table: Confusion, *, policy: StatusPolicy | None = None, tier: str = "simple", **left: Abstentions
) -> Decision:
    tpr = proportion(table.tp, table.human_true, reason="no True")
    tnr = proportion(table.tn, table.human_false, reason="no False")
    return decide_status(
        table=table,
        tpr=tpr,
        tnr=tnr,
        balanced_accuracy=mover_mean(tpr, tnr),
        policy=policy or StatusPolicy(),
        tier=tier,
        **left,
    )


def test_a_good_judge_with_enough_labels_is_aligned() -> None:
    assert decide(Confusion(95, 5, 5, 95)) == Decision(Status.ALIGNED, ())


def test_too_few_labels_of_a_class_decide_nothing_and_are_counted() -> None:
    found = decide(Confusion(60, 2, 1, 11))
    assert found == Decision(Status.NOT_ENOUGH_LABELS, ("needs 18 more human False labels (12 of 30)",))
    nothing = decide(Confusion(0, 0, 0, 0))
    assert nothing.reasons == (
        "needs 30 more human True labels (0 of 30)",
        "needs 30 more human False labels (0 of 30)",
    )


@pytest.mark.parametrize(("false_labels", "status"), [(29, Status.NOT_ENOUGH_LABELS), (30, Status.ALIGNED)])
def test_thirty_labels_of_a_class_are_enough(false_labels: int, status: Status) -> None:
    assert decide(Confusion(100, 0, 0, false_labels)).status == status


def test_a_low_rate_is_named_with_its_value_and_the_limit() -> None:
    found = decide(Confusion(100, 0, 30, 70))
    assert found.status == Status.NOT_ALIGNED
    assert found.reasons == (
        "TNR 0.70 is below 0.80",
        "TNR's lower bound 0.60 is below 0.65",
    )


def test_a_high_rate_on_few_labels_misses_the_lower_bound() -> None:
    # 25 of 30: .833 is above .80, its Wilson bound .664 above .65; 24 of 30: .800 with .627.
    assert decide(Confusion(100, 0, 5, 25)).status == Status.ALIGNED
    found = decide(Confusion(100, 0, 6, 24))
    assert found == Decision(Status.NOT_ALIGNED, ("TNR's lower bound 0.63 is below 0.65",))


def test_a_constant_judge_is_not_aligned() -> None:
    found = decide(Confusion(500, 0, 40, 0))
    assert found.status == Status.NOT_ALIGNED
    assert "balanced accuracy's lower bound 0.496 is not above 0.50" in found.reasons


def test_a_rate_just_below_its_limit_is_shown_with_a_third_decimal() -> None:
    assert decide(Confusion(200, 0, 51, 199)).reasons == ("TNR 0.796 is below 0.80",)


def test_who_is_right_only_where_they_answer_is_not_aligned() -> None:
    # 11 of 111 are a tenth; 12 of 112 are more.
    assert decide(Confusion(95, 5, 5, 95), open_false=Abstentions(11, 11)).status == Status.ALIGNED
    found = decide(Confusion(95, 5, 5, 95), open_true=Abstentions(3, 3), open_false=Abstentions(12, 12))
    assert found == Decision(
        Status.NOT_ALIGNED,
        ("the judge abstained on 12 of 112 chats with a human False",),
    )


def test_rare_abstentions_are_weighted_by_the_sampling() -> None:
    found = decide(Confusion(95, 5, 5, 95), open_false=Abstentions(6, 6, share=0.34))
    (reason,) = found.reasons
    assert reason.endswith("on 6 of 106 chats with a human False, 34% when weighted")


def test_where_verdicts_are_missing_no_labels_are_said_to_be() -> None:
    found = decide(Confusion(60, 2, 1, 11), open_false=Abstentions(28, 28))
    assert found == Decision(
        Status.NOT_ENOUGH_LABELS,
        (
            "verdicts on 12 of 40 chats with a human False: 30 needed",
            "the judge abstained on 28 of 40 chats with a human False",
        ),
    )
    failed = decide(Confusion(60, 2, 1, 11), open_false=Abstentions(28))
    assert failed.reasons == ("verdicts on 12 of 40 chats with a human False: 30 needed",)
    both = decide(Confusion(60, 2, 1, 11), open_false=Abstentions(17))
    assert both.reasons == ("needs 1 more human False labels (29 of 30), and verdicts on 17 labelled chats",)


def test_a_subjective_criterion_keeps_its_status_and_is_directional() -> None:
    for table in (Confusion(95, 5, 5, 95), Confusion(50, 50, 50, 50), Confusion(3, 0, 0, 3)):
        plain, subjective = decide(table), decide(table, tier="subjective")
        assert subjective.status == plain.status
        assert subjective.reasons == (*plain.reasons, DIRECTIONAL)


def test_another_policy_decides_otherwise_and_carries_its_version() -> None:
    strict = replace(StatusPolicy(), name="strict", version=3, minimum_rate=0.97)
    assert decide(Confusion(95, 5, 5, 95), policy=strict).status == Status.NOT_ALIGNED
    assert strict.label == "strict, version 3"
    assert strict.as_json()["minimum_rate"] == 0.97


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("minimum_true", 0),
        ("minimum_false", -1),
        ("minimum_rate", 1.2),
        ("balanced_low_above", -0.1),
        ("largest_abstention", 1.1),
    ],
)
def test_a_limit_out_of_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        StatusPolicy(**{name: value})  # type: ignore[arg-type]
