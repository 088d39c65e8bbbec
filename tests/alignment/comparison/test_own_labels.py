"""Users who also label learn nothing from lists and counts about chats that they still have to label."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from labeling.jobs.services import job_close
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.labels import Consensus
from labeling.models.people import Role
from tests.factories.compared_runs import Compared, cell_url, urls
from tests.factories.own_labels import to_label
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite
from tests.factories.regression_tests import DecidedTest, make_tested
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

TOLD = "still yours to label"


@pytest.fixture
def tested(compared: Compared) -> DecidedTest:
    return make_tested(compared)


@pytest.fixture
def both() -> Client:
    """A lead who labels."""
    client = Client()
    client.force_login(make_user("both", Role.LEAD, Role.RATER))
    return client


def listed(client: Client, url: str) -> list[int]:
    return [int(item.chat_id.removeprefix("chat-")) for item in client.get(url).context["items"]]


def lists(tested: DecidedTest, cell: str) -> tuple[str, ...]:
    """The lists that the chat at place 5 is in: the champion errs on it, the candidate does not."""
    compared = tested.compared
    return (tested.cell_url(cell), cell_url(compared, "polite", "fn"), urls(compared)["disagreements"])


def test_the_last_chat_is_not_disclosed_by_counts_minus_lists(
    tested: DecidedTest, both: Client, lead: Client
) -> None:
    to_label(tested.compared, 5)
    for url in lists(tested, "fixed"):
        assert 5 in listed(lead, url)
        assert listed(both, url) == []
        assert f"1 of the chats judged here is {TOLD}" in words_of(both.get(url))
        assert TOLD not in words_of(lead.get(url))


def test_no_page_of_a_list_says_which_cell_it_is_in(tested: DecidedTest, both: Client) -> None:
    before = {cell: words_of(both.get(tested.cell_url(cell))) for cell in ("fixed", "still_wrong")}
    to_label(tested.compared, 5)
    after = {cell: words_of(both.get(tested.cell_url(cell))) for cell in before}
    heads = {cell: page.split("Narrow")[-1].split("people.")[-1] for cell, page in after.items()}
    assert before["fixed"] != before["still_wrong"]
    for page in heads.values():
        assert "of these chats" not in page
        assert "No visible chats" in page


def test_of_ten_in_each_split_lists_exclude_them_and_give_their_number_only(
    tested: DecidedTest, both: Client
) -> None:
    own = [n for n in range(1, 41) if n % 4]  # 20 of dev and 10 of train
    to_label(tested.compared, *own)
    for cell in ("fixed", "still_right"):
        assert set(listed(both, tested.cell_url(cell))) == set(tested.of(cell)) - set(own)
        page = both.get(tested.cell_url(cell))
        assert (page.context["total"], page.context["hidden"]) == (None, 0)
        assert f"30 of the chats judged here are {TOLD}; lists leave them out" in words_of(page)
    page = both.get(urls(tested.compared)["disagreements"])
    assert page.context["hidden"] == 0
    assert f"30 of the chats judged here are {TOLD}" in words_of(page)


def test_one_of_a_split_closes_the_lists_however_many_there_are_elsewhere(
    tested: DecidedTest, both: Client
) -> None:
    to_label(tested.compared, *[n for n in range(1, 41) if n % 4 in (1, 2)], 3)
    assert listed(both, tested.cell_url("fixed")) == []


def test_what_nobody_has_answered_closes_nothing(tested: DecidedTest, both: Client, lead: Client) -> None:
    to_label(tested.compared, 5)
    Consensus.objects.filter(chat=tested.compared.chat(5)).delete()
    for url in lists(tested, "fixed"):
        assert listed(both, url) == listed(lead, url) != []
        assert TOLD not in words_of(both.get(url))


def test_lists_open_once_nothing_is_left_to_label(tested: DecidedTest, both: Client, lead: Client) -> None:
    job = to_label(tested.compared, 5)
    job_close(job=job, by=None)
    for url in lists(tested, "fixed"):
        assert listed(both, url) == listed(lead, url)


def test_a_topic_of_which_one_chat_is_left_is_not_counted_alone(
    tested: DecidedTest, both: Client, lead: Client
) -> None:
    Chat.objects.filter(external_id="chat-5").update(topic=Topic.objects.create(key="odd", name="Odd one"))
    assert "Odd one" in words_of(both.get(tested.topics_url()))
    to_label(tested.compared, 5)
    assert "Odd one" not in words_of(both.get(tested.topics_url()))
    assert "Odd one" in words_of(lead.get(tested.topics_url()))


def test_disagreements_follow(compared: Compared, both: Client) -> None:
    promote(version := a_version(polite()))
    run_of(version, compared.chat_set, wrong=5)
    to_label(compared, 5)
    for split in both.get("/criteria/polite/").context["disagreements"]:
        assert (split.chats, split.hidden, split.count > 0) == ((), 0, True)
    assert TOLD in words_of(both.get("/criteria/polite/"))


def test_programs_get_no_list_either(compared: Compared, both: Client, lead: Client) -> None:
    to_label(compared, 5)
    url = urls(compared)["api_run"]
    assert both.get(url).json()["disagreements"] == []
    assert lead.get(url).json()["disagreements"] != []


@pytest.mark.heavy
def test_the_queries_do_not_grow_with_the_chats_left(tested: DecidedTest, both: Client) -> None:
    found: list[int] = []
    for places in ([n for n in range(1, 41) if n % 4], range(1, 41)):
        ChatSet.objects.filter(name="more").update(name=f"more {len(found)}")
        to_label(tested.compared, *places)
        with CaptureQueriesContext(connection) as queries:
            both.get(tested.cell_url("broken", "?q=nothing"))
        found.append(len(queries))
    assert found[0] == found[1]
