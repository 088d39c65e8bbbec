"""Fixtures of the alignment pages' tests: a compared workspace, and who looks at it."""

from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from labeling.models.people import User
from tests.alignment.compared import Compared, make_compared
from tests.alignment.suggesting import Parted, make_parted, suggesting
from tests.stub_endpoint import StubEndpoint


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


@pytest.fixture
def parted(transactional_db: None) -> Parted:
    """Three train chats on which people and the champion differ."""
    return make_parted("Parcel one", "Parcel two", "Parcel three")


@pytest.fixture
def reviser(settings: Settings, parted: Parted) -> Iterator[StubEndpoint]:
    """An endpoint that answers with the champion's prompt and one more rule."""
    with suggesting(settings, parted) as endpoint:
        yield endpoint
