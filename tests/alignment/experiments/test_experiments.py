"""Experiments: what is counted, the page, settings, and who sees what."""

from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from scipy.stats import chisquare

from alignment.experiments.worker import count_work, experiments_sweep
from alignment.models.experiments import Experiment, ExperimentMetric, ExperimentRun
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat, ChatSetMember
from labeling.models.people import Role
from labeling.models.rubric import Rubric
from tests.factories.experiments import UnitChats, counted, judged_night, units
from tests.factories.production import labelled_set
from tests.factories.rows import make_rubric, make_set, make_user
from tests.factories.verdicts import make_judge

pytestmark = pytest.mark.django_db
MONDAY = date(2026, 11, 2)
ARMS = {
    "a": units("a", passing=60, failing=40),
    "b": units("b", passing=95, failing=5),
}


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


def document(client: Client, key: str = "greeting") -> dict[str, Any]:
    answer = client.get(reverse("api_experiment", args=[key]))
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def cells(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (criterion,) = found["criteria"]
    return {cell["variant"]: cell for cell in criterion["variants"]}


def test_page_and_api_show_rates_and_the_uncorrected_difference(rubric: Rubric, judge: Judge) -> None:
    judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    row = counted()
    client = signed_in(Role.LEAD)
    found = document(client)
    assert (found["control"], found["up_to_date"], found["sample_ratio"]["p"]) == ("a", True, 1.0)
    both = cells(found)
    assert {name: cell["uncorrected"]["value"] for name, cell in both.items()} == {"a": 0.6, "b": 0.95}
    assert both["b"]["difference"]["uncorrected"]["value"] == pytest.approx(0.35)
    assert both["b"]["difference"]["corrected"] | {"reason": ""} == {
        "value": None,
        "low": None,
        "high": None,
        "reason": "",
    }
    assert (both["a"]["decision"], both["b"]["decision"]) == (None, "better")
    page = client.get(reverse("experiments:detail", args=[row.pk])).content.decode()
    assert "+35.0" in page
    assert "Uncorrected: no labelled chats." in page
    assert 'data-value="35.00"' in page
    assert ">200<" in client.get(reverse("experiments:list")).content.decode()


def test_sampled_chats_are_weighted_by_their_inclusion_probability(rubric: Rubric, judge: Judge) -> None:
    """One night of every chat, one of a tenth of them: 30 pass of 40, then 4 of 40 that stand for 400."""
    first = {"a": units("x", passing=30, failing=10), "b": units("y", passing=40, failing=0)}
    judged_night(MONDAY, first, judge=judge, rubric=rubric, probability=1.0)
    second = {"a": units("z", passing=4, failing=36), "b": units("w", passing=40, failing=0)}
    judged_night(MONDAY + timedelta(days=1), second, judge=judge, rubric=rubric, probability=0.1)
    counted()
    both = cells(document(signed_in(Role.LEAD)))
    assert both["a"]["uncorrected"]["value"] == pytest.approx((30 + 40) / (40 + 400))
    assert (both["a"]["chats"], both["a"]["failed"]) == (80, 46)


def test_a_unit_with_several_chats_widens_the_interval_as_one(rubric: Rubric, judge: Judge) -> None:
    def width(chats: int) -> float:
        arms = {
            name: [UnitChats(f"{name}{n}", chats, chats * (n % 5 > 0)) for n in range(100)] for name in "ab"
        }
        judged_night(MONDAY, arms, judge=judge, rubric=rubric, experiment=f"x{chats}")
        counted(f"x{chats}")
        one = cells(document(client, f"x{chats}"))["b"]["difference"]["uncorrected"]
        return float(one["high"] - one["low"])

    client = signed_in(Role.LEAD)
    assert width(4) == pytest.approx(width(1), rel=0.02)


def test_labels_on_curated_chats_correct_the_difference_and_authors_get_it_without_holdout_labels(
    rubric: Rubric, judge: Judge
) -> None:
    arms = {"a": units("a", passing=300, failing=200), "b": units("b", passing=400, failing=100)}
    judged_night(MONDAY, arms, judge=judge, rubric=rubric)
    labelled_set(rubric, judge, holdout=20)
    counted()

    def shown(role: Role) -> tuple[int, dict[str, Any]]:
        found = document(signed_in(role))
        return found["criteria"][0]["labels"], cells(found)["b"]["difference"]["corrected"]

    (lead_labels, lead), (author_labels, author) = shown(Role.LEAD), shown(Role.AUTHOR)
    assert (lead_labels, author_labels) == (60, 40)
    assert lead["low"] < lead["value"] < lead["high"]
    assert lead["value"] == pytest.approx(0.2 / 0.8)  # 54 of 60 right in both classes: J = .8
    assert lead["value"] != author["value"]


def test_several_prompt_versions_or_models_leave_the_difference_uncorrected(
    rubric: Rubric, judge: Judge
) -> None:
    judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    more = {name: units(f"{name}-more", passing=9, failing=1) for name in "ab"}
    other = make_judge(rubric, name="other", model="another-model")
    judged_night(MONDAY + timedelta(days=1), more, judge=other, rubric=rubric)
    counted()
    found = document(signed_in(Role.LEAD))
    assert len(found["judges"]) == 2
    assert "several judges" in cells(found)["b"]["difference"]["corrected"]["reason"]


# ---------- what counts


def test_a_chat_counts_once_by_its_first_verdict_and_curated_chats_only_without_samples(
    rubric: Rubric, judge: Judge
) -> None:
    run = judged_night(MONDAY, ARMS, judge=judge, rubric=rubric, kind="curated")
    assert counted().sampled is False
    author = document(signed_in(Role.AUTHOR))
    assert (author["for_leads"], author["criteria"]) == (True, [])
    again = Run.objects.create(judge=judge, chat_set=run.chat_set, state="done", finished_at=run.created_at)
    Verdict.objects.bulk_create(
        Verdict(
            run=again,
            chat_id=chat,
            criterion_id=criterion,
            state="read",
            value=True,
            stored_at=run.created_at,
        )
        for chat, criterion in run.verdicts.values_list("chat", "criterion")
    )
    counted()
    client = signed_in(Role.LEAD)
    assert cells(document(client))["b"]["uncorrected"]["value"] == 0.95
    few = {name: units(f"s{name}", passing=1, failing=1) for name in "ab"}
    judged_night(MONDAY, few, judge=judge, rubric=rubric)
    assert counted().sampled is True
    assert cells(document(client))["b"]["chats"] == 2


def test_unfinished_runs_wait_and_no_verdict_is_no_result(rubric: Rubric, judge: Judge) -> None:
    run = judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    Run.objects.update(state="running")
    experiments_sweep()
    assert not Experiment.objects.exists()
    Verdict.objects.filter(value=False).update(value=None)  # not applicable
    Run.objects.update(state="done")
    counted()
    found = cells(document(signed_in(Role.LEAD)))
    assert (found["a"]["chats"], found["a"]["uncorrected"]["value"]) == (40, 0.0)
    assert ExperimentMetric.objects.filter(run=run).count() == 45


def test_a_run_that_was_reopened_and_ended_again_is_read_again(rubric: Rubric, judge: Judge) -> None:
    run = judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    late = list(run.verdicts.order_by("-pk")[:20])
    Verdict.objects.filter(pk__in=[one.pk for one in late]).delete()
    counted()
    assert ExperimentMetric.objects.count() == 180
    Verdict.objects.bulk_create(late)
    Run.objects.update(finished_at=run.finished_at + timedelta(hours=1))  # type: ignore[operator]
    counted()
    assert ExperimentMetric.objects.count() == 200


def test_a_run_that_was_deleted_takes_its_results_along(rubric: Rubric, judge: Judge) -> None:
    judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    few = {name: units(f"few-{name}", passing=1, failing=1) for name in "ab"}
    late = judged_night(MONDAY + timedelta(days=1), few, judge=judge, rubric=rubric)
    counted()
    late.verdicts.all().delete()
    RunChat.objects.filter(run=late).delete()
    late.delete()
    counted()
    assert cells(document(signed_in(Role.LEAD)))["a"]["chats"] == 100


def test_a_second_worker_and_a_second_sweep_find_nothing_to_do(rubric: Rubric, judge: Judge) -> None:
    judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    row = counted()
    before = row.counted_at
    count_work(row.pk)
    experiments_sweep()
    row.refresh_from_db()
    assert (row.state, row.counted_at, ExperimentRun.objects.count()) == ("idle", before, 1)


def test_units_of_two_variants_and_chats_without_variant_are_counted_and_left_out(
    rubric: Rubric, judge: Judge
) -> None:
    arms = {
        "a": [*units("a", passing=5, failing=0), UnitChats("both", 1, 1), UnitChats("", 2, 2)],
        "b": [*units("b", passing=4, failing=1), UnitChats("both", 1, 0)],
        "": [UnitChats("lost", 1, 1)],
    }
    judged_night(MONDAY, arms, judge=judge, rubric=rubric)
    found = (counted(), document(signed_in(Role.LEAD)))[1]
    units_by = {one["variant"]: (one["chats"], one["units"]) for one in found["variants"]}
    assert units_by == {"a": (8, 7), "b": (6, 5)}
    assert found["units_of_several_variants"] == 1
    assert (found["chats_without_unit"], found["chats_without_variant"]) == (2, 1)
    assert cells(found)["b"]["uncorrected"]["value"] == 0.8


def test_the_sample_ratio_is_checked_on_units_as_scipy_does(rubric: Rubric, judge: Judge) -> None:
    arms = {
        "a": [UnitChats(f"a{n}", 1 + n % 3, 1) for n in range(130)],
        "b": units("b", passing=60, failing=0),
    }
    judged_night(MONDAY, arms, judge=judge, rubric=rubric)
    row = counted()
    lead = signed_in(Role.LEAD)
    found = document(lead)
    assert found["sample_ratio"]["p"] == pytest.approx(chisquare([130, 60]).pvalue)
    assert found["sample_ratio"]["mismatch"]
    assert cells(found)["b"]["decision"] == "broken"
    page = lead.get(reverse("experiments:detail", args=[row.pk])).content.decode()
    assert "Sample ratio mismatch." in page
    settings = {"shares": {"a": 2, "b": 1}}
    url = reverse("api_experiment", args=["greeting"])
    assert lead.patch(url, settings, content_type="application/json").status_code == 200
    found = document(lead)
    assert found["sample_ratio"]["p"] == pytest.approx(chisquare([130, 60], [190 * 2 / 3, 190 / 3]).pvalue)
    assert not found["sample_ratio"]["mismatch"]


# ---------- settings


def test_settings_change_control_and_start_and_are_counted_again(rubric: Rubric, judge: Judge) -> None:
    for day in range(2):
        judged_night(
            MONDAY + timedelta(days=day),
            {name: units(f"{name}{day}", passing=8 + day, failing=2 - day) for name in "ab"},
            judge=judge,
            rubric=rubric,
        )
    row, lead = counted(), signed_in(Role.LEAD)
    url = reverse("experiments:settings", args=[row.pk])
    body = {"control": "b", "share_0": "50", "share_1": "50", "starts_on": "2026-11-03", "alpha": "0.01"}
    assert lead.post(url, body).status_code == 302
    row.refresh_from_db()
    assert row.state == "due"
    assert "being counted" in lead.get(reverse("experiments:detail", args=[row.pk])).content.decode()
    counted()
    found = document(lead)
    assert (found["control"], found["alpha"], found["starts_on"]) == ("b", 0.01, "2026-11-03")
    assert {one["variant"]: one["chats"] for one in found["variants"]} == {"a": 10, "b": 10}
    assert cells(found)["a"]["uncorrected"]["value"] == 0.9


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"control": "c"}, "control"),
        ({"shares": {"a": 1}}, "shares"),
        ({"shares": {"a": 1, "b": -1}}, "shares"),
        ({"shares": {"a": 1, "b": 1, "c": 1}}, "shares"),
        ({"alpha": 0.2}, "alpha"),
        ({"starts_on": "soon"}, "starts_on"),
        ({"controls": "a"}, "controls"),
    ],
)
def test_wrong_settings_are_refused_by_field(
    rubric: Rubric, judge: Judge, body: dict[str, Any], field: str
) -> None:
    judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    counted()
    url = reverse("api_experiment", args=["greeting"])
    answer = signed_in(Role.LEAD).patch(url, body, content_type="application/json")
    assert (answer.status_code, list(answer.json())) == (400, [field])


