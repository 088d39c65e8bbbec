"""The panel of suggestions and its routes: what it says, who reads it, and the same over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.services import SuggestionChoice, suggestion_start
from alignment.tasks import suggest
from evaluation.models.prompts import PromptDraft
from labeling.models.people import User
from tests.factories.compared_runs import text_of
from tests.factories.suggestions import (
    PROSE,
    REASON,
    RULE,
    Disputes,
    answer_with,
    asked,
    revised,
    suggesting,
)
from tests.stub_endpoint import StubEndpoint, StubReply

pytestmark = pytest.mark.django_db(transaction=True)
PANEL = "/criteria/polite/prompt/suggestions/"
API = "/api/criteria/polite/suggestions/"


@pytest.fixture
def signed_in(author_user: User) -> Iterator[Client]:
    client = Client()
    client.force_login(author_user)
    yield client


def text(client: Client, url: str = PANEL, **query: str) -> str:
    response = client.get(url, query)
    assert response.status_code == 200
    return text_of(response)


def act(client: Client, row: Suggestion, what: str, **headers: str) -> Any:
    return client.post(f"{PANEL}{row.pk}/{what}/", headers=headers)


def test_it_says_how_many_chats_there_are_and_what_asking_takes(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client
) -> None:
    said = text(signed_in)
    assert "<b>3 train chats</b>" in said and "3 go to" in said
    assert "price unknown" in said and "Ask again" not in said
    assert "Draft with the model" in said
    assert "2 go to" in text(signed_in, chats="2")
    assert "3 go to" in text(signed_in, chats="nonsense")


def test_asked_for_it_waits_can_be_cancelled_and_survives_a_reload(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client
) -> None:
    said = text_of(signed_in.post(PANEL, {"chats": 2}))
    assert "Waiting for a worker" in said and "Suggest a revision</button>" not in said
    assert "Waiting for a worker" in text(signed_in)
    row = Suggestion.objects.get()
    assert len(row.chat_ids) == 2
    assert "Cancelled" in act(signed_in, row, "cancel").content.decode()


def test_the_result_shows_reasons_with_links_the_change_and_the_buttons(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    row = asked(disputes, author_user)
    said = text(signed_in)
    told = row.material["chats"][0]
    url = f"/runs/{told['run']}/chats/{told['id']}/?criterion=polite"
    assert f'In chat <a href="{url}" class="t"' in said
    assert REASON in said and "<ins>" in said and RULE.split()[0] in said
    assert "Use as my draft" in said and "Dismiss" in said
    assert "Already answered" in said and "Ask again" in said


def test_used_it_leads_to_the_editor_and_says_so_there(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    row = asked(disputes, author_user)
    editor = reverse("alignment:prompt_edit", args=["polite"])
    response = act(signed_in, row, "use", **{"HX-Request": "true"})
    assert (response.status_code, response["HX-Redirect"]) == (204, editor)
    assert PromptDraft.objects.get().text == row.text
    said = text(signed_in)
    assert "This is your draft now." in said and "Restore my earlier draft" in said
    response = act(signed_in, row, "take-back")
    assert (response.status_code, response["Location"]) == (302, editor)
    assert not PromptDraft.objects.exists()


def test_dismissed_ones_are_listed_and_can_be_opened_again(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    row = asked(disputes, author_user)
    said = text_of(act(signed_in, row, "dismiss"))
    assert REASON not in said and "Earlier suggestions" in said and "Dismissed" in said
    assert REASON in text(signed_in, f"{PANEL}{row.pk}/")


def test_an_unreadable_answer_is_shown_as_it_came(
    settings: Settings, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    with suggesting(settings, disputes, lambda body: StubReply("<b>No</b> change is needed.")):
        asked(disputes, author_user)
        said = text(signed_in)
    assert "the answer has no line REVISED PROMPT" in said
    assert "&lt;b&gt;No&lt;/b&gt; change is needed." in said
    assert "Use as my draft" not in said


def test_the_models_text_is_text(
    settings: Settings, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    evil = "<script>alert(1)</script> [chat 1](javascript:alert(1)) \u202etxet"
    answer = answer_with(revised(disputes.champion.text, rule=evil), prose=f"Chat 1: {evil}", reason=evil)
    with suggesting(settings, disputes, lambda body: StubReply(answer)):
        assert asked(disputes, author_user).state == "done"
        said = text(signed_in)
    assert "<script>" not in said and 'href="javascript' not in said and "\u202e" not in said


def test_own_work_in_the_draft_is_named_before_it_is_replaced(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    asked(disputes, author_user)
    assert "replaces your own changes" not in text(signed_in)
    PromptDraft.objects.create(
        criterion=disputes.criterion,
        author=author_user,
        base=disputes.champion,
        text="# Objective\nMine.",
    )
    assert "replaces your own changes" in text(signed_in)


@pytest.mark.heavy
def test_the_number_of_queries_does_not_grow(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            text(signed_in, chats="16")
        return len(caught)

    asked(disputes, author_user)
    few = queries()
    for n in range(8):
        disputes.chat(f"More {n}")
    for _ in range(3):
        asked(disputes, author_user, chats=16, anew=True)
    assert queries() == few


def test_another_criterions_address_does_not_show_it(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client, author_user: User
) -> None:
    row = asked(disputes, author_user)
    assert signed_in.get(f"/criteria/other/prompt/suggestions/{row.pk}/").status_code == 404
    assert signed_in.post(f"{PANEL}{row.pk}/release/").status_code == 404


# ---------- the same over HTTP ----------


def test_the_api_starts_reads_and_takes_over(
    reviser: StubEndpoint, disputes: Disputes, signed_in: Client
) -> None:
    started = signed_in.post(API, {"chats": 2}, content_type="application/json")
    assert (started.status_code, started.json()["state"]) == (202, "open")
    row = Suggestion.objects.get()
    suggest(row.pk)
    body = signed_in.get(f"/api/suggestions/{row.pk}/").json()
    assert (body["state"], body["reason"], body["reasons"]) == ("done", REASON, PROSE)
    assert RULE in body["text"] and [chat["number"] for chat in body["chats"]] == [1, 2]
    used = signed_in.post(f"/api/suggestions/{row.pk}/use/")
    assert (used.status_code, used.json()["is_draft"]) == (200, True)
    assert PromptDraft.objects.get().origin == "suggested"


def test_the_api_names_what_is_wrong(reviser: StubEndpoint, disputes: Disputes, signed_in: Client) -> None:
    wrong = signed_in.post(API, {"chats": 99}, content_type="application/json")
    assert (wrong.status_code, list(wrong.json())) == (400, ["chats"])
    wrong = signed_in.post(API, {"profile": "none such"}, content_type="application/json")
    assert (wrong.status_code, list(wrong.json())) == (400, ["profile"])
    signed_in.post(API, content_type="application/json")
    again = signed_in.post(API, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "refused")
    row = Suggestion.objects.get()
    assert signed_in.post(f"/api/suggestions/{row.pk}/use/").status_code == 409


def test_raters_find_nothing(
    reviser: StubEndpoint, disputes: Disputes, author_user: User, rater_user: User
) -> None:
    row = suggestion_start(criterion=disputes.criterion, choice=SuggestionChoice(), by=author_user)
    client = Client()
    client.force_login(rater_user)
    for url in (PANEL, f"{PANEL}{row.pk}/", f"/api/suggestions/{row.pk}/"):
        assert client.get(url).status_code == 404
    for url in (PANEL, f"{PANEL}{row.pk}/use/", API, f"/api/suggestions/{row.pk}/use/"):
        assert client.post(url).status_code == 404
