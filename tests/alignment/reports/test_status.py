"""The status policy, its reasons and cautions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from alignment.reports.core.human_side import human_side
from alignment.reports.core.status import (
    DIRECTIONAL,
    Abstentions,
    Decision,
    HumanLabels,
    Status,
    StatusPolicy,
    decide_status,
)
from alignment.statistics.agreement import Confusion
from alignment.statistics.intervals import mover_mean, proportion

# Labels that give no reason and no caution.
AGREED = HumanLabels(
    200, 0, human_side(np.array([[3, 0, 0]] * 99 + [[0, 3, 0]] * 99 + [[2, 1, 0]] * 2), raters=3, seed=1).body
)
UNKNOWN = "human agreement unknown: 0 of 30 needed chats have two labels"


def decide(
    table: Confusion,
    *,
    policy: StatusPolicy | None = None,
    tier: str = "simple",
    labels: HumanLabels = AGREED,
    **left: Abstentions,
) -> Decision:
    tpr = proportion(table.tp, table.human_true, reason="no True")
    tnr = proportion(table.tn, table.human_false, reason="no False")
    return decide_status(
        table=table,
        tpr=tpr,
        tnr=tnr,
        balanced_accuracy=mover_mean(tpr, tnr),
        labels=labels,
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
        ("the judge gave no True or False on 12 of 112 chats with a human False",),
        ("the judge gave no True or False on 3 of 103 chats with a human True",),
    )


def test_from_two_in_a_hundred_abstentions_there_is_a_caution() -> None:
    assert decide(Confusion(93, 5, 5, 93), open_true=Abstentions(2, 2)).cautions == ()
    found = decide(Confusion(92, 5, 5, 92), open_true=Abstentions(2, 2))
    assert (found.status, found.cautions) == (
        Status.ALIGNED,
        ("the judge gave no True or False on 2 of 99 chats with a human True",),
    )


def test_a_judge_that_leaves_out_wrong_rows_is_not_aligned() -> None:
    # It has 148 of 200 right, .74, and leaves out 20 of its 52 wrong rows, which makes .82.
    left_out = Abstentions(20, 20)
    assert decide(Confusion(148, 32, 32, 148)).status == Status.ALIGNED
    found = decide(Confusion(148, 32, 32, 148), open_true=left_out, open_false=left_out)
    assert found.status == Status.NOT_ALIGNED
    assert found.reasons == (
        "TPR 0.74 is below 0.80 with 20 chats without True or False counted as wrong",
        "TNR 0.74 is below 0.80 with 20 chats without True or False counted as wrong",
    )
    assert len(found.cautions) == 2


def test_up_to_two_in_a_hundred_abstentions_do_not_count_as_wrong() -> None:
    for table, abstained, status in (
        (Confusion(158, 38, 0, 100), 4, Status.ALIGNED),
        (Confusion(158, 37, 0, 100), 5, Status.NOT_ALIGNED),
        (Confusion(160, 35, 0, 100), 5, Status.ALIGNED),  # .80 of 200
    ):
        assert decide(table, open_true=Abstentions(abstained, abstained)).status == status


def test_weighted_abstentions_count_as_wrong_by_their_share() -> None:
    # A rate of .85 on 95% of the weighted chats is .81 of all; on 92% it is .78.
    table = Confusion(85, 15, 0, 100)
    assert decide(table, open_true=Abstentions(2, 2, share=0.05)).status == Status.ALIGNED
    found = decide(table, open_true=Abstentions(1, 1, share=0.08))
    assert found.reasons == ("TPR 0.78 is below 0.80 with 1 chat without True or False counted as wrong",)


def test_a_rate_that_misses_the_limit_anyway_is_named_once() -> None:
    found = decide(Confusion(140, 60, 0, 100), open_true=Abstentions(10, 10))
    assert [reason for reason in found.reasons if reason.startswith("TPR 0")] == ["TPR 0.70 is below 0.80"]
    # Above a tenth, the abstentions are the reason.
    many = decide(Confusion(170, 30, 0, 100), open_true=Abstentions(40, 40))
    assert many.reasons == ("the judge gave no True or False on 40 of 240 chats with a human True",)


def test_verdicts_that_a_run_still_owes_are_no_abstentions() -> None:
    assert decide(Confusion(95, 5, 5, 95), open_false=Abstentions(300, 0)) == Decision(Status.ALIGNED, ())


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
            "the judge gave no True or False on 28 of 40 chats with a human False",
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
    strict = replace(StatusPolicy(), name="strict", version=4, minimum_rate=0.97)
    assert decide(Confusion(95, 5, 5, 95), policy=strict).status == Status.NOT_ALIGNED
    assert strict.label == "strict, version 4"
    assert strict.as_json()["minimum_rate"] == 0.97


def test_every_limit_is_in_the_json_by_its_name() -> None:
    limits = StatusPolicy().as_json()
    assert (limits["version"], limits["largest_silent"], limits["cautioned_silent"]) == (3, 0.10, 0.02)
    assert (limits["largest_unresolved"], limits["cautioned_unresolved"]) == (0.20, 0.05)
    assert (limits["minimum_overlap"], limits["minimum_agreement"]) == (30, 0.40)


# ---------- what the labels allow ----------


def labelled_by(counts: Sequence[Sequence[int]], *, unresolved: int = 0) -> HumanLabels:
    return HumanLabels(len(counts), unresolved, human_side(np.array(counts), raters=2, seed=1).body)


def rated(*, both_true: int, differ: int, both_false: int) -> HumanLabels:
    """Two raters; chats on which they differ are unresolved."""
    counts = [[2, 0, 0]] * both_true + [[1, 1, 0]] * differ + [[0, 2, 0]] * both_false
    return labelled_by(counts, unresolved=differ)


def test_one_unresolved_chat_in_twenty_is_a_caution_and_one_in_five_leaves_no_status() -> None:
    table = Confusion(95, 5, 5, 95)
    for unresolved, status, caution in (
        (10, Status.ALIGNED, False),
        (11, Status.ALIGNED, True),
        (40, Status.ALIGNED, True),
        (41, Status.NOT_ENOUGH_LABELS, False),
    ):
        found = decide(table, labels=replace(AGREED, unresolved=unresolved))
        words = f"{unresolved} of 200 labelled chats are unresolved, adjudicate them"
        assert (found.status, words in found.cautions) == (status, caution)
    assert found.reasons == (f"not enough agreed labels: {words}",)


def test_where_adjudication_may_bring_the_labels_no_more_are_asked_for() -> None:
    table = Confusion(20, 0, 0, 40)
    few = decide(table, labels=replace(AGREED, labelled=80, unresolved=20))
    assert few.reasons == (
        "not enough agreed labels: 20 of 80 labelled chats are unresolved, adjudicate them",
    )
    fewer = decide(Confusion(2, 0, 0, 4), labels=replace(AGREED, labelled=8, unresolved=2))
    assert [reason.split()[0] for reason in fewer.reasons] == ["not", "needs", "needs"]


def test_two_opposed_raters_disagree_and_are_told_to_adjudicate() -> None:
    found = decide(Confusion(0, 0, 0, 0), labels=rated(both_true=0, differ=60, both_false=0))
    assert found.status == Status.RATERS_DISAGREE
    assert found.reasons == (
        "raters disagree: the upper bound of their own accuracy 0.05 is below 0.80",
        "raters disagree: the upper bounds of alpha and AC1 are both below 0.40",
        "not enough agreed labels: 60 of 60 labelled chats are unresolved, adjudicate them",
    )


def test_raters_who_guess_make_no_judge_aligned() -> None:
    draw = np.random.default_rng(4)
    true = draw.binomial(3, 0.5, size=200)
    counts = np.column_stack([true, 3 - true, 0 * true])
    found = decide(Confusion(100, 0, 0, 100), labels=labelled_by(counts.tolist()))
    assert found.status == Status.RATERS_DISAGREE


def test_raters_who_agree_on_rare_answers_do_not_disagree() -> None:
    # They agree on 95 of 100 chats; alpha and the balanced ceiling are low because False is rare.
    labels = rated(both_true=380, differ=20, both_false=0)
    agreement = labels.agreement
    assert agreement["krippendorff_alpha"]["value"] < 0 and agreement["ceiling"]["value"] < 0.5
    found = decide(Confusion(300, 0, 0, 40), labels=labels)
    assert (found.status, found.reasons, found.cautions) == (Status.ALIGNED, (), ())


def test_low_alpha_and_ac1_disagree_where_accuracy_compares_too_little() -> None:
    # Whether the question applies at all is disputed, so True and False are hardly ever compared.
    counts = [[1, 0, 1]] * 60 + [[0, 1, 1]] * 60 + [[2, 0, 0]] * 8
    found = decide(Confusion(100, 0, 0, 100), labels=labelled_by(counts))
    assert found.status == Status.RATERS_DISAGREE
    assert found.reasons == ("raters disagree: the upper bounds of alpha and AC1 are both below 0.40",)


def test_disagreement_on_fewer_than_thirty_chats_is_unknown() -> None:
    found = decide(
        Confusion(95, 5, 5, 95), labels=replace(rated(both_true=0, differ=29, both_false=0), unresolved=0)
    )
    assert (found.status, found.cautions) == (
        Status.ALIGNED,
        ("human agreement unknown: 29 of 30 needed chats have two labels",),
    )
    one_rater = labelled_by([[1, 0, 0]] * 100 + [[0, 1, 0]] * 100)
    assert decide(Confusion(95, 5, 5, 95), labels=one_rater) == Decision(Status.ALIGNED, (), (UNKNOWN,))


def test_raters_who_never_differ_may_have_copied() -> None:
    found = decide(Confusion(95, 5, 5, 95), labels=rated(both_true=100, differ=0, both_false=100))
    assert (found.status, len(found.cautions)) == (Status.ALIGNED, 1)
    assert found.cautions[0].startswith("raters gave the same label on all 200 chats with two labels")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("minimum_true", 0),
        ("minimum_false", -1),
        ("minimum_rate", 1.2),
        ("balanced_low_above", -0.1),
        ("largest_abstention", 1.1),
        ("cautioned_unresolved", -0.1),
        ("minimum_overlap", 0),
    ],
)
def test_a_limit_out_of_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        StatusPolicy(**{name: value})  # type: ignore[arg-type]
