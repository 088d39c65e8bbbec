"""Issues over weeks: found, recognised, merged, changed, sent on; who sees what."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.issues.queries.issues import _evidence
from alignment.issues.services import IssueChange, issue_change
from alignment.issues.worker.retention import issue_texts_delete
from alignment.issues.worker.scan import issues_find, issues_work, scan_open, scan_work
from alignment.models.issues import Issue, IssueChat, IssueScan, IssueWeek
from common.models import InboxItem
from evaluation.models.judges import Judge
from evaluation.models.outbox import OutboxEvent
from evaluation.models.runs import WorkerLease
from evaluation.runs.worker.leases import lease_begin
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import User
from labeling.models.rubric import Rubric
from tests.factories.issues import WEEK, failing_week, find_issues
from tests.factories.rows import make_rubric, make_set
from tests.factories.verdicts import make_judge
from tests.factories.webhooks import make_webhook

pytestmark = pytest.mark.django_db
PROBLEMS = {"refund_days": 25, "tracking": 25, "voucher": 25}


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", passes_when=False)


@pytest.fixture
def judge(rubric: Rubric) -> Judge:
    return make_judge(rubric)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def listed(client: Client, **query: str) -> list[dict[str, Any]]:
    answer = client.get(reverse("api_issues"), query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["issues"]
    return found


def names(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The issues by their planted problem, told from the name."""
    marks = {"refund": "refund_days", "voucher": "voucher", "link": "tracking", "parcel": "tracking"}
    return {
        next((problem for mark, problem in marks.items() if mark in row["name"].lower()), row["name"]): row
        for row in rows
    }


# ---------- found and recognised ----------


def test_problems_of_a_week_become_issues_with_counts_terms_and_shares(
    rubric: Rubric, judge: Judge, lead_user: User
) -> None:
    rows = failing_week(0, PROBLEMS, judge=judge, rubric=rubric)
    find_issues()
    found = names(listed(client_of(lead_user)))
    assert set(found) == set(PROBLEMS)
    for problem, issue in found.items():
        assert abs(issue["chats"] - PROBLEMS[problem]) <= 3
        assert issue["share"] == pytest.approx(issue["chats"] / len(rows), abs=0.001)
        assert (issue["new"], issue["criterion"], issue["state"]) == (True, "polite", "open")
    scan = IssueScan.objects.get()
    assert (scan.week, scan.chats, scan.state) == (WEEK, len(rows), "done")


def test_the_same_scan_again_changes_nothing(rubric: Rubric, judge: Judge) -> None:
    failing_week(0, PROBLEMS, judge=judge, rubric=rubric)
    find_issues()

    def stored() -> list[Any]:
        return [
            *Issue.objects.order_by("pk").values_list("pk", "name", "first_week", "last_week"),
            *IssueChat.objects.order_by("issue", "chat").values_list("issue", "chat", "closeness", "bits"),
            *IssueWeek.objects.order_by("issue").values_list("issue", "chats", "terms"),
        ]

    before = stored()
    issues_work()
    assert not IssueScan.objects.filter(state="open").exists()  # no other runs than before
    scan_work(scan_open(WEEK).pk)
    assert stored() == before


def test_all_weeks_are_found_at_once_in_one_process_and_only_once(rubric: Rubric, judge: Judge) -> None:
    failing_week(0, {"tracking": 25}, judge=judge, rubric=rubric)
    failing_week(1, {"tracking": 25, "voucher": 25}, judge=judge, rubric=rubric)
    assert (issues_find(), issues_find()) == (2, 0)
    assert [scan.state for scan in IssueScan.objects.all()] == ["done", "done"]
    assert Issue.objects.count() == 2


def test_a_rationale_in_the_shipped_form_shows_its_evidence() -> None:
    shipped = 'Evidence: [m2: "Which order?"] Asked twice. Against: None. Rule: The first. Conclusion: TRUE.'
    assert _evidence(shipped) == '[m2: "Which order?"] Asked twice.'
    assert _evidence("Asked twice. Evidence: message 2") == "Asked twice. Evidence: message 2"


