"""API by which a program puts chats that it has sent into a chat set."""

from typing import Any

import pytest
from django.test import Client

from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import Rubric
from labeling.people.services.tokens import token_create
from tests.factories.rows import make_chat, make_rubric, make_set, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(lead_user: User) -> Client:
    make_rubric("polite")
    client = Client()
    client.force_login(lead_user)
    return client


def sent(*names: str, source: str = "shop-bot") -> None:
    for name in names:
        chat = make_chat(name)
        Chat.objects.filter(pk=chat.pk).update(source=source)


def add(client: Client, *chats: str, **body: Any) -> Any:
    fields = {"set": "nightly", "source": "shop-bot", "chats": chats} | body
    return client.post("/api/sets/", fields, content_type="application/json")


def test_a_new_set_is_created_and_the_same_request_again_changes_nothing(lead: Client) -> None:
    sent("a", "b")
    first, again = add(lead, "a", "b"), add(lead, "a", "b")
    assert first.status_code == 200, first.json()
    set_id = ChatSet.objects.get(name="nightly").pk
    assert first.json() == {"id": set_id, "set": "nightly", "added": 2, "kept": 0}
    assert again.json() == {"id": set_id, "set": "nightly", "added": 0, "kept": 2}
    assert set(ChatSetMember.objects.values_list("split", flat=True)) == {"dev"}
    assert AuditEvent.objects.filter(verb="chats added").count() == 2


def test_chats_join_a_set_that_exists_in_the_split_that_is_named(lead: Client) -> None:
    sent("a")
    rubric = Rubric.objects.get()
    make_set(rubric, make_chat("earlier"), name="nightly")
    assert add(lead, "a", split="train").json()["added"] == 1
    assert ChatSetMember.objects.get(chat__external_id="a").split == "train"


def test_the_same_id_of_another_source_is_another_chat(lead: Client) -> None:
    sent("a", source="other-bot")
    answer = add(lead, "a", "z")
    assert answer.status_code == 400
    assert answer.json() == {"chats": ["There is no chat 'a', 'z' of the source 'shop-bot'."]}
    assert not ChatSet.objects.exists()


def test_nothing_is_held_out_by_a_program(lead: Client) -> None:
    sent("a")
    assert list(add(lead, "a", split="holdout").json()) == ["split"]


def test_a_new_set_needs_its_rubric_where_there_are_several(lead: Client) -> None:
    sent("a")
    make_rubric("kind", name="Other")
    assert add(lead, "a").json() == {"rubric": ["Name the rubric of the new set."]}
    assert add(lead, "a", rubric="None").json() == {"rubric": ["There is no rubric 'None'."]}
    assert add(lead, "a", rubric="Other").status_code == 200


def test_a_token_without_the_holdout_finds_no_chat_of_it(lead_user: User) -> None:
    chat = make_chat("held")
    make_set(make_rubric("polite"), chat, name="golden", split="holdout")
    secret = token_create(user=lead_user, name="ci", scopes=["manage_labeling"], days=1).secret
    program = Client(headers={"Authorization": f"Token {secret}"})
    assert "There is no chat 'held'" in add(program, "held", source="").json()["chats"][0]


def test_authors_have_no_such_route(db: None) -> None:
    client = Client()
    client.force_login(make_user("otto", Role.AUTHOR))
    assert add(client, "a").status_code == 404
