"""Fixtures of the alignment pages' tests: a compared workspace, and who looks at it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import Client
from playwright.sync_api import BrowserContext, Page
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from alignment.certificates.services.certificates import certificate_issue
from alignment.models.certificates import Certificate
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.browsing import lead_signed_in, watch
from tests.database import RowsOnce
from tests.factories import tries as trying
from tests.factories.certificates import make_in_use
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.prompt_pages import make_prompted
from tests.factories.rating_screen import sign_in
from tests.factories.runs import answering
from tests.factories.suggestions import Disputes, make_disputes, suggesting
from tests.stub_endpoint import StubEndpoint


@pytest.fixture(scope="module")
def compared_once(rows_once: RowsOnce) -> Callable[[], Compared]:
    return rows_once("compared", make_compared)


@pytest.fixture
def compared(compared_once: Callable[[], Compared], db: None) -> Compared:
    return compared_once()


@pytest.fixture
def signed_in(
    transactional_db: None, page: Page, live_server: LiveServer, compared: Compared
) -> Iterator[Page]:
    """The browser of a lead over a compared workspace."""
    with lead_signed_in(page, live_server.url) as browser:
        yield browser


@pytest.fixture
def certificate(compared: Compared, lead_user: User) -> Certificate:
    """On the run of an imported judge."""
    return certificate_issue(run=compared.run, by=lead_user)


@pytest.fixture
def in_use(settings: Settings, compared: Compared, lead_user: User) -> Certificate:
    """On the run of a judge that is the default profile's."""
    settings.OPENAI_BASE_URL = "http://localhost:9/v1"
    settings.LACE_REASONING_MODEL = "model-a"
    return make_in_use(compared, by=lead_user)


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


@pytest.fixture
def author(author_user: User) -> Client:
    client = Client()
    client.force_login(author_user)
    return client


def three_disputes() -> Disputes:
    """Three train chats on which people and the champion differ."""
    return make_disputes("Parcel one", "Parcel two", "Parcel three")


@pytest.fixture(scope="module")
def disputes_once(rows_once: RowsOnce) -> Callable[[], Disputes]:
    return rows_once("disputes", three_disputes)


@pytest.fixture
def disputes(disputes_once: Callable[[], Disputes], transactional_db: None) -> Disputes:
    return disputes_once()


@pytest.fixture
def reviser(settings: Settings, disputes: Disputes) -> Iterator[StubEndpoint]:
    """An endpoint that answers with the champion's prompt and one more rule."""
    with suggesting(settings, disputes) as endpoint:
        yield endpoint


@pytest.fixture
def try_stub(settings: Settings) -> Iterator[StubEndpoint]:
    """A judge that errs with the champion's prompt and hardly with the draft's."""
    with answering(settings, trying.ANSWER) as endpoint:
        yield endpoint


@pytest.fixture
def try_set(tmp_path: Path, try_stub: StubEndpoint) -> ChatSet:
    """Labelled chats that the champion has judged."""
    return trying.labelled(tmp_path)


@pytest.fixture(scope="module")
def prompted_once(rows_once: RowsOnce) -> Callable[[], Criterion]:
    return rows_once("prompted", make_prompted)


@pytest.fixture
def prompted(prompted_once: Callable[[], Criterion], transactional_db: None) -> Criterion:
    """A criterion with a champion, as the browser sees it."""
    return prompted_once()


@pytest.fixture
def console() -> list[str]:
    """What the editor's console complained of."""
    return []


@pytest.fixture
def editor(
    page: Page,
    context: BrowserContext,
    live_server: LiveServer,
    prompted: Criterion,
    author_user: User,
    console: list[str],
) -> Iterator[Page]:
    """The page of an author; afterwards the console must be clean: no CSP violation, no script error."""
    watch(page, console)
    sign_in(context, live_server, author_user)
    yield page
    assert console == []
