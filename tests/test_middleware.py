"""Malformed requests: refused by name, on every database, and never with a fault."""

import pytest
from django.test import Client
from pytest_django import Settings

from labeling.models.people import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address", ["/criteria/%00/", "/sets/1/?topic=%00", "/api/sets/1/alignment_report/?against=rater:%00"]
)
def test_a_nul_in_the_address_is_not_found(client: Client, lead_user: User, address: str) -> None:
    client.force_login(lead_user)
    answer = client.get(address)
    assert answer.status_code == 404
    assert answer["Content-Type"] == (
        "application/json" if address.startswith("/api/") else "text/plain; charset=utf-8"
    )


def test_a_host_that_is_not_ours_is_refused_and_no_fault(client: Client, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["lace.example"]
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400
