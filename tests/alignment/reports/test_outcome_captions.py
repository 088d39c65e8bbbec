"""Pages, prints and files name disagreements by the bot's outcome, for either passing answer."""

import csv
import io

import pytest
from django.test import Client
from django.urls import reverse

from alignment.misalignments.services import small_runs_refresh
from tests.factories.compared_runs import Compared, cell, cell_url, chat_url, text_of, urls
from tests.factories.decided_tests import body_of, make_test
from tests.factories.gate_verdicts import verdicts
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite
from tests.factories.stored_reports import page_of, stored

pytestmark = pytest.mark.django_db

POLITE, WRONG_FACT = "polite", "wrong_fact"  # they pass when True, and when False
OLD_WORDS = ("only raters True", "only judge True", "both True", "both False", "raised by", "missed by")


def count(key: str, name: str) -> int:
    return sum(cell(key, n) == name for n in range(1, 41))


def matrix_of(page: str, key: str) -> str:
    """The words of one criterion's matrix on a report."""
    return page.split(f'id="c-{key}"', 1)[1].split("</article>")[0]


def test_the_matrices_of_a_report_are_captioned_by_outcome(compared: Compared, lead: Client) -> None:
    answer = lead.get(urls(compared)["report"])
    page = text_of(answer)
    assert not [words for words in OLD_WORDS if words in page]
    polite_matrix, wrong_matrix = matrix_of(page, POLITE), matrix_of(page, WRONG_FACT)
    missed = '<b>{}</b><span title="Judge passed, raters failed">missed failure</span>'
    alarm = '<b>{}</b><span title="Judge failed, raters passed">false alarm</span>'
    assert missed.format(count(POLITE, "fp")) in polite_matrix
    assert alarm.format(count(POLITE, "fn")) in polite_matrix
    assert missed.format(count(WRONG_FACT, "fn")) in wrong_matrix
    assert alarm.format(count(WRONG_FACT, "fp")) in wrong_matrix


def test_a_cell_is_headed_by_its_outcome_and_marks_each_chat(compared: Compared, lead: Client) -> None:
    for key, name in ((POLITE, "fp"), (WRONG_FACT, "fn")):
        words = words_of(lead.get(cell_url(compared, key, name)))
        assert "Missed failure: judge passed, raters failed" in words
    for key, name in ((POLITE, "fn"), (WRONG_FACT, "fp")):
        words = words_of(lead.get(cell_url(compared, key, name)))
        assert "False alarm: judge failed, raters passed" in words


def test_the_list_of_disagreements_names_each(compared: Compared, lead: Client) -> None:
    words = words_of(lead.get(urls(compared)["disagreements"]))
    missed = count(POLITE, "fp") + count(WRONG_FACT, "fn") + count("welcome", "fp")
    alarms = count(POLITE, "fn") + count(WRONG_FACT, "fp") + count("welcome", "fn")
    assert (words.count("missed failure"), words.count("false alarm")) == (missed, alarms)


def test_a_chat_says_missed_failure_or_false_alarm(compared: Compared, lead: Client) -> None:
    for key, name, words in (
        (POLITE, "fn", "False alarm"),
        (POLITE, "fp", "Missed failure"),
        (WRONG_FACT, "fn", "Missed failure"),
    ):
        n = next(n for n in range(1, 41) if cell(key, n) == name)
        row = text_of(lead.get(chat_url(compared, n, f"?criterion={key}"))).split('<tr class="cur', 1)[1]
        assert words.lower() in row.split("</tr>")[0].lower()


def test_triage_names_each_disagreement_on_page_and_api(compared: Compared, lead: Client) -> None:
    small_runs_refresh(run=compared.run.pk)
    for key, name, words in ((POLITE, "fp", "missed failure"), (WRONG_FACT, "fp", "false alarm")):
        page = words_of(lead.get(reverse("alignment:misalignment_list"), {"criterion": key}))
        assert words in page
        found = lead.get(reverse("api_misalignments"), {"criterion": key}).json()["results"]
        outcomes = [one["outcome"] for one in found]
        assert outcomes.count(words.replace(" ", "_")) == count(key, name)


def test_a_criterion_page_counts_both_kinds(compared: Compared, lead: Client) -> None:
    version = a_version(polite())
    promote(version)
    run_of(version, compared.chat_set, wrong=2)
    words = words_of(lead.get(reverse("alignment:criterion_detail", args=[POLITE])))
    assert "(judge passed, raters failed)" in words
    assert "(judge failed, raters passed)" in words
    assert not [old for old in OLD_WORDS if old in words]


def test_a_stored_report_counts_chats_by_outcome(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared)
    page = text_of(lead.get(page_of(number)))
    assert "Missed failures" in page and "False alarms" in page
    rows = csv.DictReader(io.StringIO(text_of(lead.get(reverse("alignment:report_table", args=[number])))))
    found = {row["key"]: (row["missed_failures"], row["false_alarms"]) for row in rows}
    assert found[POLITE] == (str(count(POLITE, "fp")), str(count(POLITE, "fn")))
    assert found[WRONG_FACT] == (str(count(WRONG_FACT, "fn")), str(count(WRONG_FACT, "fp")))


def test_a_regression_test_captions_both_matrices(compared: Compared, lead: Client) -> None:
    test = make_test(compared, body=body_of(verdicts(fixed=3, broken=14, right=183)))
    page = text_of(lead.get(reverse("alignment:regression_detail", args=[test.pk])))
    assert page.count("missed failure</span>") == page.count("false alarm</span>") == 2
    assert not [words for words in OLD_WORDS if words in page]
