"""The data behind a report's page is computed once, and again as soon as an input has changed."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from alignment.comparison.queries.cached_documents import pin_of
from alignment.comparison.queries.requested_scope import requested_scope, visible_scope
from alignment.comparison.queries.scope import Scope
from alignment.comparison.queries.scope_summary import scope_summary
from evaluation.models.runs import Run
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split, Topic
from labeling.models.labels import Consensus
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion, CriterionVersion
from tests.factories.compared_runs import SPLITS, Compared, text_of, urls
from tests.factories.rows import make_chat, make_set

pytestmark = pytest.mark.django_db

READ_ONCE = ("labeling_label", "labeling_consensus", "evaluation_verdict")


def scope_of(compared: Compared, **narrower: Any) -> Scope:
    """With all rows as they are in the database now."""
    run = Run.objects.select_related("judge", "chat_set").get(pk=compared.run.pk)
    return Scope(run.chat_set, run, **narrower)


def moves(compared: Compared, change: Callable[[], object], **narrower: Any) -> bool:
    """Whether the pin is another one after the change."""
    before = pin_of(scope_of(compared, **narrower))
    change()
    return pin_of(scope_of(compared, **narrower)) != before


def hold_out(*places: int, compared: Compared) -> None:
    """In another set."""
    make_set(compared.rubric, *(compared.chat(n) for n in places), name="other", split="holdout")


# ---------- what moves a pin ----------


def test_it_stays_while_nothing_happens(compared: Compared) -> None:
    assert not moves(compared, lambda: None)
    assert not moves(compared, lambda: None, topic="delivery", since=date(2026, 1, 1))


def test_answers_texts_and_the_run_move_it(compared: Compared) -> None:
    polite = Criterion.objects.filter(key="polite")
    assert moves(compared, lambda: polite.update(labels_seq=99))
    text = {"question": "?", "definition": "", "content_hash": "2" * 64}
    assert moves(compared, lambda: CriterionVersion.objects.create(criterion=polite.get(), number=2, **text))
    assert moves(compared, lambda: Run.objects.update(finished_at=timezone.now()))
    pins = {pin_of(scope_of(compared, split=split)) for split in ("", *Split.values)}
    assert len(pins) == 4


def test_a_finished_run_keeps_its_chats_whatever_becomes_of_the_sets(compared: Compared) -> None:
    def change() -> None:
        ChatSetMember.objects.filter(chat_set=compared.chat_set, split="dev").update(split="holdout")
        ChatSetMember.objects.filter(chat=compared.chat(1)).delete()
        hold_out(2, 3, compared=compared)
        Chat.objects.update(topic=Topic.objects.create(key="other", name="Other"))

    assert not moves(compared, change)
    assert not moves(compared, lambda: None, split="dev")


def test_no_chat_is_read_to_find_a_finished_runs_pin(compared: Compared) -> None:
    scope = scope_of(compared)
    with CaptureQueriesContext(connection) as queries:
        pin_of(scope)
    assert not any("runchat" in query["sql"] for query in queries)


def test_a_chat_of_another_topic_or_day_moves_the_pin_of_the_part(compared: Compared) -> None:
    chat = Chat.objects.filter(pk=compared.chat(1).pk)
    other = Topic.objects.create(key="refund", name="Refund")
    assert moves(compared, lambda: chat.update(topic=other), topic="delivery")
    day = datetime(2026, 5, 1, tzinfo=UTC)
    assert moves(compared, lambda: chat.update(started_at=day), until=date(2026, 5, 1))


def test_a_mark_of_holdout_in_any_set_moves_the_pin_of_what_leaves_them_out(compared: Compared) -> None:
    without = frozenset(Split.values)
    assert moves(compared, lambda: hold_out(1, compared=compared), without_holdout=without)


def test_members_and_their_splits_move_the_pin_of_a_set(compared: Compared) -> None:
    def pin(split: str = "") -> str:
        return pin_of(Scope(ChatSet.objects.get(pk=compared.chat_set.pk), None, split))

    whole, dev = pin(), pin("dev")
    ChatSetMember.objects.filter(chat=compared.chat(1)).update(split="train")
    assert SPLITS[1] == "dev"
    assert (pin() == whole, pin("dev") == dev) == (True, False)
    ChatSetMember.objects.create(chat_set=compared.chat_set, chat=make_chat("one more"), position=99)
    assert pin() != whole


# ---------- what pages know of all chats and labels ----------


@pytest.mark.parametrize("name", ["report", "set", "disagreements", "cell", "gaps"])
@pytest.mark.parametrize("role", ["lead", "author"])
def test_a_page_opened_again_reads_no_label_consensus_or_verdict(
    compared: Compared, request: pytest.FixtureRequest, role: str, name: str
) -> None:
    client: Client = request.getfixturevalue(role)
    client.get(urls(compared)[name])
    with CaptureQueriesContext(connection) as queries:
        client.get(urls(compared)[name])
    read = [
        query["sql"] for query in queries if any(f'FROM "{table}"' in query["sql"] for table in READ_ONCE)
    ]
    # Which criteria a run is about is looked up by an index, whatever the number of verdicts.
    assert [sql for sql in read if 'FROM "labeling_criterion"' not in sql] == []


def test_raters_are_offered_by_the_name_and_kind_they_have_now(compared: Compared, lead: Client) -> None:
    url = urls(compared)["report"]
    lead.get(url)
    Rater.objects.filter(name="ben").update(name="benjamin", kind=Rater.Kind.AUTOMATIC)
    shown = text_of(lead.get(url))
    assert "rater:benjamin" in shown
    assert 'value="rater:ben"' not in shown
    assert "some labels are automatic" in shown.lower()


def test_raters_of_a_part_and_of_one_criterion_are_their_own(compared: Compared) -> None:
    everybody = list(Rater.objects.order_by("pk").values_list("pk", flat=True))
    assert list(scope_summary(scope_of(compared)).raters) == everybody
    assert scope_summary(scope_of(compared, topic="nonsense")).raters == ()
    assert not scope_summary(scope_of(compared)).demo


def test_chats_of_the_demo_are_named_where_they_are_covered(compared: Compared) -> None:
    Chat.objects.filter(pk=compared.chat(4).pk).update(origin=Chat.Origin.DEMO)
    assert SPLITS[0] == "holdout"
    found = {split: scope_summary(scope_of(compared, split=split)).demo for split in ("", "holdout", "dev")}
    assert found == {"": True, "holdout": True, "dev": False}


def test_of_a_run_that_goes_on_nothing_is_kept(compared: Compared) -> None:
    Run.objects.update(finished_at=None, state=Run.State.RUNNING)
    assert not scope_summary(scope_of(compared)).demo
    Chat.objects.update(origin=Chat.Origin.DEMO)
    assert scope_summary(scope_of(compared)).demo


# ---------- what authors see of holdout chats ----------


def left_out(compared: Compared, user: User, **query: str) -> frozenset[str]:
    run = Run.objects.select_related("judge", "chat_set").get(pk=compared.run.pk)
    scope = requested_scope(run.chat_set, run, query, user)
    assert scope is not None
    return scope.without_holdout


def test_holdout_chats_are_recounted_when_answers_or_marks_change(
    compared: Compared, author_user: User
) -> None:
    assert left_out(compared, author_user) == frozenset()  # ten of them, all answered
    hold_out(1, compared=compared)
    assert left_out(compared, author_user) == {"dev"}
    ChatSetMember.objects.filter(chat_set__name="other").delete()
    assert left_out(compared, author_user) == frozenset()
    Consensus.objects.filter(chat=compared.chat(4), criterion__key="polite").delete()
    Criterion.objects.filter(key="polite").update(labels_seq=99)
    assert left_out(compared, author_user) == {"holdout"}


def test_a_set_whose_splits_change_is_recounted(compared: Compared, author_user: User) -> None:
    scope = Scope(compared.chat_set)
    assert visible_scope(scope, user=author_user).without_holdout == frozenset()
    hold_out(1, compared=compared)
    assert visible_scope(scope, user=author_user).without_holdout == {"dev"}
    ChatSetMember.objects.filter(chat_set=compared.chat_set, chat=compared.chat(1)).update(split="train")
    assert visible_scope(scope, user=author_user).without_holdout == {"train"}
