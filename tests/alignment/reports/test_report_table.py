"""A stored report as CSV, and the queries of its page."""

import csv
import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.models.reports import Report
from alignment.reports.core.csv_rows import HEAD
from evaluation.models.judges import Judge
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from labeling.models.rubric import Dimension
from tests.factories.compared_runs import Compared, add_chats
from tests.factories.rows import analyze
from tests.factories.stored_reports import status, stored

pytestmark = pytest.mark.django_db


def table(client: Client, number: int, name: str = "alignment:report_table") -> list[dict[str, str]]:
    answer = client.get(reverse(name, args=[number]))
    assert answer["Content-Type"].startswith("text/csv")
    text = b"".join(answer).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_has_a_row_for_each_criterion_dimension_tier_and_the_whole(
    compared: Compared, lead: Client
) -> None:
    number = stored(lead, compared)
    rows = table(lead, number)
    body = lead.get(reverse("api_stored_report", args=[number])).json()
    assert list(rows[0]) == list(HEAD)
    levels = [row["level"] for row in rows]
    assert levels == ["criterion"] * 3 + ["dimension"] * 2 + ["tier", "overall"]
    for row, entry in zip(rows, body["criteria"], strict=False):
        assert (row["key"], row["n"], row["tp"]) == (
            entry["key"],
            str(entry["n"]),
            str(entry["confusion"]["tp"]),
        )
        for column, statistic in (("tpr", entry["tpr"]), ("human_ceiling", entry["human"]["ceiling"])):
            given = [row[f"{column}{end}"] for end in ("", "_low", "_high")]
            wanted = [(statistic or {}).get(name) for name in ("value", "low", "high")]
            assert given == ["" if value is None else repr(value) for value in wanted]
    assert {(row["pin"], row["fingerprint"]) for row in rows} == {(body["pin"], "f" * 64)}
    assert rows == table(lead, number, "api_stored_report_csv")


def test_cautions_of_a_figure_are_in_its_row(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared)
    polite, wrong_fact, welcome = table(lead, number)[:3]
    entry = lead.get(reverse("api_stored_report", args=[number])).json()["criteria"][2]
    assert (polite["unjudged_true"], polite["unjudged_false"], polite["drawn_by_verdict"]) == ("0", "0", "0")
    assert welcome["cautions"] == "; ".join(entry["cautions"]) != ""
    assert welcome["flags"] == "kappa: raters gave one answer only"
    assert wrong_fact["flags"] == ""
    assert polite["corrected_by"] == ""  # every chat has a label


def test_a_report_from_before_some_columns_leaves_them_empty(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared)
    report = Report.objects.get(pk=number)
    for entry in report.body["criteria"]:
        for name in ("unjudged", "drawn_by_verdict", "corrected_by"):
            del entry[name]
    report.save()
    row = table(lead, number)[0]
    later = "unjudged_true", "unjudged_false", "drawn_by_verdict", "corrected_by"
    assert not any(row[name] for name in later)


@pytest.mark.parametrize("query", ["?against=each-rater", "?split=train&against=rater%3Acleo"])
def test_page_and_table_take_every_ground_truth(compared: Compared, lead: Client, query: str) -> None:
    assert status(lead, stored(lead, compared, query)) == 200


def test_without_a_judge_the_table_has_the_raters_columns(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared, page="api_set")
    rows = table(lead, number)
    assert {row["judge"] for row in rows} == {""}
    assert rows[0]["human_percent_agreement"] and not rows[0]["tpr"]


def test_no_cell_is_a_formula(compared: Compared, lead: Client) -> None:
    for model in (ChatSet, Judge):
        model._default_manager.update(name='=HYPERLINK("https://evil.example")')
    Dimension.objects.update(name="+1+cmd|' /C calc'!A0")
    for row in table(lead, stored(lead, compared)):
        numbers = {name: value for name, value in row.items() if value.startswith(("-", "+"))}
        assert all(float(value) < 0 for value in numbers.values())
        assert not [value for value in row.values() if value.startswith(("=", "@", "\t"))]
        assert row["set"] == '\'=HYPERLINK("https://evil.example")'


# ---------- queries ----------


@pytest.mark.heavy
def test_page_and_table_ask_no_more_of_400_chats_than_of_40(
    compared: Compared, lead: Client, author: Client
) -> None:
    def queries() -> list[int]:
        numbers, found = stored(lead, compared), []
        for client in (lead, author):
            for name in ("alignment:report_stored", "alignment:report_table", "api_stored_report"):
                with CaptureQueriesContext(connection) as asked:
                    client.get(reverse(name, args=[numbers]))
                found.append(len(asked))
        return found

    queries()
    small = queries()
    add_chats(compared, to=400)
    analyze()
    Run.objects.update(finished_at=timezone.now())
    assert queries() == small
