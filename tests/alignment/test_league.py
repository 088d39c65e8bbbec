"""The engine league of a set: which runs, whose chats, stored figures, prices, page and API."""

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.models.reports import Report
from evaluation.models.runs import Run
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from tests.alignment.compared import HUMAN, JUDGE, SPLITS, Compared, add_chats, text_of
from tests.alignment.leagued import Says, called, contrary, judged, league_url, perfect

pytestmark = pytest.mark.django_db

PAIRS = [(key, n) for key in HUMAN for n in range(1, 41)]


def document(client: Client, compared: Compared, *runs: Run, split: str = "") -> dict[str, Any]:
    response = client.get(league_url(compared, *runs, split=split, name="api_set_league"))
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def context(client: Client, compared: Compared, *runs: Run, split: str = "") -> Any:
    response = client.get(league_url(compared, *runs, split=split))
    assert response.status_code == 200
    return response.context


# ---------- which runs ----------


def test_without_a_choice_the_newest_finished_run_of_each_engine_and_model_stands(
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
def test_what_is_not_there_is_not_found(query: str, compared: Compared, lead: Client) -> None:
    for name in ("alignment:league", "api_set_league", "api_set_league_csv"):
        assert lead.get(f"{reverse(name, args=[compared.chat_set.pk])}?{query}").status_code == 404


def test_a_run_of_another_set_or_a_try_is_not_found(compared: Compared, lead: Client) -> None:
    tried = judged(compared, "tried", perfect, purpose="try")
    elsewhere = judged(compared, "elsewhere", perfect)
    Run.objects.filter(pk=elsewhere.pk).update(chat_set=None)
    for run in (tried, elsewhere):
        assert lead.get(league_url(compared, compared.run, run)).status_code == 404


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


# ---------- figures ----------


def test_the_figures_are_those_of_the_verdicts(compared: Compared, lead: Client) -> None:
    other = judged(compared, "always right", perfect, engine="direct")
    overall = document(lead, compared)["groups"][0]
    wrong = sum(JUDGE[key](n) is not HUMAN[key](n) for key, n in PAIRS)
    assert (overall["key"], overall["n"], overall["answered"], overall["chats"]) == ("overall", 120, 120, 40)
    (pair,) = overall["pairs"]
    assert (pair["first"], pair["second"]) == (other.pk, compared.run.pk)
    assert (pair["only_first"], pair["only_second"], pair["both"]) == (wrong, 0, 120 - wrong)
    assert pair["difference"]["value"] == pytest.approx(wrong / 120)
    assert pair["better"] == other.pk
    assert [row["run"] for row in overall["judges"]] == [other.pk, compared.run.pk]
    assert overall["judges"][0]["balanced_accuracy"]["value"] == 1


def test_an_answer_that_one_judge_refused_is_compared_for_none(compared: Compared, lead: Client) -> None:
    refusing = judged(compared, "shy", lambda key, n: None if key == "polite" and n <= 5 else HUMAN[key](n))
    found = document(lead, compared)
    assert found["groups"][0]["n"] == 115
    took = {row["run"]: row["verdicts"] for row in found["runs"]}
    assert (took[refusing.pk]["refused"], took[compared.run.pk]["refused"]) == (5, 0)


def test_tiers_have_parts_of_their_own(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="welcome").update(tier="subjective")
    judged(compared, "always right", perfect)
    assert [(group["key"], group["n"]) for group in document(lead, compared)["groups"]] == [
        ("overall", 120),
        ("simple", 80),
        ("subjective", 40),
    ]


def test_the_better_judge_is_named_on_the_page_and_equals_are_not(compared: Compared, lead: Client) -> None:
    right = judged(compared, "always right", perfect, engine="direct")
    wrong = judged(compared, "always wrong", contrary, engine="debate")
    twin = judged(compared, "its twin", perfect, engine="reflection")
    (first, second) = context(lead, compared, right, wrong)["groups"][0]["matrix"]
    assert first["cells"][1]["words"] == "better"
    assert (first["cells"][1]["won"], first["cells"][1]["points"]) == (120, "+100.0")
    assert (second["cells"][0]["words"], second["cells"][0]["points"]) == ("worse", "−100.0")
    page = text_of(lead.get(league_url(compared, right, twin)))
    assert "no difference is shown" in page
    assert "Better" not in page


@pytest.fixture
def rarely_false(compared: Compared) -> Compared:
    """People answered `welcome` alone, on 200 chats: False on the first 14, else True."""
    add_chats(compared, to=200)
    Consensus.objects.exclude(criterion__key="welcome").update(state="unresolved")
    first = [f"chat-{n}" for n in range(1, 15)]
    answers = Consensus.objects.filter(criterion__key="welcome", chat__external_id__in=first)
    answers.update(state="false")
    return compared


def always_true(key: str, n: int) -> bool:
    return True


def finds_false(first: int) -> Says:
    """False on the `first` chats and on each fifth of those that people call True."""
    return lambda key, n: n > first if n < 15 else n % 5 != 0


def test_who_always_says_the_frequent_answer_is_told_that_the_other_is_ahead_in_balanced_accuracy(
    rarely_false: Compared, lead: Client
) -> None:
    constant = judged(rarely_false, "always True", always_true, engine="direct")
    sensible = judged(rarely_false, "sensible", finds_false(14), engine="debate")
    page = text_of(lead.get(league_url(rarely_false, constant, sensible)))
    assert f"(run {sensible.pk}), which is ahead in balanced accuracy" in page
    assert "is better than" not in page and "not shown to be better" not in page
    one, other = context(lead, rarely_false, constant, sensible)["groups"][0]["matrix"]
    assert one["cells"][1]["words"] == "right more often; the other is ahead in balanced accuracy"
    assert other["cells"][0]["words"] == "right less often; ahead in balanced accuracy"


def test_who_is_right_more_often_and_as_good_in_balanced_accuracy_is_not_called_better(
    rarely_false: Compared, lead: Client
) -> None:
    constant = judged(rarely_false, "always True", always_true, engine="direct")
    poor = judged(rarely_false, "finds two", finds_false(2), engine="debate")
    page = text_of(lead.get(league_url(rarely_false, constant, poor)))
    assert "is right more often than" in page and "but not shown to be better" in page
    assert "is better than" not in page and "ahead in balanced accuracy" not in page
    one, other = context(lead, rarely_false, constant, poor)["groups"][0]["matrix"]
    assert (one["cells"][1]["words"], other["cells"][0]["words"]) == ("right more often", "right less often")


# ---------- few chats, and who makes them few ----------


def on_first(chats: int) -> Says:
    """Right on the first chats, refused on the others."""
    return lambda key, n: HUMAN[key](n) if n <= chats else None


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
    assert "Only 9 chats have answers of people and of all these judges: too few" in page
    assert "On fewer than 10 chats no pair is tested and no judge is called better." in page
    assert 'class="grid duels"' not in page and "the cheapest" not in page


def test_the_run_that_makes_the_comparison_small_is_named_with_a_way_to_leave_it_out(
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
    assert page.count(f'<a href="{url}">Leave it out</a>') == 1  # the tiers do not say it again
    assert f"(run {few.pk}), 114 answers would be compared instead of 36." in page
    assert "answered 36 of 120" in page and "answered 120 of 120" not in page
    assert "Leave it out" not in text_of(lead.get(league_url(compared, compared.run, most)))


def test_runs_with_nothing_in_common_say_what_each_answered(compared: Compared, lead: Client) -> None:
    none = judged(compared, "failed", on_first(0), engine="direct")
    page = text_of(lead.get(league_url(compared, none, compared.run)))
    assert "None of 120 answers of people was given by every judge, too" in page
    assert f"(run {none.pk}) answered 0" in page and f"(run {compared.run.pk}) answered 120" in page


def test_without_a_choice_a_run_that_answered_less_than_half_of_the_best_is_left_out(
    compared: Compared, lead: Client
) -> None:
    few = judged(compared, "hardly begun", on_first(19), engine="direct")
    half = judged(compared, "half", on_first(20), engine="debate")
    found = document(lead, compared)
    assert [row["run"] for row in found["runs"]] == [half.pk, compared.run.pk]
    (left,) = found["runs_left_out"]
    assert (left["run"], left["judge"], left["answered"], left["most"]) == (few.pk, "hardly begun", 57, 120)
    page = text_of(lead.get(league_url(compared)))
    assert (
        f"(run {few.pk}) is left out: of the answers that people gave it answered 57, another run 120" in page
    )
    url = f"?run={half.pk}&amp;run={compared.run.pk}&amp;run={few.pk}"
    assert f'<a href="{url}">Put it in</a>' in page
    chosen = document(lead, compared, few, half, compared.run)
    assert (len(chosen["runs"]), chosen["runs_left_out"]) == (3, [])


def test_two_runs_always_stay(compared: Compared, lead: Client) -> None:
    fewer, few = (judged(compared, f"on {n}", on_first(n), engine=e) for n, e in ((2, "direct"), (5, "auto")))
    assert [row["run"] for row in document(lead, compared)["runs"]] == [few.pk, compared.run.pk]
    Run.objects.filter(pk=fewer.pk).update(state="cancelled")
    assert [row["run"] for row in document(lead, compared)["runs"]] == [few.pk, compared.run.pk]


def test_before_people_answered_no_run_is_left_out(compared: Compared, lead: Client) -> None:
    Consensus.objects.all().delete()
    for engine in ("direct", "debate"):
        judged(compared, engine, on_first(40 if engine == "direct" else 0), engine=engine)
    assert len(document(lead, compared)["runs"]) == 3


# ---------- beside a report ----------


def test_the_page_says_how_its_intervals_and_its_ceiling_differ_from_a_reports(
    compared: Compared, lead: Client
) -> None:
    judged(compared, "other", perfect)
    page = text_of(lead.get(league_url(compared)))
    assert "a rater against the others on the compared answers; a report’s is on all that it covers." in page
    assert "on the same answers the ends of two intervals may differ a little" in page
    assert "leaves labels drawn by verdict out" in page


def test_a_ceiling_that_is_missing_says_why(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="welcome").update(tier="subjective")  # people never say False
    judged(compared, "other", perfect)
    subjective = document(lead, compared)["groups"][-1]
    assert (subjective["ceiling"], "False majority" in subjective["undefined"]["ceiling"]) == (None, True)
    assert f"Human ceiling: none, {subjective['undefined']['ceiling']}." in text_of(
        lead.get(league_url(compared))
    )


# ---------- what it took ----------


def test_calls_tokens_latency_and_price_are_those_of_the_calls(compared: Compared, lead: Client) -> None:
    run = judged(compared, "direct", perfect, engine="direct")
    called(compared, run, price=Decimal("0.003"), latencies=(100, 200, 300, 900))
    took = document(lead, compared)["runs"][0]
    assert (took["calls"], took["reused"]) == (40, 20)
    assert (took["prompt_tokens"], took["completion_tokens"]) == (40_000, 4_000)
    assert took["latency_ms"] == {"median": 200, "p95": 900}
    assert took["cost_usd"] == pytest.approx(0.12)


def test_criteria_asked_together_share_the_price_of_their_calls(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="welcome").update(tier="subjective")
    run = judged(compared, "direct", perfect, engine="direct")
    called(compared, run, price=Decimal("0.003"))
    for group in document(lead, compared)["groups"]:
        assert group["judges"][0]["cost_per_answer"] == pytest.approx(0.001)


def test_the_price_of_an_extra_right_answer_is_told(compared: Compared, lead: Client) -> None:
    cheap = judged(compared, "cheap", contrary, engine="direct")
    dear = judged(compared, "dear", perfect, engine="debate")
    called(compared, cheap, price=Decimal("0.003"))
    called(compared, dear, price=Decimal("0.033"))
    worth = document(lead, compared, cheap, dear)["groups"][0]["worth"]
    assert worth["cheapest"] == cheap.pk
    (better,) = worth["better"]
    assert better["run"] == dear.pk
    assert better["per_right_answer"]["value"] == pytest.approx(0.01)
    assert "for one more right answer" in text_of(lead.get(league_url(compared, cheap, dear)))


def test_a_price_that_is_not_known_is_said_and_not_guessed(compared: Compared, lead: Client) -> None:
    free = judged(compared, "unpriced", perfect, engine="direct")
    called(compared, free, price=None)
    found = document(lead, compared)
    assert {row["run"]: row["cost_usd"] for row in found["runs"]} == {free.pk: None, compared.run.pk: None}
    assert found["groups"][0]["worth"]["price_not_known"] == [free.pk, compared.run.pk]
    assert "The price of none of these judges is known" in text_of(lead.get(league_url(compared)))


def test_a_judge_that_was_asked_another_text_is_told_of(compared: Compared, lead: Client) -> None:
    run = judged(compared, "direct", perfect, engine="direct")
    called(compared, run, price=None)
    assert document(lead, compared)["other_questions"] == []
    newer = CriterionVersion.objects.create(
        criterion=compared.criteria[0], number=2, question="Always polite?", content_hash="newer"
    )
    run.judge.prompts.filter(criterion=newer.criterion).update(criterion_version=newer)
    Report.objects.all().delete()
    assert document(lead, compared)["other_questions"] == [compared.criteria[0].key]
    assert "asked another text" in text_of(lead.get(league_url(compared)))


# ---------- stored ----------


def test_the_same_labels_and_runs_are_computed_once(compared: Compared, lead: Client) -> None:
    for name in ("other", "third"):
        judged(compared, name, perfect)
    assert document(lead, compared) == document(lead, compared)
    assert Report.objects.count() == 2  # the league, and how much each run answered
    with CaptureQueriesContext(connection) as queries:
        lead.get(league_url(compared))
    assert not any('FROM "evaluation_verdict"' in query["sql"] for query in queries.captured_queries)


def test_a_changed_answer_of_people_makes_it_anew(compared: Compared, lead: Client) -> None:
    judged(compared, "other", perfect)
    before = document(lead, compared)["groups"][0]["n"]
    row = compared.criteria[0]
    Consensus.objects.filter(criterion=row, chat=compared.chat(1)).update(state="unresolved")
    Criterion.objects.filter(pk=row.pk).update(labels_seq=row.labels_seq + 1)
    assert document(lead, compared)["groups"][0]["n"] == before - 1


def test_queries_do_not_grow_with_the_chats(compared: Compared, lead: Client) -> None:
    other = judged(compared, "other", perfect, engine="direct")
    called(compared, other, price=Decimal("0.001"))
    judged(compared, "third", perfect, engine="debate")

    def queries() -> tuple[int, int]:
        Report.objects.all().delete()
        counts = []
        for _ in range(2):
            with CaptureQueriesContext(connection) as caught:
                assert lead.get(league_url(compared)).status_code == 200
            counts.append(len(caught))
        return counts[0], counts[1]

    queries()
    few = queries()
    add_chats(compared, to=80)
    assert queries() == few
    assert few[1] <= 20


# ---------- who may see what ----------


def test_authors_get_no_figure_of_a_held_out_chat(compared: Compared, author: Client, lead: Client) -> None:
    judged(compared, "other", perfect)
    judged(compared, "hardly begun", on_first(5))
    held = sum(split == "holdout" for split in SPLITS) * 10
    told, whole = document(author, compared), document(lead, compared)
    assert (told["chats"], told["chats_left_out"]) == (40 - held, held)
    assert (whole["chats"], whole["chats_left_out"]) == (40, 0)
    assert told["groups"][0]["n"] == 3 * (40 - held)
    assert [(left["answered"], left["most"]) for left in told["runs_left_out"]] == [(12, 90)]
    assert document(author, compared, split="holdout")["groups"][0]["n"] == 0
    assert sum(row["verdicts"]["true"] + row["verdicts"]["false"] for row in told["runs"]) == 2 * 3 * 30
    assert "10 chats of the holdout" in text_of(author.get(league_url(compared)))


def test_raters_do_not_find_it(compared: Compared, rater_user: User) -> None:
    client = Client()
    client.force_login(rater_user)
    for name in ("alignment:league", "api_set_league", "api_set_league_csv"):
        assert client.get(reverse(name, args=[compared.chat_set.pk])).status_code == 404


# ---------- documents and links ----------


def test_the_table_has_every_figure_and_no_formula(compared: Compared, lead: Client) -> None:
    judged(compared, '=HYPERLINK("https://evil.example")', perfect)
    response = lead.get(league_url(compared, name="api_set_league_csv"), headers={"accept": "text/csv"})
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(text_of(response).removeprefix("\ufeff"))))
    found = document(lead, compared)
    assert not any(cell.startswith("=") for row in rows for cell in row.values())
    (duel,) = [
        row for row in rows if row["statistic"] == "difference_of_right_answers" and row["part"] == "overall"
    ]
    pair = found["groups"][0]["pairs"][0]
    assert float(duel["estimate"]) == pair["difference"]["value"]
    assert int(duel["only_this"]) == pair["only_first"]
    assert {row["part"] for row in rows} == {"overall", "simple", "run"}


def test_names_of_judges_are_texts(compared: Compared, lead: Client) -> None:
    judged(compared, "<script>alert(1)</script>\u202e", perfect)
    page = text_of(lead.get(league_url(compared)))
    assert "<script>alert(1)" not in page
    assert "\u202e" not in page


def test_reports_and_their_list_lead_to_it(compared: Compared, lead: Client) -> None:
    url = reverse("alignment:league", args=[compared.chat_set.pk])
    assert url not in text_of(lead.get(reverse("alignment:report_list")))  # one run is no league
    judged(compared, "other", perfect)
    for page in (
        reverse("alignment:report_list"),
        reverse("alignment:report_run", args=[compared.run.pk]),
        reverse("alignment:report_set", args=[compared.chat_set.pk]),
    ):
        assert f'href="{url}"' in text_of(lead.get(page))
