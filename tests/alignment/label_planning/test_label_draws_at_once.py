"""Draws at one moment: the database is held for the writing alone, and no chat is drawn twice."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from alignment.label_planning.queries.sampling_frame import Frame, label_frame
from alignment.label_planning.services import draw_preview as label_draw_plans
from alignment.label_planning.services.draws import draw_source, label_draw
from common.problems import InputProblem
from labeling.models.chats import ChatSet
from labeling.models.labels import Consensus
from labeling.models.people import AuditEvent, Role, User
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.label_draws import BARE, few_of, strip, wish_of
from tests.factories.rater_quality import polite
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def bare(compared: Compared) -> Compared:
    """Chats 9 to 40 have no label on `polite`."""
    strip(compared, BARE)
    return compared


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Something happens each time that the chats of a draw were looked up, but not inside of itself."""
    real = label_frame
    busy: list[bool] = []

    def happening(what: Callable[[], object]) -> None:
        def frame(*args: Any, **kwargs: Any) -> Frame:
            found = real(*args, **kwargs)
            if not busy:
                busy.append(True)
                what()
                busy.clear()
            return found

        monkeypatch.setattr(label_draw_plans, "label_frame", frame)

    return happening


def chats_of(chat_set: ChatSet) -> set[int]:
    return set(chat_set.members.values_list("chat_id", flat=True))


@pytest.mark.django_db(transaction=True)
def test_the_database_is_not_held_while_a_draw_is_computed(
    meanwhile: Callable[[Callable[[], object]], None],
) -> None:
    compared = make_compared()
    strip(compared, BARE)
    held: list[bool] = []
    meanwhile(lambda: held.append(connection.in_atomic_block))
    label_draw(few_of(compared), by=make_user("ines", Role.LEAD))
    assert held == [False]


def test_what_another_draw_took_meanwhile_is_not_drawn_again(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    others: list[ChatSet] = []

    def another() -> None:
        if not others:
            others.append(label_draw(few_of(bare, name="Another"), by=lead_user).chat_set)

    meanwhile(another)
    mine = label_draw(few_of(bare), by=lead_user).chat_set
    assert len(chats_of(mine)) == 7 and not chats_of(mine) & chats_of(others[0])
    strata = (mine.sampling or {})["strata"]
    assert sum(row["size"] for row in strata) == len(BARE) - 7  # its probabilities are of what was left


def test_a_chat_that_gets_a_label_meanwhile_is_not_drawn(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    labelled = [bare.chat(n) for n in BARE][:20]
    rows = [Consensus(chat=chat, criterion=polite(), state="true") for chat in labelled]
    meanwhile(lambda: Consensus.objects.bulk_create(rows, ignore_conflicts=True))
    mine = label_draw(wish_of(bare, chats=5, suspect=2), by=lead_user).chat_set
    assert not chats_of(mine) & {chat.pk for chat in labelled}


def test_two_presses_of_one_form_at_one_moment_make_one_set(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    wish = few_of(bare)
    wish = few_of(bare, source=draw_source(scope=wish.scope, by=lead_user, token="t"))
    meanwhile(lambda: label_draw(wish, by=lead_user))
    assert label_draw(wish, by=lead_user).again
    assert AuditEvent.objects.filter(verb="chats drawn").count() == 1


def test_where_others_are_always_quicker_that_is_said_and_nothing_is_written(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    numbers = iter(range(100))
    meanwhile(lambda: label_draw(wish_of(bare, name=f"n{next(numbers)}", chats=2, suspect=1), by=lead_user))
    with pytest.raises(InputProblem, match="try again"):
        label_draw(few_of(bare), by=lead_user)
    assert not ChatSet.objects.filter(name="More").exists()
