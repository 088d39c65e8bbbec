"""Workers keep the reports of runs up to date; pages show the newest one and store nothing."""

from datetime import timedelta

import pytest
from django.core.cache import caches
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.models.reports import Report, ReportRefresh
from alignment.reports import worker
from alignment.reports.queries import shown
from alignment.reports.queries.shown import AFTER_FAILURE, REFRESH_AFTER, stale_runs
from alignment.reports.worker import MOST_WAITING, REFRESHES, refresh_work, reports_sweep
from alignment.tasks import refresh_report
from evaluation.models.runs import Run, WorkerLease
from evaluation.runs.worker.leases import lease_begin
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.labels import Label
from tests.factories.compared_runs import Compared, text_of, urls
from tests.factories.judge_comparison import judged, perfect
from tests.factories.stored_reports import page_of, refreshed, status, stored

pytestmark = pytest.mark.django_db

CHANGED = "Labels changed since"


def a_label_changes(compared: Compared, n: int = 1) -> None:
    Label.objects.filter(chat=compared.chat(n), rater__name="cleo").update(value=n % 2 == 0)
    ids = [row.pk for row in compared.criteria]
    consensus_refresh(criterion_ids=ids, chat_ids=[compared.chat(n).pk])


def looked_again() -> None:
    """The sweep looks as if its pause was over, and reports are older than the pause after a refresh."""
    caches["default"].clear()
    Report.objects.update(created_at=F("created_at") - REFRESH_AFTER - timedelta(minutes=10))
    reports_sweep()


def reports() -> list[Report]:
    return list(Report.objects.filter(kind=Report.Kind.REPORT).order_by("pk"))


def update_url(compared: Compared, name: str = "update_run") -> str:
    return reverse(f"alignment:report_{name}", args=[compared.run.pk])


# ---------- the sweep ----------


def test_a_run_that_ended_gets_its_report_without_a_reader(compared: Compared) -> None:
    reports_sweep()
    row = ReportRefresh.objects.get()
    assert (row.run, row.state) == (compared.run, "open")
    refresh_report(row.pk)
    (report,) = reports()
    assert (report.run, report.shared) == (compared.run, False)
    assert not ReportRefresh.objects.exists()
    assert stale_runs() == []


def test_a_cancelled_run_gets_its_report_too(compared: Compared) -> None:
    Run.objects.update(state=Run.State.CANCELLED, units_total=130, units_done=3)
    reports_sweep()
    refresh_report(ReportRefresh.objects.get().pk)
    assert [report.run for report in reports()] == [compared.run]


def test_changed_labels_refresh_it_and_only_the_newest_stays(compared: Compared) -> None:
    refreshed(compared.run)
    (before,) = reports()
    a_label_changes(compared)
    reports_sweep()
    assert not ReportRefresh.objects.exists()  # it is not old enough: labels arrive one by one
    looked_again()
    refresh_report(ReportRefresh.objects.get().pk)
    (after,) = reports()
    assert after.pin != before.pin


def test_changes_that_come_while_one_waits_are_one_refresh(compared: Compared) -> None:
    refreshed(compared.run)
    for n in range(1, 4):
        a_label_changes(compared, n)
        looked_again()
    assert ReportRefresh.objects.count() == 1


