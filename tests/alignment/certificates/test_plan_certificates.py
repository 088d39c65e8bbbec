"""The judge of a sample plan is certified like the default one; the plan's page shows its certificate."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.certificates.services.certificates import certificate_issue
from alignment.models.certificates import Certificate
from evaluation.models.judges import JudgeProfile
from evaluation.models.nightly import NightlyJudge, NightlyRun
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import yesterday
from tests.factories.certificates import RECIPE, make_qualifying, why
from tests.factories.nights import make_plan
from tests.factories.pages import page_text
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db
build_compared = make_qualifying


@pytest.fixture
def plan(in_use: Certificate, lead_user: User) -> SamplePlan:
    """A plan with the profile that was the default one; another recipe is the default now."""
    JudgeProfile.objects.update(name="Every night", is_default=False)
    JudgeProfile.objects.create(name="default", config=RECIPE | {"engine": "debate"}, is_default=True)
    profile = JudgeProfile.objects.get(name="Every night")
    rubric = polite().rubric
    return make_plan(rubric, by=lead_user, name="Production", profile=profile)


def judged(plan: SamplePlan, like: Run, *, ago: int = 0) -> Run:
    """A night that the judge of this run has judged."""
    day = yesterday() - timedelta(days=ago)
    sample = ChatSet.objects.create(name=f"Night {day}", rubric=plan.rubric, kind=ChatSet.Kind.SAMPLE)
    run = Run.objects.create(chat_set=sample, judge=like.judge, state=Run.State.DONE, options={})
    draw = SampleDraw.objects.create(plan=plan, day=day, seed=1, settings={}, chat_set=sample, sampled=1)
    NightlyRun.objects.create(draw=draw, run=run, tried_at=timezone.now())
    return run


def panel(lead: Client, plan: SamplePlan) -> str:
    return page_text(lead.get(reverse("alignment:certificate_plan", args=[plan.pk])))


def run_of(row: Certificate) -> Run:
    assert row.report.run is not None
    return row.report.run


def test_the_judge_of_an_active_plan_is_in_use(
    in_use: Certificate, plan: SamplePlan, lead_user: User
) -> None:
    assert why(in_use) == ("valid", ())
    Certificate.objects.all().delete()
    assert certificate_issue(run=run_of(in_use), by=lead_user).judge == in_use.judge


def test_a_paused_plan_or_another_recipe_ends_it(in_use: Certificate, plan: SamplePlan) -> None:
    SamplePlan.objects.update(state=SamplePlan.State.PAUSED)
    assert why(in_use) == ("expired", ("the settings of the default profile have changed",))
    SamplePlan.objects.update(state=SamplePlan.State.ACTIVE)
    JudgeProfile.objects.filter(name="Every night").update(config=RECIPE | {"samples": 3})
    assert why(in_use)[0] == "expired"


def test_the_page_of_a_plan_links_to_its_judges_certificate(
    in_use: Certificate, plan: SamplePlan, lead: Client
) -> None:
    page = page_text(lead.get(reverse("evaluation:sample_plan", args=[plan.pk])))
    assert reverse("alignment:certificate_plan", args=[plan.pk]) in page
    assert "no night has been judged yet" in panel(lead, plan)
    judged(plan, run_of(in_use))
    shown = panel(lead, plan)
    assert "Valid" in shown and reverse("alignment:certificate_detail", args=[in_use.pk]) in shown
    assert "Evaluate this judge" not in shown


def test_without_a_valid_one_it_shows_the_way(in_use: Certificate, plan: SamplePlan, lead: Client) -> None:
    judged(plan, run_of(in_use))
    Certificate.objects.update(revoked_at=timezone.now(), reason="Wrong labels")
    shown = panel(lead, plan)
    assert "is not valid: Wrong labels" in shown
    Certificate.objects.all().delete()
    shown = panel(lead, plan)
    profile = NightlyJudge.objects.get(plan=plan).profile_id
    assert "has no certificate" in shown
    assert reverse("alignment:report_run", args=[run_of(in_use).pk]) in shown
    assert f"{reverse('evaluation:run_new')}?profile={profile}" in shown


def test_the_number_of_queries_does_not_grow_with_nights(
    in_use: Certificate, plan: SamplePlan, lead: Client
) -> None:
    counts: list[Any] = []
    for ago in range(4):
        judged(plan, run_of(in_use), ago=ago)
        panel(lead, plan)
        with CaptureQueriesContext(connection) as queries:
            panel(lead, plan)
        counts.append(len(queries))
    assert counts[0] == counts[-1]
