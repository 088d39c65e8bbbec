"""The set on which the pages and the API of regression tests start theirs."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from labeling.models.chats import ChatSet
from tests.database import RowsOnce
from tests.factories.gate_reference import make_golden, version_of
from tests.stub_endpoint import StubEndpoint


def build_one_criterion() -> ChatSet:
    """A criterion with a champion, and a new version of it."""
    chat_set = make_golden()
    version_of()
    return chat_set


@pytest.fixture(scope="module")
def golden_builder(request: pytest.FixtureRequest) -> Callable[[], ChatSet]:
    """A module that wants other rows has its own `build_golden`."""
    build: Callable[[], ChatSet] = getattr(request.module, "build_golden", build_one_criterion)
    return build


@pytest.fixture(scope="module")
def golden_once(rows_once: RowsOnce, golden_builder: Callable[[], ChatSet]) -> ChatSet | None:
    return rows_once("golden", golden_builder)


@pytest.fixture
def golden(
    golden_once: ChatSet | None,
    golden_builder: Callable[[], ChatSet],
    stub: StubEndpoint,
    transactional_db: None,
) -> ChatSet:
    return deepcopy(golden_once) or golden_builder()
