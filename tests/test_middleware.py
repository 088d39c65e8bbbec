"""Addresses that no database text can hold are not found, on every database."""

import pytest
from django.test import Client

from labeling.models.people import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address", ["/criteria/%00/", "/sets/1/?topic=%00", "/api/sets/1/alignment_report/?against=rater:%00"]
)
def test_a_nul_in_the_address_is_not_found(client: Client, lead_user: User, address: str) -> None:
    client.force_login(lead_user)
    assert client.get(address).status_code == 404
