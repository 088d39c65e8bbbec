"""The page of a report: one line a criterion, tabs and filters with addresses."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, more_criteria, one_of_each_status, text_of, urls
from tests.factories.page_text import words_of

pytestmark = pytest.mark.django_db

TABS = {
    "criteria": 'id="criteria"',
    "matrices": 'id="matrices"',
    "dimensions": 'id="dimensions"',
    "engine": 'id="engine"',
    "excluded": 'id="excluded"',
    "all": 'id="numbers"',
}


def shown_rows(page: Any) -> list[str]:
    return [one["key"] for one in page.context["rows"] if not one["filtered"]]


def panels(text: str) -> dict[str, bool]:
    """Whether each panel is shown on the screen, by its place."""
    parts = re.split(r'<div class="tab-panel( shown)?">', text)[1:]
    found = dict(zip(parts[1::2], parts[::2], strict=True))
    return {tab: bool(shown) for tab, place in TABS.items() for part, shown in found.items() if place in part}


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_has_an_address_and_the_page_holds_all_of_them_for_paper(
    compared: Compared, lead: Client, tab: str
) -> None:
    page = lead.get(f"{urls(compared)['report']}?tab={tab}")
    assert panels(text_of(page)) == {one: one == tab for one in TABS}
    current = [one.key for one in page.context["report_tabs"] if one.current]
    assert current == [tab]


def test_tabs_keep_the_filters_of_the_report_and_of_the_rows(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"] + "?split=dev&status=not_enough_labels&sort=-n")
    url = next(one.url for one in page.context["report_tabs"] if one.key == "matrices")
    assert url == "?split=dev&tab=matrices&status=not_enough_labels&sort=-n#report-view"


def test_the_form_of_the_filters_keeps_the_tab(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"] + "?tab=all")
    assert '<input type="hidden" name="tab" value="all">' in text_of(page)
    asked: dict[str, str | int] = {
        "run": compared.run.pk,
        "set": compared.chat_set.pk,
        "split": "dev",
        "tab": "all",
    }
    answer = lead.get(reverse("alignment:report_list"), asked)
    assert answer["Location"] == f"{urls(compared)['report']}?split=dev&tab=all"


def test_the_bar_says_what_is_set(compared: Compared, lead: Client) -> None:
    def words(query: str = "") -> list[str]:
        found: list[str] = lead.get(urls(compared)["report"] + query).context["scope_words"]
        return found

    assert words() == ["all splits", "Consensus"]
    assert words("?split=dev&against=rater%3Acleo") == ["dev", "cleo"]
    assert words("?since=2020-01-02") == ["all splits", "Consensus", "since 2 Jan 2020"]


def test_counts_by_status_lead_to_the_rows(compared: Compared, lead: Client) -> None:
    one_of_each_status(compared)
    page = lead.get(urls(compared)["report"])
    tally = {one.key: one for one in page.context["tally"]}
    assert {key: one.count for key, one in tally.items()} == {
        "not_aligned": 1,
        "not_enough_labels": 1,
        "aligned": 1,
    }
    filtered = lead.get(urls(compared)["report"] + tally["aligned"].url.partition("#")[0])
    assert shown_rows(filtered) == [one["key"] for one in page.context["rows"] if one["status"] == "aligned"]
    assert len(filtered.context["rows"]) == 3  # the others are there for paper


def test_the_worst_come_first_and_a_column_changes_the_order(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    page = lead.get(urls(compared)["report"])
    assert shown_rows(page)[0] == "wrong_fact"
    by_name = lead.get(urls(compared)["report"] + "?sort=name")
    assert shown_rows(by_name) == ["polite", "welcome", "wrong_fact"]
    assert 'aria-sort="ascending"' in text_of(by_name)


def test_a_line_has_one_short_step_and_its_details_have_all(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"])
    polite = next(one for one in page.context["rows"] if one["key"] == "polite")
    assert polite["step"].brief == "label 10 True and 10 False"
    assert polite["step"].words.startswith("label 20 more chats: 10 True and 10 False")
    details = text_of(page).split('id="more-polite"', 1)[1].split("</tr>")[0]
    for step in polite["next_steps"]:
        assert step.words.capitalize()[:10] in details
    for reason in polite["own_sentences"]:
        assert reason[1:] in unescape(details)


def test_the_number_of_disagreements_leads_to_its_chats(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"])
    found = {one["key"]: one for one in page.context["rows"]}
    assert found["welcome"]["differing_cells"] == ["fn"]  # people never answer False there
    assert found["welcome"]["disagreements_url"] == found["welcome"]["cells"]["fn"]
    polite = found["polite"]["disagreements_url"]
    listed = lead.get(polite)
    assert len(listed.context["items"]) == found["polite"]["disagreements"]
    assert "Polite" in text_of(listed) and "<h1>Disagreements</h1>" in text_of(listed)
    assert lead.get(f"{polite}?against=each-rater").status_code == 404


def test_details_open_by_their_address_without_a_script(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"])
    row = next(one for one in page.context["rows"] if one["key"] == "polite")
    assert not row["open"]
    opened = lead.get(urls(compared)["report"] + row["toggle_url"].partition("#")[0])
    assert [one["key"] for one in opened.context["rows"] if one["open"]] == ["polite"]
    assert 'aria-expanded="true"' in text_of(opened)
    every = lead.get(urls(compared)["report"] + opened.context["every_row_url"].partition("#")[0])
    assert all(one["open"] for one in every.context["rows"])


def test_equal_reasons_are_folded_to_one_sentence(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"])
    for words, names in page.context["shared"]:
        assert len(names) >= 3
        assert all(words not in one["own_sentences"] for one in page.context["rows"])


def test_the_report_of_a_set_has_the_tabs_and_columns_of_raters(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["set"])
    assert [one.key for one in page.context["report_tabs"]] == ["criteria", "excluded", "all"]
    assert [one.column.head for one in page.context["heads"]][1:3] == ["Alpha", "Agreement"]
    assert "Next step" not in words_of(page)


def test_against_each_rater_no_row_has_a_status_and_none_is_offered(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"] + "?against=each-rater")
    assert page.context["tally"] == [] and page.context["status_chips"] == []
    assert {one["disagreements"] for one in page.context["rows"]} == {None}


@pytest.mark.heavy
def test_forty_criteria_ask_no_more_queries_than_three(compared: Compared, lead: Client) -> None:
    def queries() -> int:
        lead.get(urls(compared)["report"])
        with CaptureQueriesContext(connection) as counted:
            lead.get(urls(compared)["report"])
        return len(counted)

    few = queries()
    more_criteria(compared, 37)
    assert queries() == few
