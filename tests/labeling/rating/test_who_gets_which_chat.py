"""Chats that a rater is not given: held or shown elsewhere, known as gold; lost ones, which come again."""

import uuid

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from labeling.consensus.services.consensus import criteria_lock
from labeling.jobs.services import job_close
from labeling.models.chats import ChatSet
from labeling.models.labels import Adjudication, Assignment, Label, LabelingJob
from labeling.models.people import Role, Workspace
from labeling.models.rubric import Criterion
from labeling.rating.queries.labels import may_reveal
from labeling.rating.queries.queue import queue_for
from labeling.rating.services.answers import label_save
from labeling.rating.services.leases import Conflict, assignment_next, assignment_skip
from labeling.rating.services.submission import assignment_submit
from tests.factories.api_calls import at_once, label_url, put, signed_in
from tests.factories.labelling_job import (
    Desk,
    answer_all,
    expire,
    gold_set_of,
    make_desk,
    user_of,
    work_through,
)
from tests.factories.rows import make_chat, make_set

pytestmark = pytest.mark.django_db


def next_of(desk: Desk, job: LabelingJob) -> Assignment | None:
    return assignment_next(rater=desk.rater, job=job)


def submit(assignment: Assignment) -> Assignment:
    assert assignment.rater is not None
    answer_all(assignment)
    return assignment_submit(assignment=assignment, rater=assignment.rater)


# ---------- the same chat in two jobs ----------


def test_a_chat_that_the_rater_holds_in_another_open_job_is_not_given_to_them() -> None:
    desk = make_desk(chats=2)
    second = desk.opened()
    held = desk.taken()
    other = next_of(desk, second)
    assert other is not None
    assert other.chat_id != held.chat_id
    submit(other)
    assert next_of(desk, second) is None
    assert {row.name: row.left for row in queue_for(rater=desk.rater).jobs} == {"October": 2, "November": 0}
    submit(held)
    again = next_of(desk, second)
    assert again is not None
    assert again.chat_id == held.chat_id


def test_a_chat_held_in_a_closed_job_is_free_in_others_and_keeps_no_view_shut() -> None:
    Workspace.current()
    Workspace.objects.update(reveal_after_submit=True)
    desk = make_desk(chats=1)
    held = desk.taken()
    job_close(job=desk.job, by=None)
    again = next_of(desk, desk.opened())
    assert again is not None
    assert again.chat_id == held.chat_id
    assert may_reveal(assignment=submit(again))


def test_a_chat_whose_judges_view_a_rater_was_shown_is_not_given_to_them_again() -> None:
    desk = make_desk(chats=2)
    done = submit(desk.taken())
    Assignment.objects.filter(pk=done.pk).update(revealed_at=timezone.now())
    gold = gold_set_of(desk, chats=1)
    gold.members.create(chat=done.chat, position=9)
    chats = make_set(desk.rubric, *desk.chats, name="again")
    second = desk.opened(chat_set=chats)
    assert [row.chat for row in work_through(second, desk.rater)] == [desk.chats[1]]
    assert [row.chat for row in work_through(second, desk.raters[1])] == [done.chat]


# ---------- gold ----------


def test_a_chat_that_a_rater_labelled_in_another_job_never_comes_as_gold() -> None:
    """A chat they know already could be nothing else, and their answer would replace the one before."""
    desk = make_desk(chats=8)
    gold = gold_set_of(desk, chats=3)
    submitted, imported, new = gold.members.order_by("position")
    before = desk.opened(chat_set=make_set(desk.rubric, submitted.chat, name="before"))
    answer_all(earlier := assignment_next(rater=desk.rater, job=before) or pytest.fail("nothing to label"))
    assignment_submit(assignment=earlier, rater=desk.rater)
    Label.objects.create(
        chat=imported.chat,
        criterion=desk.criteria[0],
        rater=desk.rater,
        version=desk.criteria[0].versions.get(),
        value=True,
        state="submitted",
        given_at=timezone.now(),
    )
    job = desk.opened(overlap=2, gold_set=gold, gold_rate=0.5)
    total = {row.id: row.total for row in queue_for(rater=desk.rater).jobs}[job.pk]
    met = list(work_through(job, desk.rater))
    assert [row.chat for row in met if row.kind == "gold"] == [new.chat]
    assert total == len(met) == 9
    others = {row.chat for row in work_through(job, desk.raters[1]) if row.kind == "gold"}
    assert others == {submitted.chat, imported.chat, new.chat}


