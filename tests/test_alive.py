"""Workers and scheduler show probes of their container that they are alive, also without a database."""

from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from pytest_django import Settings

from lace_site import celery_app, heartbeat
from lace_site.alive import touch_alive_file
from lace_site.clock import Clock


def test_the_scheduler_touches_the_file_at_each_look(tmp_path: Path, settings: Settings) -> None:
    settings.LACE_ALIVE_FILE = str(tmp_path / "alive")
    Clock(app=celery_app, schedule={}).tick()
    assert (tmp_path / "alive").exists()


def test_a_worker_without_its_database_is_alive(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LACE_ALIVE_FILE = str(tmp_path / "alive")

    def away(**_: Any) -> None:
        raise DatabaseError("away")

    monkeypatch.setattr("lace_site.heartbeat.connection.close", lambda: None)
    heartbeat._write(away, name="judge1")
    assert (tmp_path / "alive").exists()


@pytest.mark.parametrize("name", ["", "missing/folder/alive"])
def test_without_a_file_or_room_for_it_work_goes_on(tmp_path: Path, settings: Settings, name: str) -> None:
    settings.LACE_ALIVE_FILE = name and str(tmp_path / name)
    touch_alive_file()
    assert list(tmp_path.iterdir()) == []
