"""The engine league of a set: statistics, prices, visible chats, caching, page and API."""

import csv
import io
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from tests.factories.compared_runs import HUMAN, JUDGE, SPLITS, Compared, add_chats, text_of
from tests.factories.judge_comparison import (
    Says,
    called,
    context,
    contrary,
    document,
    judged,
    league_url,
    on_first,
    perfect,
)
from tests.factories.stored_reports import forget_documents

pytestmark = pytest.mark.django_db

PAIRS = [(key, n) for key in HUMAN for n in range(1, 41)]


# ---------- figures ----------


def test_the_statistics_are_those_of_the_verdicts(compared: Compared, lead: Client) -> None:
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
    ahead, behind = first["cells"][1], second["cells"][0]
    assert (ahead["won"], ahead["balanced"]["value"], ahead["accuracy"]["value"]) == (120, "+100.0", "+100.0")
    assert (behind["words"], behind["balanced"]["value"]) == ("worse", "−100.0")
    page = text_of(lead.get(league_url(compared, right, twin)))
    assert "No difference between any two judges is shown" in page
    assert 'class="words">Better' not in page


@pytest.fixture
def rarely_false(compared: Compared) -> Compared:
    """Only `welcome` has a consensus, on 200 chats: False on the first 14, otherwise True."""
    add_chats(compared, to=200)
    Consensus.objects.exclude(criterion__key="welcome").update(state="unresolved")
    first = [f"chat-{n}" for n in range(1, 15)]
    answers = Consensus.objects.filter(criterion__key="welcome", chat__external_id__in=first)
    answers.update(state="false")
    return compared


def always_true(key: str, n: int) -> bool:
    return True


def finds_false(first: int) -> Says:
    """A judge with False on the `first` chats and on each fifth chat with human True."""
    return lambda key, n: n > first if n < 15 else n % 5 != 0


def test_a_judge_is_better_than_a_majority_judge_and_its_lower_accuracy_is_shown(
    rarely_false: Compared, lead: Client
) -> None:
    constant = judged(rarely_false, "always True", always_true, engine="direct")
    sensible = judged(rarely_false, "sensible", finds_false(14), engine="debate")
    page = text_of(lead.get(league_url(rarely_false, constant, sensible)))
    assert f"(run {sensible.pk}) is better than" in page
    assert "by balanced accuracy, with a lower accuracy" in page
    assert "no higher balanced accuracy" not in page
    one, other = context(lead, rarely_false, constant, sensible)["groups"][0]["matrix"]
    assert one["cells"][1]["words"] == "worse, higher accuracy"
    assert other["cells"][0]["words"] == "better, lower accuracy"


def test_a_higher_accuracy_with_equal_balanced_accuracy_is_not_called_better(
    rarely_false: Compared, lead: Client
) -> None:
    constant = judged(rarely_false, "always True", always_true, engine="direct")
    poor = judged(rarely_false, "finds two", finds_false(2), engine="debate")
    page = text_of(lead.get(league_url(rarely_false, constant, poor)))
    assert "has a higher accuracy than" in page and "but no higher balanced accuracy is shown" in page
    assert "is better than" not in page and "with a lower accuracy" not in page
    one, other = context(lead, rarely_false, constant, poor)["groups"][0]["matrix"]
    words = one["cells"][1]["words"], other["cells"][0]["words"]
    assert words == ("higher accuracy only", "lower accuracy only")


# ---------- beside a report ----------


def test_the_page_explains_how_it_differs_from_a_report(compared: Compared, lead: Client) -> None:
    judged(compared, "other", perfect)
    page = text_of(lead.get(league_url(compared)))
    assert "a rater against the others on the compared answers." in page
    assert "counts all its answers and excludes labels sampled by verdict" in page


def test_a_missing_ceiling_has_a_reason(compared: Compared, lead: Client) -> None:
    Criterion.objects.filter(key="welcome").update(tier="subjective")  # no human False
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


def test_the_price_of_an_additional_right_answer_is_shown(compared: Compared, lead: Client) -> None:
    cheap = judged(compared, "cheap", contrary, engine="direct")
    dear = judged(compared, "dear", perfect, engine="debate")
    called(compared, cheap, price=Decimal("0.003"))
    called(compared, dear, price=Decimal("0.033"))
    worth = document(lead, compared, cheap, dear)["groups"][0]["worth"]
    assert worth["cheapest"] == cheap.pk
    (better,) = worth["better"]
    assert better["run"] == dear.pk
    assert better["per_right_answer"]["value"] == pytest.approx(0.01)
    assert "per additional right answer" in text_of(lead.get(league_url(compared, cheap, dear)))