def test_chats_of_the_calibration_round_are_no_gold() -> None:
    desk = make_desk()
    gold = gold_set_of(desk, chats=2)
    known, other = gold.members.order_by("position")
    first = make_set(desk.rubric, known.chat, name="round")
    ChatSet.objects.filter(pk=first.pk).update(kind="calibration")
    first.refresh_from_db()
    job = desk.opened(gold_set=gold, gold_rate=0.1, calibration_set=first)
    assert [row.chat for row in job.assignments.filter(kind="gold")] == [other.chat]


def test_a_gold_chat_whose_known_answer_was_withdrawn_does_not_come_any_more() -> None:
    desk = make_desk(chats=6)
    job = desk.opened(overlap=2, gold_set=gold_set_of(desk, chats=2), gold_rate=0.5)
    withdrawn = Adjudication.objects.order_by("pk")[0]
    Adjudication.objects.filter(pk=withdrawn.pk).update(replaced_at=timezone.now())
    total = {row.id: row.total for row in queue_for(rater=desk.rater).jobs}[job.pk]
    gold = [row.chat_id for row in work_through(job, desk.rater) if row.kind == "gold"]
    assert (len(gold), total) == (1, 7)
    assert withdrawn.chat_id not in gold


def test_a_gold_chat_whose_known_answers_are_all_of_retired_criteria_does_not_come() -> None:
    desk = make_desk(chats=6)
    job = desk.opened(overlap=2, gold_set=gold_set_of(desk, chats=2), gold_rate=0.5)
    Criterion.objects.filter(pk=desk.criteria[0].pk).update(state="retired")
    assert {row.kind for row in work_through(job, desk.rater)} == {"normal"}


# ---------- lost leases ----------


def lost(desk: Desk) -> Assignment:
    """A chat of the first rater's that the second one has now."""
    mine = desk.taken()
    expire(mine)
    assert desk.taken(desk.raters[1]).chat_id == mine.chat_id
    return mine


def test_a_lost_chat_may_come_back_and_its_old_page_still_says_that_it_was_lost() -> None:
    desk = make_desk(chats=1)
    mine = lost(desk)
    expire(Assignment.objects.get(state="leased"))
    again = desk.taken()
    assert (again.chat_id, again.pk == mine.pk) == (mine.chat_id, False)
    answer = put(signed_in(user_of(desk.rater)), label_url(mine))
    assert (answer.status_code, answer.json()["code"]) == (409, "lease_lost")
    assert set(Assignment.objects.filter(rater=desk.rater).values_list("state", flat=True)) == {
        "skipped",
        "leased",
    }
    assert submit(again).state == "submitted"


def test_a_chat_can_be_lost_and_come_back_many_times() -> None:
    desk = make_desk(chats=1)
    for _ in range(3):
        lost(desk)
        expire(Assignment.objects.get(state="leased"))
    submit(desk.taken())
    assert Assignment.objects.filter(state="submitted").count() == 1


def test_a_rater_who_lost_a_chat_reads_that_and_not_that_they_skipped_it() -> None:
    desk = make_desk(chats=1)
    mine = lost(desk)
    with pytest.raises(Conflict) as refused:
        label_save(
            assignment=mine, rater=desk.rater, criterion=desk.criteria[0], value=True, client_id=uuid.uuid4()
        )
    assert refused.value.code == "lease_lost"


# ---------- one ahead ----------


def test_no_chat_is_fetched_ahead_where_another_rater_would_go_away_empty() -> None:
    desk = make_desk(chats=3, raters=2)
    desk.taken()
    assert assignment_next(rater=desk.rater, job=desk.job, ahead=True) is not None
    few = desk.opened(chat_set=make_set(desk.rubric, make_chat(), make_chat(), name="two"))
    assert next_of(desk, few) is not None
    assert assignment_next(rater=desk.rater, job=few, ahead=True) is None
    assert assignment_next(rater=desk.raters[1], job=few) is not None
    assert Assignment.objects.filter(job=few, state="leased").count() == 2


