"""Calibration rounds: every rater labels a small set first, a lead starts the job, nobody skips the round."""

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.utils import timezone

from labeling.jobs.services import job_close, job_raters_add, job_start
from labeling.models.chats import ChatSet
from labeling.models.labels import Assignment, LabelingJob
from labeling.models.people import AuditEvent, Role, User
from labeling.people.services.roles import rater_for
from labeling.rating.queries.queue import queue_for
from labeling.rating.services.leases import Conflict, assignment_next, assignment_skip
from labeling.rating.services.submission import assignment_submit
from tests.factories.labelling_job import Desk, answer_all, make_desk, work_through
from tests.factories.rows import make_chat, make_rater, make_set, make_user

pytestmark = pytest.mark.django_db


def submit(assignment: Assignment) -> Assignment:
    assert assignment.rater is not None
    answer_all(assignment)
    return assignment_submit(assignment=assignment, rater=assignment.rater)


@pytest.fixture
def waiting(lead_user: User) -> tuple[Desk, LabelingJob]:
    """A job of two raters that waits for a round of two chats."""
    desk = make_desk(chats=3, raters=2)
    calibration = make_set(desk.rubric, make_chat("round-1"), make_chat("round-2"), name="round")
    ChatSet.objects.filter(pk=calibration.pk).update(kind="calibration")
    calibration.refresh_from_db()
    return desk, desk.opened(calibration_set=calibration, by=lead_user)


def round_of(job: LabelingJob) -> LabelingJob:
    assert job.calibration is not None
    return job.calibration


def test_a_job_waits_for_its_round_and_every_rater_labels_every_chat_of_it_first(
    waiting: tuple[Desk, LabelingJob],
) -> None:
    desk, job = waiting
    assert (job.state, round_of(job).state) == ("waiting", "open")
    for rater in desk.raters:
        assert assignment_next(rater=rater, job=job) is None
        assert [row.name for row in queue_for(rater=rater).jobs] == ["November: calibration", "October"]
        rows = list(work_through(round_of(job), rater))
        assert [row.chat.external_id for row in rows] == ["round-1", "round-2"]
        assert {row.kind for row in rows} == {"calibration"}


def test_a_job_cannot_start_while_nobody_has_finished_its_round(waiting: tuple[Desk, LabelingJob]) -> None:
    desk, job = waiting
    submit(assignment_next(rater=desk.rater, job=round_of(job)) or pytest.fail("no chats to label"))
    with pytest.raises(ValidationError, match="No rater has finished the calibration round"):
        job_start(job=job, by=None)
    job.refresh_from_db()
    assert job.state == "waiting"


def test_a_started_job_says_who_had_not_finished_the_round(
    waiting: tuple[Desk, LabelingJob], lead_user: User
) -> None:
    desk, job = waiting
    list(work_through(round_of(job), desk.rater))
    started = job_start(job=job, by=lead_user)
    assert (started.job.state, started.missing) == ("open", ("rater-2",))
    assert AuditEvent.objects.get(verb="job started").detail["missing"] == ["rater-2"]
    with pytest.raises(ValidationError, match="does not wait"):
        job_start(job=job, by=lead_user)


def test_who_has_not_finished_the_round_gets_no_chat_of_the_started_job(
    waiting: tuple[Desk, LabelingJob],
) -> None:
    desk, job = waiting
    list(work_through(round_of(job), desk.rater))
    job_start(job=job, by=None)
    job.refresh_from_db()
    assert assignment_next(rater=desk.rater, job=job)
    late = desk.raters[1]
    queue = queue_for(rater=late)
    assert queue.current is not None
    assert queue.current.name == "November: calibration"
    assert {row.name: row.held_up for row in queue.jobs} == {
        "November: calibration": False,
        "November": True,
        "October": False,
    }
    assert len(list(work_through(round_of(job), late))) == 2
    assert not any(row.held_up for row in queue_for(rater=late).jobs)
    assert assignment_next(rater=late, job=job)


