"""Fifty raters at once: never more labels than wanted, never a rater twice, nobody sent away too early."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import Rater
from labeling.rating.queries.queue import free_slots
from labeling.rating.services.leases import (
    Conflict,
    assignment_locked,
    assignment_next,
    assignment_skip,
    check_held,
)
from tests.factories.api_calls import at_once
from tests.factories.labelling_job import Desk, expire
from tests.factories.rows import make_chat, make_rater, make_rubric, make_set

pytestmark = pytest.mark.django_db(transaction=True)

RATERS, CHATS, OVERLAP = 50, 60, 2


@pytest.fixture
def desk() -> Desk:
    rubric = make_rubric("polite")
    chats = [make_chat(topic=f"topic {n % 4}") for n in range(CHATS)]
    desk = Desk(
        rubric,
        list(rubric.criteria.all()),
        chats,
        make_set(rubric, *chats),
        [make_rater() for _ in range(RATERS)],
        LabelingJob(),
    )
    return Desk(**{**vars(desk), "job": desk.opened(overlap=OVERLAP)})


def most_at_once(job: LabelingJob) -> int:
    """The most rows of a chat that are in work or submitted."""
    taken = Count("pk", filter=Q(state__in=["leased", "submitted"]))
    rows = Assignment.objects.filter(job=job).values("chat").annotate(taken=taken)
    return max(int(row["taken"]) for row in rows)


def submitted(assignment: Assignment, rater: Rater) -> bool:
    """Submit without labels, as a rater does who still holds the chat."""
    with transaction.atomic():
        row = assignment_locked(assignment=assignment, rater=rater)
        try:
            check_held(row)
        except Conflict:
            return False
        row.state, row.lease_token, row.lease_expires_at = "submitted", None, None
        row.save()
        return True


def work_until_nothing_is_left(desk: Desk, number: int, act: Callable[[Assignment, Rater], object]) -> None:
    rater = desk.raters[number]
    while assignment := assignment_next(rater=rater, job=desk.job):
        act(assignment, rater)


def starved(desk: Desk) -> list[tuple[int, int]]:
    """(rater, chat) that were free for the rater when everybody had gone."""
    later = timezone.now() + timedelta(days=1)
    return [
        (rater.pk, slot.chat_id)
        for rater in desk.raters
        for slot in free_slots(rater_id=rater.pk, now=later).filter(job=desk.job)
    ]


@pytest.mark.flow
@pytest.mark.heavy
def test_every_chat_gets_exactly_the_labels_wanted_and_no_rater_a_chat_twice(desk: Desk) -> None:
    at_once(lambda n: work_until_nothing_is_left(desk, n, submitted), times=RATERS)
    done = Assignment.objects.filter(job=desk.job, state="submitted").values_list("chat", "rater")
    assert Counter(chat for chat, _ in done) == {chat.pk: OVERLAP for chat in desk.chats}
    assert len(set(done)) == CHATS * OVERLAP
    assert starved(desk) == []


def test_fifty_first_chats_at_once_are_fifty_leases_within_the_overlap(desk: Desk) -> None:
    taken = at_once(lambda n: assignment_next(rater=desk.raters[n], job=desk.job), times=RATERS)
    assert all(taken)
    assert Assignment.objects.filter(job=desk.job, state="leased").count() == RATERS
    assert most_at_once(desk.job) <= OVERLAP


def test_the_last_slots_wanted_by_all_send_nobody_away_while_one_is_free(desk: Desk) -> None:
    """As many slots as raters: each gets one, although each is passed over while others hold locks."""
    chats = desk.chats[: RATERS // OVERLAP]
    few = desk.opened(chat_set=make_set(desk.rubric, *chats, name="few"), overlap=OVERLAP)
    taken = at_once(lambda n: assignment_next(rater=desk.raters[n], job=few), times=RATERS)
    assert Counter(row.chat_id for row in taken if row) == {chat.pk: OVERLAP for chat in chats}


@pytest.mark.flow
@pytest.mark.heavy
def test_leases_that_run_out_and_chats_that_are_skipped_change_none_of_it(desk: Desk) -> None:
    def act(assignment: Assignment, rater: Rater) -> None:
        luck = random.Random(assignment.pk).random()
        if luck < 0.2:
            expire(assignment)  # walks away; whoever comes may take it over
        elif luck < 0.3:
            assignment_skip(assignment=assignment, rater=rater, reason="too_long")
        else:
            submitted(assignment, rater)
        assert most_at_once(desk.job) <= OVERLAP

    def work(number: int) -> None:
        rater = desk.raters[number]
        for _ in range(3):
            if assignment := assignment_next(rater=rater, job=desk.job):
                act(assignment, rater)

    at_once(work, times=RATERS)
    at_once(lambda n: work_until_nothing_is_left(desk, n, submitted), times=RATERS)
    rows = Assignment.objects.filter(job=desk.job, state="submitted").values_list("chat", "rater")
    assert Counter(chat for chat, _ in rows) == {chat.pk: OVERLAP for chat in desk.chats}
    assert len(set(rows)) == CHATS * OVERLAP
    assert starved(desk) == []


def test_two_tabs_that_fetch_ahead_at_once_hold_two_chats_and_no_more(desk: Desk) -> None:
    rater = desk.rater
    at_once(lambda n: assignment_next(rater=rater, job=desk.job, ahead=bool(n % 2)), times=8)
    leased = Assignment.objects.filter(job=desk.job, rater=rater, state="leased")
    assert leased.count() == 2
    assert len(set(leased.values_list("chat", flat=True))) == 2


def test_two_raters_whose_leases_ran_out_keep_their_chats_and_never_wait_for_each_other(desk: Desk) -> None:
    pair = desk.raters[:2]
    two = desk.opened(chat_set=make_set(desk.rubric, *desk.chats[:2], name="two"), raters=pair)
    for rater in pair:
        assert assignment_next(rater=rater, job=two)
    for _ in range(10):
        for row in Assignment.objects.filter(job=two, state="leased"):
            expire(row)
        at_once(lambda n: assignment_next(rater=pair[n], job=two, ahead=True), times=2)
        held = Assignment.objects.filter(job=two, state="leased").values_list("rater", flat=True)
        assert sorted(held) in ([pair[0].pk, pair[1].pk], [pair[0].pk] * 2, [pair[1].pk] * 2)
