"""The same request sixteen times at once does what one does, and each sender gets the one answer."""

import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models.labels import Assignment, Consensus, Label, LabelRevision
from labeling.models.people import Workspace
from labeling.models.rubric import Criterion
from tests.factories.api_calls import at_once, label_url, put, signed_in
from tests.factories.judged_job import judge_desk
from tests.factories.labelling_job import Desk, answer_all, make_desk, user_of

pytestmark = pytest.mark.django_db(transaction=True)

SENDERS = 16


@pytest.fixture
def desk() -> Desk:
    Workspace.current()
    Workspace.objects.update(reveal_after_submit=True)
    return make_desk()


@pytest.fixture
def tabs(desk: Desk) -> list[Client]:
    """So many tabs of one rater's browser."""
    return [signed_in(user_of(desk.rater)) for _ in range(SENDERS)]


def one_answer(answers: list[Any]) -> Any:
    """The body that every sender got, which was a success."""
    assert {answer.status_code for answer in answers} == {200}, [answer.content for answer in answers]
    assert len({answer.content for answer in answers}) == 1
    return answers[0].json()


def test_saves_make_one_label_and_one_revision(desk: Desk, tabs: list[Client]) -> None:
    url, client_id = label_url(desk.taken()), str(uuid.uuid4())
    answers = at_once(
        lambda n: put(tabs[n], url, client_id=client_id, value=False, revision=0, active_ms=900),
        times=SENDERS,
    )
    assert one_answer(answers)["revision"] == 1
    assert (Label.objects.count(), LabelRevision.objects.count()) == (1, 1)
    assert (Label.objects.get().active_ms, Assignment.objects.get(state="leased").active_ms) == (900, 900)


def test_submits_make_one_submitted_revision_a_label_and_one_vote(desk: Desk, tabs: list[Client]) -> None:
    assignment = desk.taken()
    answer_all(assignment)
    url = reverse("api_submit", args=[assignment.pk])
    answers = at_once(lambda n: tabs[n].post(url, content_type="application/json"), times=SENDERS)
    assert one_answer(answers)["state"] == "submitted"
    for criterion in desk.criteria:
        revisions = LabelRevision.objects.filter(label__criterion=criterion)
        assert (Label.objects.filter(criterion=criterion).count(), revisions.count()) == (1, 2)
        assert revisions.filter(state="submitted").count() == 1
        assert Consensus.objects.get(criterion=criterion).n_true == 1
    assert set(Criterion.objects.values_list("labels_seq", flat=True)) == {1}


def test_different_answers_over_the_same_one_are_one_success_and_fifteen_refusals(
    desk: Desk, tabs: list[Client]
) -> None:
    url = label_url(desk.taken())
    answers = at_once(lambda n: put(tabs[n], url, value=n % 2 == 0, revision=0), times=SENDERS)
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200] + [409] * (SENDERS - 1)
    (saved,) = [answer.json() for answer in answers if answer.status_code == 200]
    refused = [answer.json() for answer in answers if answer.status_code == 409]
    assert all(answer["code"] == "stale" and answer["answer"] == saved for answer in refused)
    assert (Label.objects.get().value, LabelRevision.objects.count()) == (saved["value"], 1)


def test_reveals_are_noted_once(desk: Desk, tabs: list[Client]) -> None:
    judge_desk(desk)
    assignment = desk.taken()
    answer_all(assignment)
    tabs[0].post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")
    url = reverse("api_reveal", args=[assignment.pk])
    shown = one_answer(at_once(lambda n: tabs[n].post(url, content_type="application/json"), times=SENDERS))
    assert shown["revealed_at"] is not None and len(shown["verdicts"]) == 2


@pytest.mark.flow
@pytest.mark.heavy
def test_a_save_and_a_reveal_at_once_leave_what_counts_whole(desk: Desk, tabs: list[Client]) -> None:
    """Whichever came first: a change counts in label and consensus, or in neither."""
    judge_desk(desk)
    assignment = desk.taken()
    answer_all(assignment)
    tabs[0].post(reverse("api_submit", args=[assignment.pk]), content_type="application/json")
    seen = reverse("api_reveal", args=[assignment.pk])

    def work(n: int) -> Any:
        return tabs[n].post(seen) if n % 2 else put(tabs[n], label_url(assignment), value=False)

    assert {answer.status_code for answer in at_once(work, times=SENDERS)} == {200}
    label = Label.objects.get(criterion=desk.criteria[0])
    vote = Consensus.objects.get(criterion=desk.criteria[0])
    assert vote.state == ("true" if label.value else "false")
    numbers = LabelRevision.objects.filter(label=label).order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 2 + SENDERS // 2 + 1))
