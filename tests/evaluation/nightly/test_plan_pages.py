"""Pages and API of sample plans: create, change, preview, pause; queries stay the same."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluation.models.judges import JudgeProfile
from evaluation.models.nightly import NightlyJudge
from evaluation.nightly.services import night_sample
from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import Rubric
from labeling.models.sampling import SamplePlan
from labeling.people.services.tokens import token_create
from labeling.sampling.queries import yesterday
from tests.factories.nights import arrived, make_plan
from tests.factories.rows import make_rubric, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", "clear")


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def filled(rubric: Rubric, **other: Any) -> dict[str, Any]:
    profile = JudgeProfile.objects.get(is_default=True)
    return {
        "name": "Every night",
        "rubric": rubric.pk,
        "starts_at": "02:30",
        "chats": 500,
        "rule": "sqrt",
        "minimum": 10,
        "profile": profile.pk,
        "budget_usd": "3.5",
        "mode": "live",
        "audit_percent": "0",
        "oversample": "0",
        "overlap": 1,
    } | other


def test_a_lead_creates_and_changes_a_plan(lead: Client, rubric: Rubric) -> None:
    rater = make_user("mara", Role.RATER)
    answer = lead.post(reverse("evaluation:sample_plan_new"), filled(rubric))
    plan = SamplePlan.objects.get()
    assert answer.headers["Location"] == reverse("evaluation:sample_plan", args=[plan.pk])
    group = Group.objects.get(name=Role.RATER)
    changed = filled(rubric, audit_percent="5", raters=[rater.pk], group=group.pk, oversample="20")
    lead.post(reverse("evaluation:sample_plan_edit", args=[plan.pk]), changed)
    plan.refresh_from_db()
    assert (plan.audit_share, plan.oversample, list(plan.raters.all())) == (0.05, 20, [rater])
    assert NightlyJudge.objects.get().budget_usd == 3.5
    page = lead.get(reverse("evaluation:sample_plan_edit", args=[plan.pk])).content.decode()
    assert 'value="02:30"' in page
    verbs = AuditEvent.objects.filter(object_type="labeling.sampleplan").order_by("pk")
    assert list(verbs.values_list("verb", flat=True)) == ["plan created", "plan changed"]


def test_what_the_service_refuses_stands_at_its_field(lead: Client, rubric: Rubric) -> None:
    text = lead.post(
        reverse("evaluation:sample_plan_new"), filled(rubric, audit_percent="5")
    ).content.decode()
    assert "Choose raters, or a group with raters." in text
    text = lead.post(reverse("evaluation:sample_plan_new"), filled(rubric, maximum=5)).content.decode()
    assert "The maximum of a topic is at least its minimum" in text
    assert not SamplePlan.objects.exists()


def test_the_preview_shows_the_allocation_on_yesterdays_chats(lead: Client, rubric: Rubric) -> None:
    arrived({"refund": 30, "delivery": 10})
    url = reverse("evaluation:sample_plan_preview")
    text = lead.post(url, filled(rubric, name="", chats=8, minimum=0, rule="proportional")).content.decode()
    assert "of 40 chats" in text
    assert [cell.split("<")[0] for cell in text.split('class="num">')[3:]] == ["30", "6", "10", "2"]
    assert "Correct the sample" in lead.post(url, filled(rubric, chats="many")).content.decode()
    few = lead.post(url, filled(rubric, chats=80)).content.decode()
    assert "fewer chats than planned" in few


def test_the_api_creates_changes_pauses_and_lists(lead: Client, rubric: Rubric) -> None:
    arrived({"refund": 30})
    profile = JudgeProfile.objects.get(is_default=True).name
    body = {"name": "Nightly", "rubric": rubric.name, "profile": profile, "chats": 5}
    made = lead.post(reverse("api_sample_plans"), body, "application/json")
    assert (made.status_code, made.json()["starts_at"]) == (201, "02:00:00")
    args = [made.json()["id"]]
    changed = lead.patch(reverse("api_sample_plan", args=args), {"chats": 6}, "application/json").json()
    assert (changed["chats"], changed["name"]) == (6, "Nightly")
    assert lead.post(reverse("api_sample_plan_pause", args=args)).json()["state"] == "paused"
    assert lead.post(reverse("api_sample_plan_resume", args=args)).json()["state"] == "active"
    preview = lead.get(reverse("api_sample_preview", args=args)).json()
    assert preview["strata"] == [{"topic": "refund", "size": 30, "n": 6, "probability": 0.2}]
    night_sample(plan=SamplePlan.objects.get(), day=yesterday())
    nights = lead.get(reverse("api_sample_nights", args=args)).json()["results"]
    assert [(one["chats"], one["frame"], one["job"]) for one in nights] == [(6, 30, None)]
    assert lead.get(reverse("api_sample_plans")).json()["results"][0]["last_night"]["chats"] == 6


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("rubric", {"rubric": "none"}),
        ("profile", {"profile": "none"}),
        ("raters", {"raters": ["nobody"]}),
        ("group", {"group": "none"}),
        ("criteria", {"criteria": ["none"]}),
        ("maximum", {"minimum": 4, "maximum": 2}),
        ("budgt", {"budgt": 2}),
    ],
)
def test_the_api_refuses_by_field(lead: Client, rubric: Rubric, field: str, wrong: dict[str, Any]) -> None:
    profile = JudgeProfile.objects.get(is_default=True).name
    body = {"name": "Nightly", "rubric": rubric.name, "profile": profile, "chats": 5} | wrong
    answer = lead.post(reverse("api_sample_plans"), body, "application/json")
    assert (answer.status_code, list(answer.json())) == (400, [field])


def test_a_token_without_labelling_opens_no_jobs_by_a_plan(lead_user: User, rubric: Rubric) -> None:
    token = token_create(user=lead_user, name="runs", scopes=["start_runs"], days=None)
    profile = JudgeProfile.objects.get(is_default=True).name
    make_user("mara", Role.RATER)
    body = {"name": "Nightly", "rubric": rubric.name, "profile": profile, "chats": 5} | {
        "audit_share": 0.1,
        "raters": ["mara"],
    }
    client = Client(headers={"authorization": f"Token {token.secret}"})
    answer = client.post(reverse("api_sample_plans"), body, "application/json")
    assert (answer.status_code, list(answer.json())) == (400, ["audit_share"])


def test_queries_do_not_grow_with_plans_and_nights(lead: Client, lead_user: User, rubric: Rubric) -> None:
    counts = []
    for number in (1, 2, 3):
        arrived({f"topic {number}": 6})
        plan = make_plan(rubric, by=lead_user, name=f"Plan {number}", chats=3)
        night_sample(plan=plan, day=yesterday())
        urls = (reverse("evaluation:sample_plan_list"), reverse("api_sample_plans"))
        spent = []
        for url in urls:
            with CaptureQueriesContext(
                connection,
            ) as queries:
                assert lead.get(url).status_code == 200
            spent.append(len(queries))
        counts.append(spent)
    assert counts[1] == counts[2]
