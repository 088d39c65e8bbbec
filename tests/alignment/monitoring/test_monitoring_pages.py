"""Monitoring: weighted rates on page, file and API; who sees what; the chats behind a point."""

from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.monitoring.queries.criterion import failing_chats
from evaluation.models.judges import Judge
from evaluation.models.runs import Verdict
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import Role
from labeling.models.rubric import Criterion, Rubric
from labeling.sampling.queries import yesterday
from labeling.sampling.services import draw_night
from tests.factories.nights import arrived, make_plan
from tests.factories.production import Judged, judged_sample, labelled_set, production_day
from tests.factories.rows import make_rubric, make_set, make_user
from tests.factories.verdicts import make_judge

pytestmark = pytest.mark.django_db
MONDAY = date(2026, 11, 2)
TOPICS = {"refund": Judged(300, 8, 2), "tip": Judged(100, 2, 8)}
RATE = 0.8 * 0.75 + 0.2 * 0.25


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", passes_when=False)


@pytest.fixture
def judge(rubric: Rubric) -> Judge:
    return make_judge(rubric)


def signed_in(role: Role) -> Client:
    client = Client()
    client.force_login(make_user(role.value, role))
    return client


def document(client: Client, **query: str) -> dict[str, Any]:
    answer = client.get(reverse("api_monitoring"), query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_page_api_and_file_show_the_rate_of_all_chats_and_call_it_uncorrected(
    rubric: Rubric, judge: Judge
) -> None:
    for number in range(2):
        production_day(MONDAY + timedelta(days=number), TOPICS, judge=judge, rubric=rubric)
    client = signed_in(Role.LEAD)
    found = document(client)
    (line,) = found["criteria"]
    (point,) = line["points"]
    assert (point["judged_chats"], point["chats"]) == (40, 800)
    assert point["uncorrected"]["value"] == pytest.approx(RATE)
    assert (point["corrected"]["value"], point["corrected"]["reason"]) == (None, "no_labels")
    assert found["session_score"]["points"][0]["uncorrected"]["value"] == pytest.approx(RATE)
    assert {row["topic"]: row["weight"] for row in found["coverage"]} == {"refund": 1.5, "tip": 0.5}
    shares = {row["low"]: row["share"] for row in found["session_scores"]}
    assert (shares[0.0], shares[1.0]) == (pytest.approx(1 - RATE), pytest.approx(RATE))
    page = client.get(reverse("monitoring:overview")).content.decode()
    assert 'data-value="0.6500"' in page
    assert "uncorrected" in page
    rows = client.get(reverse("monitoring:rates_csv")).content.decode().splitlines()
    assert any(row.startswith("criterion,polite,2026-11-02,2026-11-08") and "0.65" in row for row in rows)


def test_a_plans_sample_counts_for_its_day_with_the_chats_that_it_was_drawn_from(
    rubric: Rubric, judge: Judge
) -> None:
    """40 refund chats and 10 tips; 5 of each are judged. 30 chats of a curated set are no part of it."""
    chats = arrived({"refund": 70, "tip": 10})
    Chat.objects.update(started_at=timezone.now() - timedelta(days=3))
    make_set(rubric, *chats[:30], name="curated")
    plan = make_plan(rubric, by=None, chats=10, rule="equal")
    run = judged_sample(
        draw_night(plan=plan, day=yesterday(), spreads={}), {"refund": 4, "tip": 1}, judge=judge
    )
    client = signed_in(Role.LEAD)
    found = document(client, step="day")
    (point,) = found["criteria"][0]["points"]
    assert point["first_day"] == yesterday().isoformat()
    assert (point["judged_chats"], point["chats"], point["covered"]) == (10, 50, 1)
    assert point["uncorrected"]["value"] == pytest.approx(0.8 * 0.8 + 0.2 * 0.2)
    assert found["session_score"]["points"][0]["chats"] == 50
    assert {row["topic"]: row["chats"] for row in found["coverage"]} == {"refund": 40, "tip": 10}
    page = client.get(reverse("monitoring:criterion", args=["polite"]), {"step": "day"})
    failing = Verdict.objects.filter(run=run, value=True)
    assert {one.verdict.pk for one in page.context["chats"]} == {row.pk for row in failing}


def test_topics_that_a_plan_left_out_count_as_not_covered(rubric: Rubric, judge: Judge) -> None:
    arrived({"refund": 90, "tip": 1})
    draw = draw_night(plan=make_plan(rubric, by=None, chats=3), day=yesterday(), spreads={})
    judged_sample(draw, {"refund": 3}, judge=judge)
    (point,) = document(signed_in(Role.LEAD))["criteria"][0]["points"]
    assert (point["chats"], point["covered"]) == (91, pytest.approx(90 / 91))


def test_a_sample_for_raters_that_prefers_false_verdicts_gives_no_rate(rubric: Rubric, judge: Judge) -> None:
    production_day(MONDAY, TOPICS, judge=judge, rubric=rubric)
    other = production_day(MONDAY, {"refund": Judged(400, 0, 400)}, judge=judge, rubric=rubric)
    ChatSet.objects.filter(name=str(other.chat_set)).update(sampling={"run": 1, "oversampled": True})
    assert document(signed_in(Role.LEAD))["criteria"][0]["points"][0]["judged_chats"] == 20


def test_a_curated_set_is_no_sample_of_production(rubric: Rubric, judge: Judge) -> None:
    run = production_day(MONDAY, TOPICS, judge=judge, rubric=rubric)
    client = signed_in(Role.LEAD)
    other = production_day(MONDAY, {"refund": Judged(400, 0, 400)}, judge=judge, rubric=rubric)
    ChatSet.objects.filter(name=str(other.chat_set)).update(kind="curated")
    assert document(client)["criteria"][0]["points"][0]["judged_chats"] == 20
    ChatSet.objects.filter(name=str(run.chat_set)).update(kind="curated")
    assert "No run over a sample" in client.get(reverse("monitoring:overview")).content.decode()
    # A day of a curated set may have a single chat, and that one may be holdout.
    assert document(signed_in(Role.AUTHOR))["criteria"] == []


def test_labels_on_curated_chats_correct_the_rate_and_authors_get_it_without_holdout_labels(
    rubric: Rubric, judge: Judge
) -> None:
    production_day(MONDAY, {"refund": Judged(600, 320, 80)}, judge=judge, rubric=rubric)
    labelled_set(rubric, judge, holdout=20)

    def corrected(role: Role) -> dict[str, Any]:
        found: dict[str, Any] = document(signed_in(role))["criteria"][0]["points"][0]["corrected"]
        return found

    lead, author = corrected(Role.LEAD), corrected(Role.AUTHOR)
    assert (lead["method"], lead["labels"], author["labels"]) == ("lang_reiczigel", 60, 40)
    assert lead["value"] != author["value"]


def test_a_chat_opens_at_the_message_that_is_quoted_for_the_criterion(rubric: Rubric, judge: Judge) -> None:
    production_day(MONDAY, TOPICS, judge=judge, rubric=rubric)
    row = Verdict.objects.select_related("chat__topic").earliest("pk")
    row.rationale = 'helpful [m1: "Hi there"] polite [m2: "Go away"]'  # the answer on all criteria
    row.explanation = 'Evidence: [m2: "Go away"]'
    assert failing_chats([row])[0].message == 2
    row.explanation = "Rude."
    assert failing_chats([row])[0].message == 1


def test_a_point_leads_to_its_failing_chats_and_their_message(rubric: Rubric, judge: Judge) -> None:
    production_day(MONDAY, TOPICS, judge=judge, rubric=rubric)
    production_day(MONDAY + timedelta(days=7), TOPICS, judge=judge, rubric=rubric)
    hidden = Verdict.objects.filter(value=True, chat__topic__key="refund").earliest("pk").chat
    ChatSetMember.objects.create(
        chat_set=make_set(rubric, name="secret"), chat=hidden, split="holdout", position=1
    )
    url = reverse("monitoring:criterion", args=["polite"])

    def listed(role: Role) -> list[str]:
        answer = signed_in(role).get(url, {"point": "2026-11-02", "topic": "refund"})
        assert "#m2" in answer.content.decode()
        return sorted(one.verdict.chat.external_id for one in answer.context["chats"])

    all_failing = Chat.objects.filter(topic__key="refund", started_at__date=MONDAY)
    lead = listed(Role.LEAD)
    assert len(lead) == 2
    assert set(lead) <= set(all_failing.values_list("external_id", flat=True))
    assert listed(Role.AUTHOR) == sorted({*lead} - {hidden.external_id})


def test_variants_of_an_experiment_are_compared_over_all_judged_chats(rubric: Rubric, judge: Judge) -> None:
    for variant, numbers in (("a", Judged(50, 9, 1)), ("b", Judged(50, 5, 5))):
        day = MONDAY + timedelta(days=variant == "b")
        about = {"experiment": "short", "variant": variant}
        production_day(day, {"refund": numbers}, judge=judge, rubric=rubric, **about)
    answer = signed_in(Role.LEAD).get(reverse("api_monitoring_criterion", args=["polite"]))
    variants = {row["variant"]: row for row in answer.json()["variants"]}
    assert {key: row["uncorrected"]["value"] for key, row in variants.items()} == {"a": 0.9, "b": 0.5}


@pytest.mark.parametrize("route", ["overview", "criterion", "home_panel"])
def test_pages_take_the_same_queries_for_more_days_and_topics(
    rubric: Rubric, judge: Judge, route: str
) -> None:
    client = signed_in(Role.LEAD)
    url = reverse(f"monitoring:{route}", args=["polite"] if route == "criterion" else [])
    taken = []
    for days in (range(1), range(1, 9)):
        for number in days:
            topics = {f"topic-{n}": Judged(12, 3, 1) for n in range(1 + number % 3)}
            production_day(MONDAY + timedelta(days=number), topics, judge=judge, rubric=rubric)
        client.get(url)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
        taken.append(len(queries))
    assert taken[0] == taken[1]


def test_an_unknown_step_is_refused_by_name_and_a_page_shows_weeks(rubric: Rubric, judge: Judge) -> None:
    production_day(MONDAY, TOPICS, judge=judge, rubric=rubric)
    client = signed_in(Role.LEAD)
    answer = client.get(reverse("api_monitoring"), {"step": "year"})
    assert (answer.status_code, "step" in answer.json()) == (400, True)
    page = client.get(reverse("monitoring:overview"), {"step": "year", "weeks": "-1"})
    assert page.context["window"].step == "week"


def test_without_verdicts_the_pages_say_so() -> None:
    make_rubric("polite")
    client = signed_in(Role.LEAD)
    assert "Nothing judged yet" in client.get(reverse("monitoring:overview")).content.decode()
    page = client.get(reverse("monitoring:criterion", args=[Criterion.objects.get().key]))
    assert "No verdicts" in page.content.decode()
    assert client.get(reverse("monitoring:home_panel")).content == b""
    assert document(client)["criteria"] == []
