"""The topic prompt in a browser: every size and scheme, and its part of *Incoming chats* loads by itself."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from alignment.models.topic_prompt import TopicAnswer, TopicPrompt
from alignment.topic_prompt.queries import fingerprint_of
from tests.browsing import assert_fine, lead_signed_in
from tests.factories.rows import make_chat

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TOPICS = {"returns": "sending goods back", "delivery": "where an order is", "billing": "invoices and cards"}


@pytest.mark.parametrize("route", ["alignment:topic_prompt", "labeling:workspace_chats"])
def test_the_page_is_fine_in_every_size_and_scheme(page: Page, live_server: LiveServer, route: str) -> None:
    row = TopicPrompt.objects.create(
        active=True,
        topics=[{"key": key, "description": text} for key, text in TOPICS.items()],
        budget_usd=2,
        problem="the endpoint cannot be reached",
    )
    for number, (given, answer) in enumerate([("returns", "returns")] * 8 + [("billing", "delivery")]):
        TopicAnswer.objects.create(
            chat=make_chat(f"c{number}"),
            fingerprint=fingerprint_of(row),
            given=given,
            answer=answer,
            state="read",
        )
    with lead_signed_in(page, live_server.url) as lead:
        lead.goto(live_server.url + reverse(route))
        expect(lead.get_by_role("heading", name="Agreement with given topics: 89%")).to_be_visible()
        assert_fine(lead)
