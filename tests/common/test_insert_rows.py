"""Rows inserted as they are: both databases store the same values and keep the same promises."""

from datetime import UTC, datetime
from itertools import product

import pytest
from django.db import IntegrityError, transaction

from common.sql import ROWS_AT_ONCE, insert_rows
from labeling.models.chats import Chat, Topic

pytestmark = pytest.mark.django_db

ODD = ("", "\\N", "\\.", "a\tb", "a\nb\r\n", "\\t", 'say "so"', "it's", "{1,2}", "NULL", "😀 é", "%s", "\\")


def test_texts_arrive_as_they_are() -> None:
    insert_rows(Topic, ["key", "name"], [(f"{n}{text}", text) for n, text in enumerate(ODD)])
    found = Topic.objects.exclude(key="unknown").order_by("pk").values_list("key", "name")
    assert list(found) == [(f"{n}{text}", text) for n, text in enumerate(ODD)]


def test_json_numbers_times_and_nulls_arrive_as_they_are() -> None:
    topic = Topic.objects.create(key="refund", name="Refund")
    metadata = {text: [text, None, 1, 2.5, True, {"deep": text}] for text in ODD}
    names = ["external_id", "topic", "messages", "content_hash", "near_hash", "message_count", "char_count"]
    fields = [*names, "metadata", "redactions", "source", "experiment", "variant", "unit_id", "cluster"]
    row = ("c", topic.pk, [{"n": 1, "content": "a\tb\\"}], "", -(2**62), 1, 4, metadata, [], *[""] * 5)
    more = ["topic_by", "origin", "created_at", "started_at", "last_at"]
    at = datetime(2026, 11, 2, 3, 4, 5, 678901, UTC)
    insert_rows(Chat, [*fields, *more], [(*row, "", "api", at, None, at)])
    chat = Chat.objects.get()
    assert (chat.metadata, chat.messages) == (metadata, [{"n": 1, "content": "a\tb\\"}])
    assert (chat.near_hash, chat.topic, chat.started_at, chat.last_at) == (-(2**62), topic, None, at)


def test_more_rows_than_a_batch_keep_their_order() -> None:
    wanted = [f"{a}-{b}" for a, b in product(range(ROWS_AT_ONCE // 10), range(11))]
    insert_rows(Topic, ["key", "name"], ((key, key) for key in wanted))
    assert [row.key for row in Topic.objects.exclude(key="unknown").order_by("pk")] == wanted


def test_a_row_that_breaks_a_rule_raises_the_error_of_django_and_stores_none() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_rows(Topic, ["key", "name"], [("one", "One"), ("one", "Again")])
    assert not Topic.objects.filter(key="one").exists()
