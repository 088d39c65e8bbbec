"""Every route × every person and token × every verb: no fault, and nothing for those who may nothing there.

The routes come from the URLconf, so that new ones are tried by themselves. `make attack` runs this with
tests/test_access.py (who may what) and the canaries and flips of tests/labeling/people.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from labeling.models.people import Role
from labeling.people.services.roles import PERMISSIONS
from labeling.people.services.tokens import token_create
from tests.cases import ANSWER, NAMED, NOBODY, PEOPLE, Case, get
from tests.routes import ROUTES, address, in_world, own_routes, send
from tests.world import World, make_world, rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.sweep, pytest.mark.heavy]

# test_access has the rows' own verbs.
VERBS = ("HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "BREW")
BARE = ("HEAD", "OPTIONS", "TRACE")
TOKENS = {"rater": Role.RATER, "author": Role.AUTHOR, "lead": Role.LEAD}
REFUSED = (301, 302, 400, 401, 403, 404, 405, 406, 409, 415)


def tries(world: World, person: str) -> Iterator[tuple[str, Case, str, str]]:
    """Each address by each verb: name, row, verb, address; HEAD, which is GET, where they may not read."""
    seen = set()
    for name in own_routes():
        for case in ROUTES.get(name, (get(NOBODY),)):
            url = address(name, case, world.args)
            for verb in () if url in seen else VERBS:
                if verb != "HEAD" or not may_anything(name, person):
                    yield name, case, verb, url
            seen.add(url)


def may_anything(name: str, person: str) -> bool:
    """Whether some row of the route is for the person."""
    return any(case.allows(person) for case in ROUTES.get(name, ()))


def wrong(world: World, person: str, client: Client, **more: Any) -> list[str]:
    """The calls that end in a fault, or in success for a person who may nothing there."""
    found = []
    for name, case, verb, url in tries(world, person):
        if name == "account_logout" or (more and not url.startswith("/api/")):
            continue
        body = {} if verb in BARE else in_world(case.body, world.args) or ANSWER
        with rolled_back():
            status = send(client, verb, url, body, **more).status_code
        if status >= 500 or (status not in REFUSED and not may_anything(name, person)):
            found.append(f"{verb} {url} ({name}): {status}")
    return found


@pytest.mark.parametrize("person", PEOPLE)
def test_no_verb_brings_a_fault_or_opens_what_is_not_theirs(person: str) -> None:
    world = make_world()
    client = world.client(person)
    client.raise_request_exception = False
    assert wrong(world, person, client) == []


@pytest.mark.parametrize("person", [one for one in NAMED if one in TOKENS])
def test_nor_does_a_token(person: str) -> None:
    world = make_world()
    scopes = PERMISSIONS[TOKENS[person]]
    secret = token_create(user=world.users[person], name="attack", scopes=scopes, days=1).secret
    client = Client(raise_request_exception=False)
    assert wrong(world, person, client, headers={"Authorization": f"Token {secret}"}) == []
