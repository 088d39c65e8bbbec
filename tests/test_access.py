"""Who may open what: every route, as each of the people; what is not theirs does not exist.

The rows are in tests/routes.py, what they act on in tests/world.py.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models.people import Role
from labeling.people.services.roles import PERMISSIONS
from labeling.people.services.tokens import token_create
from tests.cases import ADMIN, METHODS, NAMED, PEOPLE, RATERS, UNSAFE, WITHOUT_TOKEN, Case
from tests.routes import (
    ROUTES,
    address,
    in_world,
    is_admin,
    own_routes,
    read_whole,
    route_names,
    send,
    url_of,
)
from tests.world import World, make_world, rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]

ALL = [(name, case) for name, cases in ROUTES.items() for case in cases]
LEAD_ON = ("account_login", "alignment:chat_newest")  # to the page that is meant
ENDS_SESSION = ("account_logout", "account_change_password")
UNKNOWN_ID = 987_654_321
UNKNOWN_TEXT = "no-such-thing"


def one_by_one(people: Sequence[str], *quick: str) -> list[Any]:
    """The people as parameters: `make test` tries these, `make test-all` everybody."""
    return [pytest.param(one, marks=[] if one in quick else pytest.mark.heavy) for one in people]


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(untouched: World) -> World:
    return deepcopy(untouched)


def call(client: Client, url: str, case: Case, world: World, **more: Any) -> Any:
    return send(client, case.method, url, in_world(case.body, world.args), **more)


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    routes = own_routes().keys()
    missing, stale = sorted(routes - ROUTES.keys()), sorted(ROUTES.keys() - routes)
    assert not missing, f"say in tests/routes.py who may use: {', '.join(missing)}"
    assert not stale, f"tests/routes.py has rows of routes that are gone: {', '.join(stale)}"


@pytest.mark.parametrize("person", one_by_one(PEOPLE, "anonymous", "rater", "lead"))
def test_who_may_gets_it_and_for_all_others_it_does_not_exist(world: World, person: str) -> None:
    wrong, signed_in = [], world.client(person)
    for name, case in ALL:
        url = address(name, case, world.args)
        with rolled_back():
            client = world.client(person) if name in ENDS_SESSION else signed_in
            answer = read_whole(call(client, url, case, world))
        if not as_it_should(answer, name, case, person):
            allowed = "may" if case.allows(person) else "may not"
            wrong.append(f"{case.method} {url} ({name}), who {allowed}: {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def as_it_should(answer: Any, name: str, case: Case, person: str) -> bool:
    """Who may gets what they asked for; who may not finds nothing."""
    if case.allows(person):
        return is_success(answer, name, case)
    if person == "anonymous":
        return answer.status_code in (401, 403) or is_sign_in(answer)
    return bool(answer.status_code == 404)


def is_success(answer: Any, name: str, case: Case) -> bool:
    """The status that the row says, else that of success: a page's form that was taken leads elsewhere."""
    if case.says:
        return bool(answer.status_code == case.says)
    if name.startswith("api") or case.method == "GET":
        return answer.status_code in range(200, 300) or (name in LEAD_ON and answer.status_code == 302)
    return answer.status_code == 302 and (name == "account_logout" or not is_sign_in(answer))


def is_sign_in(answer: Any) -> bool:
    """Whether the answer leads to the form for signing in."""
    return answer.status_code == 302 and str(answer["Location"]).startswith(reverse("account_login"))


@pytest.mark.parametrize("person", one_by_one(NAMED, "lead"))
def test_what_there_is_not_is_a_404_for_everybody(world: World, person: str) -> None:
    found, client, routes = [], world.client(person), own_routes()
    for name, case in ALL:
        if person not in case.may:
            continue
        for arg in routes.get(name, ()):
            unknown = UNKNOWN_TEXT if isinstance(world.args.get(arg, ""), str) else UNKNOWN_ID
            url = address(name, replace(case, args={**case.args, arg: unknown}), world.args)
            answer = call(client, url, case, world)
            if answer.status_code != 404:
                found.append(f"{case.method} {url} ({name}): {answer.status_code}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("person", one_by_one(["anonymous", "rater", "lead"], "lead"))
def test_no_change_passes_without_the_csrf_token(world: World, person: str) -> None:
    passed = []
    client = world.client(person, enforce_csrf_checks=True)
    for name, (case, *_) in ROUTES.items():
        url = url_of(name, world.args, case.args)
        for method in UNSAFE:
            answer = client.generic(method, url, "{}", content_type="application/json")
            if answer.status_code not in ((401, 403) if person == "anonymous" else (403,)):
                passed.append(f"{method} {url} ({name}): {answer.status_code}")
    assert not passed, "\n".join(passed)


AUTHOR, LEAD = PERMISSIONS[Role.AUTHOR], PERMISSIONS[Role.LEAD]
BLIND_LEAD = [scope for scope in LEAD if scope != "see_holdout"]


@pytest.mark.parametrize(
    ("owner", "scopes", "good_for"),
    [
        pytest.param("lead", AUTHOR, lambda case: case.allows("author"), id="lead as author"),
        pytest.param(
            "both", AUTHOR, lambda case: case.allows("author"), id="both as author", marks=pytest.mark.heavy
        ),
        pytest.param(
            "both",
            ["label_chats"],
            lambda case: set(RATERS) <= set(case.may),
            id="both as rater",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            "lead",
            BLIND_LEAD,
            lambda case: case.allows("lead") and not names_holdout(case),
            id="lead without holdout",
        ),
    ],
)
def test_a_token_opens_what_its_scopes_name_and_its_user_may(
    world: World, owner: str, scopes: list[str], good_for: Callable[[Case], bool]
) -> None:
    wrong, secret = [], token_create(user=world.users[owner], name="some", scopes=scopes, days=1).secret
    for name, case in ALL:
        url = address(name, case, world.args)
        if url.startswith("/api/"):
            with rolled_back():
                answer = call(Client(), url, case, world, headers={"Authorization": f"Token {secret}"})
            good = good_for(case) and name not in WITHOUT_TOKEN
            if not (is_success(answer, name, case) if good else answer.status_code == 404):
                wrong.append(f"{case.method} {url} ({name}): {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def names_holdout(case: Case) -> bool:
    """Whether the row is about a holdout chat."""
    return any(str(value).startswith("holdout") for value in case.args.values())


@pytest.mark.heavy
def test_the_admin_is_for_superusers(world: World) -> None:
    """Everybody else is sent to the sign-in, or gets a 404."""
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
