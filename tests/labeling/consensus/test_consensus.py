"""Consensus: the adjudication, else the strict majority of all labels, else unresolved."""

import pytest
from django.utils import timezone

from labeling.consensus.core.votes import Decision, Votes, consensus_of
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_rater, make_rubric


def state(n_true: int, n_false: int, n_na: int = 0) -> str:
    result = consensus_of(Votes(n_true, n_false, n_na))
    assert result is not None
    assert result.by == "majority"
    return result.state


def test_more_than_half_of_the_labels_decide() -> None:
    assert state(2, 1) == "true"
    assert state(1, 2) == "false"
    assert state(0, 1, 2) == "na"
    assert state(1, 0) == "true"


def test_half_of_the_labels_is_unresolved() -> None:
    assert state(1, 1) == "unresolved"
    assert state(2, 2) == "unresolved"
    assert state(1, 1, 1) == "unresolved"


def test_not_applicable_counts_in_the_denominator() -> None:
    assert state(2, 1, 1) == "unresolved"
    assert state(3, 1, 1) == "true"


@pytest.mark.parametrize(("value", "expected"), [(True, "true"), (False, "false"), (None, "na")])
def test_adjudication_wins_over_any_majority_and_counts_without_labels(
    value: bool | None, expected: str
) -> None:
    for votes in (Votes(n_true=3), Votes(n_false=3), Votes()):
        result = consensus_of(votes, Decision(value))
        assert result is not None
        assert (result.state, result.by) == (expected, "adjudication")


def test_without_labels_there_is_no_consensus() -> None:
    assert consensus_of(Votes()) is None


def give(chat: Chat, criterion: Criterion, value: bool | None, **fields: object) -> Label:
    return Label.objects.create(
        chat=chat,
        criterion=criterion,
        rater=make_rater(),
        version=criterion.versions.get(),
        value=value,
        given_at=timezone.now(),
        **{"state": Label.State.SUBMITTED} | fields,
    )


@pytest.fixture
def polite(db: None) -> Criterion:
    return make_rubric("polite", "brief").criteria.get(key="polite")


def refresh(*chats: Chat, criterion: Criterion) -> list[tuple[str, str, int, int, int]]:
    consensus_refresh(criterion_ids=[criterion.pk], chat_ids=[chat.pk for chat in chats])
    rows = Consensus.objects.order_by("chat_id")
    return [(row.state, row.by, row.n_true, row.n_false, row.n_na) for row in rows]


def test_refresh_counts_submitted_blind_labels_only(polite: Criterion) -> None:
    chat = make_chat()
    give(chat, polite, True)
    give(chat, polite, None)
    give(chat, polite, False, state=Label.State.DRAFT)
    give(chat, polite, False, post_reveal=True)
    assert refresh(chat, criterion=polite) == [("unresolved", "majority", 1, 0, 1)]


def test_refresh_follows_a_changed_label_in_place(polite: Criterion) -> None:
    chat = make_chat()
    label = give(chat, polite, True)
    refresh(chat, criterion=polite)
    before = Consensus.objects.get().pk
    Label.objects.filter(pk=label.pk).update(value=False)
    assert refresh(chat, criterion=polite) == [("false", "majority", 0, 1, 0)]
    assert Consensus.objects.get().pk == before


def test_refresh_removes_a_row_that_lost_its_labels(polite: Criterion) -> None:
    chat, other = make_chat(), make_chat()
    label = give(chat, polite, True)
    give(other, polite, False)
    refresh(chat, other, criterion=polite)
    Label.objects.filter(pk=label.pk).update(state=Label.State.DRAFT)
    assert refresh(chat, other, criterion=polite) == [("false", "majority", 0, 1, 0)]


def test_refresh_keeps_the_counts_beside_an_adjudication_and_ignores_replaced_ones(polite: Criterion) -> None:
    chat = make_chat()
    give(chat, polite, True)
    now = timezone.now()
    decided = {"chat": chat, "criterion": polite, "by_name": "Ines", "reason": "r", "created_at": now}
    Adjudication.objects.create(value=True, replaced_at=now, **decided)
    Adjudication.objects.create(value=False, **decided)
    assert refresh(chat, criterion=polite) == [("false", "adjudication", 1, 0, 0)]


def test_refresh_raises_the_sequence_of_its_criteria_only(polite: Criterion) -> None:
    chat = make_chat()
    give(chat, polite, True)
    refresh(chat, criterion=polite)
    refresh(chat, criterion=polite)
    assert list(Criterion.objects.order_by("key").values_list("key", "labels_seq")) == [
        ("brief", 0),
        ("polite", 2),
    ]


def test_refresh_of_nothing_changes_nothing(polite: Criterion) -> None:
    consensus_refresh(criterion_ids=[polite.pk], chat_ids=[])
    polite.refresh_from_db()
    assert polite.labels_seq == 0


def test_refresh_asks_as_often_for_forty_chats_as_for_four(
    polite: Criterion, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    chats = [make_chat() for _ in range(40)]
    for chat in chats:
        give(chat, polite, True)
    for some in (chats[:4], chats):
        with django_assert_num_queries(8):  # type: ignore[operator]
            refresh(*some, criterion=polite)
