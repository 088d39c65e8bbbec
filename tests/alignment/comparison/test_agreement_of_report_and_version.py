"""Metrics of a prompt version by set and split equal those of the report on its newest run."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.queries.scope import Scope
from alignment.reports.core.status import StatusPolicy
from alignment.reports.queries.reports import alignment_report
from evaluation.models.runs import Run, Verdict
from labeling.models.labels import Consensus
from tests.factories.compared_runs import SPLITS, Compared, add_chats
from tests.factories.page_text import figures, words_of
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db


def test_a_version_is_measured_by_its_newest_finished_run_on_each_split(compared: Compared) -> None:
    version = a_version(polite())
    run_of(version, compared.chat_set, wrong=2)
    newest = run_of(version, compared.chat_set, wrong=10)
    run_of(version, compared.chat_set, wrong=3, purpose="try")
    run_of(version, compared.chat_set, wrong=3, state="cancelled")
    run_of(version, compared.chat_set, wrong=3, options={"limit": 5})
    found = figures()
    assert {one.run for one in found} == {newest}
    assert [(one.split, one.table.n) for one in found] == [("dev", 20), ("train", 10), ("holdout", 10)]
    dev = found[0]
    wrong = sum(SPLITS[n % 4] == "dev" and n % 10 == 0 for n in range(1, 41))
    assert (dev.table.fn + dev.table.fp, dev.undecided, dev.ceiling is not None) == (wrong, 0, True)


def test_a_version_is_decided_on_as_the_report_decides(compared: Compared) -> None:
    add_chats(compared, to=300)
    version = a_version(polite())
    run = run_of(version, compared.chat_set, wrong=50)
    assert {one.decision.status for one in figures() if one.split == "dev"} == {"aligned"}
    false = Consensus.objects.filter(criterion=polite(), state="false").values("chat")
    silent = Verdict.objects.filter(run=run, criterion=polite(), chat__in=false)
    silent.filter(pk__in=silent.order_by("chat")[:40].values("pk")).update(state="refused", value=None)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())
    run.refresh_from_db()
    (dev,) = [one for one in figures() if one.split == "dev"]
    entries = alignment_report(Scope(compared.chat_set, run, "dev"))["criteria"]
    (entry,) = [one for one in entries if one["key"] == "polite"]
    assert (dev.decision.status, list(dev.decision.reasons)) == (entry["status"], entry["reasons"])
    assert any("gave no True or False on" in reason for reason in dev.decision.reasons)


def test_every_page_shows_the_same_figure_or_says_of_which_run_and_split(
    compared: Compared, lead: Client
) -> None:
    version = a_version(polite())
    promote(version)
    run = run_of(version, compared.chat_set, wrong=3)
    lists = lead.get(reverse("alignment:criterion_list"))
    (row,) = [one.row for one in lists.context["rows"] if one.criterion.key == "polite"]
    assert f"run {run.pk}, calibration, dev, 20 chats" in words_of(lists)
    assert StatusPolicy().label in words_of(lists)
    report = lead.get(row.newest.report_url)
    entry = report.context["c"]
    assert (report.context["document"]["run"], report.context["document"]["split"]) == (run.pk, "dev")
    assert entry["balanced_accuracy"] == row.newest.figures["balanced_accuracy"]
    assert entry["status"] == row.newest.decision.status
    assert StatusPolicy().name in words_of(report)
    for name, args in (("criterion_detail", ["polite"]), ("prompt_version", ["polite", version.number])):
        page = lead.get(reverse(f"alignment:{name}", args=args))
        assert f"calibration, dev run {run.pk} {entry['balanced_accuracy']['value']:.2f}" in words_of(page)
