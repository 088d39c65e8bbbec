"""Rows written in bulk come back as the ORM would have stored them, on both databases."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from evaluation.gateway.rows import rows_add, rows_insert, rows_update
from evaluation.models.runs import ModelCall, TextBlock

pytestmark = pytest.mark.django_db
FIELDS = (
    *("key", "endpoint", "model", "role", "settings", "parts", "sample", "state", "error", "reply"),
    *("finish_reason", "logprobs", "prompt_tokens", "cost_usd", "answered_at"),
)
HOSTILE = 'It\'s 100 % "quoted" \\ $1 %s {}\n\t– 日本 🙂'
VALUES: tuple[Any, ...] = (
    *("http://x/v1", "judge-model", "direct", {"top_p": None, "stop": ["%s"]}, [["user", ["ab"]]], 3),
    *("answered", "", HOSTILE, "stop", None, 17),
    *(Decimal("123.000000000001"), datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)),
)


def insert(*keys: str, new_only: bool = False) -> dict[str, int]:
    rows = [(key, *VALUES) for key in keys]
    return dict(rows_insert(ModelCall, FIELDS, rows, new_only=new_only, returning=("key", "id")))


def test_values_of_every_type_come_back_as_they_were_given() -> None:
    """Text that looks like SQL, nested JSON, NULL, the 15 digits that SQLite keeps and microseconds."""
    ids = insert("a", "b")
    stored = ModelCall.objects.values_list(*FIELDS)
    assert [stored.get(pk=ids[key]) for key in ("a", "b")] == [("a", *VALUES), ("b", *VALUES)]
    assert ModelCall.objects.filter(logprobs__isnull=True, latency_ms=None).count() == 2


def test_of_rows_that_exist_only_the_new_are_inserted_and_returned() -> None:
    before = insert("a")
    after = insert("a", "b", new_only=True)
    assert list(after) == ["b"]
    assert ModelCall.objects.get(key="a").pk == before["a"]
    with pytest.raises(IntegrityError), transaction.atomic():
        insert("a")


def test_more_rows_than_one_statement_takes_are_all_inserted() -> None:
    """SQLite limits the values of a statement."""
    rows = [(f"{number:064}", "text") for number in range(20_000)]
    rows_insert(TextBlock, ("hash", "text"), rows)
    assert TextBlock.objects.count() == len(rows)


def test_no_rows_are_no_statement() -> None:
    assert insert() == {}
    assert rows_update(ModelCall, ("state",), []) == 0


def test_an_update_sets_each_row_to_its_own_values_and_counts_them() -> None:
    ids = insert("a", "b", "c")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [(HOSTILE, None, {"a": [1]}, moment, ids["a"]), ("", Decimal("0.5"), None, None, ids["b"])]
    assert rows_update(ModelCall, ("reply", "cost_usd", "settings", "answered_at"), rows[:1]) == 1
    assert rows_update(ModelCall, ("reply", "cost_usd", "logprobs", "answered_at"), rows[1:]) == 1
    a, b, c = ModelCall.objects.order_by("key")
    assert (a.reply, a.cost_usd, a.settings, a.answered_at) == (HOSTILE, None, {"a": [1]}, moment)
    assert (b.reply, b.cost_usd, b.logprobs, b.answered_at) == ("", Decimal("0.5"), None, None)
    assert (c.reply, c.cost_usd) == (HOSTILE, VALUES[-2])


def test_an_update_leaves_rows_in_a_guarded_state() -> None:
    ids = insert("a", "b")
    ModelCall.objects.filter(key="a").update(state="claimed")
    rows = [("failed", pk) for pk in ids.values()]
    assert rows_update(ModelCall, ("state",), rows, unless=("answered", "cut_off")) == 1
    assert list(ModelCall.objects.order_by("key").values_list("state", flat=True)) == ["failed", "answered"]


def test_adding_counts_on_from_what_is_stored() -> None:
    ids = insert("a", "b")
    rows_add(ModelCall, ("prompt_tokens", "sample"), (5, 1, ids["a"]))
    counted = ModelCall.objects.order_by("key").values_list("prompt_tokens", "sample")
    assert list(counted) == [(22, 4), (17, 3)]
