"""Drafts of forms on the server: one's own alone, never overwritten by older ones, gone once accepted."""

from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client
from django.urls import reverse

from common.drafts.services import MOST_DRAFTS
from common.models import FormDraft
from labeling.models.people import Role, User
from tests.factories.rows import make_rubric, make_user

pytestmark = pytest.mark.django_db
URL = "/api/form-drafts/"
KEY = "/guidelines/1/edit/"


@pytest.fixture
def lead_user() -> User:
    return make_user("ines", Role.LEAD)


@pytest.fixture
def lead(lead_user: User) -> Client:
    return signed_in(lead_user)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def save(client: Client, *, text: str = "So far", revision: int = 0, key: str = KEY) -> Any:
    body = {"key": key, "values": {"text": [text]}, "base": "a", "revision": revision}
    return client.put(URL, body, content_type="application/json")


def draft(client: Client, key: str = KEY) -> Any:
    return client.get(URL, {"key": key}).json()["draft"]


def test_what_was_saved_last_is_there(lead: Client) -> None:
    assert draft(lead) is None
    assert save(lead).json()["draft"]["revision"] == 1
    assert save(lead, text="Further", revision=1).status_code == 200
    found = draft(lead)
    assert (found["values"], found["base"], found["revision"]) == ({"text": ["Further"]}, "a", 2)


@pytest.mark.parametrize("revision", [0, 1, 9])
def test_an_older_tab_overwrites_nothing_and_gets_the_newer_draft(lead: Client, revision: int) -> None:
    save(lead)
    save(lead, text="Newer", revision=1)
    refused = save(lead, text="Older", revision=revision)
    assert refused.status_code == 409
    assert refused.json()["draft"]["values"] == {"text": ["Newer"]} == draft(lead)["values"]


def test_a_tab_learns_that_its_draft_was_deleted(lead: Client) -> None:
    save(lead)
    assert lead.delete(f"{URL}?key={KEY}").status_code == 204
    refused = save(lead, revision=1)
    assert (refused.status_code, refused.json()) == (409, {"draft": None})


def test_drafts_are_seen_by_their_owner_alone(lead: Client) -> None:
    save(lead)
    other = signed_in(make_user("olga", Role.LEAD))
    assert draft(other) is None
    assert save(other, text="Mine").status_code == 200
    other.delete(f"{URL}?key={KEY}")
    assert draft(lead)["values"] == {"text": ["So far"]}


def test_an_accepted_form_has_no_draft_and_tells_the_browser(lead: Client) -> None:
    rubric = make_rubric("polite")
    key = reverse("labeling:guideline_edit", args=[rubric.pk])
    save(lead, key=key)
    refused = lead.post(key, {"text": "", "form_draft": key})
    assert refused.status_code == 200
    assert draft(lead, key) is not None
    base = refused.context["form"].initial.get("base", 0)
    accepted = lead.post(key, {"text": "Be fair.", "reason": "First.", "base": base, "form_draft": key})
    assert accepted.status_code == 302
    assert draft(lead, key) is None
    assert unquote(accepted.cookies["form_draft_accepted"].coded_value) == key


def test_a_form_that_is_answered_in_place_has_no_draft_once_it_is_accepted(lead: Client) -> None:
    key = reverse("labeling:token_list")
    save(lead, key=key)
    refused = lead.post(key, {"form_draft": key, "name": ""})
    assert refused.status_code == 200
    assert draft(lead, key) is not None
    scope, _ = refused.context["form"].fields["scopes"].choices[0]
    made = lead.post(key, {"form_draft": key, "name": "Export", "expires": "7", "scopes": [scope]})
    assert (made.status_code, "Form-Accepted" in made) == (200, False)
    assert draft(lead, key) is None
    assert unquote(made.cookies["form_draft_accepted"].coded_value) == key


def test_a_redirect_to_the_sign_in_keeps_the_draft(lead: Client, lead_user: User) -> None:
    save(lead)
    assert Client().post("/workspace/", {"form_draft": KEY}).status_code == 302
    assert draft(lead) is not None


def test_the_oldest_of_too_many_are_deleted(lead: Client, lead_user: User) -> None:
    for number in range(MOST_DRAFTS + 1):
        save(lead, key=f"/{number}/")
    assert FormDraft.objects.filter(user=lead_user).count() == MOST_DRAFTS
    assert draft(lead, "/0/") is None


@pytest.mark.parametrize(
    "values", [{"text": "no list"}, {"text": ["x" * 500_001]}, {"text": ["x"] * 2_001}, ["text"]]
)
def test_what_is_no_form_is_refused(lead: Client, values: Any) -> None:
    body = {"key": KEY, "values": values, "base": "", "revision": 0}
    assert lead.put(URL, body, content_type="application/json").status_code == 400
    assert not FormDraft.objects.exists()
