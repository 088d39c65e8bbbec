"""A receiver that is away for ten minutes, workers that are killed: nothing lost, duplicates the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench._webhooks import away
from bench._workers import Workers, broker
from lace_site import celery_app
from tests.factories.runs import environment
from tests.factories.webhooks import make_webhook, receiver

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def valkey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A real broker, which this process enqueues in, too."""
    with broker("valkey", tmp_path) as settings:
        monkeypatch.setattr(celery_app.conf, "broker_url", settings["CELERY_BROKER_URL"])
        yield settings


@pytest.mark.flow
@pytest.mark.heavy
@pytest.mark.timeout(400)
def test_ten_minutes_without_a_receiver_and_killed_workers_lose_nothing(
    valkey: dict[str, str], tmp_path: Path
) -> None:
    with receiver() as kept:
        make_webhook(kept.address)
        environ = environment("http://127.0.0.1:9/v1", ALLOWED_HOSTS="127.0.0.1", **valkey)
        workers = Workers(environ, log=tmp_path / "workers.log", judges=0)
        try:
            found = away(workers, kept, minutes=10, events=5, kill_every=4)
        finally:
            workers.kill()
    assert (found.events, found.lost, found.altered) == (55, 0, 0), workers.log.read_text()
    # At least one request a minute, and not one for every event.
    assert 10 <= found.asked_while_away < 55
    assert found.repeated > found.asked_while_away - 10 and found.kills == 3