def test_no_more_than_a_few_wait_and_the_newest_run_comes_first(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = judged(compared, "another", perfect)
    monkeypatch.setattr(worker, "MOST_WAITING", 1)
    reports_sweep()
    assert [row.run for row in ReportRefresh.objects.all()] == [newest]
    assert MOST_WAITING > 1


def test_two_reports_of_one_run_are_not_computed_at_once(compared: Compared) -> None:
    reports_sweep()
    lease = lease_begin(None)
    ReportRefresh.objects.create(run=compared.run, part={}, subject="a" * 64, state="working", lease=lease)
    row = ReportRefresh.objects.get(state="open")
    assert refresh_work(row.pk) is None
    WorkerLease.objects.update(pid=2**22 + 1)  # more than there can be
    assert refresh_work(row.pk) == compared.run


def test_a_report_that_always_fails_ends_and_the_page_says_so(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    refreshed(compared.run)
    a_label_changes(compared)
    looked_again()
    row = ReportRefresh.objects.get()
    monkeypatch.setattr(worker, "report_store", broken)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            refresh_report(row.pk)
    refresh_report(row.pk)
    assert ReportRefresh.objects.get().state == "failed"
    assert "could not be computed" in text_of(lead.get(urls(compared)["report"]))
    assert row.pk not in REFRESHES.waiting()


# ---------- the page ----------


def test_the_page_shows_the_newest_report_until_it_is_updated(compared: Compared, lead: Client) -> None:
    refreshed(compared.run)
    page = lead.get(urls(compared)["report"])
    assert CHANGED not in text_of(page)
    a_label_changes(compared)
    stale = lead.get(urls(compared)["report"])
    assert CHANGED in text_of(stale)
    assert stale.context["report"]["generated_at"] == page.context["report"]["generated_at"]
    assert lead.post(update_url(compared)).status_code == 302
    assert CHANGED not in text_of(lead.get(urls(compared)["report"]))
    assert len(reports()) == 1


def test_programs_always_get_todays_figures(compared: Compared, lead: Client) -> None:
    refreshed(compared.run)
    before = lead.get(urls(compared)["api_run"]).json()
    a_label_changes(compared)
    after = lead.get(urls(compared)["api_run"]).json()
    assert after["criteria"] != before["criteria"]


def test_a_report_of_few_holdout_chats_is_not_shown_later_to_those_without_access(
    compared: Compared, author: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(compared.run)
    Report.objects.filter(subject__isnull=False).update(
        body=reports()[0].body | {"pinned": reports()[0].body["pinned"] | {"for_leads": True}}
    )
    a_label_changes(compared)
    assert CHANGED not in text_of(author.get(urls(compared)["report"]))


def test_too_large_a_report_waits_for_a_worker(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "MOST_ANSWERS", 1)
    page = text_of(lead.get(urls(compared)["report"] + "?split=dev"))
    assert "Compute the report" in page
    assert lead.get(urls(compared)["report"].rstrip("/") + "/report.csv?split=dev").status_code == 404
    for _ in range(2):
        assert lead.post(update_url(compared) + "?split=dev").status_code == 302
    row = ReportRefresh.objects.get()
    assert "Waiting for a worker" in text_of(lead.get(urls(compared)["report"] + "?split=dev"))
    state = update_url(compared, "state") + "?split=dev"
    assert "HX-Refresh" not in lead.get(state).headers
    refresh_report(row.pk)
    assert lead.get(state).headers["HX-Refresh"] == "true"
    assert lead.get(urls(compared)["report"] + "?split=dev").context["report"]["split"] == "dev"


@pytest.mark.parametrize("page", ["criterion report", "label plan"])
def test_pages_that_need_a_report_that_is_not_computed_lead_to_it(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setattr(shown, "MOST_ANSWERS", 1)
    plan = reverse("alignment:label_plan", args=[compared.run.pk])
    address = {"label plan": plan, **urls(compared)}[page]
    answer = lead.get(address, follow=True)
    assert "a worker computes first" in text_of(answer)
    assert "Compute the report" in text_of(answer)
    refreshed(compared.run)
    assert lead.get(address).status_code == 200


@pytest.mark.parametrize("name", ["api_run", "api_criterion"])
def test_the_api_says_that_a_report_is_not_computed(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(shown, "MOST_ANSWERS", 1)
    answer = lead.get(urls(compared)[name])
    assert (answer.status_code, answer.json()["code"]) == (409, "not_computed")
    refreshed(compared.run)
    assert lead.get(urls(compared)[name]).status_code == 200


def failed(compared: Compared, *, ago: timedelta = timedelta()) -> ReportRefresh:
    """The refresh of the run, which three workers could not compute."""
    reports_sweep()
    ReportRefresh.objects.update(state="failed", asked_at=timezone.now() - ago)
    return ReportRefresh.objects.get()


def test_a_failed_refresh_is_tried_again_after_an_hour(compared: Compared) -> None:
    first = failed(compared, ago=AFTER_FAILURE - timedelta(minutes=1))
    looked_again()
    assert ReportRefresh.objects.get() == first
    ReportRefresh.objects.update(asked_at=timezone.now() - AFTER_FAILURE)
    looked_again()
    row = ReportRefresh.objects.get()
    assert (row.pk != first.pk, row.state) == (True, "open")


def test_an_update_of_a_small_report_ends_what_failed(compared: Compared, lead: Client) -> None:
    failed(compared)
    assert lead.post(update_url(compared)).status_code == 302
    assert not ReportRefresh.objects.exists()
    a_label_changes(compared)
    assert "could not be computed" not in text_of(lead.get(urls(compared)["report"]))


def test_a_large_report_that_failed_lately_is_refused_with_the_reason(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "MOST_ANSWERS", 1)
    failed(compared)
    assert "try again in an hour" in text_of(lead.post(update_url(compared), follow=True))
    assert lead.post(urls(compared)["api_run"]).status_code == 400


# ---------- sharing ----------


def test_only_a_shared_report_has_an_address_and_later_ones_leave_it(
    compared: Compared, lead: Client
) -> None:
    refreshed(compared.run)
    assert lead.get(urls(compared)["api_run"]).json()["id"] is None
    assert status(lead, reports()[0].pk) == 404
    answer = lead.post(update_url(compared, "share_run"))
    number = reports()[0].pk
    assert answer.headers["Location"] == page_of(number)
    a_label_changes(compared)
    looked_again()
    refresh_report(ReportRefresh.objects.get().pk)
    assert reports()[0].pk == number
    assert status(lead, number) == 200


def test_a_filtered_view_is_stored_by_sharing_it_alone(compared: Compared, lead: Client) -> None:
    for page in ("report", "api_run"):
        assert lead.get(urls(compared)[page] + "?split=dev").status_code == 200
    assert not Report.objects.exists()
    number = stored(lead, compared, "?split=dev")
    assert [(row.pk, row.split) for row in reports()] == [(number, "dev")]
    assert page_of(number) in text_of(lead.get(urls(compared)["report"] + "?split=dev"))


def test_a_run_in_progress_cannot_be_shared(compared: Compared, lead: Client) -> None:
    Run.objects.update(finished_at=None, state=Run.State.RUNNING)
    assert lead.post(urls(compared)["api_run"]).status_code == 400
    answer = lead.post(update_url(compared, "share_run"), follow=True)
    assert "Not shared: the run is in progress" in text_of(answer)


def test_a_set_is_shared_and_exported_without_a_run(compared: Compared, lead: Client) -> None:
    pk = compared.chat_set.pk
    answer = lead.post(reverse("alignment:report_share_set", args=[pk]))
    assert answer.headers["Location"] == page_of(reports()[0].pk)
    table = lead.get(reverse("alignment:report_table_set", args=[pk]))
    assert "level" in table.getvalue().decode().splitlines()[0]


def test_an_older_form_of_the_report_is_not_shown(compared: Compared, lead: Client) -> None:
    refreshed(compared.run)
    body = reports()[0].body
    Report.objects.filter(pk=reports()[0].pk).update(body=body | {"pinned": body["pinned"] | {"form": 1}})
    a_label_changes(compared)
    page = lead.get(urls(compared)["report"])
    assert CHANGED not in text_of(page)
    assert page.context["report"]["chats"] == 40


def test_the_computation_of_a_part_can_be_cancelled_before_and_while_a_worker_has_it(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "MOST_ANSWERS", 1)
    part, address = urls(compared)["report"] + "?split=dev", update_url(compared) + "?split=dev"
    lead.post(address)
    assert "Cancel" in text_of(lead.get(part))
    lead.post(address, {"cancel": "1"})
    assert not ReportRefresh.objects.exists()
    lead.post(address)

    def cancelled(*_: object, **__: object) -> None:
        lead.post(address, {"cancel": "1"})

    monkeypatch.setattr(worker, "report_store", cancelled)
    refresh_report(ReportRefresh.objects.get().pk)
    assert not ReportRefresh.objects.exists()
    assert "Compute the report" in text_of(lead.get(part))


def test_the_report_of_a_whole_run_is_kept_up_to_date_and_offers_no_cancel(
    compared: Compared, lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "MOST_ANSWERS", 1)
    lead.post(update_url(compared))
    page = text_of(lead.get(urls(compared)["report"]))
    assert "Waiting for a worker." in page
    assert "Cancel" not in page
    refused = text_of(lead.post(update_url(compared), {"cancel": "1"}, follow=True))
    assert "Not cancelled: workers keep the reports of whole runs up to date." in refused
    assert ReportRefresh.objects.exists()
