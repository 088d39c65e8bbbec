"""History of a disagreement: changes by users and by the system, and undo."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from alignment.misalignments.worker import misalignments_refresh
from alignment.models.misalignments import Misalignment, TriageChange
from labeling.models.people import Role, User
from tests.factories.compared_runs import Compared
from tests.factories.rows import make_set, make_user
from tests.factories.triage import API, item_on, links_of, triage

pytestmark = pytest.mark.django_db

UNDO = f"{API}undo/"


def undo(client: Client) -> Any:
    return client.post(UNDO)


def state_of(item: Misalignment) -> tuple[str, str, str, str]:
    item.refresh_from_db()
    return item.cause, item.note, item.owner.username if item.owner else "", item.state


def test_the_history_has_every_change_with_user_and_old_value(
    compared: Compared, lead: Client, author: Client
) -> None:
    misalignments_refresh(compared.run)
    item = item_on(5)
    triage(author, item, cause="judge", owner="otto")
    item.refresh_from_db()
    triage(lead, item, cause="label", note="Look at <b>turn 2</b>")
    item.refresh_from_db()
    triage(lead, item, cause="label")  # nothing changed
    history = lead.get(f"{API}{item.pk}/").json()["history"]
    told = [(one["by"], one["was"], one["now"], one["undoes"]) for one in history]
    assert told == [
        ("ines", {"cause": "judge", "note": ""}, {"cause": "label", "note": "Look at <b>turn 2</b>"}, False),
        ("otto", {"cause": "", "owner": ""}, {"cause": "judge", "owner": "otto"}, False),
    ]
    page = links_of(lead, item)
    assert "<h3>History</h3>" in page and "Cause: <del>Judge wrong</del> → Label wrong" in page
    assert "&lt;b&gt;turn 2" in page and "<b>turn 2" not in page


def test_undo_reverts_the_last_changes_of_any_page_one_by_one(compared: Compared, author: Client) -> None:
    misalignments_refresh(compared.run)
    first, second = item_on(5), item_on(10)
    triage(author, first, cause="judge")
    triage(author, second, cause="label", note="So.")
    first.refresh_from_db()
    triage(author, first, owner="otto")
    assert undo(author).json()["id"] == first.pk
    assert state_of(first) == ("judge", "", "", "triaged")
    assert undo(author).json()["history"][0]["undoes"] is True
    assert state_of(second) == ("", "", "", "open")
    assert undo(author).status_code == 200 and state_of(first) == ("", "", "", "open")
    nothing = undo(author)
    assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing")
    assert TriageChange.objects.count() == 6


def test_changes_of_others_overwritten_or_old_changes_cannot_be_undone(
    compared: Compared, lead: Client, author: Client
) -> None:
    misalignments_refresh(compared.run)
    item = item_on(5)
    triage(author, item, cause="judge")
    assert undo(lead).status_code == 409
    item.refresh_from_db()
    triage(lead, item, note="Mine.")
    assert undo(author).status_code == 409 and state_of(item)[:2] == ("judge", "Mine.")
    TriageChange.objects.update(at="2026-01-01T00:00:00Z")
    assert undo(lead).status_code == 409 and state_of(item)[:2] == ("judge", "Mine.")


def test_an_author_cannot_undo_a_change_on_a_chat_that_is_now_holdout(
    compared: Compared, author: Client
) -> None:
    misalignments_refresh(compared.run)
    item = item_on(5)
    triage(author, item, cause="judge")
    make_set(compared.rubric, compared.chat(5), name="gold", split="holdout")
    assert undo(author).status_code == 409 and state_of(item)[0] == "judge"


def test_undo_restores_an_inactive_owner_but_not_a_renamed_one(compared: Compared, lead: Client) -> None:
    misalignments_refresh(compared.run)
    otto = make_user("otto", Role.AUTHOR)
    item = item_on(5)
    triage(lead, item, owner="otto")
    item.refresh_from_db()
    triage(lead, item, owner="")
    User.objects.filter(pk=otto.pk).update(is_active=False)
    assert undo(lead).json()["owner"] == "otto"
    item.refresh_from_db()
    triage(lead, item, owner="")
    User.objects.filter(pk=otto.pk).update(username="ottilie")
    assert undo(lead).json()["owner"] in ("", None)


def test_the_history_shows_closing_as_a_change_by_the_system(compared: Compared, lead: Client) -> None:
    misalignments_refresh(compared.run)
    item = item_on(5)
    assert "<b>System</b>" not in links_of(lead, item)
    assert lead.get(f"{API}{item.pk}/").json()["closed_by"] == ""
    Misalignment.objects.update(state="closed", closed_by="label", closed_at=timezone.now())
    page = links_of(lead, item)
    assert "closed by a changed label" in page and "<b>System</b>" in page
    body = lead.get(f"{API}{item.pk}/").json()
    assert (body["closed_by"], body["cause"], body["history"]) == ("label", "", [])
    assert body["closed_at"] is not None
