"""The small chart of agreement over the runs of a chat set: on a report, and on a criterion's two pages."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.queries.cached_documents import subject_of
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core.run_trend import RunTrend, TrendPoint, run_trend
from alignment.reports.queries.run_trend import RUNS_DRAWN, trend_of_criterion
from alignment.reports.services import report_share
from common.plots import Estimate
from evaluation.models.judges import Judge
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, text_of, urls
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_version, judge_with, promote, run_of
from tests.factories.rater_quality import polite

CONFIG = {"model": "large", "groups": [{"engine": "direct"}]}
MONDAY = date(2026, 6, 1)


def again(compared: Compared, judge: Judge) -> Run:
    """The same verdicts once more, as a run of this judge."""
    run = Run.objects.create(
        judge=judge, chat_set=compared.chat_set, state=Run.State.DONE, finished_at=timezone.now()
    )
    chats = RunChat.objects.filter(run=compared.run)
    RunChat.objects.bulk_create(RunChat(run=run, chat=row.chat, split=row.split) for row in chats)
    verdicts = list(Verdict.objects.filter(run=compared.run))
    for one in verdicts:
        one.pk, one.run = None, run
    Verdict.objects.bulk_create(verdicts)
    return run


def point(*, day: int = 0, recipe: str = "direct a", prompts: str = "") -> TrendPoint:
    """A run so many days after a Monday."""
    version = prompts and f"v{prompts}"
    return TrendPoint("run", "", MONDAY + timedelta(days=day), Estimate(0.7), recipe, prompts, version)


def dates(days: Sequence[int]) -> list[str]:
    """The texts of the axis, by run."""
    return [dot.date for dot in run_trend([point(day=day) for day in days]).dots]


def finished_run(compared: Compared, version: int, **fields: Any) -> Run:
    """A run of `polite` with this prompt version, with a stored report."""
    versions = PromptVersion.objects.filter(criterion=polite())
    while versions.count() < version:
        a_version(polite())
    run = run_of(versions.get(number=version), compared.chat_set, **fields)
    report_share(Scope(compared.chat_set, run))
    return run


def stored_run(compared: Compared, version: PromptVersion, **fields: Any) -> Run:
    """A run of which only the stored report is needed."""
    run = Run.objects.create(
        judge=judge_with(version), chat_set=compared.chat_set, **{"state": Run.State.DONE, **fields}
    )
    Report.objects.create(
        kind=Report.Kind.REPORT,
        run=run,
        chat_set=run.chat_set,
        policy=1,
        pin=f"run {run.pk}",
        subject=subject_of(Scope(run.chat_set, run), Report.Kind.REPORT),
        body={"criteria": [{"key": "polite", "balanced_accuracy": {"value": 0.7}}]},
    )
    return run


def report_of(run: Run, query: str = "") -> str:
    return reverse("alignment:criterion_report", args=[run.pk, "polite"]) + query


# ---------- geometry ----------


def test_runs_of_another_engine_or_model_are_not_joined() -> None:
    chart = run_trend([point(recipe=one) for one in ("direct a", "direct a", "direct b")])
    assert [dot.link is not None for dot in chart.dots] == [False, True, False]
    assert chart.has_gaps


def test_the_axis_starts_at_a_constant_judge() -> None:
    chart = run_trend([replace(point(), value=Estimate(0.6, 0.4, 0.8))])
    assert (chart.lowest, chart.half_y, chart.dots[0].low) == (0.5, 46, 46)


def test_the_axis_starts_at_0_if_a_judge_is_worse_than_a_constant_one() -> None:
    chart = run_trend([point(), replace(point(), value=Estimate(0.25, 0, 0.5))])
    assert (chart.lowest, chart.half_y) == (0, 26)
    assert (chart.dots[1].y, chart.dots[1].low, chart.dots[1].high) == (36, 46, 26)


def test_a_change_of_prompts_is_a_mark_between_two_runs_that_stay_joined() -> None:
    chart = run_trend([point(prompts=one) for one in ("1", "1", "2", "2")])
    assert [dot.change for dot in chart.dots] == [None, None, "50.00%", None]
    assert not chart.has_gaps


def test_the_axis_has_a_date_for_each_week() -> None:
    assert dates([0, 1, 7, 9, 14]) == ["1 Jun", "", "8 Jun", "", "15 Jun"]


def test_dates_never_stand_below_neighbours() -> None:
    assert dates([0, 7, 8, 14, 21]) == ["1 Jun", "", "9 Jun", "", "22 Jun"]


def test_versions_have_a_line_of_their_own_above_the_dates() -> None:
    plain, versioned = run_trend([point()]), run_trend([point(prompts="1")])
    assert plain.date_y == plain.version_y  # there are no versions to write
    assert versioned.version_y < versioned.date_y < versioned.height


# ---------- a report ----------


@pytest.mark.django_db
def test_a_lead_sees_the_stored_reports_of_the_sets_runs_oldest_first(
    compared: Compared, lead: Client, author: Client
) -> None:
    report_share(Scope(compared.chat_set, compared.run))
    assert lead.get(urls(compared)["report"]).context["trend"] is None  # one run is no trend
    other = again(
        compared, Judge.objects.create(fingerprint="e" * 64, name="new", engine="direct", config=CONFIG)
    )
    report_share(Scope(compared.chat_set, other))
    page = lead.get(urls(compared)["report"])
    dots = page.context["trend"].dots
    assert [(dot.point.url, dot.point.current) for dot in dots] == [
        (f"/reports/runs/{compared.run.pk}/", True),
        (f"/reports/runs/{other.pk}/", False),
    ]
    assert 'class="run-trend"' in text_of(page)
    assert lead.get(urls(compared)["report"] + "?split=dev").context["trend"] is None
    assert author.get(urls(compared)["report"]).context["trend"] is None


# ---------- a criterion ----------


@pytest.mark.django_db
def test_a_criterion_report_shows_the_criterion_in_each_run_with_its_prompt_version(
    compared: Compared, lead: Client
) -> None:
    runs = [finished_run(compared, 1, wrong=4), finished_run(compared, 1, wrong=4), finished_run(compared, 2)]
    page = lead.get(report_of(runs[1]))
    trend: RunTrend = page.context["trend"]
    assert [(dot.point.url, dot.point.version, dot.point.current) for dot in trend.dots] == [
        (report_of(runs[0]), "v1", False),
        (report_of(runs[1]), "v1", True),
        (report_of(runs[2]), "v2", False),
    ]
    assert [dot.change is not None for dot in trend.dots] == [False, False, True]
    own = page.context["document"]["criterion"]["balanced_accuracy"]
    assert trend.dots[1].point.value == Estimate(own["value"], own["low"], own["high"])
    words = words_of(page)
    assert "Balanced accuracy, last 3 runs on this chat set" in words
    assert "Vertical line: other prompt version." in words and "Gap:" not in words


@pytest.mark.django_db
def test_a_table_has_the_runs_of_the_chart(compared: Compared, lead: Client) -> None:
    runs = [finished_run(compared, 1, wrong=4), finished_run(compared, 2)]
    table = text_of(lead.get(report_of(runs[0]))).split("Balanced accuracy by run", 1)[1].split("</table>")[0]
    for run, version in zip(runs, (1, 2), strict=True):
        assert f"Run {run.pk}, version {version}, {run.created_at:%-d %b %Y}" in table


@pytest.mark.django_db
def test_the_page_of_a_criterion_shows_the_set_of_its_version_chart(compared: Compared, lead: Client) -> None:
    promote(a_version(polite()))
    runs = [finished_run(compared, 1), finished_run(compared, 2)]
    page = lead.get("/criteria/polite/")
    trend: RunTrend = page.context["trend"]
    assert urls_of(trend) == [report_of(run) for run in runs]
    assert "last 2 runs on calibration" in words_of(page)


@pytest.mark.django_db
def test_an_imported_run_has_no_prompt_version(compared: Compared, lead: Client) -> None:
    report_share(Scope(compared.chat_set, compared.run))
    run = finished_run(compared, 1)
    trend: RunTrend = lead.get(report_of(run)).context["trend"]
    assert [dot.point.version for dot in trend.dots] == ["", "v1"]
    assert "unknown prompt" in trend.dots[0].point.name


@pytest.mark.django_db
def test_one_run_is_no_trend(compared: Compared, lead: Client) -> None:
    page = lead.get(report_of(finished_run(compared, 1)))
    assert page.context["trend"] is None
    assert 'class="run-trend"' not in text_of(page)


@pytest.mark.django_db
def test_authors_see_no_trend_which_counts_holdout_chats(
    compared: Compared, lead: Client, author: Client
) -> None:
    promote(a_version(polite()))
    run = [finished_run(compared, 1), finished_run(compared, 2)][0]
    for url in (report_of(run), "/criteria/polite/"):
        assert lead.get(url).context["trend"] is not None
        assert author.get(url).context["trend"] is None


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["?split=dev", "?topic=delivery", "?against=rater:cleo"])
def test_a_page_with_filters_has_no_trend(compared: Compared, lead: Client, query: str) -> None:
    run = [finished_run(compared, 1), finished_run(compared, 2)][0]
    assert lead.get(report_of(run, query)).context["trend"] is None


@pytest.mark.django_db
def test_runs_of_another_set_tests_and_runs_that_go_on_are_left_out(
    compared: Compared, lead_user: User
) -> None:
    version = a_version(polite())
    kept = [stored_run(compared, version) for _ in range(2)]
    stored_run(compared, version, purpose=Run.Purpose.REGRESSION)
    stored_run(compared, version, state=Run.State.RUNNING)
    other = ChatSet.objects.create(name="other", rubric=compared.rubric)
    stored_run(replace(compared, chat_set=other), version)
    assert urls_of(trend_of_criterion(polite(), compared.chat_set, user=lead_user)) == [
        report_of(run) for run in kept
    ]
    assert trend_of_criterion(polite(), None, user=lead_user) is None


@pytest.mark.django_db
def test_runs_that_did_not_judge_the_criterion_take_no_place(compared: Compared, lead_user: User) -> None:
    version, welcome = a_version(polite()), Criterion.objects.get(key="welcome")
    kept = [stored_run(compared, version) for _ in range(2)]
    for _ in range(RUNS_DRAWN):
        stored_run(compared, a_version(welcome))
    assert urls_of(trend_of_criterion(polite(), compared.chat_set, user=lead_user)) == [
        report_of(run) for run in kept
    ]


@pytest.mark.django_db
def test_the_newest_twelve_runs_are_drawn_in_a_constant_number_of_queries(
    compared: Compared, lead_user: User
) -> None:
    criterion = polite()

    def trend() -> RunTrend | None:
        return trend_of_criterion(criterion, compared.chat_set, user=lead_user)

    runs = [stored_run(compared, a_version(polite())) for _ in range(2)]
    few = queries_of(trend)
    runs += [stored_run(compared, a_version(polite())) for _ in range(RUNS_DRAWN - 1)]
    assert queries_of(trend) == few == 4
    assert urls_of(trend()) == [report_of(run) for run in runs[1:]]


def urls_of(trend: RunTrend | None) -> list[str]:
    assert trend is not None
    return [dot.point.url for dot in trend.dots]


def queries_of(call: Callable[[], object]) -> int:
    """The number of queries of a call, permissions looked up before."""
    call()
    with CaptureQueriesContext(connection) as queries:
        call()
    return len(queries)
