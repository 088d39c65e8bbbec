"""A lead decides, replaces and withdraws: one decision in force, history kept, consensus in step."""

import threading
from typing import Any

import pytest
from django.db import close_old_connections, connection

from common.problems import FieldProblem
from labeling.adjudication.services import DecidedMeanwhileError, adjudication_decide, adjudication_withdraw
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import Criterion
from tests.factories.many_labels import Item, labelled_item
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def item() -> Item:
    """Two say True, one says False."""
    return labelled_item(True, True, False)


def decide(
    item: Item, by: User, value: bool | None = False, *, seen: int | None = None, reason: str = "It is."
) -> Adjudication:
    return adjudication_decide(
        chat=item.chat, criterion=item.criterion, value=value, reason=reason, by=by, seen=seen
    )


def consensus(item: Item) -> tuple[str, str, int, int, int]:
    row = Consensus.objects.get(chat=item.chat, criterion=item.criterion)
    return row.state, row.by, row.n_true, row.n_false, row.n_na


def seq(item: Item) -> int:
    return Criterion.objects.get(pk=item.criterion.pk).labels_seq


def test_a_decision_wins_over_the_majority_and_leaves_the_labels_as_they_are(
    item: Item, lead_user: User
) -> None:
    before = list(Label.objects.order_by("pk").values())
    assert consensus(item) == ("true", "majority", 2, 1, 0)
    was = seq(item)
    row = decide(item, lead_user, reason="  The bot did not answer.  ")
    assert consensus(item) == ("false", "adjudication", 2, 1, 0)
    assert seq(item) == was + 1
    assert list(Label.objects.order_by("pk").values()) == before
    assert (row.value, row.reason, row.by, row.by_name) == (
        False,
        "The bot did not answer.",
        lead_user,
        "ines",
    )


def test_it_is_on_record_who_decided_what(item: Item, lead_user: User) -> None:
    row = decide(item, lead_user)
    event = AuditEvent.objects.get()
    assert (event.actor, event.verb, event.object_type, event.object_id) == (
        lead_user,
        "label adjudicated",
        "labeling.adjudication",
        row.pk,
    )
    assert event.detail == {"chat": "chat-1", "criterion": "polite", "replaced": None}


def test_a_second_decision_replaces_the_first_and_keeps_it_in_the_history(
    item: Item, lead_user: User
) -> None:
    first = decide(item, lead_user, False)
    second = decide(item, lead_user, True, seen=first.pk)
    first.refresh_from_db()
    assert first.replaced_at == second.created_at
    assert Adjudication.objects.get(replaced_at=None) == second
    assert consensus(item)[:2] == ("true", "adjudication")
    assert AuditEvent.objects.latest("pk").detail["replaced"] == first.pk


def test_the_same_decision_again_changes_nothing(item: Item, lead_user: User) -> None:
    first, was = decide(item, lead_user), seq(item)
    assert decide(item, lead_user) == first
    assert decide(item, lead_user, seen=first.pk) == first
    assert (seq(item), Adjudication.objects.count(), AuditEvent.objects.count()) == (was, 1, 1)


def test_who_has_not_seen_the_decision_in_force_does_not_overwrite_it(item: Item, lead_user: User) -> None:
    other = make_user("otto", Role.LEAD)
    first = decide(item, other, True)
    with pytest.raises(DecidedMeanwhileError, match="otto has decided") as refused:
        decide(item, lead_user, False)
    assert refused.value.current == first
    assert Adjudication.objects.get() == first
    assert consensus(item)[0] == "true"
    decide(item, lead_user, False, seen=first.pk)
    assert consensus(item)[0] == "false"


def test_a_decision_on_one_that_was_withdrawn_meanwhile_is_refused(item: Item, lead_user: User) -> None:
    first = decide(item, lead_user, True)
    adjudication_withdraw(chat=item.chat, criterion=item.criterion, by=lead_user, seen=first.pk)
    with pytest.raises(DecidedMeanwhileError, match="was withdrawn") as refused:
        decide(item, lead_user, False, seen=first.pk)
    assert refused.value.current is None


