"""Session scores of a run: on its page, on a chat's page, in the API, as CSV and as a file."""

import csv
import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.comparison.queries.scope import Scope
from alignment.session_scores.queries import run_scores
from evaluation.models.runs import Verdict
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import HUMAN, JUDGE, Compared, Rule, add_chats, chat_url, text_of

pytestmark = pytest.mark.django_db


def score(rules: dict[str, Rule], n: int) -> float:
    """The score of a chat, counted without the product."""
    passed = [rules[key](n) is (key != "wrong_fact") for key in rules]
    return sum(passed) / len(passed)


def unread(*chats: str) -> None:
    rows = Verdict.objects.filter(criterion__key="polite", chat__external_id__in=chats)
    rows.update(state=Verdict.State.REFUSED, value=None)


def rows_of(client: Client, compared: Compared, query: str = "") -> list[dict[str, Any]]:
    url = reverse("api_run_session_scores", args=[compared.run.pk])
    rows: list[dict[str, Any]] = client.get(url + query).json()["results"]
    return rows


def exported(*args: str) -> list[str]:
    out = io.StringIO()
    call_command("export", "session_scores", "--set", "calibration", *args, stdout=out)
    return out.getvalue().splitlines()


def part_of(client: Client, compared: Compared, query: str = "") -> str:
    return text_of(client.get(reverse("alignment:run_session_scores", args=[compared.run.pk]) + query))


# ---------- API, CSV, file ----------


def test_the_api_lists_each_chats_scores_in_the_sets_order(compared: Compared, lead: Client) -> None:
    rows = rows_of(lead, compared)
    assert [row["chat_id"] for row in rows] == [f"chat-{n}" for n in range(1, 41)]
    for n, row in enumerate(rows, 1):
        assert row["session_score"] == pytest.approx(score(JUDGE, n))
        assert row["human_session_score"] == pytest.approx(score(HUMAN, n))
    assert rows[0] == {
        "chat_id": "chat-1",
        "split": "dev",
        "session_score": 1.0,
        "partial": False,
        "passed": 3,
        "applicable": 3,
        "missing": 0,
        "critical_failed": False,
        "human_session_score": 1.0,
        "human_partial": False,
        "human_passed": 3,
        "human_applicable": 3,
        "human_missing": 0,
        "human_critical_failed": False,
        "subjective_counted": False,
    }


def test_unread_verdicts_and_failed_critical_criteria_show_in_the_api(
    compared: Compared, lead: Client
) -> None:
    unread("chat-1")
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    first, _, _, fourth = rows_of(lead, compared)[:4]
    assert (first["session_score"], first["partial"], first["missing"]) == (1.0, True, 1)
    assert (fourth["session_score"], fourth["critical_failed"]) == (0.0, True)


def test_a_chat_without_verdicts_has_no_score(compared: Compared, lead: Client) -> None:
    Verdict.objects.filter(chat=compared.chat(1)).delete()
    first = rows_of(lead, compared)[0]
    assert (first["session_score"], first["partial"], first["human_session_score"]) == (None, False, 1.0)


def test_the_ground_truth_of_the_address_decides_the_human_score(compared: Compared, lead: Client) -> None:
    # Cleo differs from the others on every third chat.
    third = rows_of(lead, compared, "?against=rater:cleo")[2]
    assert third["human_session_score"] == pytest.approx(1 - score(HUMAN, 3))
    assert rows_of(lead, compared, "?against=each-rater")[2]["human_session_score"] is None
    for query in ("?against=rater:nobody", "?split=none"):
        url = reverse("api_run_session_scores", args=[compared.run.pk])
        assert lead.get(url + query).status_code == 400


def test_the_list_has_pages_of_up_to_1000(compared: Compared, lead: Client) -> None:
    url = reverse("api_run_session_scores", args=[compared.run.pk])
    first = lead.get(url + "?page_size=15&split=dev").json()
    assert len(first["results"]) == 15
    second = lead.get(first["next"]).json()
    assert (len(second["results"]), second["next"]) == (5, None)
    assert {row["split"] for row in first["results"] + second["results"]} == {"dev"}


def test_the_csv_has_the_same_rows(compared: Compared, lead: Client) -> None:
    answer = lead.get(reverse("api_run_session_scores_csv", args=[compared.run.pk]))
    rows = list(csv.DictReader(io.StringIO(b"".join(answer).decode("utf-8-sig"))))
    assert [row["chat_id"] for row in rows] == [row["chat_id"] for row in rows_of(lead, compared)]
    assert (rows[0]["session_score"], rows[0]["human_partial"]) == ("1.0", "false")


def test_the_export_writes_a_line_for_each_chat_and_judge(compared: Compared, lead: Client) -> None:
    lines = [json.loads(line) for line in exported()]
    assert [{key: line[key] for key in line if key != "judge"} for line in lines] == rows_of(lead, compared)
    assert {line["judge"] for line in lines} == {"outside judge"}
    head = exported("--format", "csv")[0].removeprefix("\ufeff")
    assert head.startswith("chat_id,judge,split,session_score,partial")


# ---------- who sees what ----------


