"""Opening labelling jobs: the slots, their order, and what is refused."""

import pytest
from django.core.exceptions import ValidationError

from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.services.jobs import job_open
from tests.factories import make_chat, make_rater, make_rubric, make_set
from tests.labeling.desk import make_desk

pytestmark = pytest.mark.django_db


def test_every_chat_gets_one_open_slot_for_each_label_wanted() -> None:
    desk = make_desk(chats=3, raters=3, overlap=2)
    slots = Assignment.objects.filter(job=desk.job, state="open", rater=None).values_list("chat", "slot")
    assert sorted(slots) == sorted((chat.pk, slot) for chat in desk.chats for slot in (1, 2))


def test_chats_come_topic_after_topic_each_in_the_order_of_the_set() -> None:
    rubric = make_rubric("polite")
    topics = ("refund", "delivery", "refund", "delivery", "promo")
    chats = [make_chat(f"c{n}", topic=topic) for n, topic in enumerate(topics)]
    job = job_open(
        chat_set=make_set(rubric, *chats),
        name="By topic",
        criteria=list(rubric.criteria.all()),
        raters=[make_rater()],
        overlap=1,
        by=None,
    )
    in_order = (
        Assignment.objects.filter(job=job).order_by("position").values_list("chat__external_id", flat=True)
    )
    assert list(in_order) == ["c0", "c2", "c1", "c3", "c4"]


def test_a_calibration_set_makes_calibration_slots() -> None:
    desk = make_desk()
    ChatSet.objects.update(kind="calibration")
    desk.chat_set.refresh_from_db()
    job = job_open(
        chat_set=desk.chat_set, name="Round 1", criteria=desk.criteria, raters=desk.raters, overlap=2, by=None
    )
    assert set(Assignment.objects.filter(job=job).values_list("kind", flat=True)) == {"calibration"}


@pytest.mark.parametrize("overlap", [0, 3])
def test_more_labels_a_chat_than_raters_or_none_are_refused(overlap: int) -> None:
    desk = make_desk(raters=2)
    with pytest.raises(ValidationError, match="raters or more"):
        job_open(
            chat_set=desk.chat_set,
            name="Never done",
            criteria=desk.criteria,
            raters=desk.raters,
            overlap=overlap,
            by=None,
        )
    assert LabelingJob.objects.count() == 1


def test_an_empty_set_a_foreign_and_a_retired_criterion_and_no_criterion_are_refused() -> None:
    desk = make_desk()
    foreign = list(make_rubric("elsewhere", name="Other").criteria.all())
    retired = desk.criteria[0]
    retired.state = "retired"
    retired.save()
    empty = ChatSet.objects.create(name="empty", rubric=desk.rubric)
    for chat_set, criteria in (
        (empty, desk.criteria[1:]),
        (desk.chat_set, foreign),
        (desk.chat_set, [retired]),
        (desk.chat_set, []),
    ):
        with pytest.raises(ValidationError):
            job_open(chat_set=chat_set, name="No", criteria=criteria, raters=desk.raters, overlap=1, by=None)


def test_opening_a_job_takes_the_same_number_of_queries_for_few_and_many_chats(
    django_assert_max_num_queries: object,
) -> None:
    desk = make_desk(chats=60, raters=3, overlap=3)
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        job_open(
            chat_set=desk.chat_set,
            name="Again",
            criteria=desk.criteria,
            raters=desk.raters,
            overlap=3,
            by=None,
        )
