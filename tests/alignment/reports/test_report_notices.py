"""Notices of a report's pages: demo data, weak judge, dashes with reasons, empty lists."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from evaluation.models.judges import Judge
from evaluation.models.runs import Run
from labeling.models.labels import Consensus, Label
from labeling.models.people import Rater
from tests.factories.compared_runs import Compared, text_of, urls

pytestmark = pytest.mark.django_db


def test_labels_and_verdicts_of_a_demo_are_marked_on_every_page(compared: Compared, lead: Client) -> None:
    Judge.objects.update(config={"demo": True})
    Rater.objects.filter(name="anna").update(kind=Rater.Kind.DEMO)
    for name in ("report", "cell", "disagreements", "chat"):
        shown = text_of(lead.get(urls(compared)[name])).lower()
        assert "labels written for this demo" in shown
        assert "verdicts written for this demo" in shown
    assert "labels written for this demo" in text_of(lead.get(urls(compared)["set"])).lower()
    assert "verdicts written for this demo" in text_of(lead.get(urls(compared)["list"])).lower()


def test_the_embedded_model_is_called_a_weak_judge_on_every_page(compared: Compared, lead: Client) -> None:
    Judge.objects.update(config={"endpoint": "embedded:abc"})
    for name in ("list", "report", "cell", "disagreements", "chat"):
        assert "demonstration model, a weak judge" in text_of(lead.get(urls(compared)[name])).lower()


def test_real_labels_and_verdicts_carry_no_such_mark(compared: Compared, lead: Client) -> None:
    for name in ("list", "report", "set", "cell", "disagreements", "chat"):
        shown = text_of(lead.get(urls(compared)[name])).lower()
        for mark in ("written for this demo", "demonstration", "weak judge"):
            assert mark not in shown


def test_automatic_labels_are_named(compared: Compared, lead: Client) -> None:
    Rater.objects.filter(name="ben").update(kind=Rater.Kind.AUTOMATIC)
    assert "some labels are automatic" in text_of(lead.get(urls(compared)["report"])).lower()


def test_what_is_undefined_is_a_dash_with_its_reason(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"])
    welcome = next(row for row in page.context["report"]["criteria"] if row["key"] == "welcome")
    assert welcome["tnr"]["value"] is None
    reason = welcome["undefined"]["tnr"]
    assert reason == "no chat with a human False"
    dashes = re.findall(r"<[^>]*>–<", text_of(page))
    assert dashes
    assert any(escape(reason[0].upper() + reason[1:]) in dash or escape(reason) in dash for dash in dashes)
    assert "NaN" not in text_of(page)
    assert "None" not in text_of(page)


def test_an_empty_run_says_why_every_number_is_missing(compared: Compared, lead: Client) -> None:
    Consensus.objects.all().delete()
    Label.objects.all().delete()
    page = lead.get(urls(compared)["report"])
    assert "needs 30 more human True labels (0 of 30)" in page.context["report"]["criteria"][0]["reasons"]
    assert "None" not in text_of(page)


def test_few_labels_are_named_with_their_counts(compared: Compared, lead: Client) -> None:
    shown = text_of(lead.get(urls(compared)["report"]))
    assert "Needs 10 more human True labels (20 of 30)" in shown
    assert "Needs 30 more human False labels (0 of 30)" in shown


def test_a_workspace_without_runs_and_sets_says_how_to_begin(lead: Client) -> None:
    shown = text_of(lead.get(reverse("alignment:report_list")))
    assert "No runs yet" in shown
    assert "No chat sets yet" in shown


def test_against_each_rater_there_is_no_matrix_and_the_page_says_so(compared: Compared, lead: Client) -> None:
    shown = text_of(lead.get(urls(compared)["report"] + "?against=each-rater"))
    assert 'class="matrix"' not in shown
    assert "compared with each rater" in shown


def test_the_newest_run_is_first_in_the_list(compared: Compared, lead: Client) -> None:
    other = Run.objects.create(judge=compared.run.judge, chat_set=compared.chat_set)
    shown = lead.get(urls(compared)["list"]).context["runs"]
    assert [item["row"].id for item in shown] == [other.pk, compared.run.pk]
    assert shown[1]["row"].verdicts == 120