def test_a_week_with_too_few_failing_chats_says_so(rubric: Rubric, judge: Judge, lead_user: User) -> None:
    failing_week(0, {"tracking": 9}, judge=judge, rubric=rubric, noise=0)
    find_issues()
    assert (IssueScan.objects.get().few, Issue.objects.count()) == (9, 0)
    page = client_of(lead_user).get(reverse("issues:list")).content.decode()
    assert "too few failing chats to group" in page


def test_an_issue_of_an_earlier_week_is_recognised_and_a_gap_is_named(
    rubric: Rubric, judge: Judge, lead_user: User
) -> None:
    failing_week(0, PROBLEMS, judge=judge, rubric=rubric)
    failing_week(1, {"tracking": 30, "anrede": 20}, judge=judge, rubric=rubric)
    failing_week(2, {"tracking": 30, "voucher": 20}, judge=judge, rubric=rubric)
    find_issues()
    found = names(listed(client_of(lead_user)))
    assert len(found) == 4
    assert (found["tracking"]["new"], found["tracking"]["back_after_weeks"]) == (False, 0)
    assert found["voucher"]["back_after_weeks"] == 1
    assert [week["chats"] > 0 for week in found["voucher"]["weeks"]] == [True, False, True]
    assert "back after 1 week" in client_of(lead_user).get(reverse("issues:list")).content.decode()


def test_two_issues_that_become_one_cluster_are_merged_and_may_split_again(
    rubric: Rubric, judge: Judge
) -> None:
    failing_week(0, {"tracking": 30, "voucher": 12}, judge=judge, rubric=rubric)
    find_issues()
    one = Issue.objects.earliest("pk")
    # As if the same chats had been two issues: the next scan finds one cluster of them.
    twin = Issue.objects.create(criterion=one.criterion, topic=one.topic, name="twin", first_week=WEEK)
    half = IssueChat.objects.filter(issue=one)[:12]
    IssueChat.objects.filter(pk__in=[row.pk for row in half]).update(issue=twin)
    centroid = one.weeks.get().centroid
    IssueWeek.objects.create(issue=twin, week=WEEK, chats=12, centroid=centroid)
    scan_work(scan_open(WEEK).pk)
    twin.refresh_from_db()
    merged = twin.merged_into or Issue.objects.get(merged_into=twin).merged_into
    assert merged is not None
    assert merged.pk in (one.pk, twin.pk)
    assert Issue.objects.filter(merged_into=None).count() == 2
    assert not IssueChat.objects.filter(issue__merged_into__isnull=False).exists()


def test_an_issue_that_loses_its_chats_goes_unless_somebody_worked_on_it(
    rubric: Rubric, judge: Judge, lead_user: User
) -> None:
    failing_week(0, {"tracking": 25, "voucher": 25}, judge=judge, rubric=rubric)
    find_issues()
    kept = Issue.objects.order_by("pk")[0]
    issue_change(issue=kept, change=IssueChange(note="We look into it."), seen=0, by=lead_user)
    Chat.objects.update(text_deleted_at=timezone.now())
    scan_work(scan_open(WEEK).pk)
    assert list(Issue.objects.all()) == [kept]


def test_weeks_are_worked_off_in_order_and_a_dead_worker_is_replaced(rubric: Rubric, judge: Judge) -> None:
    failing_week(0, PROBLEMS, judge=judge, rubric=rubric)
    failing_week(1, PROBLEMS, judge=judge, rubric=rubric)
    issues_work()
    first, second = IssueScan.objects.order_by("week")
    scan_work(second.pk)
    second.refresh_from_db()
    assert second.state == "open"
    IssueScan.objects.filter(pk=first.pk).update(state="working", lease=lease_begin(None), rung_at=None)
    WorkerLease.objects.update(pid=2**22 + 1)
    find_issues()
    assert set(IssueScan.objects.values_list("state", flat=True)) == {"done"}
    assert Issue.objects.count() == 3


# ---------- changes ----------


