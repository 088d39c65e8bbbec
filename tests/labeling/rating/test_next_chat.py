"""Which chat a rater gets next: one ahead, groups, gold chats, calibration rounds, extended leases."""

import uuid

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from labeling.jobs.services import job_close
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Assignment
from labeling.models.people import AuditEvent, Role, User
from labeling.people.services.roles import rater_for
from labeling.rating.queries.queue import job_progress, queue_for
from labeling.rating.services.answers import label_save
from labeling.rating.services.leases import Conflict, assignment_next, assignment_skip, lease_extend
from labeling.rating.services.submission import assignment_submit
from tests.factories.labelling_job import answer_all, expire, gold_set_of, make_desk, work_through
from tests.factories.rows import make_chat, make_rater, make_set, make_user

pytestmark = pytest.mark.django_db


def submit(assignment: Assignment) -> Assignment:
    assert assignment.rater is not None
    answer_all(assignment)
    return assignment_submit(assignment=assignment, rater=assignment.rater)


# ---------- one ahead ----------


def test_the_chat_ahead_is_another_one_and_asking_again_gives_the_same() -> None:
    desk = make_desk(chats=5)
    first = desk.taken()
    second = assignment_next(rater=desk.rater, job=desk.job, ahead=True)
    assert second is not None
    assert second.chat_id != first.chat_id
    assert assignment_next(rater=desk.rater, job=desk.job, ahead=True) == second
    assert desk.taken() == first
    assert Assignment.objects.filter(state="leased").count() == 2


def test_after_submitting_the_chat_ahead_is_the_one_in_work() -> None:
    desk = make_desk(chats=5)
    first = desk.taken()
    second = assignment_next(rater=desk.rater, job=desk.job, ahead=True)
    submit(first)
    assert desk.taken() == second


def test_two_leases_of_one_rater_never_take_the_same_chat() -> None:
    desk = make_desk(chats=1, raters=2, overlap=2)
    desk.taken()
    assert assignment_next(rater=desk.rater, job=desk.job, ahead=True) is None


def test_the_chat_ahead_counts_as_one_to_go() -> None:
    desk = make_desk(chats=5)
    first = desk.taken()
    assignment_next(rater=desk.rater, job=desk.job, ahead=True)
    (row,) = queue_for(rater=desk.rater).jobs
    assert (row.done, row.total, row.assignment) == (0, 5, first.pk)
    progress = job_progress(job=desk.job, rater=desk.rater)
    assert (progress.done, progress.total) == (0, 5)


def test_who_lost_a_chat_is_not_given_it_while_another_rater_holds_it() -> None:
    desk = make_desk(chats=2)
    mine = desk.taken()
    expire(mine)
    desk.taken(desk.raters[1])
    submit(desk.taken(desk.raters[1]))
    theirs = desk.taken(desk.raters[1])
    assert theirs.chat_id == mine.chat_id
    assert assignment_next(rater=desk.rater, job=desk.job) is None


# ---------- extending ----------


def test_an_extended_lease_lasts_an_hour_from_then() -> None:
    desk = make_desk()
    mine = desk.taken()
    expire(mine)
    lease_extend(assignment=mine, rater=desk.rater)
    mine.refresh_from_db()
    assert mine.lease_expires_at is not None
    assert mine.lease_expires_at > timezone.now()


def test_a_submitted_a_lost_and_a_closed_chat_cannot_be_extended() -> None:
    desk = make_desk(chats=2)
    done = submit(desk.taken())
    lost = desk.taken()
    expire(lost)
    assert desk.taken(desk.raters[1]).chat_id == lost.chat_id

    def refused(assignment: Assignment) -> str:
        with pytest.raises(Conflict) as conflict:
            lease_extend(assignment=assignment, rater=desk.rater)
        return conflict.value.code

    assert (refused(done), refused(lost)) == ("submitted", "lease_lost")
    job_close(job=desk.job, by=None)
    assert refused(done) == "job_closed"


# ---------- groups ----------


def test_whoever_belongs_to_the_group_when_they_ask_may_label() -> None:
    desk = make_desk(chats=4, raters=1)
    team = Group.objects.create(name="night shift")
    early, late = make_user("early", Role.RATER), make_user("late", Role.RATER)
    early.groups.add(team)
    job = desk.opened(raters=[], group=team)
    assert assignment_next(rater=rater_for(user=early), job=job)
    assert assignment_next(rater=rater_for(user=late), job=job) is None
    assert [row.name for row in queue_for(rater=rater_for(user=late)).jobs] == []
    late.groups.add(team)
    assert assignment_next(rater=rater_for(user=late), job=job)
    assert [row.name for row in queue_for(rater=rater_for(user=late)).jobs] == ["November"]
    early.groups.remove(team)
    assert assignment_next(rater=rater_for(user=early), job=job) is None


def test_more_labels_a_chat_than_named_raters_and_members_who_may_label_are_refused() -> None:
    desk = make_desk(raters=2)
    team = Group.objects.create(name="night shift")
    for user in (make_user("new", Role.RATER), make_user("author", Role.AUTHOR), desk.rater.user):
        assert user is not None
        user.groups.add(team)
    with pytest.raises(ValidationError, match="need 4 raters"):
        desk.opened(group=team, overlap=4)
    assert desk.opened(group=team, overlap=3).assignments.count() == 9


# ---------- gold chats ----------


def test_about_the_rate_of_each_raters_chats_is_gold_whatever_their_share_of_the_work() -> None:
    desk = make_desk(chats=32, raters=2)
    job = desk.opened(overlap=2, gold_set=gold_set_of(desk, chats=15), gold_rate=0.2, seed=7)
    for rater in desk.raters:
        kinds = [row.kind for row in work_through(job, rater)]
        assert kinds.count("normal") == 32
        assert 7 <= kinds.count("gold") <= 9
        assert kinds[-1] == "normal"
        for start in range(0, 30, 5):  # one in each stretch of five
            assert kinds[start : start + 5].count("gold") == 1


