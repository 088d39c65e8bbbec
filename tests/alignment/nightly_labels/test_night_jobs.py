"""Raters get a random share of a night's judged chats, and more of the judge's False, once."""

from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest
from django.utils import timezone

from alignment.nightly_labels.services import night_jobs_work
from common.models import InboxItem
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import Run, Unit, Verdict
from labeling.models.chats import ChatSetMember
from labeling.models.labels import LabelingJob
from labeling.models.people import Role, User
from labeling.models.sampling import SampledChat, SampleDraw, SamplePlan
from labeling.sampling.core import label_probabilities
from labeling.sampling.queries import yesterday
from labeling.sampling.services import draw_night
from tests.factories.nights import arrived, make_plan
from tests.factories.rows import make_rubric, make_user
from tests.factories.verdicts import make_judge, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def raters(db: None) -> list[User]:
    return [make_user("mara", Role.RATER), make_user("noa", Role.RATER)]


def judged_night(
    plan: SamplePlan, *, false: Callable[[int], bool], state: str = "done", left: Iterable[int] = ()
) -> SampleDraw:
    """A night whose run judged all chats but those at the places `left`, False by place in the sample."""
    draw = draw_night(plan=plan, day=yesterday(), spreads={}, seed=4)
    assert draw.chat_set is not None
    run = make_run(make_judge(plan.rubric), draw.chat_set, state=state)
    NightlyRun.objects.create(draw=draw, run=run, tried_at=timezone.now())
    criterion, now = plan.rubric.criteria.get(), timezone.now()
    places = dict(enumerate(draw.chat_set.members.order_by("position").values_list("chat", flat=True)))
    for place, chat in places.items():
        judged = place not in left
        Unit.objects.create(run=run, chat_id=chat, group=0, state="done" if judged else "open")
        if judged:
            Verdict.objects.create(
                run=run,
                chat_id=chat,
                criterion=criterion,
                state="read",
                value=not false(place),
                stored_at=now,
            )
    return draw


def test_the_job_has_the_audit_and_more_of_the_suspects(lead_user: User, raters: list[User]) -> None:
    arrived({"refund": 60, "other": 20})
    plan = make_plan(
        make_rubric("polite"), by=lead_user, chats=40, audit_share=0.1, oversample=5, raters=raters
    )
    draw = judged_night(plan, false=lambda place: place < 10)
    for _ in range(2):
        night_jobs_work()
    job = LabelingJob.objects.get()
    draw.refresh_from_db()
    assert (draw.job, job.created_by, job.order) == (job, lead_user, "random")
    assert sorted(job.raters.values_list("name", flat=True)) == ["mara", "noa"]
    sampled = SampledChat.objects.all()
    assert sampled.filter(label_source="audit").count() == 4
    assert sampled.filter(label_source="suspect").count() == 5
    chances = label_probabilities(judged=40, suspects=10, audit=4, oversample=5)
    for one in sampled:
        assert one.audit_probability == pytest.approx(0.5 * 0.1)
        suspect = Verdict.objects.get(chat=one.chat_id).value is False
        expected = chances.suspect if suspect else chances.other
        assert one.label_probability == pytest.approx(0.5 * expected)
    members = ChatSetMember.objects.filter(chat_set=job.chat_set)
    labelled = sampled.exclude(label_source="").values_list("chat", flat=True)
    assert set(members.values_list("chat", flat=True)) == set(labelled)
    assert set(members.values_list("stratum", flat=True)) <= {"refund", "other"}  # no hint at a verdict
    record = job.chat_set.sampling or {}
    assert (record["run"], record["oversampled"]) == (Run.objects.get().pk, True)
    assert sum(row["drawn"] for row in record["strata"]) == 9


def test_a_run_at_work_or_just_paused_has_no_job_yet(lead_user: User, raters: list[User]) -> None:
    arrived({"refund": 20})
    plan = make_plan(make_rubric("polite"), by=lead_user, chats=10, audit_share=0.2, raters=raters)
    draw = judged_night(plan, false=lambda place: False, state="paused", left=range(5, 10))
    night_jobs_work()
    assert not LabelingJob.objects.exists()
    night_jobs_work(timezone.now() + timedelta(hours=25))  # nobody gave it more budget
    assert LabelingJob.objects.get().chat_set.members.count() == 1
    judged = SampledChat.objects.filter(draw=draw, label_probability__isnull=False)
    assert [one.audit_probability for one in judged] == [pytest.approx(0.5 * 0.5 * 0.2)] * 5


def test_a_job_that_cannot_be_opened_is_told_once_and_tried_again(
    lead_user: User, raters: list[User]
) -> None:
    arrived({"refund": 20})
    plan = make_plan(make_rubric("polite"), by=lead_user, chats=10, audit_share=0.2, overlap=2, raters=raters)
    draw = judged_night(plan, false=lambda place: False)
    plan.raters.remove(raters[1])
    for _ in range(2):
        night_jobs_work()
    draw.refresh_from_db()
    assert "need 2 raters" in draw.labels_problem
    assert InboxItem.objects.get(user=lead_user).subject == f"plan:{plan.pk}"
    assert not SampledChat.objects.exclude(label_source="").exists()
    plan.raters.add(raters[1])
    night_jobs_work()
    draw.refresh_from_db()
    assert (draw.job, draw.labels_problem) == (LabelingJob.objects.get(), "")


def test_a_plan_without_raters_opens_no_job(lead_user: User) -> None:
    arrived({"refund": 20})
    plan = make_plan(make_rubric("polite"), by=lead_user, chats=10)
    judged_night(plan, false=lambda place: True)
    night_jobs_work()
    assert not LabelingJob.objects.exists()
