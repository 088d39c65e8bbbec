"""Every route of the API: a token gets the same answers as a session, limited to its scopes."""

import pytest
from django.test import Client

from labeling.models.people import ApiToken, User
from labeling.people.services.tokens import token_create
from tests.cases import WITHOUT_TOKEN
from tests.factories.labelling_job import make_desk
from tests.urlconf import Route, all_routes

ROUTES = [route for route in all_routes() if route.url.startswith("/api/")]
DOCUMENTS = {"schema", "api_docs"}  # for every signed-in user
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]


@pytest.fixture
def secret(everybody: User) -> str:
    scopes = [code for code, _ in User._meta.permissions]
    return token_create(user=everybody, name="all", scopes=scopes, days=1).secret


@pytest.fixture
def session(everybody: User) -> Client:
    """A browser in which everybody is signed in."""
    client = Client()
    client.force_login(everybody)
    return client


def answered(route: Route, method: str, secret: str) -> int:
    return asked(Client(enforce_csrf_checks=True), route, method, {"Authorization": f"Token {secret}"})


def asked(client: Client, route: Route, method: str, headers: dict[str, str] | None = None) -> int:
    answer = client.generic(method, route.url, "{}", content_type="application/json", headers=headers)
    return int(answer.status_code)


@pytest.mark.heavy
def test_a_token_of_all_scopes_is_answered_as_the_session_is(session: Client, secret: str) -> None:
    make_desk()
    assert len(ROUTES) > 10
    for route in ROUTES:
        if route.name in DOCUMENTS:
            continue
        for method in METHODS:
            by_session = asked(session, route, method)
            by_token = answered(route, method, secret)
            if route.name in WITHOUT_TOKEN:
                assert by_token in (404, 405), (method, route)
                continue
            assert by_token == by_session, (method, route)
            assert by_token not in (401, 403), (method, route)


def test_a_token_without_the_scope_gets_404(everybody: User, secret: str) -> None:
    make_desk()
    ApiToken.objects.update(scopes=[])
    for route in ROUTES:
        if route.name not in DOCUMENTS:
            assert {answered(route, method, secret) for method in METHODS} <= {404, 405}, route


def test_a_revoked_token_is_401_everywhere(everybody: User, secret: str) -> None:
    ApiToken.objects.update(revoked_at="2026-01-01T00:00:00Z")
    for route in ROUTES:
        if route.name != "api_docs":
            assert answered(route, "GET", secret) == 401, route