def test_authors_see_no_holdout_chats_in_lists(compared: Compared, author: Client, lead: Client) -> None:
    shown = rows_of(author, compared)
    assert "holdout" in {row["split"] for row in rows_of(lead, compared)}
    assert {row["split"] for row in shown} == {"dev", "train"}
    answer = author.get(reverse("api_run_session_scores_csv", args=[compared.run.pk]))
    assert b"holdout" not in b"".join(answer)


def test_authors_get_no_figures_of_few_holdout_chats(compared: Compared, author: Client) -> None:
    assert "of 40" in part_of(author, compared)
    compared.run.run_chats.filter(chat=compared.chat(4)).delete()
    Verdict.objects.filter(chat=compared.chat(4)).delete()
    assert "of 30" in part_of(author, compared)


def test_raters_see_no_scores(compared: Compared, rater_user: User) -> None:
    client = Client()
    client.force_login(rater_user)
    names = ("alignment:run_session_scores", "api_run_session_scores", "api_run_session_scores_csv")
    for name in names:
        assert client.get(reverse(name, args=[compared.run.pk])).status_code == 404


# ---------- the run's page ----------


def test_the_runs_page_loads_its_scores(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(reverse("evaluation:run_detail", args=[compared.run.pk])))
    assert reverse("alignment:run_session_scores", args=[compared.run.pk]) in page


def test_the_part_shows_means_partial_scores_and_a_distribution(compared: Compared, lead: Client) -> None:
    unread("chat-1", "chat-2")
    scope = Scope(compared.chat_set, compared.run)
    found = run_scores(scope)
    mean = sum(score(JUDGE, n) for n in range(3, 41))
    # Without politeness: chat 1 passes both others, chat 2 too.
    assert found.judge.mean.value == pytest.approx((mean + 2) / 40)
    assert (found.judge.n, found.judge.partial, found.human and found.human.partial) == (40, 2, 0)
    for _, counts in found.bins:
        assert len(counts) == 2
    assert [sum(column) for column in zip(*(counts for _, counts in found.bins), strict=True)] == [40, 40]
    shown = part_of(lead, compared)
    assert "Chats by score" in shown and "0.5 to below 0.8" in shown
    assert "Partial <small>answers are missing</small>" in shown
    assert "Raters" not in part_of(lead, compared, "?against=each-rater")


def test_a_score_at_the_edge_of_a_bin_counts_once(compared: Compared) -> None:
    Criterion.objects.exclude(key="polite").update(tier="subjective")
    bins = dict(run_scores(Scope(compared.chat_set, compared.run)).bins)
    assert bins["0"][1] + bins["1"][1] == 40
    assert bins["1"][1] == 20


# ---------- the chat's page ----------


def test_a_chats_page_shows_both_scores(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(chat_url(compared, 4)))
    assert "Session score, judge" in page
    assert '<span class="j">0.33</span> <small>1 of 3 pass</small>' in page
    assert page.count("1 of 3 pass") == 2


def test_a_chats_page_says_why_a_score_is_partial_or_0(compared: Compared, lead: Client) -> None:
    unread("chat-4")
    page = text_of(lead.get(chat_url(compared, 4)))
    assert "1 of 2 pass, partial: 1 verdict missing" in page
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    page = text_of(lead.get(chat_url(compared, 4)))
    assert "0.00</span> <small>a critical criterion fails, partial: 1 verdict missing" in page
    Verdict.objects.filter(chat=compared.chat(4)).delete()
    assert "no criterion applies, 3 verdicts missing" in text_of(lead.get(chat_url(compared, 4)))


def test_a_chats_page_shows_the_setting_beside_the_score(compared: Compared, lead: Client) -> None:
    assert "<dt>Subjective criteria</dt> <dd> none" in text_of(lead.get(chat_url(compared, 4)))
    Criterion.objects.filter(key="polite").update(tier="subjective")
    page = text_of(lead.get(chat_url(compared, 4)))
    assert "not counted" in page and '<small title="Polite">1 excluded</small>' in page
    Workspace.current()
    Workspace.objects.update(subjective_in_session_score=True)
    assert "<dt>Subjective criteria</dt> <dd> counted" in text_of(lead.get(chat_url(compared, 4)))


def test_against_one_rater_the_page_names_the_rater(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(chat_url(compared, 3, "?criterion=polite&against=rater:cleo")))
    assert "Session score, cleo" in page
    page = text_of(lead.get(chat_url(compared, 3, "?criterion=polite&against=each-rater")))
    assert "Session score, judge" in page and "Session score, raters" not in page


# ---------- queries ----------


@pytest.mark.parametrize(
    "name", ["alignment:run_session_scores", "api_run_session_scores", "api_run_session_scores_csv"]
)
def test_the_number_of_queries_does_not_grow_with_chats(compared: Compared, lead: Client, name: str) -> None:
    url, counts = reverse(name, args=[compared.run.pk]), []
    for chats in (40, 80):
        add_chats(compared, to=chats)
        lead.get(url)
        with CaptureQueriesContext(connection) as queries:
            assert lead.get(url).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
