"""Fixtures of the alignment pages' tests: a compared workspace, and who looks at it."""

import pytest
from django.test import Client

from labeling.models.people import User
from tests.alignment.compared import Compared, make_compared


@pytest.fixture
def compared(db: None) -> Compared:
    return make_compared()


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


@pytest.fixture
def author(author_user: User) -> Client:
    client = Client()
    client.force_login(author_user)
    return client
