"""API of previews and tries, with the same services as the page."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from tests.factories.tries import HOLDOUT, MARK, carried_out, drafted

pytestmark = pytest.mark.django_db(transaction=True)


def post(client: Client, name: str, body: dict[str, Any]) -> Any:
    return client.post(reverse(name, args=["polite"]), body, content_type="application/json")


def test_the_preview_returns_every_message(try_set: ChatSet, author: Client, author_user: User) -> None:
    drafted(author_user)
    answer = post(author, "api_prompt_preview", {"chat": "c-03", "profile": "default"}).json()
    assert (answer["engine"], answer["criteria"], answer["calls"]) == ("direct", ["polite", "exact"], 1)
    assert [role["role"] for role in answer["roles"]] == ["direct", "formatter"]
    system, user = answer["roles"][0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert MARK in system["content"]
    assert "case c-03" in user["content"]
    assert answer["cost_usd"] is None


def test_the_default_chat_is_a_short_disagreement(try_set: ChatSet, author: Client) -> None:
    assert "m01 customer| This is case" in str(post(author, "api_prompt_preview", {}).json())


def test_a_try_is_started_and_read(try_set: ChatSet, author: Client, author_user: User) -> None:
    drafted(author_user)
    answer = post(author, "api_prompt_tries", {"what": "disagreements"})
    assert answer.status_code == 202
    run = Run.objects.get(pk=answer.json()["id"])
    assert answer.json()["units"] == 7
    carried_out(run)
    result = author.get(reverse("api_prompt_try", args=[run.pk])).json()
    assert (result["state"], result["done"], result["total"]) == ("done", 7, 7)
    assert (result["fixed"], result["broken"], result["of"]) == (6, 0, 7)
    first = result["chats"][0]
    assert (first["chat"], first["people"], first["change"]) == ("c-00", "true", "fixed")
    assert first["before"] == {"state": "read", "value": False}
    assert first["after"] == {"state": "read", "value": True}


def test_a_dry_run_returns_the_estimate(try_set: ChatSet, author: Client, author_user: User) -> None:
    drafted(author_user)
    answer = post(author, "api_prompt_tries", {"what": "disagreements", "n": 3, "dry_run": True})
    assert (answer.status_code, answer.json()["calls"]) == (200, 3)
    assert not Run.objects.filter(purpose="try").exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "what"),
        ({"what": "chat", "chat": HOLDOUT[0]}, "chat"),
        ({"what": "chat", "chat": "nowhere"}, "chat"),
        ({"what": "disagreements", "n": 51}, "n"),
        ({"what": "chat", "profile": "none"}, "profile"),
        ({"what": "chat", "base": 99}, "base"),
        ({"what": "chat", "budget_usd": "1"}, "detail"),
        ({"what": "chat", "chats": ["c-00"]}, "chats"),
    ],
)
def test_invalid_input_is_refused_by_field(
    try_set: ChatSet, author: Client, body: dict[str, Any], field: str
) -> None:
    answer = post(author, "api_prompt_tries", body)
    assert (answer.status_code, list(answer.json())) == (400, [field])


def test_a_holdout_chat_is_answered_like_an_unknown_chat(
    try_set: ChatSet, author: Client, client: Client, lead_user: User
) -> None:
    client.force_login(lead_user)
    for person in (author, client):
        for name in ("api_prompt_preview", "api_prompt_tries"):
            more = {"what": "chat"} if name == "api_prompt_tries" else {}
            holdout, unknown = (post(person, name, {**more, "chat": chat}) for chat in (HOLDOUT[0], "x"))
            assert holdout.json()["chat"][0].replace(HOLDOUT[0], "x") == unknown.json()["chat"][0]