def test_a_rater_at_work_starves_nobody_and_may_fetch_the_last_chat_ahead() -> None:
    desk = make_desk(chats=3, raters=2)
    desk.taken()
    desk.taken(desk.raters[1])
    assert assignment_next(rater=desk.rater, job=desk.job, ahead=True) is not None


def test_members_of_the_group_who_have_not_begun_keep_nobody_from_fetching_ahead() -> None:
    desk = make_desk(chats=3, raters=3)
    group = Group.objects.get(name=Role.RATER)
    job = desk.opened(raters=[], group=group)
    assert next_of(desk, job) is not None
    ahead = assignment_next(rater=desk.rater, job=job, ahead=True)
    assert ahead is not None
    assignment_skip(assignment=ahead, rater=desk.rater, reason="too_long")
    mate = assignment_next(rater=desk.raters[1], job=job)
    assert mate is not None
    assignment_skip(assignment=mate, rater=desk.raters[1], reason="too_long")
    Assignment.objects.filter(job=job, position=2, state="open").update(
        state="submitted", rater=desk.raters[2]
    )
    assert assignment_next(rater=desk.rater, job=job, ahead=True) is None


def test_with_every_criterion_retired_nothing_is_submitted() -> None:
    desk = make_desk(chats=1)
    mine = desk.taken()
    Criterion.objects.update(state="retired")
    answer = signed_in(user_of(desk.rater)).post(
        reverse("api_submit", args=[mine.pk]), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_asked")
    mine.refresh_from_db()
    assert mine.state == "leased"


# ---------- cost ----------


def statements(desk: Desk, rater_number: int = 0) -> list[str]:
    """What asking for the next chat sends to the database, the transaction itself apart."""
    rater = desk.raters[rater_number]
    with CaptureQueriesContext(connection) as queries:
        assert assignment_next(rater=rater, job=desk.job)
    plain = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
    return [query["sql"] for query in queries if not query["sql"].startswith(plain)]


def test_taking_a_chat_is_five_statements() -> None:
    desk = make_desk(chats=5)
    desk.taken(desk.raters[1])  # SQL that is written once is written now
    sent = statements(desk)
    assert [sql.split()[0] for sql in sent] == ["SELECT", "SELECT", "SELECT", "DELETE", "INSERT"]


def test_a_lost_chat_is_taken_over_by_marking_it_instead_of_deleting_a_slot() -> None:
    desk = make_desk(chats=1)
    expire(desk.taken())
    sent = statements(desk, 1)
    assert [sql.split()[0] for sql in sent] == [*["SELECT"] * 6, "UPDATE", "INSERT"]


def test_asking_again_writes_nothing_while_the_lease_is_young_and_renews_it_later() -> None:
    desk = make_desk()
    mine = desk.taken()
    assert [sql.split()[0] for sql in statements(desk)] == ["SELECT", "SELECT"]
    expire(mine)
    assert [sql.split()[0] for sql in statements(desk)] == ["SELECT", "SELECT", "UPDATE"]
    mine.refresh_from_db()
    assert mine.lease_expires_at is not None
    assert mine.lease_expires_at > timezone.now()


def test_a_chat_that_was_skipped_stays_away_and_needs_no_more_statements() -> None:
    desk = make_desk(chats=5)
    mine = desk.taken()
    assignment_skip(assignment=mine, rater=desk.rater, reason="too_long")
    assert len(statements(desk)) == 5
    assert desk.taken().chat_id != mine.chat_id


@pytest.mark.django_db(transaction=True)
def test_a_first_answer_does_not_wait_for_those_who_refresh_the_consensus() -> None:
    """On PostgreSQL; SQLite has one writer at a time in any case."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no row locks")
    desk = make_desk()
    mine = desk.taken()

    def save(_: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        label_save(
            assignment=mine, rater=desk.rater, criterion=desk.criteria[0], value=True, client_id=uuid.uuid4()
        )

    with transaction.atomic():
        criteria_lock(criterion_ids=[row.pk for row in desk.criteria])
        at_once(save, times=1)
    assert Label.objects.count() == 1
