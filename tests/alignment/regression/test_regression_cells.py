"""The chats behind a cell of the paired table: exactly those counted, for whom may read them."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.models.regressions import RegressionTest
from alignment.regression.core import CELLS
from evaluation.models.runs import Verdict
from labeling.models.chats import Chat, ChatSetMember, Topic
from labeling.models.labels import Consensus
from labeling.models.people import Role
from tests.factories.compared_runs import HUMAN, JUDGE, Compared, add_chats, text_of
from tests.factories.regression_tests import DecidedTest, candidate_says, cell_of, decided, make_tested
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def tested(compared: Compared) -> DecidedTest:
    return make_tested(compared)


def listed(client: Client, url: str) -> list[int]:
    """The positions of the chats that a page lists, in its order."""
    return [int(item.chat_id.removeprefix("chat-")) for item in client.get(url).context["items"]]


def words(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text_of(answer)).split())


def stored(test: RegressionTest, cell: str) -> int:
    assert test.body is not None
    (found,) = test.body["criteria"]
    return int(found["left_out" if cell == "no_verdict" else cell])


# ---------- which chats ----------


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_lists_its_chats_as_many_as_the_gate_counted(
    tested: DecidedTest, lead: Client, cell: str
) -> None:
    assert listed(lead, tested.cell_url(cell)) == tested.of(cell)
    assert len(tested.of(cell)) == stored(tested.test, cell) > 0
    page = words(lead.get(tested.cell_url(cell)))
    assert f"{len(tested.of(cell))} chat" in page
    assert "have changed" not in page
    assert "Sign out" in page


def test_each_row_has_the_answers_of_raters_champion_and_candidate(tested: DecidedTest, lead: Client) -> None:
    for item in lead.get(tested.cell_url("broken")).context["items"]:
        n = int(item.chat_id.removeprefix("chat-"))
        told = item.human, item.champion.value, item.candidate.value
        assert told == (HUMAN["polite"](n), JUDGE["polite"](n), candidate_says(n))
    (failed,) = lead.get(tested.cell_url("no_verdict")).context["items"]
    assert (failed.candidate.state, failed.candidate.value) == ("failed", None)


def test_labels_that_changed_since_are_said_and_the_answer_stays(tested: DecidedTest, lead: Client) -> None:
    n, result = tested.of("still_right")[0], tested.test.result
    turned = "false" if HUMAN["polite"](n) else "true"
    Consensus.objects.filter(chat=tested.compared.chat(n), criterion__key="polite").update(state=turned)
    page = words(lead.get(tested.cell_url("still_wrong")))
    assert listed(lead, tested.cell_url("still_wrong")) == sorted([n, *tested.of("still_wrong")])
    assert "the gate counted 1 chat here, now there are 2" in page
    tested.test.refresh_from_db()
    assert (tested.test.result, stored(tested.test, "still_wrong")) == (result, 1)


def test_what_a_second_run_answers_otherwise_is_marked(compared: Compared, lead: Client) -> None:
    tested = make_tested(
        compared, confirm=lambda n: candidate_says(n) is not (n == 7), noise=lambda n: JUDGE["polite"](n)
    )
    rows = {item.chat_id: item for item in lead.get(tested.cell_url("broken")).context["items"]}
    assert [name for name, row in rows.items() if row.candidate.unstable] == ["chat-7"]
    assert not any(row.champion.unstable for row in rows.values())
    assert text_of(lead.get(tested.cell_url("broken"))).count("tag unstable") == 1


def test_a_criterion_that_only_the_champion_was_asked_has_no_cells(tested: DecidedTest, lead: Client) -> None:
    """A baseline of another day may know criteria that are asked no more."""
    other = Verdict.objects.filter(run=tested.compared.run, criterion__key="welcome").first()
    assert other is not None
    Verdict.objects.filter(pk=other.pk).update(run=tested.test.baseline_run)
    decided(tested.test)
    assert tested.test.body is not None
    assert [found["key"] for found in tested.test.body["criteria"]] == ["polite"]
    assert lead.get(tested.cell_url("fixed", key="welcome")).status_code == 404


# ---------- narrowing ----------


def test_topic_split_and_id_narrow_the_list(tested: DecidedTest, lead: Client) -> None:
    topic = Topic.objects.create(key="refund", name="Refund")
    Chat.objects.filter(external_id__in=["chat-5", "chat-10"]).update(topic=topic)
    url = tested.cell_url
    assert listed(lead, url("fixed", "?topic=refund")) == [5, 10]
    assert listed(lead, url("fixed", "?split=holdout")) == tested.of("fixed", held=True)
    assert listed(lead, url("fixed", "?q=CHAT-1")) == [10, 15]
    assert listed(lead, url("fixed", "?topic=refund&split=dev&q=5")) == [5]
    page = words(lead.get(url("fixed", "?topic=refund")))
    assert f"2 of {len(tested.of('fixed'))} chats" in page
    assert "No chat of this cell matches the filter" in words(lead.get(url("fixed", "?q=none")))


def test_the_way_to_a_chat_keeps_cell_and_filter(tested: DecidedTest, lead: Client) -> None:
    (item, *_) = lead.get(tested.cell_url("fixed", "?split=dev")).context["items"]
    assert item.url == tested.chat_url(5, "?cell=fixed&split=dev")
    assert lead.get(item.url).status_code == 200


def test_a_long_cell_has_pages(compared: Compared, lead: Client) -> None:
    add_chats(compared, to=90)
    tested = make_tested(compared)
    first, second = (listed(lead, tested.cell_url("still_right", f"?page={n}")) for n in (1, 2))
    assert (len(first), first + second) == (50, tested.of("still_right"))


@pytest.mark.heavy
def test_the_queries_grow_with_neither_chats_nor_labels(compared: Compared, lead: Client) -> None:
    counts = []
    for to in (40, 90):
        add_chats(compared, to=to)
        tested = make_tested(compared)
        with CaptureQueriesContext(connection) as queries:
            lead.get(tested.cell_url("still_right"))
        counts.append(len(queries))
    assert counts[0] == counts[1]


# ---------- who reads what ----------


def test_an_author_reads_the_chats_that_are_not_held_out_and_the_number_of_the_others(
    tested: DecidedTest, author: Client
) -> None:
    held = tested.of("fixed", held=True)
    answer = author.get(tested.cell_url("fixed"))
    assert listed(author, tested.cell_url("fixed")) == tested.of("fixed", held=False)
    assert f"{len(held)} of these chats are in the holdout. Only leads can open them" in words(answer)
    for n in held:
        assert f"chat-{n}" not in text_of(answer)


def test_of_a_test_on_the_holdout_an_author_reads_numbers_alone(compared: Compared, author: Client) -> None:
    tested = make_tested(compared, split="holdout")
    page = author.get(tested.cell_url("fixed"))
    assert page.context["items"] == []
    assert f"{len(tested.of('fixed'))} chats" in words(page)
    assert "No visible chats" in words(page)


def test_a_filter_discloses_no_holdout_chats_to_an_author(tested: DecidedTest, author: Client) -> None:
    """Neither does their number follow it, nor is a topic offered that is theirs alone."""
    Chat.objects.filter(external_id="chat-20").update(topic=Topic.objects.create(key="odd", name="Odd one"))
    plain = author.get(tested.cell_url("fixed"))
    assert "Odd one" not in text_of(plain)
    for query in ("?topic=odd", "?q=chat-20", "?split=holdout"):
        answer = author.get(tested.cell_url("fixed", query))
        assert (answer.context["items"], answer.context["hidden"]) == ([], plain.context["hidden"])


def test_with_a_small_holdout_an_author_does_not_see_the_counts_of_cells(
    tested: DecidedTest, author: Client, lead: Client
) -> None:
    few = [tested.compared.chat(n) for n in (8, 20, 40)]
    ChatSetMember.objects.filter(split="holdout").exclude(chat__in=few).update(split="dev")
    page = words(author.get(tested.cell_url("fixed")))
    assert listed(author, tested.cell_url("fixed")) == [5, 10, 15, 25, 30]
    assert "5 chats that you can see Fewer than 10 holdout chats" in page
    for number in ("7 chats", "in the holdout", "2 of these"):
        assert number not in page
    assert f"{len(tested.of('fixed'))} chats" in words(lead.get(tested.cell_url("fixed")))


def test_raters_and_addresses_without_sense_find_nothing(
    tested: DecidedTest, lead: Client, client: Client
) -> None:
    undecided = make_tested(tested.compared)
    RegressionTest.objects.filter(pk=undecided.test.pk).update(body=None, state="running", result="")
    for url in (
        tested.cell_url("odd"),
        tested.cell_url("fixed", key="odd"),
        tested.cell_url("fixed", key="welcome"),
        undecided.cell_url("fixed"),
        reverse("alignment:regression_cell", args=[999999, "polite", "fixed"]),
    ):
        assert lead.get(url).status_code == 404, url
    rater = Client()
    rater.force_login(make_user("rita", Role.RATER))
    assert rater.get(tested.cell_url("fixed")).status_code == 404


def test_every_chat_with_a_human_answer_is_in_one_cell(tested: DecidedTest, lead: Client) -> None:
    found = [n for cell in CELLS for n in listed(lead, tested.cell_url(cell))]
    assert sorted(found) == list(tested.places)
    assert {cell_of(n) for n in found} == set(CELLS)
