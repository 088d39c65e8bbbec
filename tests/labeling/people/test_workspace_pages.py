"""Workspace settings and the log of what leads and authors did."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.adjudication.services import adjudication_decide, adjudication_withdraw, raters_named
from labeling.models.labels import RaterNote
from labeling.models.people import AuditEvent, Role, User, Workspace
from labeling.people.services.audit import audit
from labeling.people.services.roles import rater_for
from labeling.rating.services.notes import note_settle
from tests.factories.labelling_job import make_desk
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

SETTINGS, LOG = "/workspace/", "/workspace/log/"


@pytest.fixture
def lead(lead_user: User) -> Client:
    return signed_in(lead_user)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def events(count: int) -> None:
    workspace = Workspace.current()
    for n in range(count):
        audit(actor=None, verb=f"thing {n} done", obj=workspace, words=["<b>", n])


def test_a_lead_changes_the_rules_and_the_log_keeps_old_and_new(lead: Client, lead_user: User) -> None:
    answer = page_text(lead.post(SETTINGS, {"evidence_on_false": "on"}, follow=True))
    assert "Settings saved" in answer
    rules = Workspace.current()
    assert (rules.evidence_on_false, rules.comment_required, rules.reveal_after_submit) == (
        True,
        False,
        False,
    )
    event = AuditEvent.objects.get()
    assert (event.actor, event.verb) == (lead_user, "settings changed")
    assert event.detail == {"evidence_on_false": {"old": False, "new": True}}
    assert "no → yes" in answer


def test_saving_the_same_again_leaves_no_event(lead: Client) -> None:
    for _ in range(2):
        lead.post(SETTINGS, {"comment_required": "on"})
    assert AuditEvent.objects.count() == 1
    lead.post(SETTINGS, {})
    assert not Workspace.current().comment_required


def test_the_log_is_newest_first_and_goes_on_with_older_events(lead: Client) -> None:
    assert "No entries yet" in page_text(lead.get(LOG))
    events(60)
    first = lead.get(LOG)
    rows = first.context["page"].rows
    assert [row.event.verb for row in rows[:2]] == ["thing 59 done", "thing 58 done"]
    assert "&lt;b&gt;, 59" in page_text(first)
    older = lead.get(LOG, {"before": str(first.context["page"].following)}).context["page"]
    assert [row.event.verb for row in older.rows] == [f"thing {n} done" for n in range(9, -1, -1)]
    assert older.following is None
    for nonsense in ("x", "-1", "9" * 30):
        assert len(lead.get(LOG, {"before": nonsense}).context["page"].rows) == 50


@pytest.mark.heavy
def test_both_pages_take_the_same_number_of_queries_with_many_events(lead: Client) -> None:
    for url in (SETTINGS, LOG):
        counts = []
        for more in (2, 50):
            events(more)
            lead.get(url)
            with CaptureQueriesContext(connection) as queries:
                assert lead.get(url).status_code == 200
            counts.append(len(queries))
        assert counts[0] == counts[1]


def test_the_api_reads_and_changes_the_rules_and_lists_the_log(lead: Client) -> None:
    url = reverse("api_workspace")
    changed = lead.patch(url, json.dumps({"reveal_after_submit": True}), content_type="application/json")
    assert changed.json() == lead.get(url).json()
    assert changed.json() == {
        "reveal_after_submit": True,
        "evidence_on_false": False,
        "comment_required": False,
        "subjective_in_session_score": False,
        "second_factor": "off",
    }
    (row,) = lead.get(reverse("api_workspace_log")).json()["results"]
    assert (row["actor"], row["verb"]) == ("ines", "settings changed")
    wrong = lead.patch(url, json.dumps({"reveal_after_submit": "maybe"}), content_type="application/json")
    assert wrong.status_code == 400


def test_the_log_names_a_holdout_chat_only_to_those_who_may_see_it(lead: Client, lead_user: User) -> None:
    desk = make_desk(chats=2)
    desk.chat_set.members.filter(position=2).update(split="holdout")
    for chat in desk.chats:
        about: dict[str, Any] = {"chat": chat, "criterion": desk.criteria[0], "by": lead_user}
        decision = adjudication_decide(**about, value=True, reason="m2.", seen=None)
        raters_named(**about)
        adjudication_withdraw(**about, seen=decision.pk)
        note = RaterNote.objects.create(rater=desk.rater, chat=chat, client_id=uuid4(), kind="flag", text="x")
        note_settle(note=note, by=lead_user)
    events = [(event.verb, event.object_id) for event in AuditEvent.objects.order_by("-pk")]
    assert logged(lead) == events
    lead_user.groups.clear()
    lead_user.user_permissions.add(Permission.objects.get(codename="manage_labeling"))
    # The second chat's four events are the newest; opening the job and changing a role is nobody's chat.
    roles = [event for event in logged(lead) if event[0] == "roles changed"]
    assert logged(lead) == [*roles, *events[4:]]
    assert "chat-1" in page_text(lead.get(LOG))
    assert "chat-2" not in page_text(lead.get(LOG)) + page_text(lead.get(SETTINGS))


def test_a_lead_who_labels_too_reads_nothing_of_chats_still_to_label(lead: Client, lead_user: User) -> None:
    desk = make_desk(chats=2)
    raters_named(chat=desk.chats[0], criterion=desk.criteria[0], by=lead_user)
    assert "raters named" in [verb for verb, _ in logged(lead)]
    lead_user.groups.add(Group.objects.get(name=Role.RATER))
    desk.job.raters.add(rater_for(user=lead_user))
    assert "raters named" not in [verb for verb, _ in logged(lead)]


def logged(client: Client) -> list[tuple[str, int]]:
    """What the page lists, which is what the API lists."""
    page = [(row.event.verb, row.event.object_id) for row in client.get(LOG).context["page"].rows]
    rows = client.get(reverse("api_workspace_log")).json()["results"]
    assert page == [(row["verb"], row["object_id"]) for row in rows]
    return page


@pytest.mark.parametrize("role", [Role.RATER, Role.AUTHOR])
def test_nobody_else_has_them(role: Role) -> None:
    client = signed_in(make_user("else", role))
    for url in (SETTINGS, LOG, reverse("api_workspace"), reverse("api_workspace_log")):
        assert client.get(url).status_code == 404
    assert client.post(SETTINGS, {"comment_required": "on"}).status_code == 404
    assert not Workspace.current().comment_required
