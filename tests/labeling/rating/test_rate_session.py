"""A whole sitting: 40 chats with ten criteria each by keyboard alone, and what the screen weighs."""

import gzip
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from labeling.models.chats import Chat
from labeling.models.labels import Assignment, Label
from tests.factories.labelling_job import Desk, make_desk, user_of
from tests.factories.rating_screen import mouse_uses, no_chat_ahead, sign_in, watch_mouse

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FEW, MANY, CRITERIA = 8, 40, 10
MOST_KB = 150


def ten_criteria(chats: int = FEW) -> Desk:
    return make_desk(chats=chats, raters=1, keys=[f"rule_{n}" for n in range(CRITERIA)])


@pytest.fixture
def desk(transactional_db: None) -> Desk:
    return ten_criteria()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "chats", [pytest.param(FEW, marks=pytest.mark.flow), pytest.param(MANY, marks=pytest.mark.heavy)]
)
def test_many_chats_with_ten_criteria_need_no_mouse(
    page: Page, context: BrowserContext, live_server: LiveServer, chats: int
) -> None:
    desk = ten_criteria(chats)
    sign_in(context, live_server, user_of(desk.rater))
    watch_mouse(page)
    page.goto(live_server.url + reverse("labeling:queue"))
    page.get_by_role("button", name="Start chat 1").press("Enter")
    for number in range(1, chats + 1):
        expect(page.locator("h1")).to_contain_text(f"chat chat-{number},", timeout=60_000)
        expect(page.locator("#why")).to_have_text("0 of 10 answered, 10 open")
        for criterion in range(CRITERIA):
            page.keyboard.press("tf"[(number + criterion) % 2])
        expect(page.locator("#why")).to_have_text("All answered")
        page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("All done", timeout=60_000)
    assert mouse_uses(page) == 0
    assert Assignment.objects.filter(rater=desk.rater, state="submitted").count() == chats
    found = {
        (chat, key): value
        for chat, key, value in Label.objects.filter(state="submitted").values_list(
            "chat__external_id", "criterion__key", "value"
        )
    }
    assert found == {
        (f"chat-{number}", f"rule_{criterion}"): (number + criterion) % 2 == 0
        for number in range(1, chats + 1)
        for criterion in range(CRITERIA)
    }


def test_script_and_style_of_the_screen_weigh_little(
    page: Page, context: BrowserContext, live_server: LiveServer, desk: Desk
) -> None:
    sign_in(context, live_server, user_of(desk.rater))
    loaded: set[str] = set()
    page.on("response", lambda response: loaded.add(response.url))
    page.goto(live_server.url + reverse("labeling:rate", args=[desk.taken().pk]))
    expect(page.locator("#save")).to_have_text("Saves as you answer")
    names = {match[1] for url in loaded if (match := re.search(r"/static/\w+/([^?]+\.(?:js|css))", url))}
    paths = [Path(str(finders.find(name))) for name in names]
    assert len(paths) > 15
    assert sum(len(gzip.compress(path.read_bytes())) for path in paths) / 1024 <= MOST_KB


def test_every_module_of_the_screen_is_fetched_at_once(
    page: Page, context: BrowserContext, live_server: LiveServer, desk: Desk
) -> None:
    sign_in(context, live_server, user_of(desk.rater))
    no_chat_ahead(page)
    page.goto(live_server.url + reverse("labeling:rate", args=[desk.taken().pk]))
    links = page.locator("link[rel=modulepreload]").evaluate_all("links => links.map(link => link.href)")
    folder = Path(str(finders.find("labeling/rating/rate.js"))).parent
    own = {path.name for path in folder.glob("rate_*.js")}
    assert {Path(link).name for link in links} == {"api.js", "keys.js", "local.js", *own}


def test_a_chat_of_200_turns_is_shown_with_its_first_turn_and_searched_to_its_last(
    page: Page, context: BrowserContext, live_server: LiveServer, desk: Desk
) -> None:
    turns = [
        {"n": n, "role": ("user", "assistant")[n % 2], "content": f"Turn {n} with **words**. " * 5}
        for n in range(1, 201)
    ]
    Chat.objects.filter(pk=desk.chats[0].pk).update(messages=turns, message_count=200)
    sign_in(context, live_server, user_of(desk.rater))
    no_chat_ahead(page)
    page.goto(live_server.url + reverse("labeling:rate", args=[desk.taken().pk]))
    expect(page.locator("#m1")).to_be_in_viewport()
    page.keyboard.press("/")
    page.keyboard.type("turn 200")
    expect(page.locator("#m200 .body")).to_be_in_viewport()
    page.keyboard.press("Escape")
    assert page.locator("#m100").evaluate("turn => getComputedStyle(turn).contentVisibility") == "auto"
