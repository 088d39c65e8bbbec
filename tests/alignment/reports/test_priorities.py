"""What a lead asks first stands first: critical and worst criteria, each with one next step."""

from typing import Any

import pytest
from django.test import Client

from alignment.comparison.core.codes import CriterionData
from alignment.reports.core.priorities import by_priority, first_criteria
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, text_of, urls
from tests.factories.page_text import words_of
from tests.factories.report_data import criterion, pairs, report


def row(key: str, status: str | None, balanced: float | None = 0.7, **more: Any) -> dict[str, Any]:
    fixed = {"tier": "simple", "critical": False, "balanced_accuracy": {"value": balanced}}
    return {"key": key, "status": status, **fixed, **more}


def keys(*rows: dict[str, Any]) -> list[str]:
    return [one["key"] for one in first_criteria(rows)]


# ---------- order ----------


def test_critical_criteria_stand_before_worse_ones() -> None:
    assert keys(
        row("bad", "not_aligned", 0.5),
        row("few", "not_enough_labels", 0.4),
        row("danger", "not_aligned", 0.78, critical=True),
    ) == ["danger", "bad", "few"]


def test_the_worst_three_are_shown_and_no_more() -> None:
    worst = [row(f"c{n}", "not_aligned", 0.5 + n / 100) for n in range(5)]
    assert keys(*reversed(worst)) == ["c0", "c1", "c2"]
    critical = [row(f"k{n}", "not_aligned", 0.9, critical=True) for n in range(4)]
    assert keys(*worst, *critical) == ["k0", "k1", "k2"]


def test_aligned_and_subjective_criteria_and_those_without_a_status_need_no_look() -> None:
    assert not keys(
        row("fine", "aligned", critical=True), row("taste", "not_aligned", tier="subjective"), row("x", None)
    )


def test_an_undefined_balanced_accuracy_comes_last() -> None:
    assert keys(row("none", "not_aligned", None), row("low", "not_aligned", 0.6)) == ["low", "none"]


def test_the_table_has_the_open_ones_first_and_those_for_information_last() -> None:
    rows = [
        row("taste", "not_aligned", 0.5, tier="subjective"),
        row("fine", "aligned", 0.95),
        row("safe", "aligned", 0.97, critical=True),
        row("few", "not_enough_labels", 0.4),
        row("bad", "not_aligned", 0.6),
        row("danger", "not_enough_labels", 0.9, critical=True),
    ]
    wanted = ["danger", "bad", "few", "safe", "fine", "taste"]
    assert [one["key"] for one in by_priority(rows)] == wanted


# ---------- page ----------


@pytest.mark.django_db
def test_the_report_begins_with_them_and_one_next_step_each(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    answer = lead.get(urls(compared)["report"])
    page = text_of(answer)
    assert [one["key"] for one in answer.context["next_criteria"]] == ["wrong_fact", "polite", "welcome"]
    assert page.index('id="next"') < page.index('id="criteria"')
    first = page.split('id="next"', 1)[1].split("</section>")[0]
    assert first.count("<li>") == 3
    assert "Wrong fact</b></a> (critical)" in first
    assert first.count(">Label ") == 3


@pytest.mark.django_db
def test_an_agreement_between_raters_has_no_such_list(compared: Compared, lead: Client) -> None:
    assert 'id="next"' not in text_of(lead.get(urls(compared)["set"]))


# ---------- the most frequent answer ----------


def of(data: CriterionData, **scope: Any) -> dict[str, Any]:
    found: dict[str, Any] = report(data, **scope)["criteria"][0]
    return found


def test_the_most_frequent_answer_is_as_right_as_it_is_frequent() -> None:
    entry = of(criterion(*pairs(12, 2, 3, 33)))
    assert entry["most_frequent_accuracy"] == pytest.approx(36 / 50)
    assert of(criterion(*pairs(40, 5, 3, 2)))["most_frequent_accuracy"] == pytest.approx(45 / 50)


def test_a_judge_that_always_gives_it_has_just_that_accuracy() -> None:
    entry = of(criterion(*pairs(45, 0, 5, 0)))
    assert entry["accuracy"]["value"] == entry["most_frequent_accuracy"] == 0.9


def test_without_a_compared_chat_it_has_no_value() -> None:
    assert of(criterion(*pairs(0, 0, 0, 0)))["most_frequent_accuracy"] is None


@pytest.mark.django_db
def test_it_stands_beside_the_judges_accuracy_on_page_and_print(compared: Compared, lead: Client) -> None:
    answer = lead.get(urls(compared)["report"])
    entry = next(one for one in answer.context["report"]["criteria"] if one["key"] == "wrong_fact")
    constant, accuracy = entry["most_frequent_accuracy"], entry["accuracy"]["value"]
    line = f"Accuracy {accuracy:.2f} , most frequent answer {constant:.2f} , n = {entry['n']}"
    assert constant == 0.75 and line.replace(" ,", ",") in words_of(answer).replace(" ,", ",")
    assert lead.get(urls(compared)["api_run"]).json()["criteria"][0]["most_frequent_accuracy"] is not None