def test_gold_comes_at_other_places_for_each_rater_and_the_seed_decides_them() -> None:
    desk = make_desk(chats=30, raters=2)
    gold = gold_set_of(desk, chats=8)
    places = set()
    for rater in desk.raters:
        job = desk.opened(overlap=1, raters=[rater], gold_set=gold, gold_rate=0.2, seed=3)
        kinds = [row.kind for row in work_through(job, rater)]
        places.add(tuple(n for n, kind in enumerate(kinds) if kind == "gold"))
    assert len(places) == 2


@pytest.mark.heavy
def test_nothing_that_a_rater_can_count_discloses_gold_chats() -> None:
    desk = make_desk(chats=20, raters=2)
    job = desk.opened(overlap=2, gold_set=gold_set_of(desk, chats=6), gold_rate=0.2)
    ids, totals, done = [], [], []
    while assignment := assignment_next(rater=desk.rater, job=job):
        ids.append(assignment.pk)
        progress = job_progress(job=job, rater=desk.rater)
        (row,) = [row for row in queue_for(rater=desk.rater).jobs if row.id == job.pk]
        assert (row.done, row.total) == (progress.done, progress.total)
        totals.append(progress.total)
        done.append(progress.done)
        submit(assignment)
    assert ids == sorted(ids)
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert set(totals) == {len(ids)}
    assert done == list(range(len(ids)))


def test_a_skipped_gold_chat_goes_to_nobody_and_lowers_the_total_by_one_like_any_other() -> None:
    desk = make_desk(chats=10, raters=2)
    job = desk.opened(overlap=2, gold_set=gold_set_of(desk, chats=6), gold_rate=0.4)
    total = job_progress(job=job, rater=desk.rater).total
    kinds = set()
    while assignment := assignment_next(rater=desk.rater, job=job):
        kinds.add(assignment.kind)
        assignment_skip(assignment=assignment, rater=desk.rater, reason="too_long")
        total -= 1
        assert job_progress(job=job, rater=desk.rater).total == total
    assert (kinds, total) == ({"normal", "gold"}, 0)
    assert Assignment.objects.filter(job=job, kind="gold", state="open").count() == 6


def test_an_expired_gold_lease_is_nobody_elses() -> None:
    desk = make_desk(chats=4, raters=2)
    job = desk.opened(gold_set=gold_set_of(desk, chats=3), gold_rate=0.5, seed=1)
    while not _is_gold(mine := assignment_next(rater=desk.rater, job=job) or pytest.fail("no gold chat")):
        pass
    expire(mine)
    others = {row.pk for row in work_through(job, desk.raters[1])}
    assert mine.pk not in others
    assert assignment_next(rater=desk.rater, job=job) == mine


def _is_gold(assignment: Assignment) -> bool:
    if assignment.kind != "gold":
        submit(assignment)
    return assignment.kind == "gold"


def test_chats_of_the_set_itself_and_chats_without_an_answer_are_no_gold() -> None:
    desk = make_desk(chats=3)
    gold = gold_set_of(desk, chats=2)
    gold.members.create(chat=make_chat("unknown"), position=8)
    gold.members.create(chat=desk.chats[0], position=9)
    job = desk.opened(gold_set=gold, gold_rate=0.1)
    patterns = Assignment.objects.filter(job=job, kind="gold").values_list("chat__external_id", flat=True)
    assert set(patterns) == {"known-0", "known-1"}
    Adjudication.objects.update(replaced_at=timezone.now())
    with pytest.raises(ValidationError, match="No chat of known"):
        desk.opened(gold_set=gold, gold_rate=0.1)


# ---------- closing ----------


def test_a_closed_job_gives_and_takes_nothing_more_and_keeps_what_there_is(lead_user: User) -> None:
    desk = make_desk(chats=2)
    done, mine = submit(desk.taken()), desk.taken()
    for _ in range(2):
        assert job_close(job=desk.job, by=lead_user).state == "closed"
    assert AuditEvent.objects.filter(verb="job closed", actor=lead_user).count() == 1
    assert assignment_next(rater=desk.rater, job=desk.job) is None
    with pytest.raises(Conflict, match="closed"):
        label_save(
            assignment=mine, rater=desk.rater, criterion=desk.criteria[0], value=True, client_id=uuid.uuid4()
        )
    done.refresh_from_db()
    assert done.state == "submitted"
    (row,) = queue_for(rater=desk.rater).jobs
    assert (row.done, row.total, row.closed) == (1, 1, True)


# ---------- cost ----------


@pytest.mark.heavy
def test_the_next_chat_takes_the_same_number_of_queries_at_40_and_2000_chats() -> None:
    desk = make_desk(chats=1, raters=2)
    counts = []
    for size in (40, 2000):
        template = Chat.objects.first()
        assert template is not None
        chats = Chat.objects.bulk_create(
            Chat(
                external_id=f"{size}-{n}",
                topic_id=template.topic_id,
                messages=template.messages,
                content_hash=f"{size}-{n}",
                message_count=2,
                char_count=40,
            )
            for n in range(size)
        )
        chat_set = make_set(desk.rubric, *chats, name=f"of {size}")
        job = desk.opened(chat_set=chat_set, overlap=2)
        assignment_next(rater=make_rater(), job=job)
        with CaptureQueriesContext(connection) as queries:
            assert assignment_next(rater=desk.rater, job=job)
        counts.append(len(queries))
    assert counts[0] == counts[1]
