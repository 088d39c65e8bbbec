"""Runs of a league, and runs that make its comparison small."""

from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Consensus
from tests.factories.compared_runs import HUMAN, Compared, text_of
from tests.factories.judge_comparison import (
    called,
    context,
    contrary,
    document,
    judged,
    league_url,
    on_first,
    perfect,
)

pytestmark = pytest.mark.django_db


# ---------- which runs ----------


def test_the_default_is_the_newest_finished_run_of_each_engine_and_model(
    compared: Compared, lead: Client
) -> None:
    judged(compared, "direct old", perfect, engine="direct")
    newest = judged(compared, "direct new", perfect, engine="direct")
    debate = judged(compared, "debate", perfect, engine="debate")
    outside = judged(compared, "someone's judge", perfect, purpose="import")
    judged(compared, "candidate", perfect, engine="reflection", purpose="regression")
    judged(compared, "tried", perfect, engine="reflection", purpose="try")
    running = judged(compared, "going on", perfect, engine="auto")
    Run.objects.filter(pk=running.pk).update(state="running", finished_at=None)
    found = document(lead, compared)
    assert [row["run"] for row in found["runs"]] == [newest.pk, debate.pk, compared.run.pk, outside.pk]


def test_the_address_names_runs_and_split(compared: Compared, lead: Client) -> None:
    first, second = (judged(compared, name, perfect, engine="direct") for name in ("one", "two"))
    found = document(lead, compared, first, second, split="train")
    assert [row["run"] for row in found["runs"]] == [first.pk, second.pk]
    assert (found["split"], found["chats"]) == ("train", 10)
    page = context(lead, compared, first, second, split="train")
    assert f"run={first.pk}&run={second.pk}&split=train" in page["json_url"]
    assert {one["run"] for one in page["choices"] if one["chosen"]} == {first.pk, second.pk}


@pytest.mark.parametrize("query", ["run=999999", "run=x", "run=", "run=%00", "split=all", "run=" + "9" * 40])
def test_unknown_runs_and_splits_are_refused(query: str, compared: Compared, lead: Client) -> None:
    nul = query == "run=%00"  # refused for every address
    for name, code in (("alignment:league", 404), ("api_set_league", 400), ("api_set_league_csv", 400)):
        answer = lead.get(f"{reverse(name, args=[compared.chat_set.pk])}?{query}")
        assert answer.status_code == (404 if nul else code)


def test_a_run_of_another_set_or_a_try_is_not_found(compared: Compared, lead: Client) -> None:
    tried = judged(compared, "tried", perfect, purpose="try")
    elsewhere = judged(compared, "elsewhere", perfect)
    Run.objects.filter(pk=elsewhere.pk).update(chat_set=None)
    for run in (tried, elsewhere):
        assert lead.get(league_url(compared, compared.run, run)).status_code in (400, 404)


def test_one_run_or_seven_are_no_league(compared: Compared, lead: Client) -> None:
    runs = [judged(compared, f"judge {n}", perfect) for n in range(6)]
    for chosen in ([compared.run], [compared.run, *runs]):
        page = lead.get(league_url(compared, *chosen))
        assert "Choose 2 to 6 runs" in text_of(page)
        answer = lead.get(league_url(compared, *chosen, name="api_set_league"))
        assert (answer.status_code, "2 to 6" in answer.json()["run"]) == (400, True)


def test_a_set_with_one_run_says_what_to_do(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(league_url(compared)))
    assert "A league needs two finished runs" in page


# ---------- labels that cannot measure a judge ----------


def test_only_labels_on_chats_that_every_judge_was_asked_about_make_a_problem(
    compared: Compared, lead: Client
) -> None:
    runs = [judged(compared, name, perfect, engine="direct") for name in ("one", "two")]
    later = [compared.chat(n).pk for n in range(29, 41)]
    polite = Consensus.objects.filter(criterion__key="polite")
    polite.filter(chat__in=later).update(state="unresolved")
    problem = {"polite": "not enough agreed labels: 12 of 40 labelled chats are unresolved, adjudicate them"}
    assert document(lead, compared, *runs)["groups"][0]["label_problems"] == problem
    Verdict.objects.filter(run=runs[0], chat__in=later).delete()
    Run.objects.filter(pk=runs[0].pk).update(finished_at=timezone.now())
    assert document(lead, compared, *runs)["groups"][0]["label_problems"] == {}


# ---------- few compared chats ----------


def test_on_fewer_than_ten_chats_no_judge_is_called_better_and_no_pair_is_tested(
    compared: Compared, lead: Client
) -> None:
    few = judged(compared, "hardly begun", on_first(9), engine="direct")
    wrong = judged(compared, "always wrong", contrary, engine="debate")
    called(compared, wrong, price=Decimal("0.001"))
    overall = document(lead, compared, few, wrong)["groups"][0]
    (pair,) = overall["pairs"]
    assert (overall["chats"], overall["untested"], overall["worth"]) == (9, "fewer than 10 chats", None)
    assert (pair["only_first"], pair["p"], pair["more_right"], pair["better"]) == (27, None, None, None)
    page = text_of(lead.get(league_url(compared, few, wrong)))
    assert "Only 9 chats have answers of raters and all judges: too few" in page
    assert "No pair is tested: fewer than 10 chats." in page
    assert 'class="grid judge-pairs"' not in page and "the cheapest" not in page