def test_owner_state_note_and_name_are_stored_and_a_stale_change_is_refused(
    rubric: Rubric, judge: Judge, lead_user: User, author_user: User
) -> None:
    failing_week(0, {"tracking": 25}, judge=judge, rubric=rubric)
    find_issues()
    client, row = client_of(lead_user), Issue.objects.get()
    url = reverse("api_issue", args=[row.pk])
    body = {"revision": 0, "state": "acknowledged", "owner": author_user.username, "name": "No status"}
    answer = client.patch(url, body, content_type="application/json")
    assert (answer.status_code, answer.json()["name"]) == (200, "No status")
    assert InboxItem.objects.get(user=author_user).subject == f"issue:{row.pk}"
    again = client.patch(url, body, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "changed")
    wrong = client.patch(url, {"revision": 1, "owner": "nobody"}, content_type="application/json")
    assert (wrong.status_code, "owner" in wrong.json()) == (400, True)
    form = {"revision": 1, "state": "ignored", "owner": "", "name": "No status", "note": "Known."}
    client.post(reverse("issues:change", args=[row.pk]), form)
    row.refresh_from_db()
    assert (row.state, row.owner, row.note, row.name_by) == ("ignored", None, "Known.", "person")
    scan_work(scan_open(WEEK).pk)
    row.refresh_from_db()
    assert row.name == "No status"


def test_a_fixed_issue_reopens_in_a_later_week_alone(rubric: Rubric, judge: Judge, lead_user: User) -> None:
    failing_week(0, {"tracking": 25}, judge=judge, rubric=rubric)
    find_issues()
    row = Issue.objects.get()
    issue_change(issue=row, change=IssueChange(state="fixed"), seen=0, by=lead_user)
    Issue.objects.update(fixed_week=WEEK)
    scan_work(scan_open(WEEK).pk)
    row.refresh_from_db()
    assert (row.state, row.returned) == ("fixed", False)
    failing_week(2, {"tracking": 25}, judge=judge, rubric=rubric)
    find_issues()
    row.refresh_from_db()
    assert (row.state, row.returned) == ("open", True)


# ---------- sent on ----------


@pytest.fixture
def one_issue(rubric: Rubric, judge: Judge) -> Issue:
    failing_week(0, {"tracking": 25}, judge=judge, rubric=rubric)
    find_issues()
    return Issue.objects.get()


def test_typical_chats_go_to_a_set_and_to_raters(one_issue: Issue, lead_user: User) -> None:
    client = client_of(lead_user)
    send = {"new_set": "Tracking", "split": "dev", "chats": "10"}
    client.post(reverse("issues:send", args=[one_issue.pk, "set"]), send)
    chosen = ChatSet.objects.get(name="Tracking")
    assert chosen.members.count() == 10
    own = set(one_issue.chats.values_list("chat", flat=True))
    assert {row.chat_id for row in chosen.members.all()} <= own
    answer = client.post(
        reverse("issues:send", args=[one_issue.pk, "raters"]), {"name": "For raters", "chats": "5"}
    )
    labelled = ChatSet.objects.get(name="For raters")
    assert answer.headers["Location"] == f"{reverse('labeling:job_new')}?set={labelled.pk}"
    assert client.get(answer.headers["Location"]).status_code == 200


def test_a_report_reaches_webhooks_without_any_text(one_issue: Issue, lead_user: User) -> None:
    client, url = client_of(lead_user), reverse("issues:send", args=[one_issue.pk, "webhook"])
    page = client.post(url, follow=True).content.decode()
    assert "No webhook receives issue.reported" in page
    make_webhook(kinds=["issue.reported"])
    client.post(url)
    event = OutboxEvent.objects.get(kind="issue.reported")
    assert (event.payload["issue"], event.payload["criterion"]) == (one_issue.pk, "polite")
    assert event.payload["name"] is None
    assert event.payload["weeks"][-1]["chats"] == one_issue.chats.count()


# ---------- who sees what ----------


def test_holdout_chats_are_not_clustered_and_later_ones_are_hidden_and_not_counted_for_authors(
    rubric: Rubric, judge: Judge, lead_user: User, author_user: User
) -> None:
    failing_week(0, {"tracking": 25}, judge=judge, rubric=rubric)
    held = Chat.objects.filter(topic__key="delivery").order_by("pk")[0]
    chat_set = make_set(rubric, name="secret")
    ChatSetMember.objects.create(chat_set=chat_set, chat=held, split="holdout", position=1)
    find_issues()
    assert not IssueChat.objects.filter(chat=held).exists()
    later = IssueChat.objects.order_by("-closeness", "pk")[0].chat
    ChatSetMember.objects.create(chat_set=chat_set, chat=later, split="holdout", position=2)
    (lead,), (author,) = listed(client_of(lead_user)), listed(client_of(author_user))
    assert (lead["chats"] - author["chats"], lead["chats_total"] - author["chats_total"]) == (1, 1)
    page = client_of(author_user).get(reverse("issues:detail", args=[lead["id"]])).content.decode()
    assert later.external_id not in page
    assert (
        later.external_id
        in client_of(lead_user).get(reverse("issues:detail", args=[lead["id"]])).content.decode()
    )


