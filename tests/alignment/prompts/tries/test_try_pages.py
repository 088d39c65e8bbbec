"""The fragments beside the editor: form, preview, a try's progress and steps; and whose they are."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from alignment.prompts.tries.services import try_start
from evaluation.models.runs import Run
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import Role, User
from tests.factories.compared_runs import text_of
from tests.factories.rows import make_user
from tests.factories.runs import point_at
from tests.factories.tries import (
    HOLDOUT,
    MARK,
    STILL_WRONG,
    carried_out,
    drafted,
    on_disagreements,
    polite,
)

pytestmark = pytest.mark.django_db(transaction=True)


def url(name: str, *args: Any) -> str:
    return reverse(f"alignment:{name}", args=["polite", *args])


def pk_of(case: str) -> int:
    return Chat.objects.get(external_id=case).pk


def page(client: Client, name: str, *args: Any, **query: Any) -> str:
    answer = client.get(url(name, *args), query)
    assert answer.status_code == 200
    return text_of(answer)


def started(author: User, **more: Any) -> Run:
    return carried_out(try_start(criterion=polite(), author=author, choice=on_disagreements(**more)))


# ---------- preview ----------


def test_the_preview_shows_the_draft_between_the_fences_of_the_chat(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    text = page(author, "prompt_preview", chat=pk_of("c-03"))
    assert MARK in text
    assert "&lt;&lt;chat " in text
    assert "Same call: Exact." in text
    assert "only if the rules cannot read the answer" in text
    assert "price unknown (a lead can enter it under Models)" in text
    assert "<code>(First pass: answer)</code>" in text


def test_the_draft_of_another_author_is_not_shown(try_set: ChatSet, author: Client) -> None:
    drafted(make_user("ada", Role.AUTHOR))
    assert MARK not in page(author, "prompt_preview", chat=pk_of("c-03"))


def test_what_is_wrong_with_a_draft_is_said(try_set: ChatSet, author: Client, author_user: User) -> None:
    drafted(author_user, "# Response\nVERDICTS\n")
    for name in ("prompt_preview", "prompt_try_estimate"):
        assert "the engine adds one" in page(author, name, chat=pk_of("c-03"), chats=pk_of("c-03"))
    answer = author.post(url("prompt_try"), {"only": pk_of("c-03")})
    assert "Not tried." in answer.content.decode()
    assert not Run.objects.filter(purpose="try").exists()


def test_nonsense_in_the_form_is_named_and_starts_nothing(try_set: ChatSet, author: Client) -> None:
    one = pk_of("c-03")
    for given in (
        {},
        {"chats": [one], "profile": 999999},
        {"chats": [one], "budget_usd": "x"},
        {"only": 10**20},
        {"chats": [one, 10**17]},
    ):
        answer = author.post(url("prompt_try"), given)
        assert (answer.status_code, "Not tried." in answer.content.decode()) == (200, True), given
    assert author.post(url("prompt_try"), {"only": one, "base": 99}).status_code == 404
    assert not Run.objects.filter(purpose="try").exists()


def test_the_cost_is_shown_before(try_set: ChatSet, author: Client, author_user: User) -> None:
    drafted(author_user)
    chats = [pk_of("c-00"), pk_of("c-01")]
    text = text_of(author.get(url("prompt_try_estimate"), {"chats": chats}))
    assert "2 chats" in text and "2 calls" in text and "price unknown" in text
    assert not Run.objects.filter(purpose="try").exists()


@pytest.mark.parametrize("name", ["prompt_preview", "prompt_try_estimate"])
def test_a_chat_of_the_holdout_does_not_exist_for_either(
    try_set: ChatSet, author: Client, client: Client, lead_user: User, name: str
) -> None:
    client.force_login(lead_user)
    for person in (author, client):
        text = page(person, name, chat=pk_of(HOLDOUT[0]), chats=pk_of(HOLDOUT[0]))
        assert "chat is not in train or dev" in text
        assert HOLDOUT[0] not in text


def test_an_endpoint_that_cannot_be_used_is_named(
    try_set: ChatSet, author: Client, settings: Settings
) -> None:
    point_at(settings, "ftp://nowhere")
    assert "address must start with http" in page(author, "prompt_preview", chat=pk_of("c-03"))


# ---------- a try ----------


def test_the_steps_of_a_chat_lead_to_its_turns(try_set: ChatSet, author: Client, author_user: User) -> None:
    drafted(author_user)
    run = started(author_user)
    text = page(author, "prompt_try_chat", run.pk, pk_of(STILL_WRONG))
    chat_page = reverse("alignment:chat", args=[run.pk, pk_of(STILL_WRONG)])
    assert f'href="{chat_page}#m1"' in text
    assert "Verdict read by rule" in text
    assert author.get(chat_page, {"criterion": "polite"}).status_code == 200


def test_no_route_of_a_try_shows_a_chat_that_was_held_out_meanwhile(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    run, gone = started(author_user), pk_of("c-00")
    ChatSetMember.objects.filter(chat=gone).update(split="holdout")
    assert author.get(url("prompt_try_chat", run.pk, gone)).status_code == 404
    for text in (page(author, "prompt_try", disagreeing=9), page(author, "prompt_try_progress")):
        assert "c-00" not in text


def test_what_one_author_tried_is_no_other_authors(
    try_set: ChatSet, author: Client, author_user: User, lead_user: User
) -> None:
    run, other, lead = started(author_user), Client(), Client()
    other.force_login(make_user("ada", Role.AUTHOR))
    lead.force_login(lead_user)
    routes = [
        url("prompt_try_chat", run.pk, pk_of("c-00")),
        reverse("evaluation:run_detail", args=[run.pk]),
        reverse("evaluation:run_engine", args=[run.pk]),
        reverse("alignment:report_run", args=[run.pk]),
        reverse("alignment:disagreements", args=[run.pk]),
        reverse("alignment:chat", args=[run.pk, pk_of("c-00")]),
        reverse("api_run", args=[run.pk]),
        reverse("api_run_report", args=[run.pk]),
        reverse("api_prompt_try", args=[run.pk]),
    ]
    for route in routes:
        assert [person.get(route).status_code for person in (author, lead, other)] == [200, 200, 404], route


def test_a_try_of_another_criterion_is_not_found(try_set: ChatSet, author: Client, author_user: User) -> None:
    run = started(author_user)
    of_other = reverse("alignment:prompt_try_chat", args=["exact", run.pk, pk_of("c-00")])
    assert author.get(of_other).status_code == 404
    ordinary = Run.objects.get(purpose="evaluation")
    assert author.get(url("prompt_try_chat", ordinary.pk, pk_of("c-00"))).status_code == 404


# ---------- elsewhere ----------


def test_tries_are_in_no_list_and_no_newest_verdict(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    run, ordinary = started(author_user), Run.objects.get(purpose="evaluation")
    runs = author.get(reverse("evaluation:run_list")).context["runs"]
    assert [row.id for row in runs] == [ordinary.pk]
    tried = author.get(reverse("evaluation:run_list"), {"purpose": "try"}).context["runs"]
    assert [row.id for row in tried] == [run.pk]
    listed = author.get(reverse("alignment:report_list")).context["runs"]
    assert [item["row"].id for item in listed] == [ordinary.pk]
    newest = author.get(reverse("alignment:chat_newest", args=[pk_of("c-00")]))
    assert newest["Location"] == reverse("alignment:chat", args=[ordinary.pk, pk_of("c-00")])
    for query, expected in ({}, [ordinary.pk]), ({"purpose": "try"}, [run.pk]):
        answer = author.get(reverse("api_runs"), query).json()
        assert [row["id"] for row in answer["results"]] == expected


def test_another_author_does_not_find_it_in_the_list_of_tries_either(
    try_set: ChatSet, author_user: User
) -> None:
    started(author_user)
    other = Client()
    other.force_login(make_user("ada", Role.AUTHOR))
    assert other.get(reverse("evaluation:run_list"), {"purpose": "try"}).context["runs"] == []
    assert other.get(reverse("api_runs"), {"purpose": "try"}).json()["results"] == []


def test_the_run_page_says_that_the_prompt_was_not_saved(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    text = text_of(author.get(reverse("evaluation:run_detail", args=[started(author_user).pk])))
    assert "tried, not saved" in text
    assert "Tried from the editor" in text