def test_an_unknown_price_is_not_guessed(compared: Compared, lead: Client) -> None:
    free = judged(compared, "unpriced", perfect, engine="direct")
    called(compared, free, price=None)
    league = document(lead, compared)
    assert {row["run"]: row["cost_usd"] for row in league["runs"]} == {free.pk: None, compared.run.pk: None}
    assert league["groups"][0]["worth"]["price_not_known"] == [free.pk, compared.run.pk]
    assert "No judge has a known price" in text_of(lead.get(league_url(compared)))


def test_a_judge_that_was_asked_another_text_is_noted(compared: Compared, lead: Client) -> None:
    run = judged(compared, "direct", perfect, engine="direct")
    called(compared, run, price=None)
    assert document(lead, compared)["other_questions"] == []
    newer = CriterionVersion.objects.create(
        criterion=compared.criteria[0], number=2, question="Always polite?", content_hash="newer"
    )
    run.judge.prompts.filter(criterion=newer.criterion).update(criterion_version=newer)
    forget_documents()
    assert document(lead, compared)["other_questions"] == [compared.criteria[0].key]
    notice = f"On {compared.criteria[0].name} a judge was asked another text"
    assert notice.lower() in text_of(lead.get(league_url(compared))).lower()


# ---------- stored ----------


def test_the_same_labels_and_runs_are_computed_once(compared: Compared, lead: Client) -> None:
    for name in ("other", "third"):
        judged(compared, name, perfect)
    assert document(lead, compared) == document(lead, compared)
    with CaptureQueriesContext(connection) as queries:
        lead.get(league_url(compared))
    assert not any('FROM "evaluation_verdict"' in query["sql"] for query in queries.captured_queries)


def test_a_changed_label_recomputes_it(compared: Compared, lead: Client) -> None:
    judged(compared, "other", perfect)
    before = document(lead, compared)["groups"][0]["n"]
    row = compared.criteria[0]
    Consensus.objects.filter(criterion=row, chat=compared.chat(1)).update(state="unresolved")
    Criterion.objects.filter(pk=row.pk).update(labels_seq=row.labels_seq + 1)
    assert document(lead, compared)["groups"][0]["n"] == before - 1


@pytest.mark.heavy
def test_queries_do_not_grow_with_the_chats(compared: Compared, lead: Client) -> None:
    other = judged(compared, "other", perfect, engine="direct")
    called(compared, other, price=Decimal("0.001"))
    judged(compared, "third", perfect, engine="debate")

    def queries() -> tuple[int, int]:
        forget_documents()
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
    assert few[1] <= 21


# ---------- who may see what ----------


def test_authors_get_no_statistic_of_a_holdout_chat(compared: Compared, author: Client, lead: Client) -> None:
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
    assert "10 chats excluded: in the holdout" in text_of(author.get(league_url(compared)))


def test_raters_get_404(compared: Compared, rater_user: User) -> None:
    client = Client()
    client.force_login(rater_user)
    for name in ("alignment:league", "api_set_league", "api_set_league_csv"):
        assert client.get(reverse(name, args=[compared.chat_set.pk])).status_code == 404


# ---------- documents and links ----------


def test_the_table_has_every_statistic_and_no_formula(compared: Compared, lead: Client) -> None:
    judged(compared, '=HYPERLINK("https://evil.example")', perfect)
    response = lead.get(league_url(compared, name="api_set_league_csv"), headers={"accept": "text/csv"})
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(text_of(response).removeprefix("\ufeff"))))
    league = document(lead, compared)
    assert not any(cell.startswith("=") for row in rows for cell in row.values())
    (row,) = [
        row for row in rows if row["statistic"] == "difference_of_right_answers" and row["part"] == "overall"
    ]
    pair = league["groups"][0]["pairs"][0]
    assert float(row["estimate"]) == pair["difference"]["value"]
    assert int(row["only_this"]) == pair["only_first"]
    assert {row["part"] for row in rows} == {"overall", "simple", "run"}


def test_names_of_judges_are_escaped(compared: Compared, lead: Client) -> None:
    judged(compared, "<script>alert(1)</script>\u202e", perfect)
    page = text_of(lead.get(league_url(compared)))
    assert "<script>alert(1)" not in page
    assert "\u202e" not in page


def test_reports_and_their_list_link_to_it(compared: Compared, lead: Client) -> None:
    url = reverse("alignment:league", args=[compared.chat_set.pk])
    assert url not in text_of(lead.get(reverse("alignment:report_list")))  # one run is no league
    judged(compared, "other", perfect)
    for page in (
        reverse("alignment:report_list"),
        reverse("alignment:report_run", args=[compared.run.pk]),
        reverse("alignment:report_set", args=[compared.chat_set.pk]),
    ):
        assert f'href="{url}"' in text_of(lead.get(page))
