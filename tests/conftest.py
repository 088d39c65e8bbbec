"""Fixtures shared by all tests: the three people, and the real database."""

import pytest

from labeling.models.people import Role, User
from tests.factories import make_user


@pytest.fixture
def rater_user(db: None) -> User:
    return make_user("mara", Role.RATER)


@pytest.fixture
def author_user(db: None) -> User:
    return make_user("otto", Role.AUTHOR)


@pytest.fixture
def lead_user(db: None) -> User:
    return make_user("ines", Role.LEAD)
