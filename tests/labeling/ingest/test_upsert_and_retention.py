"""A chat may come again and grow until it was sampled; old chats lose their text, exempt ones never."""

from datetime import UTC, datetime, timedelta

import pytest

from labeling.chats.core.transcript import content_hash
from labeling.ingest.core.retention import COPIES, ChatAge, Exemption, TextCopy, retention_plan
from labeling.ingest.core.upsert import StoredChat, UpsertDecision, upsert_decision

ROLES = ("user", "assistant")
NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)


def said(text: str) -> list[dict[str, str]]:
    """A chat of messages of one letter each."""
    return [{"role": ROLES[n % 2], "content": letter} for n, letter in enumerate(text)]


def decided(stored: str | None, incoming: str, *, sampled: bool = False, text: bool = True) -> UpsertDecision:
    chat = None
    if stored is not None:
        pairs = [(one["role"], one["content"]) for one in said(stored)]
        chat = StoredChat(said(stored) if text else None, content_hash(pairs), sampled)
    return upsert_decision(external_id="c1", stored=chat, incoming=said(incoming))


def test_a_new_chat_is_created() -> None:
    assert decided(None, "abc") == UpsertDecision("create", 3)


@pytest.mark.parametrize("sampled", [False, True])
def test_the_same_chat_changes_nothing_also_after_sampling(sampled: bool) -> None:
    assert decided("ab", "ab", sampled=sampled) == UpsertDecision("same")


def test_a_chat_grows_until_it_was_sampled() -> None:
    assert decided("ab", "abcd") == UpsertDecision("grew", 2)
    refused = decided("ab", "abcd", sampled=True)
    assert refused.outcome == "refused"
    assert refused.reason == (
        "Chat c1 was sampled with 2 messages and cannot grow. Send later messages under another id."
    )


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("incoming", "place"), [("xb", 1), ("ax", 2), ("axc", 2), ("x", 1)])
def test_another_message_at_a_place_is_refused_by_its_number(
    incoming: str, place: int, sampled: bool
) -> None:
    refused = decided("ab", incoming, sampled=sampled)
    assert refused == UpsertDecision(
        "refused", reason=f"Chat c1 holds another message {place}. Send another chat under another id."
    )


def test_an_earlier_state_that_arrives_late_changes_nothing() -> None:
    assert decided("abcd", "abc") == UpsertDecision(
        "same", reason="Chat c1 holds these 3 messages and 1 more."
    )


def test_times_of_messages_do_not_count_but_roles_do() -> None:
    stored = StoredChat(said("a"), content_hash([("user", "a")]), sampled=True)
    timed = [{"role": "user", "content": "a", "created_at": "2026-01-01T00:00:00Z"}]
    assert upsert_decision(external_id="c1", stored=stored, incoming=timed).outcome == "same"
    bot = [{"role": "assistant", "content": "a"}]
    assert upsert_decision(external_id="c1", stored=stored, incoming=bot).outcome == "refused"


def test_a_deleted_text_does_not_come_back() -> None:
    assert decided("ab", "ab", text=False) == UpsertDecision("same")
    for incoming in ("abc", "a", "x"):
        refused = decided("ab", incoming, text=False)
        assert refused.reason == "The text of chat c1 was deleted after its retention."


def test_every_order_of_deliveries_ends_with_the_longest_state() -> None:
    states = ["a", "ab", "abc", "abcd"]
    for first in states:
        held = first
        for incoming in [*states, *reversed(states)]:
            held = incoming if decided(held, incoming).outcome == "grew" else held
        assert held == "abcd"


# ---------- retention ----------


def age(chat: int, days: float, *exempt: Exemption) -> ChatAge:
    return ChatAge(chat, NOW - timedelta(days=days), frozenset(exempt))


def test_a_chat_is_due_on_the_day_its_time_is_over() -> None:
    chats = [age(1, 90.01), age(2, 90), age(3, 89.99)]
    assert retention_plan(chats=chats, copies=[], days=90, now=NOW).chats == {1, 2}


def test_curated_and_anchor_chats_keep_their_text_and_the_plan_says_so() -> None:
    chats = [age(1, 400, "curated"), age(2, 400, "anchor", "curated"), age(3, 1, "anchor"), age(4, 400)]
    plan = retention_plan(chats=chats, copies=[], days=90, now=NOW)
    assert plan.chats == {4}
    assert plan.kept == {1: {"curated"}, 2: {"anchor", "curated"}}


@pytest.mark.parametrize("kind", COPIES)
def test_every_copy_of_a_due_chat_loses_its_text(kind: str) -> None:
    copies = [TextCopy(kind, chat, frozenset({chat})) for chat in (1, 2)]
    plan = retention_plan(chats=[age(1, 100), age(2, 1)], copies=copies, days=90, now=NOW)
    assert plan.copies == (copies[0],)
    assert COPIES[kind].loses


def test_a_file_goes_with_its_first_due_chat_and_a_common_row_with_its_last() -> None:
    both = frozenset({1, 2})
    copies = [TextCopy(kind, 1, both) for kind in COPIES]
    plan = retention_plan(chats=[age(1, 100), age(2, 100, "curated")], copies=copies, days=90, now=NOW)
    assert {copy.kind for copy in plan.copies} == {"batch_file", "import_file", "export_file"}
    plan = retention_plan(chats=[age(1, 100), age(2, 100)], copies=copies, days=90, now=NOW)
    assert plan.copies == tuple(copies)


def test_without_a_time_of_retention_all_text_is_kept() -> None:
    copies = [TextCopy("chat", 1, frozenset({1}))]
    plan = retention_plan(chats=[age(1, 9999)], copies=copies, days=None, now=NOW)
    assert (plan.chats, plan.copies) == (frozenset(), ())


def test_a_copy_of_no_known_chat_is_kept() -> None:
    copies = [TextCopy("chat", 1, frozenset()), TextCopy("export_file", 2, frozenset({9}))]
    assert retention_plan(chats=[age(1, 100)], copies=copies, days=90, now=NOW).copies == ()


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 day, not 0"):
        retention_plan(chats=[], copies=[], days=0, now=NOW)
    with pytest.raises(ValueError, match="Unknown kind of copy: fax"):
        retention_plan(chats=[], copies=[TextCopy("fax", 1, frozenset())], days=1, now=NOW)
    with pytest.raises(ValueError, match="Times must have a zone"):
        retention_plan(chats=[age(1, 2)], copies=[], days=1, now=NOW.replace(tzinfo=None))
