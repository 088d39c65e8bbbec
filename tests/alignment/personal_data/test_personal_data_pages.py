"""Pages and command: leads export and delete one chat or one person, after a confirmation."""

import json
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models.chats import Chat
from labeling.models.labels import Assignment
from labeling.models.people import AuditEvent, Rater, Role, User
from tests.factories.labelling_job import make_desk, user_of
from tests.factories.rows import make_chat, make_user
from tests.factories.runs import command

pytestmark = pytest.mark.django_db
TEXT = "I am Zoe Zuckermann."


@pytest.fixture
def lead_client(lead_user: User, client: Client) -> Client:
    client.force_login(lead_user)
    return client


@pytest.fixture
def chat(db: None) -> Chat:
    return make_chat(messages=[("user", TEXT), ("assistant", "Hello.")])


def page_of(row: Chat | User, ending: str = "") -> str:
    kind = "chat" if isinstance(row, Chat) else "person"
    return reverse(f"alignment:{kind}_personal_data{ending}", args=[row.pk])


def test_a_lead_deletes_a_chat_by_typing_its_id(lead_client: Client, chat: Chat) -> None:
    answer = lead_client.post(page_of(chat), {"name": chat.external_id}, follow=True)
    assert f"The text of {chat.external_id} is deleted" in answer.content.decode()
    chat.refresh_from_db()
    assert (chat.messages, chat.metadata) == ([], {})
    assert "Delete the text" not in lead_client.get(page_of(chat)).content.decode()


def test_another_id_deletes_nothing(lead_client: Client, chat: Chat) -> None:
    answer = lead_client.post(page_of(chat), {"name": "another"})
    assert "Nothing was deleted" in answer.content.decode()
    chat.refresh_from_db()
    assert chat.messages


def test_the_download_has_the_chat_and_the_log_has_the_download(lead_client: Client, chat: Chat) -> None:
    answer = lead_client.post(page_of(chat, "_file"))
    first, *rows = map(json.loads, b"".join(answer).splitlines())
    assert first["chat"] == chat.external_id
    assert any(TEXT in json.dumps(row) for row in rows)
    assert AuditEvent.objects.get().verb == "personal-data exported"


def test_a_lead_who_has_still_to_label_a_chat_does_not_see_its_data(client: Client) -> None:
    desk = make_desk(chats=1, raters=2)
    user = user_of(desk.rater)
    user.groups.add(make_user("ines", Role.LEAD).groups.get())
    client.force_login(user)
    chat = Assignment.objects.earliest("pk").chat
    assert client.get(page_of(chat)).status_code == 404
    assert client.post(page_of(chat, "_file")).status_code == 404
    other = client.post(page_of(user_of(desk.raters[1]), "_file"), follow=True)
    assert "Label your own chats first" in other.content.decode()


def test_a_lead_deletes_a_deactivated_account(lead_client: Client, rater_user: User) -> None:
    lead_client.post(page_of(rater_user), {"name": "mara"})
    rater_user.refresh_from_db()
    assert rater_user.username == "mara"  # still active
    User.objects.filter(pk=rater_user.pk).update(is_active=False)
    answer = lead_client.post(page_of(rater_user), {"name": "mara"}, follow=True)
    assert f"under the pseudonym deleted-{rater_user.pk}" in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_chat_on_the_command_line(chat: Chat, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert command("personal_data", "export", "--chat", chat.external_id, "-o", str(target)).code == 0
    assert TEXT in target.read_text()
    assert target.stat().st_mode & 0o077 == 0
    refused = command("personal_data", "delete", "--chat", chat.external_id)
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    done = command("personal_data", "delete", "--chat", chat.external_id, "--yes")
    assert (done.code, done.answer) == (0, {"labels": 0, "verdicts": 0})
    chat.refresh_from_db()
    assert chat.messages == []


@pytest.mark.django_db(transaction=True)
def test_a_rater_without_an_account_on_the_command_line() -> None:
    rater = Rater.objects.create(name="Zoe")
    assert command("personal_data", "delete", "--rater", "Zoe", "--yes").code == 0
    rater.refresh_from_db()
    assert rater.name == f"deleted-rater-{rater.pk}"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("argument", "message"),
    [("--chat", "there is no chat"), ("--user", "there is no account"), ("--rater", "there is no rater")],
)
def test_an_unknown_name_is_refused(argument: str, message: str) -> None:
    refused = command("personal_data", "delete", argument, "Nobody", "--yes")
    assert (refused.code, message in refused.err) == (2, True)
