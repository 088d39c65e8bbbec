"""What every page has in its frame: the way back to the navigation, help, search and keys."""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy

import pytest
from django.conf import settings
from django.urls import reverse

from lace_site.help import HELP, help_url
from lace_site.navigation import ENTRIES, LABELLING
from tests.factories.doc_pages import headings
from tests.routes import ROUTES, address, read_whole
from tests.world import World, make_world

ENTRY_ROUTES = {route for _, route, *_ in (*ENTRIES, *LABELLING)}
# Pages that are no deeper than an entry, and the API's own page.
# Pages of people who are not signed in have no way back into the workspace.
OUTSIDE = {
    "account_login",
    "account_inactive",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
    "labeling:join",
    "labeling:welcome",
}
WITHOUT_HELP = {"api_docs", *OUTSIDE}
WITHOUT_CRUMBS = ENTRY_ROUTES | {"home"} | WITHOUT_HELP
CRUMBS = re.compile(
    r'<nav class="crumbs" aria-label="Breadcrumbs"><a href="([^"]+)">([^<]+)</a> / (.+?)</nav>', re.S
)
PEOPLE = ("lead", "author", "rater", "other")


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(untouched: World) -> World:
    return deepcopy(untouched)


def pages(world: World) -> Iterator[tuple[str, str]]:
    """Route and text of every whole page, as the first of the people who may open it sees it."""
    clients = {person: world.client(person) for person in PEOPLE}
    for name, cases in ROUTES.items():
        for case in cases:
            person = next((one for one in PEOPLE if one in case.may), "")
            if case.method != "GET" or name.startswith("api_") or not person:
                continue
            answer = read_whole(clients[person].get(address(name, case, world.args)))
            if answer.status_code == 200 and not answer.streaming and b"<html" in answer.content:
                yield name, answer.content.decode()


@pytest.mark.django_db
@pytest.mark.sweep
def test_every_page_has_its_frame(world: World) -> None:
    wrong, seen = [], set()
    places = {reverse(route) for route in ENTRY_ROUTES} | {reverse("home")}
    for name, page in pages(world):
        seen.add(name)
        crumbs = CRUMBS.findall(page)
        if name not in WITHOUT_CRUMBS and (len(crumbs) != 1 or crumbs[0][0] not in places):
            wrong.append(f"{name}: one {{% crumbs %}} that begins at an entry, not {crumbs}")
        if name not in WITHOUT_HELP and (not help_url(name) or help_url(name) not in page):
            wrong.append(f"{name}: needs a row in lace_site/help.py, and the base template's footer or keys")
        if name not in WITHOUT_HELP and not ('id="search-everywhere"' in page and 'id="keys"' in page):
            wrong.append(f"{name}: does not extend base.html")
    assert not wrong, "\n".join(wrong)
    assert len(seen) > 70


@pytest.mark.parametrize("route", HELP)
def test_help_leads_to_a_heading_of_the_docs(route: str) -> None:
    page, heading = HELP[route]
    source = settings.BASE_DIR / "docs" / f"{page}.md"
    assert source.exists(), route
    assert not heading or heading in headings(source), f"{route}: {heading}"


def test_help_is_about_pages_that_exist() -> None:
    assert HELP.keys() <= ROUTES.keys() and not HELP.keys() & WITHOUT_HELP
