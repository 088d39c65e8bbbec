"""No cache keeps what a signed-in user or a token got, on any route; static files stay cacheable."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.test import Client

from labeling.models.people import Role
from labeling.people.services.roles import PERMISSIONS
from labeling.people.services.tokens import token_create
from tests.factories.rows import make_user
from tests.routes import ROUTES, address, in_world, read_whole, send
from tests.world import World, make_world, rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]

PRIVATE = "private, no-store"


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(untouched: World) -> World:
    return deepcopy(untouched)


@pytest.mark.parametrize("person", ["rater", pytest.param("lead", marks=pytest.mark.heavy)])
def test_every_answer_to_a_signed_in_user_is_private(world: World, person: str) -> None:
    kept, signed_in = [], world.client(person)
    for name, cases in ROUTES.items():
        for case in cases if name != "account_logout" else ():
            url = address(name, case, world.args)
            with rolled_back():
                client = world.client(person) if name == "account_change_password" else signed_in
                answer = read_whole(send(client, case.method, url, in_world(case.body, world.args)))
            if answer.get("Cache-Control") != PRIVATE:
                kept.append(f"{case.method} {url}: {answer.status_code} {answer.get('Cache-Control')}")
    assert not kept, "\n".join(kept)


def test_every_answer_to_a_token_is_private(world: World) -> None:
    kept, user = [], world.users["lead"]
    secret = token_create(user=user, name="some", scopes=PERMISSIONS[Role.LEAD], days=1).secret
    for name, (case, *_) in ROUTES.items():
        url = address(name, case, world.args)
        if url.startswith("/api/"):
            answer = read_whole(Client().get(url, headers={"Authorization": f"Token {secret}"}))
            if answer.get("Cache-Control") != PRIVATE:
                kept.append(f"{url}: {answer.status_code} {answer.get('Cache-Control')}")
    assert not kept, "\n".join(kept)


def test_static_files_and_strangers_answers_are_not(world: World) -> None:
    client = world.client("lead")
    file = client.get(staticfiles_storage.url("common/theme.js"))
    file.close()
    assert (file.status_code, file.get("Cache-Control") == PRIVATE) == (200, False)
    assert Client().get("/healthz").get("Cache-Control") != PRIVATE


def test_an_account_without_a_role_does_not_find_the_schema(client: Client) -> None:
    client.force_login(make_user("nobody"))
    for address_of in ("/api/schema/", "/api/docs/"):
        assert client.get(address_of).status_code == 404
