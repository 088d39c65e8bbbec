"""Baselines of a run: input, cached documents, pages and API."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.baselines.queries import baselines as selectors
from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import Chat
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.baselines import HTMX, document, stored_document, url
from tests.factories.compared_runs import HUMAN, JUDGE, Compared, add_chats, text_of, urls
from tests.factories.judge_comparison import judged, perfect

pytestmark = pytest.mark.django_db


def on(found: dict[str, Any], key: str) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in found["criteria"] if row["key"] == key)
    return row


def words_decide(key: str = "polite") -> None:
    """The bot's last message gives people's answer away."""
    for chat in Chat.objects.all():
        if HUMAN[key](int(chat.external_id.removeprefix("chat-"))):
            chat.messages[-1]["content"] += " With my apologies."
            chat.save()


# ---------- figures ----------


def test_the_judge_is_shown_with_both_baselines_on_every_criterion(compared: Compared, lead: Client) -> None:
    words_decide()
    found = document(lead, compared)
    assert (found["run"], found["set"], found["answered"], found["used"]) == (
        compared.run.pk,
        "calibration",
        40,
        40,
    )
    row = on(found, "polite")
    right = sum(HUMAN["polite"](n) is JUDGE["polite"](n) for n in range(1, 41))
    assert (row["n"], row["human_true"], row["bag_of_words"]["folds"]) == (40, 20, 5)
    assert row["judge"]["accuracy"]["value"] == right / 40
    assert row["bag_of_words"]["balanced_accuracy"]["value"] == 1
    assert row["majority"]["finding"] == "beats"
    assert row["bag_of_words"]["finding"] == "worse"
    assert on(found, "wrong_fact")["majority"]["accuracy"]["value"] == 0.75


def test_a_criterion_is_named_where_the_judge_does_not_beat_a_baseline_and_where_none_can_be(
    compared: Compared, lead: Client
) -> None:
    words_decide()
    found = document(lead, compared)
    assert (found["not_beaten"], found["not_compared"]) == (["polite", "wrong_fact"], ["welcome"])
    undefined = on(found, "welcome")["undefined"]
    assert undefined["majority.difference"] == "no chat with a human False"
    assert undefined["bag_of_words.difference"].endswith("needs 2 chats with answer False, has 0")


def test_a_constant_judge_is_named(compared: Compared, lead: Client) -> None:
    constant = judged(compared, "always yes", lambda key, n: True)
    found = document(lead, compared, run=constant)
    assert found["beats_both"] == []
    assert {row["judge"]["balanced_accuracy"]["value"] for row in found["criteria"]} == {0.5, None}


def test_chats_without_a_verdict_are_compared_for_nobody(compared: Compared, lead: Client) -> None:
    shy = judged(compared, "shy", lambda key, n: None if n <= 10 else HUMAN[key](n))
    assert {row["n"] for row in document(lead, compared, run=shy)["criteria"]} == {30}


def test_near_duplicates_are_kept_together(compared: Compared, lead: Client) -> None:
    Chat.objects.update(near_hash=7)
    reason = on(document(lead, compared), "polite")["undefined"]["bag_of_words.difference"]
    assert "not near-duplicates" in reason


def test_too_many_chats_are_sampled_and_the_page_says_so(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "MOST_CHATS", 20)
    found = document(lead, compared)
    assert (found["answered"], found["used"], on(found, "polite")["n"]) == (40, 20, 20)
    assert "20 of 40 labelled chats" in text_of(lead.get(urls(compared)["report"]))


def test_a_rater_may_be_the_ground_truth_but_not_each_of_them(compared: Compared, lead: Client) -> None:
    cleo = document(lead, compared, query="?against=rater:cleo")
    assert cleo["criteria"] != document(lead, compared)["criteria"]
    assert lead.get(url(compared, query="?against=rater:nobody")).status_code == 400
    refused = lead.get(url(compared, query="?against=each-rater"))
    reason = "Baselines need one answer per chat"
    assert (refused.status_code, reason in refused.json()["against"]) == (400, True)
    assert reason in text_of(lead.get(urls(compared)["report"] + "?against=each-rater"))


# ---------- kept ----------


def test_a_second_run_over_the_same_chats_trains_nothing(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_document(lead, compared)
    other = judged(compared, "another", perfect)
    monkeypatch.setattr(selectors, "out_of_fold", pytest.fail)
    assert on(stored_document(lead, compared, run=other), "polite")["judge"]["accuracy"]["value"] == 1
    assert Report.objects.filter(kind=Report.Kind.BASELINES, run=None).count() == 1
    assert Report.objects.filter(kind=Report.Kind.BASELINES).exclude(run=None).count() == 2


def test_changed_labels_are_learned_again(compared: Compared, lead: Client) -> None:
    before = document(lead, compared)
    Consensus.objects.filter(criterion__key="polite", chat__external_id="chat-1").update(state="false")
    Criterion.objects.filter(key="polite").update(labels_seq=1000)
    assert on(document(lead, compared), "polite")["human_true"] == on(before, "polite")["human_true"] - 1


def test_an_unfinished_run_is_compared_again_each_time(compared: Compared, lead: Client) -> None:
    Run.objects.update(state="running", finished_at=None)
    first = on(document(lead, compared), "polite")["n"]
    Verdict.objects.filter(criterion__key="polite", chat__external_id="chat-1").delete()
    assert on(document(lead, compared), "polite")["n"] == first - 1


@pytest.mark.heavy
def test_a_stored_comparison_takes_the_same_number_of_queries_for_more_chats_and_runs(
    compared: Compared, lead: Client
) -> None:
    def queries() -> tuple[int, int]:
        document(lead, compared)
        with CaptureQueriesContext(connection) as stored:
            document(lead, compared)
        other = judged(compared, f"judge {Run.objects.count()}", perfect)
        with CaptureQueriesContext(connection) as compared_anew:
            document(lead, compared, run=other)
        return len(stored), len(compared_anew)

    before = queries()
    add_chats(compared, to=80)
    assert queries() == before


# ---------- who sees what ----------


def test_authors_get_no_figure_from_holdout_chats_that_they_cannot_see(
    compared: Compared, author: Client, author_user: User, lead: Client
) -> None:
    scope = requested_scope(compared.chat_set, compared.run, {"topic": "delivery"}, author_user)
    assert scope is not None and scope.without_holdout
    part = "?topic=delivery"
    mine, theirs = (stored_document(one, compared, query=part) for one in (author, lead))
    assert (mine["answered"], theirs["answered"]) == (30, 40)
    learned = Report.objects.filter(kind=Report.Kind.BASELINES, run=None)
    held = set(compared.chat_set.members.filter(split="holdout").values_list("chat_id", flat=True))
    assert sorted(bool(held & set(row.body["chats"])) for row in learned) == [False, True]


def test_nothing_of_texts_labels_or_single_answers_is_shown(compared: Compared, lead: Client) -> None:
    words_decide()
    answer = json.dumps(document(lead, compared))
    page = text_of(lead.get(url(compared, "alignment:baselines"), headers=HTMX))
    for told in (answer, page):
        assert "apologies" not in told
        assert "chat-1" not in told


@pytest.mark.parametrize("name", ["alignment:baselines", "api_run_baselines"])
def test_for_raters_there_are_no_baselines(compared: Compared, rater_user: User, name: str) -> None:
    rater = Client()
    rater.force_login(rater_user)
    assert rater.get(url(compared, name)).status_code == 404


# ---------- the page ----------


def test_the_page_asks_for_what_is_not_computed_and_then_shows_it(compared: Compared, lead: Client) -> None:
    report = urls(compared)["report"]
    first = text_of(lead.get(report))
    assert f'hx-post="{url(compared, "alignment:baselines")}"' in first
    assert not Report.objects.filter(kind=Report.Kind.BASELINES).exists()
    part = text_of(lead.post(url(compared, "alignment:baselines"), headers=HTMX))
    assert "Bag of words, balanced" in part
    again = text_of(lead.get(report))
    assert "Bag of words, balanced" in again
    assert "hx-post" not in again[again.index('id="baselines"') :]


def test_without_scripts_a_button_computes_and_leads_back(compared: Compared, lead: Client) -> None:
    response = lead.post(url(compared, "alignment:baselines", query="?split=dev"))
    assert (response.status_code, response["Location"]) == (
        302,
        urls(compared)["report"] + "?split=dev#baselines",
    )


def test_the_page_names_the_criteria_and_says_why_some_are_not_compared(
    compared: Compared, lead: Client
) -> None:
    words_decide()
    document(lead, compared)
    page = text_of(lead.get(urls(compared)["report"]))
    assert "The judge is worse than the bag of words on Polite." in page
    assert "The judge is not shown to beat the bag of words on Wrong fact." in page
    assert "Not compared with both: Welcome." in page
    assert "No chat with a human False" in page


def test_the_page_says_when_a_judge_beats_both_on_all(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="welcome").update(state="retired")
    Verdict.objects.filter(criterion__key="welcome").delete()
    other = judged(compared, "perfect", lambda key, n: None if key == "welcome" else perfect(key, n))
    Verdict.objects.filter(run=other, criterion__key="welcome").delete()
    document(lead, compared, run=other)
    page = text_of(lead.get(reverse("alignment:report_run", args=[other.pk])))
    assert "The judge beats both baselines on every criterion." in page
    assert page.count("Beats both") == 2


# ---------- the page of one criterion ----------


def criterion_page(compared: Compared, key: str, *, run: Run | None = None, query: str = "") -> str:
    return reverse("alignment:criterion_report", args=[(run or compared.run).pk, key]) + query


def part_of_page(client: Client, page_url: str) -> str:
    page = text_of(client.get(page_url))
    return page[page.index('id="baselines"') : page.index('id="topics"')]


def test_the_page_of_a_criterion_asks_for_its_baselines_and_then_shows_these_alone(
    compared: Compared, lead: Client
) -> None:
    words_decide()
    part = url(compared, "alignment:baselines", query="?criterion=polite&split=dev")
    page = criterion_page(compared, "polite", query="?split=dev")
    assert f'hx-post="{part.replace("&", "&amp;")}"' in part_of_page(lead, page)
    for shown in (text_of(lead.post(part, headers=HTMX)), part_of_page(lead, page)):
        assert "The judge is not shown to beat the bag of words on Polite." in shown
        assert shown.count('<th scope="row">') == 1
        assert "Wrong fact" not in shown and "Welcome" not in shown


def test_a_criterion_is_called_as_the_report_calls_it(compared: Compared, lead: Client) -> None:
    other = judged(compared, "perfect", perfect)
    document(lead, compared, run=other)
    polite = part_of_page(lead, criterion_page(compared, "polite", run=other))
    assert "The judge beats both baselines on Polite." in polite and "call warn" not in polite
    assert "Not compared with both: Welcome." in part_of_page(
        lead, criterion_page(compared, "welcome", run=other)
    )
    constant = judged(compared, "always yes", lambda key, n: True)
    document(lead, compared, run=constant)
    assert "call warn" in part_of_page(lead, criterion_page(compared, "polite", run=constant))
    against = part_of_page(lead, criterion_page(compared, "polite", query="?against=each-rater"))
    assert "Baselines need one answer per chat" in against


def test_without_scripts_the_link_leads_back_to_the_criterion(compared: Compared, lead: Client) -> None:
    response = lead.get(url(compared, "alignment:baselines", query="?criterion=polite&split=dev"))
    assert response["Location"] == criterion_page(compared, "polite") + "?split=dev#baselines"


def test_a_criterion_that_the_run_does_not_know_has_no_baselines(compared: Compared, lead: Client) -> None:
    assert lead.get(url(compared, "alignment:baselines", query="?criterion=none")).status_code == 404
    assert not Report.objects.filter(kind=Report.Kind.BASELINES).exists()


# ---------- what they are computed from ----------


def test_the_answers_of_a_part_are_not_those_of_the_whole(compared: Compared) -> None:
    whole = Scope(compared.chat_set, compared.run)
    pins = {selectors.answers_pin(one) for one in (whole, replace(whole, split="dev"))}
    assert len(pins) == 2


def test_codes_of_raters_and_judge_are_the_plain_ones() -> None:
    assert selectors._plain(np.arange(5, dtype=np.int8)).tolist() == [1, 0, -1, -1, -1]
