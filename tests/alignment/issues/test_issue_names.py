"""Names of issues by the judge's model: material, cost, background work; deleted with the chats."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from alignment.issues.core.naming import Unreadable, read_name
from alignment.issues.services import IssueChange, issue_change, naming_start
from alignment.issues.worker.retention import issue_texts_delete
from alignment.models.issues import Issue, IssueNaming
from alignment.retention.services import BLOCKS, DELETED
from alignment.tasks import name_issue
from common.problems import InputProblem
from evaluation.models.runs import ModelCall, TextBlock, Verdict
from labeling.models.chats import Chat
from labeling.models.people import AuditEvent, User
from tests.factories.issues import failing_week, find_issues
from tests.factories.pages import page_text
from tests.factories.rows import make_rubric
from tests.factories.runs import answering
from tests.factories.verdicts import make_judge
from tests.stub_endpoint import StubEndpoint, StubReply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def namer(settings: Settings) -> Iterator[StubEndpoint]:
    answer = StubReply("NAME: No status of the parcel\nSUMMARY: The bot repeats the tracking link.")
    with answering(settings, lambda body: answer) as stub:
        yield stub


@pytest.fixture
def issue(lead_user: User) -> Issue:
    rubric = make_rubric("polite")
    failing_week(0, {"tracking": 20}, judge=make_judge(rubric), rubric=rubric)
    find_issues()
    return Issue.objects.get()


def named(issue: Issue, by: User, *, anew: bool = False) -> IssueNaming:
    row = naming_start(issue=issue, by=by, anew=anew)

    def work() -> None:
        name_issue(row.pk)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    row.refresh_from_db()
    issue.refresh_from_db()
    return row


def test_the_model_gets_fenced_rationales_and_terms_and_its_name_is_stored(
    namer: StubEndpoint, issue: Issue, lead_user: User
) -> None:
    row = named(issue, lead_user)
    assert (row.state, row.cost_usd, len(row.chats)) == ("done", ModelCall.objects.get().cost_usd, 8)
    assert (issue.name, issue.name_by) == ("No status of the parcel", "model")
    assert issue.summary == "The bot repeats the tracking link."
    sent = "\n".join(message["content"] for message in namer.requests[0]["messages"])
    assert "tracking link" in sent
    assert sent.count("<<text ") >= 10


def test_the_same_texts_are_answered_from_the_store(
    namer: StubEndpoint, issue: Issue, lead_user: User
) -> None:
    named(issue, lead_user)
    assert named(issue, lead_user).reused
    assert namer.count == 1
    assert not named(issue, lead_user, anew=True).reused
    assert namer.count == 2


def test_only_one_name_is_asked_for_at_a_time(namer: StubEndpoint, issue: Issue, lead_user: User) -> None:
    naming_start(issue=issue, by=lead_user)
    with pytest.raises(InputProblem, match="asked for already"):
        naming_start(issue=issue, by=lead_user)
    assert AuditEvent.objects.get(verb="issue name asked").actor == lead_user


def test_the_panel_shows_cost_waiting_cancel_and_reloads_the_page(
    namer: StubEndpoint, issue: Issue, lead_user: User, client: Client
) -> None:
    client.force_login(lead_user)
    url = reverse("issues:naming", args=[issue.pk])
    assert "At most" in page_text(client.get(url))
    assert "asked for a name" in page_text(client.post(url, {"act": "start"}))
    assert "Name by the judge" in page_text(client.post(url, {"act": "cancel"}))
    named(issue, lead_user)
    assert client.get(url, {"wait": "1"}).headers["HX-Refresh"] == "true"


def test_an_unreadable_answer_changes_nothing(namer: StubEndpoint, issue: Issue, lead_user: User) -> None:
    before = issue.name
    namer.answer = lambda body: StubReply("The parcel.")
    row = named(issue, lead_user)
    assert (row.state, row.error, issue.name) == ("failed", "the answer has no line NAME", before)
    with pytest.raises(Unreadable):
        read_name("SUMMARY: alone")


def test_the_name_goes_with_the_first_chat_that_it_was_written_from(
    namer: StubEndpoint, issue: Issue, lead_user: User
) -> None:
    row = named(issue, lead_user)
    issue_change(issue=issue, change=IssueChange(note="Ask the carrier."), seen=0, by=lead_user)
    first = row.chats[0]
    assert issue_texts_delete(chats=[first], instead=DELETED, blocks=BLOCKS) == []
    Chat.objects.filter(pk=first).update(text_deleted_at=timezone.now())
    issue.refresh_from_db()
    assert (issue.name_by, issue.summary, issue.note) == ("terms", "", "Ask the carrier.")
    call = ModelCall.objects.get()
    assert (call.reply, TextBlock.objects.filter(text__contains="tracking").exists()) == ("", False)
    rest = list(Verdict.objects.values_list("chat", flat=True))
    issue_texts_delete(chats=rest, instead=DELETED, blocks=BLOCKS)
    issue.refresh_from_db()
    assert (issue.note, issue.name) == ("", f"Issue {issue.pk}")
