"""Six faults of `make faults`, done to a whole site: nothing is lost or doubled, and it goes on by itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench._faults import FAULTS, Fault
from bench._site import template
from bench.faults import RUN_SECONDS, SITE_SECONDS, tried

pytestmark = [pytest.mark.heavy, pytest.mark.pure]

SIX = (
    "judge worker killed",
    "web server killed",
    "broker folder deleted",
    "empty message",
    "endpoint answers 500",
    "database locked by another program",
)
# Three tests share two cores here: a web server takes that much longer to start.
BUSY = 3


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("faults")
    yield template(folder, chats=60)


@pytest.mark.parametrize("fault", [one for one in FAULTS if one.name in SIX], ids=lambda one: one.name)
def test_a_site_survives(fault: Fault, prepared: dict[str, Any]) -> None:
    found = tried(fault, prepared)
    assert (found.state, found.lost, found.doubled) == ("done", 0, 0)
    assert found.site <= BUSY * SITE_SECONDS
    assert found.run <= RUN_SECONDS
