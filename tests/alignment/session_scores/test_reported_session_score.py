"""The session score in the alignment report: page, stored page, JSON, CSV, terminal; and the setting."""

import csv
import io
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core.terminal_table import report_table
from alignment.reports.queries.reports import alignment_report
from evaluation.models.runs import Verdict
from labeling.models.people import Workspace
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import HUMAN, JUDGE, Compared, Rule, text_of, urls
from tests.factories.stored_reports import forget_documents, page_of, stored

pytestmark = pytest.mark.django_db

CHATS = range(1, 41)
BAD = {"wrong_fact"}  # passes when False


def expected(
    rules: dict[str, Rule], *, keys: Collection[str] = HUMAN.keys(), critical: str = ""
) -> np.ndarray:
    """The scores of the chats, counted without the product."""
    scores = []
    for n in CHATS:
        passed = {key: rules[key](n) is (key not in BAD) for key in keys}
        share = sum(passed.values()) / len(passed)
        scores.append(0.0 if critical and not passed[critical] else share)
    return np.array(scores)


def score_of(client: Client, compared: Compared, query: str = "") -> dict[str, Any]:
    body: dict[str, Any] = client.get(urls(compared)["api_run"] + query).json()["session_score"]
    return body


def count_subjective(compared: Compared) -> None:
    Workspace.current()
    Workspace.objects.update(subjective_in_session_score=True)


def test_the_report_compares_the_scores_of_all_chats(compared: Compared, lead: Client) -> None:
    human, judge = expected(HUMAN), expected(JUDGE)
    body = score_of(lead, compared)
    assert body["human"]["value"] == pytest.approx(human.mean())
    assert body["judge"]["value"] == pytest.approx(judge.mean())
    assert body["difference"]["value"] == pytest.approx((judge - human).mean())
    assert body["correlation"]["value"] == pytest.approx(np.corrcoef(human, judge)[0, 1])
    assert (body["n"], body["partial"], body["criteria"]) == (40, 0, 3)
    assert sum(n for _, _, n in body["pairs"]) == 40
    for name in ("human", "judge", "difference", "correlation"):
        assert body[name]["low"] < body[name]["value"] < body[name]["high"], name


def test_a_critical_criterion_makes_another_report(compared: Compared, lead: Client) -> None:
    before = score_of(lead, compared)
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    after = score_of(lead, compared)
    assert after["human"]["value"] == pytest.approx(expected(HUMAN, critical="wrong_fact").mean())
    assert after["human"]["value"] < before["human"]["value"]


def test_subjective_criteria_count_if_the_workspace_says_so(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="polite").update(tier="subjective")
    body = score_of(lead, compared)
    rest = set(HUMAN) - {"polite"}
    assert body["judge"]["value"] == pytest.approx(expected(JUDGE, keys=rest).mean())
    assert (body["subjective_counted"], body["criteria_left_out"]) == (False, ["polite"])
    assert "Subjective criteria do not count (1 excluded)." in text_of(lead.get(urls(compared)["report"]))
    count_subjective(compared)
    body = score_of(lead, compared)
    assert body["judge"]["value"] == pytest.approx(expected(JUDGE).mean())
    assert "Subjective criteria count." in text_of(lead.get(urls(compared)["report"]))


def test_a_stored_report_keeps_its_score_when_the_setting_changes(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="polite").update(tier="subjective")
    number = stored(lead, compared)
    was = score_of(lead, compared)
    count_subjective(compared)
    page = text_of(lead.get(page_of(number)))
    assert "Subjective criteria do not count" in page
    assert "have changed since" in page
    assert lead.get(reverse("api_stored_report", args=[number])).json()["session_score"] == was


def test_a_report_stored_before_the_session_score_still_opens(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared)
    row = Report.objects.get(pk=number)
    del row.body["session_score"]
    row.save(update_fields=["body"])
    assert 'id="session-score"' not in text_of(lead.get(page_of(number)))
    assert table(lead, number)[-1]["session_score_n"] == ""


def test_unread_verdicts_are_counted_as_partial_and_the_page_says_so(
    compared: Compared, lead: Client
) -> None:
    unread = Verdict.objects.filter(criterion__key="polite", chat__external_id__in=["chat-1", "chat-2"])
    unread.update(state=Verdict.State.UNPARSED, value=None)
    forget_documents()
    assert score_of(lead, compared)["partial"] == 2
    page = text_of(lead.get(urls(compared)["report"]))
    assert "2 of them are partial" in page
    assert "the verdict or the human answer is missing" in page


def test_the_page_shows_both_means_and_a_plot(compared: Compared, lead: Client) -> None:
    for url in (urls(compared)["report"], page_of(stored(lead, compared))):
        page = text_of(lead.get(url))
        section = page[page.index('id="session-score"') :].split("</section>")[0]
        assert "Judge minus raters" in section and "Correlation (Pearson)" in section
        assert section.count("<circle") == len(score_of(lead, compared)["pairs"])
        assert "40 chats with both scores. No score is partial." in section


def test_without_a_judge_the_page_shows_the_raters_score_alone(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(urls(compared)["set"]))
    section = page[page.index('id="session-score"') :].split("</section>")[0]
    assert "40 chats with a score." in section
    assert "Judge" not in section and "<circle" not in section


def test_against_each_rater_the_page_says_why_there_is_no_score(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(urls(compared)["report"] + "?against=each-rater"))
    assert "Choose the consensus or one rater as ground truth." in page


def table(client: Client, number: int) -> list[dict[str, str]]:
    answer = client.get(reverse("alignment:report_table", args=[number]))
    return list(csv.DictReader(io.StringIO(b"".join(answer).decode("utf-8-sig"))))


def test_the_row_of_all_criteria_has_the_score_in_the_csv(compared: Compared, lead: Client) -> None:
    body, rows = score_of(lead, compared), table(lead, stored(lead, compared))
    overall = rows[-1]
    assert overall["level"] == "overall"
    for name in ("human", "judge", "difference", "correlation"):
        cells = [overall[f"session_score_{name}{end}"] for end in ("", "_low", "_high")]
        assert cells == [repr(body[name][key]) for key in ("value", "low", "high")]
    assert (overall["session_score_n"], overall["session_score_partial"]) == ("40", "0")
    assert {row["session_score_n"] for row in rows[:-1]} == {""}


def test_the_terminal_has_a_line_with_the_score(compared: Compared) -> None:
    report = alignment_report(Scope(compared.chat_set, compared.run))
    (line,) = [one for one in report_table(report).splitlines() if one.startswith("Session score: ")]
    assert line.endswith("40 chats, 0 partial. Subjective criteria not counted.")
    assert f"raters {report['session_score']['human']['value']:.2f} (" in line
    (line,) = [
        one
        for one in report_table(alignment_report(Scope(compared.chat_set))).splitlines()
        if one.startswith("Session score: ")
    ]
    assert "judge" not in line


def test_authors_do_not_get_scores_of_few_holdout_chats(compared: Compared, author: Client) -> None:
    # 10 of the 40 chats are holdout; with a chat less they are too few to show.
    assert score_of(author, compared)["n"] == 40
    chat = compared.chat(4)
    Verdict.objects.filter(chat=chat).delete()
    compared.run.run_chats.filter(chat=chat).delete()
    forget_documents()
    assert score_of(author, compared)["n"] == 30