def test_a_run_that_makes_the_comparison_small_is_named_with_a_link_that_excludes_it(
    compared: Compared, lead: Client
) -> None:
    few = judged(compared, "hardly begun", on_first(12), engine="direct")
    most = judged(compared, "nearly all", on_first(38), engine="debate")
    runs = (compared.run, few, most)
    overall = document(lead, compared, *runs)["groups"][0]
    assert {row["run"]: row["answered"] for row in overall["judges"]} == {
        compared.run.pk: 120,
        few.pk: 36,
        most.pk: 114,
    }
    assert (overall["n"], overall["without"]) == (36, {"runs": [few.pk], "n": 114})
    url = f"?run={most.pk}&amp;run={compared.run.pk}"
    page = text_of(lead.get(league_url(compared, *runs)))
    assert page.count(f'<a href="{url}">Exclude it</a>') == 1  # not repeated in the tiers
    assert f"(run {few.pk}), the league would compare 114 answers instead of 36." in page
    assert "answered 36 of 120" in page and "answered 120 of 120" not in page
    assert "Exclude it" not in text_of(lead.get(league_url(compared, compared.run, most)))


def test_a_better_judge_that_abstains_often_is_flagged(compared: Compared, lead: Client) -> None:
    shy = judged(compared, "shy", on_first(38), engine="direct")
    contrarian = judged(compared, "contrarian", contrary, engine="debate")
    page = text_of(lead.get(league_url(compared, shy, contrarian)))
    assert "is better than" in page and "but has no verdict on 6 of 120 human answers" in page
    silent = judged(compared, "silent", on_first(30), engine="direct")
    page = text_of(lead.get(league_url(compared, silent, contrarian)))
    assert "but has no verdict on 30 of 120 human answers: too many to be called better" in page
    assert "is better than" not in page and "Higher balanced accuracy, verdicts missing" in page
    complete = judged(compared, "open", perfect, engine="auto")
    assert "has no verdict on" not in text_of(lead.get(league_url(compared, complete, contrarian)))


def test_a_judge_that_is_ahead_only_without_its_missing_verdicts_is_not_called_short_of_verdicts(
    compared: Compared, lead: Client
) -> None:
    nearly = judged(compared, "nearly all", lambda key, n: None if n in (2, 6) else HUMAN[key](n))
    wrong = judged(compared, "wrong on seven", lambda key, n: HUMAN[key](n) is (n not in range(1, 15, 2)))
    page = text_of(lead.get(league_url(compared, nearly, wrong)))
    assert "but not if a missing verdict counts as wrong" in page and "too many" not in page
    assert "Higher balanced accuracy, verdicts missing" in page
    assert "Lower balanced accuracy" in page


def test_runs_without_common_answers_show_what_each_answered(compared: Compared, lead: Client) -> None:
    none = judged(compared, "failed", on_first(0), engine="direct")
    page = text_of(lead.get(league_url(compared, none, compared.run)))
    assert "No answer is compared. Of 120 human answers, " in page
    assert f"(run {none.pk}) answered 0" in page and f"(run {compared.run.pk}) answered 120" in page


def test_by_default_a_run_with_less_than_half_of_the_most_answers_is_excluded(
    compared: Compared, lead: Client
) -> None:
    few = judged(compared, "hardly begun", on_first(19), engine="direct")
    half = judged(compared, "half", on_first(20), engine="debate")
    league = document(lead, compared)
    assert [row["run"] for row in league["runs"]] == [half.pk, compared.run.pk]
    (one,) = league["runs_left_out"]
    assert (one["run"], one["judge"], one["answered"], one["most"]) == (few.pk, "hardly begun", 57, 120)
    page = text_of(lead.get(league_url(compared)))
    assert f"(run {few.pk}) is excluded: it answered 57 of the human answers, another run 120" in page
    url = f"?run={half.pk}&amp;run={compared.run.pk}&amp;run={few.pk}"
    assert f'<a href="{url}">Include</a>' in page
    chosen = document(lead, compared, few, half, compared.run)
    assert (len(chosen["runs"]), chosen["runs_left_out"]) == (3, [])


def test_two_runs_are_always_kept(compared: Compared, lead: Client) -> None:
    fewer, few = (judged(compared, f"on {n}", on_first(n), engine=e) for n, e in ((2, "direct"), (5, "auto")))
    assert [row["run"] for row in document(lead, compared)["runs"]] == [few.pk, compared.run.pk]
    Run.objects.filter(pk=fewer.pk).update(state="cancelled")
    assert [row["run"] for row in document(lead, compared)["runs"]] == [few.pk, compared.run.pk]


def test_without_labels_no_run_is_excluded(compared: Compared, lead: Client) -> None:
    Consensus.objects.all().delete()
    for engine in ("direct", "debate"):
        judged(compared, engine, on_first(40 if engine == "direct" else 0), engine=engine)
    assert len(document(lead, compared)["runs"]) == 3