def test_the_form_shows_shares_that_do_not_add_up(rubric: Rubric, judge: Judge) -> None:
    judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    url = reverse("experiments:settings", args=[counted().pk])
    body = {"control": "a", "share_0": "50", "share_1": "40", "alpha": "0.05"}
    answer = signed_in(Role.LEAD).post(url, body)
    assert "The shares add up to 90%, not 100%." in answer.content.decode()


# ---------- chats


def test_a_count_leads_to_the_failing_chats_of_a_variant_and_their_message(
    rubric: Rubric, judge: Judge
) -> None:
    judged_night(MONDAY, ARMS, judge=judge, rubric=rubric)
    url = reverse("experiments:detail", args=[counted().pk])
    hidden = ExperimentMetric.objects.filter(variant="b", passed=False).earliest("pk").chat
    ChatSetMember.objects.create(
        chat_set=make_set(rubric, name="secret"), chat=hidden, split="holdout", position=1
    )

    def listed(role: Role) -> set[str]:
        answer = signed_in(role).get(url, {"criterion": "polite", "variant": "b"})
        assert "#m2" in answer.content.decode()
        return {one.verdict.chat.external_id for _, one in answer.context["chats"]}

    lead = listed(Role.LEAD)
    assert len(lead) == 5
    assert set(Chat.objects.filter(external_id__in=lead).values_list("variant", flat=True)) == {"b"}
    assert listed(Role.AUTHOR) == lead - {hidden.external_id}


