"""Opening labelling jobs: the slots, their order, and what is refused."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from labeling.jobs.services import job_open
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Rubric, RubricGuideline
from tests.factories.labelling_job import grow, make_desk
from tests.factories.rows import make_chat, make_rater, make_rubric, make_set

pytestmark = pytest.mark.django_db


def test_every_chat_gets_one_open_slot_for_each_label_wanted() -> None:
    desk = make_desk(chats=3, raters=3, overlap=2)
    slots = Assignment.objects.filter(job=desk.job, state="open", rater=None).values_list("chat", "slot")
    assert sorted(slots) == sorted((chat.pk, slot) for chat in desk.chats for slot in (1, 2))


def order_of(job: LabelingJob) -> list[str]:
    rows = Assignment.objects.filter(job=job, kind="normal", slot=1).order_by("position")
    return list(rows.values_list("chat__external_id", flat=True))


def topics_in_turns(seed: int, **more: Any) -> LabelingJob:
    rubric = Rubric.objects.first() or make_rubric("polite")
    topics = ("refund", "refund", "refund", "delivery", "delivery", "promo")
    chat_set = ChatSet.objects.filter(name="calibration").first() or make_set(
        rubric, *(make_chat(f"{topic}-{n}", topic=topic) for n, topic in enumerate(topics))
    )
    given: dict[str, Any] = {
        "criteria": list(rubric.criteria.all()),
        "raters": [make_rater()],
        "overlap": 1,
        "by": None,
    }
    return job_open(chat_set=chat_set, name="By topic", seed=seed, **given | more)


def test_topics_take_turns_each_in_the_order_of_the_set() -> None:
    order = order_of(topics_in_turns(seed=1))
    assert {chat.split("-")[0] for chat in order[:3]} == {"refund", "delivery", "promo"}
    assert {chat.split("-")[0] for chat in order[3:5]} == {"refund", "delivery"}
    assert [chat for chat in order if chat.startswith("refund")] == ["refund-0", "refund-1", "refund-2"]


@pytest.mark.parametrize("order", ["topic", "random"])
def test_the_same_seed_gives_the_same_order_and_another_seed_another(order: str) -> None:
    orders = [order_of(topics_in_turns(seed=seed, order=order)) for seed in (1, 1, *range(2, 12))]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) > 2
    assert {frozenset(order) for order in orders} == {frozenset(orders[0])}


@pytest.mark.parametrize(("share", "several"), [(0.25, 5), (0.5, 10), (1.0, 20), (None, 20)])
def test_a_share_of_the_chats_gets_several_labels_and_each_other_one(
    share: float | None, several: int
) -> None:
    desk = make_desk(chats=20, raters=3)
    job = desk.opened(overlap=3, overlap_share=share)
    slots = Counter(job.assignments.values_list("chat", flat=True))
    assert Counter(slots.values()) == Counter([3] * several + [1] * (20 - several))


def test_the_guideline_in_force_goes_with_the_job() -> None:
    desk = make_desk()
    assert desk.opened().guideline is None
    for number in (1, 2):
        RubricGuideline.objects.create(rubric=desk.rubric, number=number, text="Read the whole chat.")
    assert desk.opened().guideline == desk.rubric.guidelines.get(number=2)


def test_opening_is_recorded_with_who_did_it(lead_user: User) -> None:
    job = make_desk().opened(by=lead_user)
    event = AuditEvent.objects.get(actor=lead_user)
    assert (event.verb, event.object_id, event.detail["name"]) == ("job opened", job.pk, "November")


def test_a_calibration_set_makes_calibration_slots() -> None:
    desk = make_desk()
    ChatSet.objects.update(kind="calibration")
    desk.chat_set.refresh_from_db()
    job = job_open(
        chat_set=desk.chat_set, name="Round 1", criteria=desk.criteria, raters=desk.raters, overlap=2, by=None
    )
    assert set(Assignment.objects.filter(job=job).values_list("kind", flat=True)) == {"calibration"}


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"overlap": 0}, "overlap", "labels per chat"),
        ({"overlap": 3}, "overlap", "need 3 raters"),
        ({"raters": []}, "raters", "Choose raters"),
        ({"criteria": []}, "criteria", "at least one criterion"),
        ({"overlap": 2, "overlap_share": 0.0}, "overlap_share", "between 0 and 1"),
        ({"overlap": 2, "overlap_share": 1.5}, "overlap_share", "between 0 and 1"),
        ({"overlap": 2, "overlap_share": 0.01}, "overlap_share", "no chat gets a second label"),
        ({"overlap": 1, "overlap_share": 0.5}, "overlap_share", "no chat gets a second label"),
        ({"due_at": datetime(2020, 1, 1, tzinfo=UTC)}, "due_at", "in the past"),
        ({"gold_rate": 0.1}, "gold_set", "need a set and a rate"),
        ({"gold_rate": 0.9}, "gold_rate", "At most half"),
    ],
)
def test_a_job_that_could_never_be_finished_is_refused_by_field_and_nothing_is_written(
    given: dict[str, Any], field: str, message: str
) -> None:
    desk = make_desk(raters=2)
    with pytest.raises(ValidationError, match=message) as refused:
        desk.opened(**given)
    assert list(refused.value.message_dict) == [field]
    assert LabelingJob.objects.count() == 1


def test_an_empty_set_and_a_foreign_or_retired_criterion_are_refused() -> None:
    desk = make_desk()
    foreign = list(make_rubric("elsewhere", name="Other").criteria.all())
    retired = desk.criteria[0]
    retired.state = "retired"
    retired.save()
    empty = ChatSet.objects.create(name="empty", rubric=desk.rubric)
    for given in ({"chat_set": empty}, {"criteria": foreign}, {"criteria": [retired]}):
        with pytest.raises(ValidationError):
            desk.opened(**{"criteria": desk.criteria[1:]} | given)


def test_opening_a_job_reads_the_same_number_of_times_for_few_and_many_chats() -> None:
    desk, counts = make_desk(chats=5, raters=3), []
    for size in (5, 600):
        grow(desk, to=size)
        with CaptureQueriesContext(connection) as queries:
            desk.opened(overlap=3)
        counts.append(sum(not query["sql"].startswith("INSERT") for query in queries))
    assert counts[0] == counts[1]
