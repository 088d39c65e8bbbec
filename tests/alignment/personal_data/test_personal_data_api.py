"""API of personal data: leads export and delete by name, with the rules and the confirmation of the pages."""

import json
from typing import Any

import pytest
from django.test import Client

from labeling.models.chats import Chat
from labeling.models.labels import Assignment
from labeling.models.people import AuditEvent, Rater, Role, User
from labeling.people.services.tokens import token_create
from tests.factories.labelling_job import make_desk, user_of
from tests.factories.rows import make_chat, make_user

pytestmark = pytest.mark.django_db

CHAT, PERSON = "/api/personal-data/chat/", "/api/personal-data/person/"
TEXT = "I am Zoe Zuckermann."
SCOPES = ("manage_labeling", "see_judge", "see_holdout")


def program(user: User, *scopes: str) -> Client:
    """A program with a token of this user."""
    secret = token_create(user=user, name=f"erasures {scopes}", scopes=scopes or SCOPES, days=1).secret
    return Client(headers={"Authorization": f"Token {secret}"})


@pytest.fixture
def lead(lead_user: User) -> Client:
    return program(lead_user)


@pytest.fixture
def chat(db: None) -> Chat:
    return make_chat(messages=[("user", TEXT), ("assistant", "Hello.")])


def delete(client: Client, url: str, **query: str) -> Any:
    return client.delete(url, query_params=query)


def lines_of(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


# ---------- one chat ----------


def test_the_export_has_the_chat_and_the_log_has_the_export(lead: Client, chat: Chat) -> None:
    first, *rows = lines_of(lead.get(CHAT, {"chat": chat.external_id}))
    assert first["chat"] == chat.external_id and first["tables"]["labeling.Chat"] == 1
    assert any(TEXT in json.dumps(row) for row in rows)
    event = AuditEvent.objects.get(verb="personal-data exported")
    assert (event.object_id, event.token_name.split()[0]) == (chat.pk, "erasures")


def test_a_chat_that_a_system_sent_is_named_with_its_source(lead: Client, chat: Chat) -> None:
    Chat.objects.update(source="helpdesk")
    assert lead.get(CHAT, {"chat": chat.external_id}).status_code == 404
    assert lead.get(CHAT, {"chat": chat.external_id, "source": "helpdesk"}).status_code == 200


def test_a_chat_is_deleted_when_its_id_is_confirmed(lead: Client, chat: Chat) -> None:
    named = {"chat": chat.external_id}
    assert delete(lead, CHAT, **named).status_code == 400
    refused = delete(lead, CHAT, **named, confirm="another")
    assert (refused.status_code, "Nothing was deleted" in refused.json()["confirm"][0]) == (400, True)
    chat.refresh_from_db()
    assert chat.messages
    done = delete(lead, CHAT, **named, confirm=chat.external_id)
    assert (done.status_code, done.json()) == (200, {"labels": 0, "verdicts": 0})
    chat.refresh_from_db()
    assert chat.messages == []
    assert AuditEvent.objects.filter(verb="personal-data deleted", object_id=chat.pk).count() == 1
    again = delete(lead, CHAT, **named, confirm=chat.external_id)
    assert (again.status_code, again.json()["code"]) == (409, "deleted")


# ---------- one person ----------


def test_the_export_of_an_account_has_no_password(lead: Client, rater_user: User) -> None:
    first, *rows = lines_of(lead.get(PERSON, {"user": "mara"}))
    assert first["person"] == "mara"
    (account,) = (row["row"] for row in rows if row["table"] == "labeling.User")
    assert account["username"] == "mara" and "password" not in account
    assert AuditEvent.objects.filter(verb="personal-data exported", object_id=rater_user.pk).count() == 1


def test_an_account_is_deleted_once_it_is_deactivated(lead: Client, rater_user: User) -> None:
    named = {"user": "mara", "confirm": "mara"}
    active = delete(lead, PERSON, **named)
    assert (active.status_code, active.json()["detail"]) == (
        409,
        "This account is active. Deactivate it first.",
    )
    User.objects.filter(pk=rater_user.pk).update(is_active=False)
    assert delete(lead, PERSON, **named | {"confirm": "Mara"}).status_code == 400
    assert delete(lead, PERSON, **named).json() == {"pseudonym": f"deleted-{rater_user.pk}", "labels": 0}
    assert delete(lead, PERSON, **named).status_code == 404  # the name is gone
    event = AuditEvent.objects.get(verb="personal-data deleted")
    assert (event.object_id, event.token_name.split()[0]) == (rater_user.pk, "erasures")


def test_a_rater_without_an_account_is_named_as_rater(lead: Client) -> None:
    rater = Rater.objects.create(name="Zoe")
    assert lines_of(lead.get(PERSON, {"rater": "Zoe"}))[0]["tables"] == {"labeling.Rater": 1}
    done = delete(lead, PERSON, rater="Zoe", confirm="Zoe").json()
    assert done == {"pseudonym": f"deleted-rater-{rater.pk}", "labels": 0}
    gone = {"rater": done["pseudonym"], "confirm": done["pseudonym"]}
    assert delete(lead, PERSON, **gone).json()["code"] == "deleted"


@pytest.mark.parametrize("query", [{}, {"user": "mara", "rater": "mara"}])
def test_exactly_one_person_is_named(lead: Client, query: dict[str, str]) -> None:
    assert "either a user or a rater" in lead.get(PERSON, query).json()["user"][0]


# ---------- who may ----------


@pytest.mark.parametrize("missing", SCOPES)
def test_a_token_needs_every_scope_of_what_an_export_shows(lead_user: User, chat: Chat, missing: str) -> None:
    client = program(lead_user, *(scope for scope in SCOPES if scope != missing))
    assert client.get(CHAT, {"chat": chat.external_id}).status_code == 404
    assert delete(client, PERSON, user="mara", confirm="mara").status_code == 404


def test_a_lead_who_has_still_to_label_a_chat_does_not_get_its_data() -> None:
    desk = make_desk(chats=1, raters=2)
    user = user_of(desk.rater)
    user.groups.add(make_user("ines", Role.LEAD).groups.get())
    client = program(User.objects.get(pk=user.pk))
    named = {"chat": Assignment.objects.earliest("pk").chat.external_id}
    assert client.get(CHAT, named).status_code == 404
    assert delete(client, CHAT, **named, confirm=named["chat"]).status_code == 404
    other = client.get(PERSON, {"user": user_of(desk.raters[1]).username})
    assert (other.status_code, other.json()["code"]) == (409, "own_chats_first")