def test_a_withdrawn_decision_returns_consensus_to_the_majority(item: Item, lead_user: User) -> None:
    first, was = decide(item, lead_user), seq(item)
    adjudication_withdraw(chat=item.chat, criterion=item.criterion, by=lead_user, seen=first.pk)
    assert consensus(item) == ("true", "majority", 2, 1, 0)
    assert seq(item) == was + 1
    first.refresh_from_db()
    assert first.replaced_at is not None
    event = AuditEvent.objects.latest("pk")
    assert (event.verb, event.object_id, event.actor) == ("adjudication withdrawn", first.pk, lead_user)


def test_withdrawing_twice_is_withdrawing_once(item: Item, lead_user: User) -> None:
    first = decide(item, lead_user)
    for _ in range(2):
        adjudication_withdraw(chat=item.chat, criterion=item.criterion, by=lead_user, seen=first.pk)
    assert AuditEvent.objects.filter(verb="adjudication withdrawn").count() == 1


def test_another_leads_newer_decision_cannot_be_withdrawn_unseen(item: Item, lead_user: User) -> None:
    first = decide(item, lead_user, False)
    second = decide(item, make_user("otto", Role.LEAD), True, seen=first.pk)
    with pytest.raises(DecidedMeanwhileError):
        adjudication_withdraw(chat=item.chat, criterion=item.criterion, by=lead_user, seen=first.pk)
    assert Adjudication.objects.get(replaced_at=None) == second


def test_a_chat_without_labels_can_be_decided_and_withdrawing_leaves_no_consensus(lead_user: User) -> None:
    item = labelled_item()
    row = decide(item, lead_user, True)
    assert consensus(item) == ("true", "adjudication", 0, 0, 0)
    adjudication_withdraw(chat=item.chat, criterion=item.criterion, by=lead_user, seen=row.pk)
    assert not Consensus.objects.exists()


@pytest.mark.parametrize(
    ("value", "reason", "field"),
    [(True, " ", "reason"), (True, "x" * 10_001, "reason"), (None, "Fine.", "value")],
)
def test_a_decision_needs_a_reason_and_an_answer_the_criterion_has(
    item: Item, lead_user: User, value: bool | None, reason: str, field: str
) -> None:
    with pytest.raises(FieldProblem) as refused:
        decide(item, lead_user, value, reason=reason)
    assert refused.value.field == field
    assert not Adjudication.objects.exists()


def test_not_applicable_is_a_decision_where_the_criterion_allows_it(lead_user: User) -> None:
    item = labelled_item(True, None, allow_na=True)
    decide(item, lead_user, None)
    assert consensus(item)[:2] == ("na", "adjudication")


@pytest.mark.django_db(transaction=True)
def test_of_two_leads_at_once_one_decides_and_the_other_is_refused(item: Item, lead_user: User) -> None:
    other = make_user("otto", Role.LEAD)
    together = threading.Barrier(8)
    outcomes: list[Any] = []

    def try_to(by: User, value: bool) -> None:
        together.wait()
        try:
            outcomes.append(decide(item, by, value))
        except DecidedMeanwhileError as refused:
            outcomes.append(refused)
        finally:
            close_old_connections()
            connection.close()

    sides: list[Any] = [(lead_user, True), (other, False)] * 4
    threads = [threading.Thread(target=try_to, args=side) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    decided = {row.pk for row in outcomes if isinstance(row, Adjudication)}
    refused = [error for error in outcomes if isinstance(error, DecidedMeanwhileError)]
    assert (len(outcomes), len(refused)) == (8, 4)
    assert decided == {Adjudication.objects.get().pk}
    assert all(error.current and error.current.pk in decided for error in refused)
