"""What a browser loads on its first visit of a page: at most 150 KB, compressed."""

import gzip
import html
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client

from tests.routes import ROUTES, address, read_whole
from tests.world import World, make_world

LIMIT = 150 * 1024
# Pages that are heavier for a reason, and how heavy they may be.
HEAVIER = {
    "api_docs": (540 * 1024, "Swagger UI, with which programmers try the API: one file from its makers")
}
PEOPLE = ("lead", "author", "rater", "other")
# Files that a page names, that a script imports and that a style sheet draws.
NAMED = re.compile(r'<(?:script|link|img|source|iframe)\b[^>]*?\b(?:src|href)="([^"]+)"')
IMPORTED = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+\.m?js)["']""")
DRAWN = re.compile(r"""(?:url\(|@import\s+)["']?([^"')]+)""")
LOADS_ITSELF = re.compile(r'<\w+(?=[^>]*hx-trigger="load\b)[^>]*hx-get="([^"]*)"')


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(untouched: World) -> World:
    return deepcopy(untouched)


def compressed(content: bytes) -> int:
    return len(gzip.compress(content, 6))


@cache
def files_with(name: str) -> frozenset[str]:
    """A static file and all that it loads."""
    found = {name}
    path = finders.find(name)
    assert isinstance(path, str), f"{name} is no static file"
    pattern = {".js": IMPORTED, ".mjs": IMPORTED, ".css": DRAWN}.get(Path(name).suffix)
    for other in pattern.findall(Path(path).read_text("utf-8")) if pattern else ():
        if not other.startswith(("data:", "#", "http")):
            found |= files_with(normpath(join(dirname(name), other.partition("?")[0])))
    return frozenset(found)


@cache
def weight_of(name: str) -> int:
    return compressed(Path(str(finders.find(name))).read_bytes())


def files_of(page: str) -> set[str]:
    """The static files of a page."""
    names = (one.partition("?")[0] for one in map(html.unescape, NAMED.findall(page)))
    start = f"/{settings.STATIC_URL.strip('/')}/"
    return set().union(*(files_with(one.removeprefix(start)) for one in names if one.startswith(start)))


def weight(client: Client, page: str) -> int:
    """Bytes of a page, its files, and the parts that load themselves with it."""
    files, total = files_of(page), compressed(page.encode())
    for part in LOADS_ITSELF.findall(page):
        answer = read_whole(client.get(html.unescape(part), headers={"HX-Request": "true"}))
        if answer.status_code == 200:
            files |= files_of(answer.content.decode())
            total += compressed(answer.content)
    return total + sum(map(weight_of, files))


def weights(world: World) -> Iterator[tuple[str, int]]:
    """Route and weight of every whole page, as the first of the people who may open it sees it."""
    clients = {person: world.client(person) for person in PEOPLE}
    for name, cases in ROUTES.items():
        for case in cases:
            person = next((one for one in PEOPLE if one in case.may), "")
            if case.method != "GET" or (name.startswith("api_") and name not in HEAVIER) or not person:
                continue
            answer = read_whole(clients[person].get(address(name, case, world.args)))
            if answer.status_code == 200 and not answer.streaming and b"<html" in answer.content:
                yield name, weight(clients[person], answer.content.decode())


@pytest.mark.django_db
@pytest.mark.heavy
def test_no_page_weighs_more_than_its_limit(world: World) -> None:
    found = dict(sorted(weights(world), key=lambda one: one[1]))
    limits = {name: limit for name, (limit, _) in HEAVIER.items()}
    heavy = {name: f"{size / 1024:.0f} KB" for name, size in found.items() if size > limits.get(name, LIMIT)}
    assert heavy == {}
    assert len(found) > 70 and found.keys() >= HEAVIER.keys()


def test_scripts_that_scripts_import_are_counted() -> None:
    assert {"common/api.js", "common/local.js"} <= files_with("labeling/rating/rate.js")
