"""Two tabs of one rater: what is written over a newer answer is refused, with that answer in the refusal."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models.labels import Label, LabelRevision
from tests.factories.api_calls import label_url, put, signed_in
from tests.factories.labelling_job import Desk, answer_all, make_desk, user_of

pytestmark = pytest.mark.django_db

Save = Callable[..., Any]


@pytest.fixture
def desk() -> Desk:
    return make_desk()


@pytest.fixture
def rater(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


@pytest.fixture
def save(desk: Desk, rater: Client) -> Save:
    url = label_url(desk.taken())
    return lambda **body: put(rater, url, **body)


def test_an_answer_on_top_of_the_one_it_knows_is_saved(save: Save) -> None:
    first = save(revision=0).json()["revision"]
    second = save(value=False, revision=first)
    assert (second.status_code, second.json()["revision"]) == (200, 2)


def test_an_answer_over_a_newer_one_is_refused_with_the_newer_one(save: Save) -> None:
    save(value=True, revision=0)
    newer = save(value=False, rationale="Rude.", revision=1).json()
    for known in (0, 1, 7):
        late = save(value=True, revision=known)
        assert (late.status_code, late.json()["code"]) == (409, "stale")
        assert late.json()["answer"] == newer
    assert (Label.objects.get().value, LabelRevision.objects.count()) == (False, 2)


def test_a_withdrawn_answer_is_returned_as_none(desk: Desk, rater: Client, save: Save) -> None:
    save(revision=0)
    assert rater.delete(label_url(desk.taken()) + "?revision=1").status_code == 204
    late = save(value=False, revision=1)
    assert (late.status_code, late.json()["answer"]) == (409, None)
    assert save(value=False, revision=0).status_code == 200


def test_a_newer_answer_cannot_be_withdrawn_unseen(desk: Desk, rater: Client, save: Save) -> None:
    save(revision=0)
    save(value=False, revision=1)
    late = rater.delete(label_url(desk.taken()) + "?revision=1")
    assert (late.status_code, late.json()["code"], late.json()["answer"]["value"]) == (409, "stale", False)
    assert Label.objects.get().state == "draft"


def test_the_same_answer_sent_again_is_not_stale(save: Save) -> None:
    body = {"client_id": str(uuid.uuid4()), "revision": 0}
    first = save(**body)
    save(value=False, revision=1)
    again = save(**body)
    assert (again.status_code, again.json()) == (200, first.json())


def test_who_names_no_revision_writes_on_top(save: Save) -> None:
    save()
    assert save(value=False).status_code == 200


def test_a_submitted_answer_is_guarded_alike(desk: Desk, rater: Client) -> None:
    assignment = desk.taken()
    answer_all(assignment)
    rater.post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")
    late = put(rater, label_url(assignment), value=False, revision=1)
    assert (late.status_code, late.json()["answer"]["revision"]) == (409, 2)
    assert put(rater, label_url(assignment), value=False, revision=2).json()["revision"] == 3


@pytest.mark.parametrize("revision", [-1, "two", 1.5, None])
def test_a_revision_is_a_whole_number(save: Save, revision: Any) -> None:
    answer = save(revision=revision)
    assert (answer.status_code, set(answer.json())) == (400, {"revision"})
