"""Who may open what: every route, as each of five people; what is not theirs does not exist.

The rows stand in tests/routes.py, what they act on in tests/world.py.
"""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.routes import (
    ADMIN,
    METHODS,
    PEOPLE,
    ROUTES,
    UNSAFE,
    Case,
    is_admin,
    own_routes,
    route_names,
    url_of,
)
from tests.world import World, make_world, rolled_back

pytestmark = pytest.mark.django_db

ALL = [(name, case) for name, cases in ROUTES.items() for case in cases]
UNKNOWN_ID = 987_654_321
UNKNOWN_TEXT = "no-such-thing"


@pytest.fixture
def world() -> World:
    return make_world()


def call(client: Client, url: str, case: Case) -> Any:
    return client.generic(case.method, url, json.dumps(dict(case.body)), content_type=body_type(url))


def body_type(url: str) -> str:
    return "application/json" if url.startswith("/api/") else "application/x-www-form-urlencoded"


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    routes = own_routes().keys()
    missing, stale = sorted(routes - ROUTES.keys()), sorted(ROUTES.keys() - routes)
    assert not missing, f"say in tests/routes.py who may use: {', '.join(missing)}"
    assert not stale, f"tests/routes.py has rows of routes that are gone: {', '.join(stale)}"


def test_who_may_gets_it_and_for_all_others_it_does_not_exist(world: World) -> None:
    wrong, clients = [], {person: world.client(person) for person in PEOPLE}
    for name, case in ALL:
        url = url_of(name, world.args, case.args)
        for person in PEOPLE:
            with rolled_back():
                client = world.client(person) if name == "logout" else clients[person]
                answer = call(client, url, case)
            if not as_it_should(answer, name, case, person):
                allowed = "may" if person in case.may else "may not"
                wrong.append(f"{case.method} {url} ({name}) as {person}, who {allowed}: {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def as_it_should(answer: Any, name: str, case: Case, person: str) -> bool:
    """Who may gets an answer, if only a refusal of what was sent; who may not finds nothing."""
    if person in case.may:
        refused = answer.status_code >= 500 or answer.status_code in (401, 403, 404, 405)
        return not refused and (name == "logout" or not is_sign_in(answer))
    if person == "anonymous":
        return answer.status_code in (401, 403, 404) or is_sign_in(answer)
    return bool(answer.status_code == 404)


def is_sign_in(answer: Any) -> bool:
    """Whether the answer leads to the form for signing in."""
    return answer.status_code == 302 and str(answer["Location"]).startswith(reverse("login"))


def test_what_there_is_not_is_a_404_for_everybody(world: World) -> None:
    found = []
    for name, case in ALL:
        for arg in own_routes().get(name, ()):
            unknown = UNKNOWN_TEXT if isinstance(world.args.get(arg, ""), str) else UNKNOWN_ID
            url = url_of(name, world.args, {**case.args, arg: unknown})
            for person in case.may:
                answer = call(world.client(person), url, case)
                if answer.status_code != 404:
                    found.append(f"{case.method} {url} ({name}) as {person}: {answer.status_code}")
    assert not found, "\n".join(found)


def test_no_change_passes_without_the_csrf_token(world: World) -> None:
    passed = []
    for person in ("anonymous", "rater", "lead"):
        client = world.client(person, enforce_csrf_checks=True)
        for name, case in ALL:
            url = url_of(name, world.args, case.args)
            for method in UNSAFE:
                answer = client.generic(method, url, "{}", content_type="application/json")
                refused = (401, 403) if person == "anonymous" else (403,)
                if answer.status_code not in refused and not unreachable(answer, url, person):
                    passed.append(f"{method} {url} ({name}) as {person}: {answer.status_code}")
    assert not passed, "\n".join(passed)


def unreachable(answer: Any, url: str, person: str) -> bool:
    """An anonymous call of the API, which asks for the right before anything else."""
    return person == "anonymous" and url.startswith("/api/") and answer.status_code == 404


def test_the_admin_is_for_superusers(world: World) -> None:
    """Everybody else is sent to its sign-in, or told that there is nothing."""
    clients = [world.client(person) for person in PEOPLE]
    names = [name for name in route_names() if is_admin(name) and name not in ("admin:login", "admin:logout")]
    assert names
    for name in names:
        url = admin_url(name) if name.startswith(ADMIN) else "/admin/nothing"
        for client in clients:
            for method in METHODS:
                answer = client.generic(method, url)
                assert answer.status_code in (302, 404, 405), f"{method} {url}: {answer.status_code}"


def admin_url(name: str) -> str:
    """NB: the admin's list of an app takes the app's name."""
    args = {arg: "labeling" if arg == "app_label" else 1 for arg in route_names()[name]}
    return reverse(name, kwargs=args)
