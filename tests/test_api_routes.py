"""Every route of the API, those of tomorrow too: with a session and with a token the same, never more."""

import pytest
from django.test import Client

from labeling.models.people import ApiToken, User
from labeling.people.services.tokens import token_create
from tests.factories.labelling_job import make_desk
from tests.test_architecture import Route, all_routes, everybody

__all__ = ["everybody"]  # the fixture

ROUTES = [route for route in all_routes() if route.url.startswith("/api/")]
DOCUMENTS = {"schema", "api_docs"}  # for everybody who is signed in
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

pytestmark = pytest.mark.django_db


@pytest.fixture
def secret(everybody: User) -> str:
    scopes = [code for code, _ in User._meta.permissions]
    return token_create(user=everybody, name="all", scopes=scopes, days=1).secret


def answered(route: Route, method: str, secret: str | None, user: User | None = None) -> int:
    client = Client(enforce_csrf_checks=user is None)
    if user is not None:
        client.force_login(user)
    headers = {"Authorization": f"Token {secret}"} if secret else {}
    answer = client.generic(method, route.url, "{}", content_type="application/json", headers=headers)
    return int(answer.status_code)


def test_a_token_of_all_scopes_is_answered_as_the_session_is(everybody: User, secret: str) -> None:
    make_desk()
    assert len(ROUTES) > 10
    for route in ROUTES:
        if route.name in DOCUMENTS:
            continue
        for method in METHODS:
            by_session = answered(route, method, None, everybody)
            by_token = answered(route, method, secret)
            assert by_token == by_session, (method, route)
            assert by_token not in (401, 403), (method, route)


def test_a_token_without_the_scope_finds_nothing(everybody: User, secret: str) -> None:
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
