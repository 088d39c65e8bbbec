"""Results over several criteria or raters: pooled results, disagreements, each rater."""

import numpy as np
import pytest

from alignment.comparison.core.codes import EACH_RATER, CriterionData, ReportData
from alignment.reports.core.judge_side import NAMES
from alignment.reports.core.pooled import pooled
from alignment.statistics.agreement import Confusion
from tests.factories.report_data import COUNTED, UNRESOLVED, F, T, criterion, pairs, report, spec


def test_accuracy_of_dimensions_tiers_and_overall_pools_pairs() -> None:
    first = criterion(*pairs(10, 2, 1, 7), about=spec("a", dimension="x", tier="subjective"))
    second = criterion(*pairs(8, 4, 3, 5), about=spec("b", dimension="y", tier="simple"))
    third = criterion(*pairs(9, 3, 0, 8), about=spec("c", dimension="x", tier="simple"))
    body = report(first, second, third)
    assert [(one["key"], one["n"]) for one in body["dimensions"]] == [("x", 40), ("y", 20)]
    assert [(one["key"], one["n"]) for one in body["tiers"]] == [("simple", 40), ("subjective", 20)]
    assert body["dimensions"][0]["accuracy"]["value"] == Confusion(19, 5, 1, 15).accuracy
    assert body["overall"]["n"] == 60
    assert body["overall"]["accuracy"]["value"] == (10 + 7 + 8 + 5 + 9 + 8) / 60


def test_pooled_intervals_resample_chats_not_pairs() -> None:
    one = criterion(*pairs(50, 10, 8, 32))
    copies = [CriterionData(spec(f"k{i}"), one.human, one.judge, one.counts, 3) for i in range(5)]
    alone, together = report(one)["overall"], report(*copies)["overall"]
    # Five copies of one criterion know no more than one.
    assert together["n"] == 500
    for name in ("accuracy", "balanced_accuracy", "tpr", "tnr"):
        assert together[name]["value"] == pytest.approx(alone[name]["value"])
        assert together[name]["low"] == pytest.approx(alone[name]["low"], abs=0.01)
        assert together[name]["low"] < alone[name]["low"] < alone[name]["high"] < together[name]["high"]


def test_rates_are_averaged_over_the_criteria_that_have_them_and_the_others_are_named() -> None:
    both = criterion(*pairs(8, 2, 1, 9), about=spec("both"))
    rare = criterion(*pairs(17, 1, 2, 0), about=spec("rare"))
    no_false = criterion(*pairs(20, 0, 0, 0), about=spec("no_false"))
    overall = report(both, rare, no_false)["overall"]
    assert overall["tpr"]["value"] == pytest.approx((0.8 + 17 / 18 + 1) / 3)
    assert overall["tnr"]["value"] == pytest.approx((0.9 + 0) / 2)
    assert overall["balanced_accuracy"]["value"] == pytest.approx((0.85 + 17 / 36) / 2)
    assert (overall["criteria_averaged"], overall["criteria_left_out"]) == (2, ["no_false"])
    alone = report(no_false)["overall"]
    assert (alone["balanced_accuracy"]["value"], alone["criteria_averaged"]) == (None, 0)
    assert alone["undefined"]["balanced_accuracy"] == "no chat with a human False"


def test_a_judge_that_is_constant_by_criterion_knows_nothing_whatever_their_base_rates() -> None:
    mostly_true = [pairs(180, 0, 20, 0), pairs(170, 0, 30, 0)]
    mostly_false = [pairs(0, 20, 0, 180), pairs(0, 30, 0, 170)]
    body = report(
        *(
            criterion(*codes, about=spec(f"c{number}", dimension="xy"[number % 2]))
            for number, codes in enumerate([*mostly_true, *mostly_false])
        )
    )
    for row in (body["overall"], *body["dimensions"], *body["tiers"]):
        assert row["balanced_accuracy"]["value"] == row["tpr"]["value"] == row["tnr"]["value"] == 0.5
        assert row["accuracy"]["value"] >= 0.85


def test_below_ten_chats_pooled_results_have_no_interval() -> None:
    overall = report(criterion(*pairs(3, 1, 1, 4)))["overall"]
    assert overall["balanced_accuracy"]["value"] == pytest.approx(0.775)
    assert overall["balanced_accuracy"]["low"] is None
    assert overall["undefined"]["balanced_accuracy.interval"] == "fewer than 10 chats"


