"""No page names a setting of the server: a lead cannot set it, and the page says who can."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project
from pytest_django import Settings

from common.problems import OPERATOR
from evaluation.models.runs import Run
from tests.routes import ROUTES, address
from tests.world import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]

REFERENCE = Path(project.BASE_DIR) / "docs/reference/settings.md"
# DEBUG and the like are words, too.
NAMES = sorted({name for name in re.findall(r"`([A-Z_]+)`", REFERENCE.read_text()) if "_" in name})
NAMED = re.compile(rf"\b({'|'.join(NAMES)})\b")
# Reasons for which a run is paused, as the worker stores them.
PAUSED = (
    "a budget needs a price for 'm': add it to the price file",
    "HTTP 401: key refused",
    "HTTP 429: rate limit",
    "run 7 began at x, but the server is set to y",
)


@pytest.fixture
def world() -> World:
    return make_world()


def pages(world: World, person: str) -> dict[str, Any]:
    """Every page that this person may read, by its address."""
    client = world.client(person)
    urls = {
        address(name, case, world.args)
        for name, cases in ROUTES.items()
        for case in cases
        if case.method == "GET" and person in case.may
    }
    answers = {url: client.get(url, follow=True) for url in sorted(urls)}
    return {url: one for url, one in answers.items() if one["Content-Type"].startswith("text/html")}


def named(world: World, person: str) -> list[str]:
    """Where a page names a setting."""
    return [
        f"{url}: {found[0]}"
        for url, answer in pages(world, person).items()
        if (found := NAMED.search(answer.content.decode()))
    ]


def test_the_reference_lists_the_names() -> None:
    assert {"LACE_PRICES", "OPENAI_BASE_URL", "DATABASE_URL"} <= set(NAMES)


@pytest.mark.parametrize("address_set", ["http://127.0.0.1:9/v1", "ftp://nowhere"])
def test_no_page_names_a_setting_to_a_lead(world: World, settings: Settings, address_set: str) -> None:
    """With models without a price, and where the endpoint's address is wrong."""
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.LACE_PRICES = address_set, "", ""
    assert not (found := named(world, "lead")), "\n".join(found)


@pytest.mark.parametrize("error", PAUSED)
def test_a_paused_run_says_who_can_mend_it(world: World, error: str) -> None:
    Run.objects.filter(pk=world.args["paused_run"]).update(error=error, finished_at=None)
    url = f"/runs/{world.args['paused_run']}/"
    text = world.client("lead").get(url).content.decode()
    assert OPERATOR in text
    assert not NAMED.search(text)


def test_no_template_holds_a_setting_name() -> None:
    files = (Path(project.BASE_DIR) / "templates").rglob("*.html")
    assert [str(path) for path in files if NAMED.search(path.read_text(encoding="utf-8"))] == []
