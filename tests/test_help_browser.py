"""The help in a real browser: every page readable for everybody, on every screen."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from lace_site.manual.queries import sections
from tests.browsing import assert_fine, lead_signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PAGES = [page.name for section in sections() for page in section.pages]
# Of every kind something: long tables, code, formulas, pictures.
SOME = ["get-started", "deploy"]


@pytest.mark.usefixtures("each_scheme")
def test_index_and_pages_are_accessible(page: Page, live_server: LiveServer) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/help/")
        assert_fine(page, "index")
        for name in SOME:
            page.goto(f"{live_server.url}/help/{name}")
            assert_fine(page, name)


@pytest.mark.heavy
@pytest.mark.usefixtures("both_schemes")
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_accessible_and_its_pictures_are_there(
    page: Page, live_server: LiveServer, name: str
) -> None:
    with lead_signed_in(page, live_server.url):
        page.goto(f"{live_server.url}/help/{name}")
        expect(page.locator("article.docs h1")).to_have_count(1)
        assert page.evaluate("[...document.querySelectorAll('article img')].every(one => one.naturalWidth)")
        assert_fine(page, name)
