"""Simultaneous samples: the lock is short, and no chat is sampled twice."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from alignment.label_planning.queries.sampling_frame import SamplingFrame, sampling_frame
from alignment.label_planning.services import sample_preview as preview_module
from alignment.label_planning.services.sample import create_sample, sample_source
from common.problems import InputProblem
from labeling.models.chats import ChatSet
from labeling.models.labels import Consensus
from labeling.models.people import AuditEvent, Role, User
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.label_samples import BARE, few_of, strip, wish_of
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
    """Run a callback each time after the eligible chats are read, but not within the callback."""
    real = sampling_frame
    busy: list[bool] = []

    def after_reading(what: Callable[[], object]) -> None:
        def frame(*args: Any, **kwargs: Any) -> SamplingFrame:
            rows = real(*args, **kwargs)
            if not busy:
                busy.append(True)
                what()
                busy.clear()
            return rows

        monkeypatch.setattr(preview_module, "sampling_frame", frame)

    return after_reading


def chats_of(chat_set: ChatSet) -> set[int]:
    return set(chat_set.members.values_list("chat_id", flat=True))


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_a_sample_is_computed(
    meanwhile: Callable[[Callable[[], object]], None],
) -> None:
    compared = make_compared()
    strip(compared, BARE)
    in_transaction: list[bool] = []
    meanwhile(lambda: in_transaction.append(connection.in_atomic_block))
    create_sample(few_of(compared), by=make_user("ines", Role.LEAD))
    assert in_transaction == [False]


def test_chats_of_a_simultaneous_sample_are_not_sampled_again(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    others: list[ChatSet] = []

    def another() -> None:
        if not others:
            others.append(create_sample(few_of(bare, name="Another"), by=lead_user).chat_set)

    meanwhile(another)
    mine = create_sample(few_of(bare), by=lead_user).chat_set
    assert len(chats_of(mine)) == 7 and not chats_of(mine) & chats_of(others[0])
    strata = (mine.sampling or {})["strata"]
    assert sum(row["size"] for row in strata) == len(BARE) - 7  # probabilities refer to the remaining chats


def test_a_chat_that_gets_a_label_meanwhile_is_not_sampled(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    labelled = [bare.chat(n) for n in BARE][:20]
    rows = [Consensus(chat=chat, criterion=polite(), state="true") for chat in labelled]
    meanwhile(lambda: Consensus.objects.bulk_create(rows, ignore_conflicts=True))
    mine = create_sample(wish_of(bare, chats=5, suspect=2), by=lead_user).chat_set
    assert not chats_of(mine) & {chat.pk for chat in labelled}


def test_two_simultaneous_submissions_of_one_form_create_one_set(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    wish = few_of(bare)
    wish = few_of(bare, source=sample_source(scope=wish.scope, by=lead_user, token="t"))
    meanwhile(lambda: create_sample(wish, by=lead_user))
    assert create_sample(wish, by=lead_user).again
    assert AuditEvent.objects.filter(verb="chats drawn").count() == 1


def test_a_request_is_refused_if_others_keep_sampling_the_chats(
    bare: Compared, lead_user: User, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    numbers = iter(range(100))
    meanwhile(
        lambda: create_sample(wish_of(bare, name=f"n{next(numbers)}", chats=2, suspect=1), by=lead_user)
    )
    with pytest.raises(InputProblem, match="try again"):
        create_sample(few_of(bare), by=lead_user)
    assert not ChatSet.objects.filter(name="More").exists()
