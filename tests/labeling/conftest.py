"""Fixtures of the rating screen's browser tests."""

from collections.abc import Callable, Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page
from pytest_django.live_server_helper import LiveServer

from tests.browsing import watch
from tests.database import RowsOnce
from tests.factories.labelling_job import Desk, make_desk, user_of
from tests.factories.rating_screen import KEYS, no_chat_ahead, ready, sign_in


def four_criteria() -> Desk:
    return make_desk(chats=3, raters=2, keys=KEYS)


@pytest.fixture(scope="module")
def desk_once(rows_once: RowsOnce) -> Callable[[], Desk]:
    return rows_once("desk", four_criteria)


@pytest.fixture
def desk(desk_once: Callable[[], Desk], transactional_db: None) -> Desk:
    return desk_once()


@pytest.fixture
def problems() -> list[str]:
    """What the browser complained about: CSP violations, script errors, failed loads."""
    return []


@pytest.fixture
def screen(
    page: Page, context: BrowserContext, live_server: LiveServer, desk: Desk, problems: list[str]
) -> Iterator[Page]:
    """The first chat of the job, open and ready; afterwards the console must be clean."""
    sign_in(context, live_server, user_of(desk.rater))
    watch(page, problems)
    no_chat_ahead(page)
    page.goto(live_server.url + reverse("labeling:rate", args=[desk.taken().pk]))
    ready(page)
    yield page
    assert problems == []
