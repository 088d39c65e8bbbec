"""The world of which tests of blindness walk every route."""

from collections.abc import Callable

import pytest

from tests.database import RowsOnce
from tests.world import World, make_world


@pytest.fixture(scope="module")
def world_once(rows_once: RowsOnce) -> Callable[[], World]:
    return rows_once("world", make_world)


@pytest.fixture
def world(world_once: Callable[[], World], db: None) -> World:
    return world_once()
