"""The set on which the pages and the API of regression tests start theirs."""

from collections.abc import Callable

import pytest

from labeling.models.chats import ChatSet
from tests.database import RowsOnce
from tests.factories.gate_reference import make_golden, version_of
from tests.stub_endpoint import StubEndpoint


def one_criterion() -> ChatSet:
    """A criterion with a champion, and a new version of it."""
    chat_set = make_golden()
    version_of()
    return chat_set


@pytest.fixture(scope="module")
def golden_once(rows_once: RowsOnce) -> Callable[[], ChatSet]:
    return rows_once("golden", one_criterion)


@pytest.fixture
def golden(golden_once: Callable[[], ChatSet], stub: StubEndpoint, transactional_db: None) -> ChatSet:
    return golden_once()