def test_a_chat_of_the_round_that_was_skipped_or_shown_with_the_judges_view_holds_up_nobody(
    waiting: tuple[Desk, LabelingJob],
) -> None:
    desk, job = waiting
    late = desk.raters[1]
    list(work_through(round_of(job), desk.rater))
    job_start(job=job, by=None)
    job.refresh_from_db()
    with pytest.raises(Conflict, match="Finish the calibration round of this job first"):
        assignment_next(rater=late, job=job)
    mine = assignment_next(rater=late, job=round_of(job))
    assert mine is not None
    assignment_skip(assignment=mine, rater=late, reason="too_long")
    (other,) = round_of(job).assignments.filter(state="open").exclude(chat=mine.chat_id)
    before = desk.opened(chat_set=make_set(desk.rubric, other.chat, name="before"), raters=[late])
    list(work_through(before, late))
    with pytest.raises(Conflict):
        assignment_next(rater=late, job=job)
    before.assignments.update(revealed_at=timezone.now())
    assert assignment_next(rater=late, job=round_of(job)) is None
    assert assignment_next(rater=late, job=job)


def test_closing_the_round_of_a_started_job_lets_everybody_begin(waiting: tuple[Desk, LabelingJob]) -> None:
    desk, job = waiting
    list(work_through(round_of(job), desk.rater))
    job_start(job=job, by=None)
    job_close(job=round_of(job), by=None)
    job.refresh_from_db()
    assert assignment_next(rater=desk.raters[1], job=job)


def test_who_joins_the_group_later_gets_the_whole_round_too(waiting: tuple[Desk, LabelingJob]) -> None:
    desk, _ = waiting
    team = Group.objects.create(name="night shift")
    make_user("early", Role.RATER).groups.add(team)
    job = desk.opened(raters=[], group=team, calibration_set=ChatSet.objects.get(name="round"))
    late = make_user("late", Role.RATER)
    late.groups.add(team)
    (row, *_) = queue_for(rater=rater_for(user=late)).jobs
    assert (row.name, row.total, row.calibration) == ("November: calibration", 2, True)
    assert len(list(work_through(round_of(job), rater_for(user=late)))) == 2


def test_a_round_grows_by_each_added_rater_and_counts_accounts_that_never_labelled(
    waiting: tuple[Desk, LabelingJob],
) -> None:
    desk, _ = waiting
    team = Group.objects.create(name="night shift")
    for name in ("one", "two", "three"):
        make_user(name, Role.RATER).groups.add(team)
    job = desk.opened(raters=[], group=team, calibration_set=ChatSet.objects.get(name="round"))
    assert round_of(job).overlap == 3
    job_raters_add(job=job, raters=[make_rater("four")], by=None)
    round_of(job).refresh_from_db()
    assert round_of(job).overlap == 4


def test_a_calibration_set_must_be_one_of_the_same_rubric_and_not_the_jobs_own(
    waiting: tuple[Desk, LabelingJob],
) -> None:
    desk, job = waiting
    for wrong in (desk.chat_set, make_set(desk.rubric, make_chat(), name="curated")):
        with pytest.raises(ValidationError, match="not a calibration set other than this set"):
            desk.opened(calibration_set=wrong)
    with pytest.raises(ValidationError, match="not a calibration set other than this set"):
        desk.opened(chat_set=round_of(job).chat_set, calibration_set=round_of(job).chat_set)


def test_closing_a_waiting_job_closes_its_round_and_the_round_alone_cannot_be_closed(
    waiting: tuple[Desk, LabelingJob],
) -> None:
    _, job = waiting
    with pytest.raises(ValidationError, match="November waits for this round"):
        job_close(job=round_of(job), by=None)
    job_close(job=job, by=None)
    assert set(LabelingJob.objects.exclude(name="October").values_list("state", flat=True)) == {"closed"}
