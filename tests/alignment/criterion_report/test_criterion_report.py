"""The report on one criterion: what it shows, to whom, and that it is computed once."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.plan import criterion_plans
from alignment.models.reports import Report
from alignment.statistics.label_needs import Decision
from evaluation.models.runs import Run, Verdict
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Consensus, Label
from labeling.models.people import Rater, Role, User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import (
    HUMAN,
    JUDGE,
    SPLITS,
    Compared,
    add_chats,
    cell,
    cell_url,
    text_of,
    urls,
)
from tests.factories.own_labels import to_label
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite
from tests.factories.rows import analyze, make_criterion, make_user
from tests.factories.stored_reports import forget_documents

pytestmark = pytest.mark.django_db

CELLS = ("tp", "fn", "fp", "tn")
HELD = [n for n in range(1, 41) if SPLITS[n % 4] == "holdout"]


def page_url(compared: Compared, key: str = "polite", query: str = "") -> str:
    return reverse("alignment:criterion_report", args=[compared.run.pk, key]) + query


def document(client: Client, compared: Compared, key: str = "polite", query: str = "") -> Any:
    answer = client.get(reverse("api_criterion_report", args=[compared.run.pk, key]) + query)
    assert answer.status_code == 200
    return answer.json()


def words(client: Client, url: str) -> str:
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", text_of(client.get(url)), flags=re.S)
    return " ".join(text.replace("&nbsp;", " ").split())


def state_probabilities(*, share: float = 0.9) -> None:
    """The judge states this probability of what it answers."""
    Verdict.objects.filter(value=True).update(p_true=share)
    Verdict.objects.filter(value=False).update(p_true=round(1 - share, 4))


# ---------- what it shows ----------


def test_statistics_are_those_of_the_report_and_cells_open_their_chats(
    compared: Compared, lead: Client
) -> None:
    report = lead.get(urls(compared)["api_run"]).json()
    shown = document(lead, compared)
    assert shown["criterion"] == next(row for row in report["criteria"] if row["key"] == "polite")
    assert shown["bootstrap"] == report["bootstrap"]
    page = text_of(lead.get(page_url(compared)))
    for name in CELLS:
        assert f'href="{cell_url(compared, "polite", name)}"' in page


def test_filters_stay_with_the_cells_and_the_way_back(compared: Compared, lead: Client) -> None:
    page = text_of(lead.get(page_url(compared, query="?split=dev&against=rater:cleo")))
    query = "?split=dev&amp;against=rater%3Acleo"
    assert cell_url(compared, "polite", "fn") + query in page
    assert reverse("alignment:report_run", args=[compared.run.pk]) + query in page
    assert document(lead, compared, query="?split=dev")["chats"] == 20


@pytest.mark.parametrize("query", ["", "?against=rater:cleo", "?against=each-rater"])
def test_what_is_missing_before_it_replaces_a_rater_is_what_the_label_plan_says(
    compared: Compared, lead: Client, query: str
) -> None:
    """One rater alone answered most of the False ones, and a tie is no answer of three."""
    alone = [compared.chat(n).pk for n in range(8, 41, 2)]
    Label.objects.filter(rater__name__in=["ben", "cleo"], chat__in=alone).delete()
    consensus_refresh(criterion_ids=[polite().pk], chat_ids=alone)
    Consensus.objects.filter(chat=compared.chat(1)).update(state=Consensus.State.UNRESOLVED)
    plans = criterion_plans(Scope(compared.chat_set, compared.run))
    plan = next(one for one in plans if one.criterion == polite())
    told = next(need.sentence for need in plan.needs if need.decision == Decision.REPLACE)
    assert told == "label 78 more chats with three raters, at least 12 False"
    assert document(lead, compared, query=query)["people"]["stand_in"]["missing"] == told


def test_topics_and_lengths_add_up_to_the_compared_chats(compared: Compared, lead: Client) -> None:
    refund = Topic.objects.create(key="refund", name="Refund <b>")
    for n in range(1, 41):
        chats = Chat.objects.filter(external_id=f"chat-{n}")
        chats.update(message_count=n, **({"topic": refund} if n <= 10 else {}))
    shown = document(lead, compared)
    assert [(row["topic"], row["name"], row["n"]) for row in shown["topics"]] == [
        ("delivery", "Delivery", 30),
        ("refund", "Refund <b>", 10),
    ]
    first_ten = [cell("polite", n) for n in range(1, 11)]
    assert shown["topics"][1]["confusion"] == {
        name: first_ten.count(name) for name in ("tp", "fn", "fp", "tn")
    }
    assert [(row["messages"]["first"], row["messages"]["last"], row["n"]) for row in shown["messages"]] == [
        (1, 4, 4),
        (5, 8, 4),
        (9, 16, 8),
        (17, None, 24),
    ]
    page = words(lead, page_url(compared))
    assert "Refund &lt;b&gt;" in page
    assert "10 chats: a hint only" in page and "17 and more" in page


def test_topics_with_fewer_than_ten_chats_are_folded_into_one_line(compared: Compared, lead: Client) -> None:
    for key, places in (("refund", range(1, 10)), ("returns", range(10, 12))):
        topic = Topic.objects.create(key=key, name=key)
        Chat.objects.filter(external_id__in=[f"chat-{n}" for n in places]).update(topic=topic)
    page = lead.get(page_url(compared))
    assert [row["topic"] for row in page.context["topics"]] == ["delivery"]
    assert [row["topic"] for row in page.context["small_topics"]] == ["refund", "returns"]
    assert "<summary>2 topics with fewer than 10 chats</summary>" in text_of(page)


def test_kappas_paradox_and_an_inverted_answer_are_named_on_top(compared: Compared, lead: Client) -> None:
    for verdict in Verdict.objects.filter(criterion=polite()).select_related("chat"):
        verdict.value = not HUMAN["polite"](int(verdict.chat.external_id.removeprefix("chat-")))
        verdict.save()
    page = text_of(lead.get(page_url(compared)))
    assert "call verdict-on warn" in page
    assert page.index("Is the answer inverted?") < page.index('id="matrix"')


def test_leads_see_each_rater_and_each_pair(compared: Compared, lead: Client) -> None:
    people = document(lead, compared)["people"]
    rows = {row["rater"]: row for row in people["raters"]}
    assert set(rows) == {"anna", "ben", "cleo"}
    # Where cleo differs, anna's and ben's others are of two minds.
    assert (rows["cleo"]["n"], rows["anna"]["n"]) == (40, 27)
    assert rows["anna"]["own"]["value"] == 1.0
    right = [n for n in range(1, 41) if JUDGE["polite"](n) == HUMAN["polite"](n)]
    true = [n for n in range(1, 41) if HUMAN["polite"](n)]
    tpr = len({*right} & {*true}) / len(true)
    tnr = len({*right} - {*true}) / (40 - len(true))
    assert rows["cleo"]["judge"]["value"] == pytest.approx((tpr + tnr) / 2)
    pairs = {tuple(sorted(pair["raters"])): pair for pair in people["pairs"]}
    assert (pairs["anna", "ben"]["n"], pairs["anna", "ben"]["agreement"]) == (40, 1.0)
    assert pairs["anna", "cleo"]["agreement"] == pytest.approx(27 / 40)
    page = lead.get(page_url(compared))
    assert [name for name, _ in page.context["pairs"]] == [row["rater"] for row in people["raters"]]
    for i, (_, line) in enumerate(page.context["pairs"]):
        assert line[i] is None
        assert [pair and pair["n"] for pair in line] == [
            other[i] and other[i]["n"] for _, other in page.context["pairs"]
        ]


def test_of_many_raters_twelve_are_shown_and_the_page_says_how_many_are_not_and_where(
    compared: Compared, lead: Client, author: Client
) -> None:
    given = list(Label.objects.filter(rater__name="anna", criterion=polite())[:9])
    for n in range(197):
        rater = Rater.objects.create(name=f"rater {n}")
        for label in given[: 1 + n % 9]:
            label.pk, label.rater = None, rater
        Label.objects.bulk_create(given[: 1 + n % 9])
    page = lead.get(page_url(compared))
    assert [len(line) for _, line in page.context["pairs"]] == [12] * 12
    told = words(lead, page_url(compared))
    assert "The table shows the 12 raters with the most labels. The decision also counts 188 more." in told
    assert "The table shows the 12 raters with the most labels, and not 188 more." in told
    everybody = reverse("quality:set_overview", args=[compared.chat_set.pk])
    assert f'<a href="{everybody}">Show all raters of this set</a>' in text_of(page)
    assert everybody not in text_of(author.get(page_url(compared)))


def test_one_rater_alone_is_no_ceiling_and_the_page_says_so(compared: Compared, lead: Client) -> None:
    Label.objects.exclude(rater__name="anna").delete()
    assert "one rater only: no human ceiling" in words(lead, page_url(compared))
    Label.objects.all().delete()
    forget_documents()
    assert "no labels on these chats" in words(lead, page_url(compared))


def test_probabilities_are_shown_where_the_judge_states_them(compared: Compared, lead: Client) -> None:
    assert "probabilities calibrated" not in words(lead, page_url(compared))
    state_probabilities()
    forget_documents()
    shown = document(lead, compared)["probabilities"]
    wrong = sum(JUDGE["polite"](n) != HUMAN["polite"](n) for n in range(1, 41))
    assert shown["brier"] == pytest.approx((wrong * 0.81 + (40 - wrong) * 0.01) / 40)
    assert (shown["n"], shown["bins"], shown["ece"]) == (40, [], None)
    assert "A reliability diagram needs 100 verdicts" in words(lead, page_url(compared))
    add_chats(compared, to=120)
    state_probabilities()
    forget_documents()
    page = lead.get(page_url(compared))
    assert [one["n"] for one in page.context["calibration"]["bins"]] == [60, 60]
    assert 'aria-label="Reliability diagram: stated 0.10' in text_of(page)


def test_versions_measured_on_this_set_and_split_are_plotted(compared: Compared, lead: Client) -> None:
    promote(first := a_version(polite()))
    run_of(first, compared.chat_set, wrong=4)
    newest = run_of(a_version(polite()), compared.chat_set, wrong=10)
    url = reverse("api_criterion_report", args=[newest.pk, "polite"]) + "?split=dev"
    found = lead.get(url).json()
    assert [(row["version"], row["split"], row["n"]) for row in found["versions"]] == [
        (2, "dev", 20),
        (1, "dev", 20),
    ]
    assert found["versions_on"] == "calibration, dev"
    page = words(lead, reverse("alignment:criterion_report", args=[newest.pk, "polite"]) + "?split=dev")
    assert "Prompt versions on this set" in page and f"Run {newest.pk}" in page
    assert "Prompt versions" not in words(lead, page_url(compared, "welcome"))


def test_against_each_rater_there_is_no_single_table_and_there_are_no_details(
    compared: Compared, lead: Client
) -> None:
    shown = document(lead, compared, query="?against=each-rater")
    assert (shown["criterion"]["confusion"], shown["topics"], shown["probabilities"]) == (None, None, None)
    assert "choose the consensus or one rater" in shown["undefined"]["topics"]
    assert len(shown["people"]["raters"]) == 3
    assert "there is no single matrix" in words(lead, page_url(compared, query="?against=each-rater"))


def test_against_one_rater_details_follow(compared: Compared, lead: Client) -> None:
    shown = document(lead, compared, query="?against=rater:cleo")
    (topic,) = shown["topics"]
    assert topic["confusion"] == shown["criterion"]["confusion"]


@pytest.mark.parametrize(
    ("key", "query"),
    [
        ("unknown", ""),
        ("polite", "?split=test"),
        ("polite", "?against=rater:nobody"),
        ("polite", "?topic=none"),
        ("polite", "?since=x"),
    ],
)
def test_what_is_not_there_is_not_found(compared: Compared, lead: Client, key: str, query: str) -> None:
    assert lead.get(page_url(compared, key, query)).status_code == 404
    api = reverse("api_criterion_report", args=[compared.run.pk, key]) + query
    assert lead.get(api).status_code == (400 if query else 404)


def test_a_criterion_the_judge_was_not_asked_is_not_found(compared: Compared, lead: Client) -> None:
    make_criterion("brief", rubric=compared.rubric)
    assert lead.get(page_url(compared, "brief")).status_code == 404


# ---------- who sees what ----------


def test_authors_see_raters_in_sum_only(compared: Compared, author: Client, lead: Client) -> None:
    shown = document(author, compared)
    assert (shown["people"]["raters"], shown["people"]["pairs"]) == (None, None)
    assert shown["people"]["total"] == 3
    assert "for leads" in shown["undefined"]["people.raters"]
    page = text_of(author.get(page_url(compared))).split('id="raters"')[1]
    for name in ("anna", "ben", "cleo"):
        assert name not in page
        assert name in text_of(lead.get(page_url(compared))).split('id="raters"')[1]


def test_authors_get_details_without_the_holdout_chats(
    compared: Compared, author: Client, lead: Client
) -> None:
    state_probabilities()
    shown = document(author, compared)
    assert (shown["chats"], shown["parts_on"]) == (40, 30)
    open_chats = [cell("polite", n) for n in range(1, 41) if n not in HELD]
    (topic,) = shown["topics"]
    assert topic["confusion"] == {name: open_chats.count(name) for name in CELLS}
    assert sum(row["n"] for row in shown["messages"]) == shown["probabilities"]["n"] == 30
    assert "Counted on 30 of 40 chats, without holdout chats." in words(author, page_url(compared))
    assert document(lead, compared)["parts_on"] == 40
    assert document(author, compared, query="?split=holdout")["topics"] == []


def test_answers_on_holdout_chats_change_no_details_of_an_author(compared: Compared, author: Client) -> None:
    state_probabilities()
    names = ("topics", "messages", "people", "probabilities")
    before = document(author, compared)
    held = Chat.objects.filter(external_id__in=[f"chat-{n}" for n in HELD])
    Verdict.objects.filter(chat__in=held).update(value=True, p_true=0.3)
    Consensus.objects.filter(chat__in=held).update(state="false")
    Label.objects.filter(chat__in=held).update(value=False)
    forget_documents()
    after = document(author, compared)
    assert after["criterion"] != before["criterion"]
    assert {name: after[name] for name in names} == {name: before[name] for name in names}


def test_a_rater_gets_no_details_while_chats_wait_for_their_labels(compared: Compared) -> None:
    both = Client()
    both.force_login(make_user("both", Role.LEAD, Role.RATER))
    assert document(both, compared)["topics"] is not None
    to_label(compared, 5)
    shown = document(both, compared)
    for name in ("topics", "messages", "people", "probabilities"):
        assert shown[name] is None
        assert "labelled your own chats" in shown["undefined"][name]
    assert "Opens once you have labelled your own chats" in words(both, page_url(compared))


def test_a_rater_finds_nothing(compared: Compared, client: Client, rater_user: User) -> None:
    client.force_login(rater_user)
    assert client.get(page_url(compared)).status_code == 404


# ---------- computed once ----------


def test_details_are_computed_once_for_the_same_answers(compared: Compared, lead: Client) -> None:
    first = document(lead, compared)
    Verdict.objects.filter(criterion=polite()).update(value=True)  # which never happens to a finished run
    assert document(lead, compared) == first
    Criterion.objects.filter(key="polite").update(labels_seq=99)
    assert document(lead, compared)["topics"] != first["topics"]


def test_a_run_that_goes_on_is_not_kept(compared: Compared, lead: Client) -> None:
    Run.objects.update(state=Run.State.RUNNING, finished_at=None)
    document(lead, compared)
    assert not Report.objects.filter(kind=Report.Kind.CRITERION).exists()


def test_a_renamed_rater_is_listed_under_the_new_name(compared: Compared, lead: Client) -> None:
    document(lead, compared)
    Rater.objects.filter(name="anna").update(name="Anna B.")
    assert "Anna B." in {row["rater"] for row in document(lead, compared)["people"]["raters"]}


@pytest.mark.heavy
def test_queries_depend_on_neither_chats_nor_raters_nor_topics(compared: Compared, lead: Client) -> None:
    state_probabilities()
    lead.get(page_url(compared))
    found = []
    for chats in (80, 800):
        add_chats(compared, to=chats)
        for name in range(chats // 40):
            topic = Topic.objects.create(key=f"{chats}-{name}", name=f"Topic {name}")
            Chat.objects.filter(pk__in=Chat.objects.order_by("?")[:5]).update(topic=topic)
            rater = Rater.objects.create(name=f"{chats}-{name}")
            taken = Label.objects.filter(rater__name="anna", criterion=polite()).order_by("?")[:3]
            Label.objects.filter(pk__in=[row.pk for row in taken]).update(rater=rater)
        analyze()
        counts = []
        for what in ("computed", "stored"):
            if what == "computed":
                forget_documents()
            with CaptureQueriesContext(connection) as queries:
                assert lead.get(page_url(compared)).status_code == 200
            counts.append(len(queries))
        found.append(counts)
    assert found[0] == found[1]
