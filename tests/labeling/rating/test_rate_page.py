"""The rating screen as the server renders it."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from labeling.models.labels import Assignment
from labeling.models.rubric import CriterionVersion
from tests.factories.api_calls import signed_in
from tests.factories.labelling_job import Desk, make_desk, user_of

pytestmark = pytest.mark.django_db

FOLDED, UNFOLDED = '<details class="defn">', '<details class="defn" open>'


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=12, raters=1)


def page(desk: Desk) -> str:
    rater: Client = signed_in(user_of(desk.rater))
    answer: Any = rater.get(reverse("labeling:rate", args=[desk.taken().pk]))
    return str(answer.content.decode())


def submit(desk: Desk, *, chats: int) -> None:
    for _ in range(chats):
        rows = Assignment.objects.filter(pk=desk.taken().pk)
        rows.update(state="submitted", submitted_at=timezone.now(), lease_token=None, lease_expires_at=None)


def test_definitions_are_folded_after_ten_chats_of_the_job(desk: Desk) -> None:
    submit(desk, chats=9)
    assert (page(desk).count(UNFOLDED), page(desk).count(FOLDED)) == (2, 0)
    submit(desk, chats=1)
    assert (page(desk).count(UNFOLDED), page(desk).count(FOLDED)) == (0, 2)


def test_a_new_text_is_unfolded_until_ten_chats_were_submitted_with_it(desk: Desk) -> None:
    submit(desk, chats=10)
    CriterionVersion.objects.filter(criterion__key="polite").update(created_at=timezone.now())
    assert (page(desk).count(UNFOLDED), page(desk).count(FOLDED)) == (1, 1)


def test_signing_in_again_leads_back_to_the_chat(desk: Desk) -> None:
    path = reverse("labeling:rate", args=[desk.taken().pk])
    assert f'href="/accounts/login/?next={path}"' in page(desk)
