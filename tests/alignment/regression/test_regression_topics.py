"""Changes of a test by topic: each topic for leads, no row with few holdout chats for authors."""

import re

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from alignment.comparison.core.disclosure_limit import MINIMUM_HOLDOUT_CHATS
from alignment.regression.core import PairedVerdicts
from alignment.regression.core.topics import changes_by_topic
from labeling.models.chats import Chat, Topic
from labeling.models.labels import Consensus
from labeling.models.people import Role
from tests.factories.compared_runs import Compared, add_chats, text_of
from tests.factories.regression_tests import DecidedTest, make_tested
from tests.factories.rows import make_user

# ---------- the counts ----------


def paired(chats: int) -> PairedVerdicts:
    """Chats of which every third is broken and every fourth has no label."""
    human = np.where(np.arange(chats) % 4 == 3, 4, 0).astype(np.int8)
    new = np.where(np.arange(chats) % 3 == 2, 1, 0).astype(np.int8)
    return PairedVerdicts("polite", "simple", human, np.zeros(chats, dtype=np.int8), new)


def test_the_topics_together_are_the_whole_table() -> None:
    verdicts, topics = paired(90), np.arange(90) % 4
    rows = changes_by_topic(verdicts, topics)
    assert sum(row.table.n for row in rows) == verdicts.table().n
    assert sum(row.table.second for row in rows) == verdicts.table().second
    assert [row.table.n for row in rows] == sorted((row.table.n for row in rows), reverse=True)


def test_few_chats_have_counts_and_no_share() -> None:
    rows = changes_by_topic(paired(40), np.array([1] * 30 + [2] * 10))
    many, few = rows
    assert many.difference.value is not None
    assert (few.table.n < MINIMUM_HOLDOUT_CHATS, few.difference.value) == (True, None)


held_and_topics = st.lists(
    st.tuples(st.booleans(), st.integers(1, 6), st.sampled_from([0, 1, 4])), min_size=1, max_size=80
)


@given(held_and_topics)
def test_no_row_and_no_difference_of_rows_counts_from_one_to_nine_held_out_chats(
    chats: list[tuple[bool, int, int]],
) -> None:
    held = np.array([one for one, _, _ in chats])
    topics = np.array([topic for _, topic, _ in chats])
    human = np.array([code for _, _, code in chats], dtype=np.int8)
    verdicts = PairedVerdicts("polite", "simple", human, human % 2, human % 2)
    rows = changes_by_topic(verdicts, topics, held=held)
    counted = [int((held & verdicts.compared & np.isin(topics, row.topics)).sum()) for row in rows]
    assert not [n for n in counted if 0 < n < MINIMUM_HOLDOUT_CHATS]
    whole = int((held & verdicts.compared).sum())
    # All but a few holdout chats are shown in total, so that the missing ones disclose nothing either.
    assert sum(counted) == (0 if whole < MINIMUM_HOLDOUT_CHATS else whole)
    if whole >= MINIMUM_HOLDOUT_CHATS:
        assert sum(row.table.n for row in rows) == verdicts.table().n


# ---------- the page's part ----------


@pytest.fixture
def tested(compared: Compared) -> DecidedTest:
    """Holdout chats 4, 8 and 12 have their own topic, chats 28 to 40 share one with others."""
    odd, late = (Topic.objects.create(key=key, name=f"{key} ones") for key in ("odd", "late"))
    Chat.objects.filter(external_id__in=["chat-4", "chat-8", "chat-12"]).update(topic=odd)
    Chat.objects.filter(external_id__in=[f"chat-{n}" for n in range(28, 41)]).update(topic=late)
    return make_tested(compared)


def words(client: Client, url: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text_of(client.get(url))).split())


@pytest.mark.django_db
def test_a_lead_sees_every_topic_with_links_to_its_chats(tested: DecidedTest, lead: Client) -> None:
    answer = lead.get(tested.topics_url())
    assert [row.key for row in answer.context["rows"]] == ["delivery", "late", "odd"]
    assert "odd ones 3 0 0 –" in words(lead, tested.topics_url())
    late = [n for n in tested.of("fixed") if n >= 28]
    url = tested.cell_url("fixed", "?topic=late")
    assert f'<a href="{url}">{len(late)}</a>' in text_of(answer)
    assert [item.chat_id for item in lead.get(url).context["items"]] == [f"chat-{n}" for n in late]


@pytest.mark.django_db
def test_an_author_sees_topics_of_few_held_out_chats_together_and_without_their_names(
    tested: DecidedTest, author: Client
) -> None:
    """Delivery has 3 of them compared, late 4, odd 3: none may stand alone, all together are ten."""
    answer = author.get(tested.topics_url())
    (row,) = answer.context["rows"]
    assert (row.key, row.name, row.table.n) == ("", "3 other topics", 39)
    assert "odd ones" not in text_of(answer)
    assert "are counted together" in text_of(answer)


@pytest.mark.django_db
def test_an_author_sees_no_topic_where_too_few_are_held_out_at_all(
    tested: DecidedTest, author: Client, lead: Client
) -> None:
    Consensus.objects.filter(chat=tested.compared.chat(16), criterion__key="polite").delete()
    assert author.get(tested.topics_url()).context["rows"] == []
    assert "only leads see topics" in words(author, tested.topics_url())
    assert len(lead.get(tested.topics_url()).context["rows"]) == 3


@pytest.mark.django_db
def test_of_a_test_on_dev_an_author_sees_every_topic(compared: Compared, author: Client) -> None:
    tested = make_tested(compared, split="dev")
    assert [row.name for row in author.get(tested.topics_url()).context["rows"]] == ["Delivery"]


@pytest.mark.django_db
def test_nothing_is_found_by_raters_or_for_criteria_that_were_not_tested(
    tested: DecidedTest, lead: Client
) -> None:
    for key in ("welcome", "odd", ""):
        assert lead.get(tested.topics_url(key)).status_code == 404
    rater = Client()
    rater.force_login(make_user("rita", Role.RATER))
    assert rater.get(tested.topics_url()).status_code == 404


@pytest.mark.heavy
@pytest.mark.django_db
def test_the_queries_grow_with_neither_chats_nor_topics(compared: Compared, author: Client) -> None:
    counts = []
    for to in (40, 90):
        add_chats(compared, to=to)
        topic = Topic.objects.create(key=f"t-{to}", name=f"T {to}")
        Chat.objects.filter(external_id__endswith="2").update(topic=topic)
        tested = make_tested(compared)
        with CaptureQueriesContext(connection) as queries:
            author.get(tested.topics_url())
        counts.append(len(queries))
    assert counts[0] == counts[1]
