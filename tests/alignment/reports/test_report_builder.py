"""A report's criteria: every chat counted once, a reason for every undefined value, no NaN."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment.comparison.core.codes import JudgeCode, ReportData
from alignment.reports.core import build_report
from alignment.reports.core.judge_side import NAMES
from alignment.reports.core.status import DIRECTIONAL, StatusPolicy
from alignment.statistics.agreement import Confusion
from alignment.statistics.intervals import wilson
from alignment.statistics.prevalence_correction import corrected_share
from tests.factories.report_data import (
    COUNTED,
    NA,
    UNLABELLED,
    UNRESOLVED,
    F,
    T,
    criterion,
    pairs,
    report,
    spec,
)


def test_confusion_has_human_answers_in_rows_and_true_first() -> None:
    # scikit-learn 1.9.1, docstring of confusion_matrix: tn 0, fp 2, fn 1, tp 1.
    body = report(criterion([F, T, F, T], [T, T, T, F]))
    assert body["criteria"][0]["confusion"] == {"tp": 1, "fn": 1, "fp": 2, "tn": 0}


def test_keys_are_in_the_contracts_order() -> None:
    body = report(criterion([T, F], [T, F]))
    assert list(body)[:7] == [
        "chats",
        "criteria",
        "dimensions",
        "tiers",
        "overall",
        "disagreements",
        "disagreements_total",
    ]
    entry = body["criteria"][0]
    assert list(entry)[:13] == [
        "key",
        "dimension",
        "tier",
        "passes_when",
        "n",
        "human_true",
        "unlabelled",
        "unresolved",
        "not_applicable",
        "no_verdict",
        "no_verdict_by",
        "judge_not_applicable",
        "confusion",
    ]
    assert list(entry)[13:27] == [*NAMES, "human", "pass_rate", "status", "reasons"]
    assert list(entry["human"])[:6] == [
        "raters",
        "overlap",
        "percent_agreement",
        "fleiss_kappa",
        "krippendorff_alpha",
        "gwet_ac1",
    ]
    assert list(entry["pass_rate"]) == ["human", "judge", "judge_corrected"]


def test_a_judge_without_an_error_has_intervals_with_a_width() -> None:
    entry = report(criterion(*pairs(30, 0, 0, 30)))["criteria"][0]
    for name in ("f1", "mcc", "kappa", "gwet_ac1"):
        assert entry[name]["low"] < entry[name]["value"] == entry[name]["high"] == 1.0, name
        assert "flag" not in entry[name]


def test_raters_who_always_agree_have_intervals_with_a_width() -> None:
    counts = [[3, 0, 0]] * 20 + [[0, 3, 0]] * 20
    human = report(criterion([T] * 20 + [F] * 20, None, counts=counts))["criteria"][0]["human"]
    for name in ("krippendorff_alpha", "ceiling"):
        assert 0.8 < human[name]["low"] < human[name]["value"] == human[name]["high"] == 1.0, name


def test_each_chat_counts_by_the_first_rule_that_matches() -> None:
    human = [UNLABELLED, UNRESOLVED, NA, T, F, T, F, T]
    judge = [
        JudgeCode.FAILED,
        JudgeCode.NA,
        JudgeCode.UNPARSED,
        JudgeCode.UNPARSED,
        JudgeCode.NONE,
        JudgeCode.NA,
        JudgeCode.TRUE,
        JudgeCode.TRUE,
    ]
    entry = report(criterion(human, judge))["criteria"][0]
    assert [entry[name] for name in COUNTED] == [2, 1, 1, 1, 2, 1]
    assert entry["no_verdict_by"] == {"unparsed": 1, "none": 1}
    assert entry["human_true"] == 1


def test_every_reason_for_no_verdict_has_its_name() -> None:
    judge = [code for code in JudgeCode if code > JudgeCode.NA]
    entry = report(criterion([T] * len(judge), judge))["criteria"][0]
    assert entry["no_verdict"] == 6
    assert set(entry["no_verdict_by"]) == {"unparsed", "refused", "cut_off", "too_long", "failed", "none"}


def test_values_and_wilson_intervals_are_those_of_the_table() -> None:
    entry = report(criterion(*pairs(31, 4, 5, 75)))["criteria"][0]
    for name, successes, n in (
        ("accuracy", 106, 115),
        ("tpr", 31, 35),
        ("tnr", 75, 80),
        ("precision", 31, 36),
    ):
        interval = wilson(successes, n)
        assert interval is not None
        assert entry[name] == {"value": successes / n, "low": interval.low, "high": interval.high}
    for bound in ("value", "low", "high"):
        assert entry["pabak"][bound] == pytest.approx(2 * entry["accuracy"][bound] - 1)
    table = Confusion(31, 4, 5, 75)
    assert entry["kappa"]["value"] == table.kappa
    assert entry["gwet_ac1"]["value"] == table.gwet_ac1
    assert entry["prevalence"] == 35 / 115
    for name in ("balanced_accuracy", "f1", "mcc", "kappa", "gwet_ac1"):
        assert entry[name]["low"] < entry[name]["value"] < entry[name]["high"], name


def test_a_constant_judge_has_kappa_zero_with_a_flag() -> None:
    entry = report(criterion(*pairs(95, 0, 5, 0)))["criteria"][0]
    assert entry["kappa"] == {
        "value": 0.0,
        "low": None,
        "high": None,
        "flag": "the judge gave one answer only",
    }
    assert entry["mcc"]["value"] is None
    assert entry["undefined"]["mcc"] == "raters or judge gave one answer only"
    assert entry["undefined"]["kappa.interval"] == "raters or judge gave one answer only"


def test_one_class_has_ac1_one_and_no_kappa() -> None:
    entry = report(criterion(*pairs(12, 0, 0, 0)))["criteria"][0]
    assert entry["gwet_ac1"] == {"value": 1.0, "low": None, "high": None}
    assert entry["kappa"] == {"value": None, "low": None, "high": None}
    assert entry["undefined"]["tnr"] == "no chat with a human False"


def test_nine_chats_have_no_bootstrap_interval_and_say_why() -> None:
    entry = report(criterion(*pairs(4, 1, 1, 3)))["criteria"][0]
    assert entry["f1"]["value"] == 0.8
    assert entry["f1"]["low"] is None
    assert entry["undefined"]["f1.interval"] == "too few chats to resample: 9 of 10"
    assert entry["tpr"]["low"] is not None


def test_status_and_reasons_are_the_policys() -> None:
    entry = report(criterion(*pairs(60, 2, 1, 11)))["criteria"][0]
    assert entry["status"] == "not_enough_labels"
    assert entry["reasons"] == ["needs 18 more human False labels (12 of 30)"]
    assert entry["policy"] == "start values, version 3"
    subjective = report(criterion(*pairs(95, 5, 5, 95), about=spec(tier="subjective")))["criteria"][0]
    assert (subjective["status"], subjective["reasons"]) == ("aligned", [DIRECTIONAL])


def test_abstentions_of_the_judge_are_counted_by_human_answer() -> None:
    human, judge = pairs(95, 5, 5, 95)
    on_true = [JudgeCode.UNPARSED] * 4
    on_false = [JudgeCode.NA] * 6 + [JudgeCode.REFUSED] * 7 + [JudgeCode.FAILED]
    said = [*judge, *on_true, *on_false]
    entry = report(criterion(human + [T] * 4 + [F] * 14, said))["criteria"][0]
    assert entry["unjudged"] == {"true": 4, "false": 14}
    assert (entry["status"], entry["reasons"]) == (
        "not_aligned",
        ["the judge gave no True or False on 14 of 114 chats with a human False"],
    )
    assert "the judge gave no True or False on 4 of 104 chats with a human True" in entry["cautions"]


def test_pass_rates_go_through_passes_when() -> None:
    human, judge = pairs(30, 10, 5, 55)
    labelled = len(human)
    human, judge = human + [UNLABELLED] * 100, judge + [T] * 20 + [F] * 80
    rates = report(criterion(human, judge))["criteria"][0]["pass_rate"]
    assert rates["human"]["value"] == 40 / labelled
    assert rates["judge"]["value"] == 55 / 200
    expected = corrected_share(table=Confusion(30, 10, 5, 55), judge_true=55, judge_n=200)
    assert rates["judge_corrected"] == expected.as_json()

    failing = report(criterion(human, judge, about=spec(passes_when=False)))["criteria"][0]["pass_rate"]
    for name in rates:
        assert failing[name]["value"] == pytest.approx(1 - rates[name]["value"])
        assert failing[name]["low"] == pytest.approx(1 - rates[name]["high"])
        assert failing[name]["high"] == pytest.approx(1 - rates[name]["low"])


def test_human_pass_rate_keeps_chats_without_a_verdict() -> None:
    entry = report(criterion([T, T, F, T], [T, JudgeCode.FAILED, F, JudgeCode.NA]))["criteria"][0]
    assert entry["pass_rate"]["human"]["value"] == 0.75
    assert entry["n"] == 2


def test_corrected_rate_is_null_when_every_chat_is_labelled() -> None:
    entry = report(criterion([*pairs(30, 5, 5, 30)[0], UNRESOLVED], [*pairs(30, 5, 5, 30)[1], T]))[
        "criteria"
    ][0]
    assert entry["pass_rate"]["judge_corrected"] is None
    assert "labelled" in entry["undefined"]["pass_rate.judge_corrected"]


def test_without_a_run_only_the_human_side_is_filled() -> None:
    counts = [[3, 0, 0], [2, 1, 0], [0, 3, 0], [1, 1, 0], [0, 0, 2]]
    body = report(criterion([T, T, F, UNRESOLVED, NA], None, counts=counts))
    entry = body["criteria"][0]
    assert [entry[name] for name in COUNTED] == [3, 0, 1, 1, None, None]
    assert (entry["human_true"], entry["prevalence"]) == (2, 2 / 3)
    judged = [*NAMES, "confusion", "no_verdict_by", "status"]
    assert {name: entry[name] for name in judged} == dict.fromkeys(judged)
    assert entry["pass_rate"]["human"]["value"] == 2 / 3
    assert (entry["pass_rate"]["judge"], entry["pass_rate"]["judge_corrected"]) == (None, None)
    assert entry["undefined"]["judge"] == "no run: human labels only"
    assert (body["overall"]["n"], body["overall"]["accuracy"]) == (3, None)
    assert (body["disagreements"], body["disagreements_total"]) == ([], 0)


def test_human_agreement_counts_only_shared_chats_as_overlap() -> None:
    counts = [[3, 0, 0], [2, 1, 0], [0, 3, 0], [1, 0, 0], [0, 0, 0]]
    people = report(criterion([T, T, F, T, UNLABELLED], None, counts=counts))["criteria"][0]["human"]
    assert (people["raters"], people["overlap"]) == (3, 3)
    assert people["percent_agreement"] == pytest.approx((1 + 1 / 3 + 1) / 3)
    # Leaving out each rater: 3 tp, 3 tn, and the one who said False against two who said True.
    assert people["ceiling"]["value"] == pytest.approx((3 / 4 + 1) / 2)


def test_one_rater_a_chat_leaves_human_agreement_undefined_with_its_reason() -> None:
    entry = report(criterion([T, F, T], None))["criteria"][0]
    assert entry["human"]["overlap"] == 0
    for name in ("percent_agreement", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "ceiling"):
        assert entry["undefined"][f"human.{name}"] == "no chat with two raters"


def test_alpha_and_ceiling_have_chat_bootstrap_intervals() -> None:
    counts = np.random.default_rng(2).multinomial(3, [0.7, 0.3, 0.0], size=80)
    people = report(criterion([T] * 80, None, counts=counts.tolist()))["criteria"][0]["human"]
    for name in ("krippendorff_alpha", "ceiling"):
        assert people[name]["low"] < people[name]["value"] < people[name]["high"]


def test_the_stored_seed_gives_the_same_report() -> None:
    data = criterion(*pairs(20, 5, 4, 21))
    assert report(data, seed=7) == report(data, seed=7)
    assert report(data, seed=7)["bootstrap"] == {"seed": 7, "resamples": 2000}
    assert report(data, seed=7)["criteria"][0]["kappa"] != report(data, seed=8)["criteria"][0]["kappa"]


def test_another_criterion_leaves_a_criterions_intervals_alone() -> None:
    data = criterion(*pairs(20, 5, 4, 21))
    other = criterion(*pairs(10, 15, 4, 21), about=spec("other"))
    assert report(other, data)["criteria"][1] == report(data)["criteria"][0]


def test_a_report_without_chats_or_criteria_is_empty() -> None:
    entry = report(criterion([], []))["criteria"][0]
    assert [entry[name] for name in COUNTED] == [0] * 6
    assert entry["accuracy"] == {"value": None, "low": None, "high": None}
    empty = build_report(ReportData([], ()), policy=StatusPolicy(), seed=1)
    assert (empty["criteria"], empty["dimensions"], empty["disagreements_total"]) == ([], [], 0)


@pytest.mark.parametrize(
    ("human", "judge", "counts", "message"),
    [
        ([5], [0], [[0, 0, 0]], "unknown human code"),
        ([-1], [0], [[0, 0, 0]], "unknown human code"),
        ([0], [9], [[0, 0, 0]], "unknown judge code"),
        ([0], [0, 0], [[0, 0, 0]], "differ in length"),
        ([0], [0], [[-1, 0, 0]], "negative label count"),
    ],
)
def test_impossible_data_is_refused_with_the_criterions_name(
    human: list[int], judge: list[int], counts: list[list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=f"polite: .*{message}"):
        criterion(human, judge, counts=counts)


def test_criteria_of_another_length_or_half_a_run_are_refused() -> None:
    with pytest.raises(ValueError, match="1 codes for 2 chats"):
        ReportData(["a", "b"], (criterion([T], [T]),))
    with pytest.raises(ValueError, match="none for others"):
        ReportData(["a"], (criterion([T], [T]), criterion([T], None)))


cases = st.integers(0, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 8), min_size=n, max_size=n),
        st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=n, max_size=n),
        st.booleans(),
    )
)


@settings(max_examples=60)
@given(cases)
def test_counts_add_up_values_stay_in_range_and_nulls_have_reasons(case: tuple[Any, ...]) -> None:
    human, judge, counts, passes_when = case
    data = criterion(human, judge, counts=counts, about=spec(passes_when=passes_when))
    body = report(data)
    entry = body["criteria"][0]
    assert sum(entry[name] for name in COUNTED) == body["chats"] == len(human)
    assert sum(entry["confusion"].values()) == entry["n"] == body["overall"]["n"]
    assert sum(entry["no_verdict_by"].values()) == entry["no_verdict"]
    estimates = {name: entry[name] for name in NAMES}
    estimates |= {f"human.{name}": entry["human"][name] for name in ("krippendorff_alpha", "ceiling")}
    estimates |= {f"pass_rate.{name}": rate or {"value": None} for name, rate in entry["pass_rate"].items()}
    for name, one in estimates.items():
        if one["value"] is None:
            assert entry["undefined"][name], name
        elif one["low"] is None:
            assert entry["undefined"][f"{name}.interval"], name
        else:
            lowest = -1 if name in ("mcc", "kappa", "gwet_ac1", "pabak", "human.krippendorff_alpha") else 0
            assert lowest - 1e-9 <= one["low"] <= one["high"] <= 1 + 1e-9, name
            assert lowest - 1e-9 <= one["value"] <= 1 + 1e-9, name


def test_wilson_intervals_of_a_planted_judge_hold_its_rates() -> None:
    rng = np.random.default_rng(12)
    people = rng.random(2000) < 0.6
    judge = np.where(people, rng.random(2000) < 0.9, rng.random(2000) < 0.25)
    entry = report(criterion((~people).astype(int).tolist(), (~judge).astype(int).tolist()))["criteria"][0]
    assert entry["tpr"]["low"] <= 0.9 <= entry["tpr"]["high"]
    assert entry["tnr"]["low"] <= 0.75 <= entry["tnr"]["high"]
    assert entry["balanced_accuracy"]["low"] <= 0.825 <= entry["balanced_accuracy"]["high"]