def test_raters_find_nothing_and_authors_send_nothing(
    one_issue: Issue, rater_user: User, author_user: User
) -> None:
    pages = [reverse("issues:list"), reverse("issues:detail", args=[one_issue.pk]), reverse("api_issues")]
    assert {client_of(rater_user).get(page).status_code for page in pages} == {404}
    author = client_of(author_user)
    for act in ("set", "raters", "webhook"):
        assert author.post(reverse("issues:send", args=[one_issue.pk, act])).status_code == 404
    assert author.post(reverse("issues:find")).status_code == 404


# ---------- pages ----------


def test_the_pages_lead_to_the_message_and_the_panel_shows_new_issues(
    one_issue: Issue, lead_user: User
) -> None:
    client = client_of(lead_user)
    page = client.get(reverse("issues:detail", args=[one_issue.pk]))
    assert len(page.context["found"].examples) == 3
    assert "#m2" in page.content.decode()
    assert one_issue.name in client.get(reverse("issues:panel")).content.decode()
    table = client.get(reverse("issues:csv")).content.decode().splitlines()
    assert "id,name,criterion" in table[0]
    assert len(table) == 2


def test_without_a_scan_the_list_says_so_and_the_panel_is_empty(lead_user: User) -> None:
    client = client_of(lead_user)
    assert "No issues yet" in client.get(reverse("issues:list")).content.decode()
    assert client.get(reverse("issues:panel")).content == b""


def test_a_period_is_clustered_again_on_request(one_issue: Issue, lead_user: User) -> None:
    client = client_of(lead_user)
    client.post(reverse("issues:find"), {"first": "2026-11-03", "last": "2026-11-10"})
    scans = IssueScan.objects.order_by("week")
    assert [(scan.week, scan.state) for scan in scans] == [
        (WEEK, "open"),
        (WEEK + timedelta(weeks=1), "open"),
    ]
    page = client.post(reverse("issues:find"), {"first": "2026-11-03", "last": "x"}, follow=True)
    assert "Choose the first and the last day" in page.content.decode()


@pytest.mark.parametrize("route", ["list", "panel", "detail"])
def test_more_issues_and_weeks_take_the_same_queries(
    rubric: Rubric, judge: Judge, author_user: User, route: str
) -> None:
    client, taken = client_of(author_user), []
    for number, counts in enumerate(({"tracking": 20}, PROBLEMS)):
        failing_week(number, counts, judge=judge, rubric=rubric)
        find_issues()
        args = [Issue.objects.earliest("pk").pk] if route == "detail" else []
        client.get(reverse(f"issues:{route}", args=args))
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse(f"issues:{route}", args=args)).status_code == 200
        taken.append(len(queries))
    assert taken[0] == taken[1]


# ---------- retention ----------


def test_terms_go_with_the_last_chat_that_has_them_and_figures_stay(one_issue: Issue) -> None:
    week = one_issue.weeks.get()
    rows = list(one_issue.chats.order_by("pk"))
    first = week.terms[0]
    with_first = [row.chat_id for row in rows if row.bits & 1]
    assert 0 < len(with_first) < len(rows)
    assert issue_texts_delete(chats=with_first, instead="-", blocks=()) == []
    Chat.objects.filter(pk__in=with_first).update(text_deleted_at=timezone.now())
    week.refresh_from_db()
    one_issue.refresh_from_db()
    assert first not in week.terms
    assert first not in one_issue.name
    rest = [row.chat_id for row in rows if not row.bits & 1]
    assert issue_texts_delete(chats=rest, instead="-", blocks=()) == [one_issue.pk]
    week.refresh_from_db()
    one_issue.refresh_from_db()
    assert (week.terms, week.chats, one_issue.name) == ([], len(rows), f"Issue {one_issue.pk}")
    assert week.centroid  # keyed hashes: it is recognised when it comes back