def test_fewer_than_ten_clusters_of_chats_have_no_interval_either() -> None:
    data = criterion(*pairs(24, 4, 6, 16))
    few, enough = (report(data, clusters=np.arange(50) % units)["overall"] for units in (9, 10))
    for name in ("accuracy", "balanced_accuracy", "tpr", "tnr"):
        assert (few[name]["low"], few["undefined"][f"{name}.interval"]) == (
            None,
            "fewer than 10 clusters of chats",
        )
        assert enough[name]["low"] is not None


def test_disagreements_follow_the_sets_order_and_name_both_answers() -> None:
    first = criterion([T, F, T, T], [T, T, F, T], about=spec("first"))
    second = criterion([F, F, T, UNRESOLVED], [T, F, F, F], about=spec("second"))
    body = report(first, second)
    listed = [(one["chat_id"], one["criterion"], one["human"], one["judge"]) for one in body["disagreements"]]
    assert listed == [
        ("chat-0", "second", False, True),
        ("chat-1", "first", False, True),
        ("chat-2", "first", True, False),
        ("chat-2", "second", True, False),
    ]
    assert body["disagreements_total"] == 4


def test_only_the_first_thousand_disagreements_are_listed() -> None:
    late = criterion([T] * 1500, [T] * 700 + [F] * 800, about=spec("late"))
    early = criterion([T] * 1500, [F] * 900 + [T] * 600, about=spec("early"))
    body = report(late, early)
    assert (len(body["disagreements"]), body["disagreements_total"]) == (1000, 1700)
    assert body["disagreements"][-1] == {
        "chat_id": "chat-849",
        "criterion": "early",
        "human": True,
        "judge": False,
    }


def each_rater_data() -> CriterionData:
    # Two raters on twelve chats; on the last two they contradict each other.
    counts = [[2, 0, 0]] * 6 + [[0, 2, 0]] * 4 + [[1, 1, 0]] * 2
    human = [T] * 6 + [F] * 4 + [UNRESOLVED] * 2
    judge = [T] * 6 + [F] * 3 + [T] + [T] * 2
    tables = {"ann": Confusion(8, 0, 1, 3), "bea": Confusion(6, 0, 3, 3)}
    return criterion(human, judge, counts=counts, tables=tables)


def test_against_each_rater_statistics_are_averaged_over_raters() -> None:
    body = report(each_rater_data(), against=EACH_RATER)
    entry = body["criteria"][0]
    assert entry["accuracy"] == {"value": (11 / 12 + 9 / 12) / 2, "low": None, "high": None}
    assert entry["tnr"]["value"] == (3 / 4 + 1 / 2) / 2
    assert (entry["confusion"], entry["human_true"], entry["status"]) == (None, None, None)
    assert [entry[name] for name in COUNTED] == [12, 0, 0, 0, 0, 0]
    assert entry["prevalence"] == 14 / 24
    assert body["overall"]["n"] == 12
    assert body["overall"]["accuracy"] == entry["accuracy"]
    assert {"accuracy.interval", "confusion", "human_true"} <= set(entry["undefined"])


def test_against_each_rater_a_chat_disagrees_when_any_rater_does() -> None:
    body = report(each_rater_data(), against=EACH_RATER)
    listed = [(one["chat_id"], one["human"], one["judge"]) for one in body["disagreements"]]
    assert listed == [("chat-9", False, True), ("chat-10", False, True), ("chat-11", False, True)]


def test_against_each_rater_undefined_rates_are_left_out_of_the_mean() -> None:
    tables = {"ann": Confusion(3, 1, 0, 0), "bea": Confusion(2, 0, 1, 1), "cy": Confusion(0, 0, 0, 0)}
    entry = report(criterion([T] * 4, [T] * 4, tables=tables), against=EACH_RATER)["criteria"][0]
    assert entry["tnr"]["value"] == 0.5
    nobody = report(criterion([T] * 4, [T] * 4), against=EACH_RATER)["criteria"][0]
    assert nobody["undefined"]["tnr"] == "no chat with both a human answer and a verdict"


def test_against_each_rater_pooled_figures_compute_only_what_they_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: set[str] = set()

    def watched(name: str) -> property:
        def value(_: Confusion) -> float:
            asked.add(name)
            return 0.5

        return property(value)

    for name in NAMES:
        monkeypatch.setattr(Confusion, name, watched(name))
    data = ReportData([f"chat-{n}" for n in range(12)], (each_rater_data(),), against=EACH_RATER)
    assert pooled(data, data.criteria)["accuracy"]["value"] == 0.5
    assert asked == {"accuracy", "balanced_accuracy", "tpr", "tnr"}