@pytest.mark.parametrize("route", ["detail", "list"])
def test_pages_take_the_same_queries_for_more_days_variants_and_units(
    rubric: Rubric, judge: Judge, route: str
) -> None:
    client, taken = signed_in(Role.LEAD), []
    for names, days in (("ab", 1), ("abcd", 6)):
        for day in range(days):
            arms = {name: units(f"{name}{day}{days}", passing=40, failing=4) for name in names}
            judged_night(MONDAY + timedelta(days=day), arms, judge=judge, rubric=rubric)
        args = [counted().pk] if route == "detail" else []
        url = reverse(f"experiments:{route}", args=args)
        client.get(url)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
        taken.append(len(queries))
        assert not any(
            'FROM "evaluation_verdict" ' in one["sql"] and "COUNT" in one["sql"] for one in queries
        )
    assert taken[0] == taken[1]


def test_without_experiments_the_pages_say_so(rubric: Rubric, judge: Judge) -> None:
    client = signed_in(Role.LEAD)
    assert "No experiments yet" in client.get(reverse("experiments:list")).content.decode()
    row = Experiment.objects.create(key="new")
    assert "No verdicts yet" in client.get(reverse("experiments:detail", args=[row.pk])).content.decode()
    assert "No variants yet" in client.get(reverse("experiments:settings", args=[row.pk])).content.decode()
    assert client.get(reverse("api_experiment", args=["unknown"])).status_code == 404
