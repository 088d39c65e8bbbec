"""The small chart above a report: agreement over the runs of its chat set."""

import pytest
from django.test import Client
from django.utils import timezone

from alignment.comparison.queries.scope import Scope
from alignment.reports.core.run_trend import TrendPoint, run_trend
from alignment.reports.services import report_share
from common.plots import Estimate
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from tests.factories.compared_runs import Compared, text_of, urls

CONFIG = {"model": "large", "groups": [{"engine": "direct"}]}


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


def test_runs_of_another_engine_or_model_are_not_joined() -> None:
    recipes = ("direct a", "direct a", "direct b")
    points = [TrendPoint(str(n), "", Estimate(0.7), one) for n, one in enumerate(recipes)]
    assert [dot.link is not None for dot in run_trend(points).dots] == [False, True, False]


def test_a_value_below_a_constant_judge_stays_in_the_chart() -> None:
    (dot,) = run_trend([TrendPoint("1", "", Estimate(0.3, 0.2, 0.4), "")]).dots
    assert dot.y == dot.low == dot.high == 46


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
