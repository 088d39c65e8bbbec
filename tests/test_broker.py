"""The embedded broker: messages are whole, taken once, and none of them ends a worker."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from celery.beat import ScheduleEntry
from kombu.connection import Connection
from kombu.exceptions import OperationalError

from common.queue import send_task
from lace_site import broker, celery_app
from lace_site.broker import DAY, KEPT, MINUTE, Transport
from lace_site.clock import Clock

MESSAGES = 300


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "_last", {})


@contextmanager
def connected(folder: Path) -> Iterator[Connection]:
    with Connection("filesystem://", transport_options={"folder": str(folder)}) as connection:
        yield connection


def taken(folder: Path) -> list[Any]:
    """What one consumer finds in the queue `judge`, in order."""
    found: list[Any] = []
    with connected(folder) as connection:
        queue = connection.SimpleQueue("judge")
        while True:
            try:
                message = queue.get(block=False)
            except Empty:
                return found
            message.ack()
            found.append(message.payload)


def put(folder: Path, *payloads: Any, **options: Any) -> list[Path]:
    """Put them into the queue `judge`; its files, the oldest first."""
    with connected(folder) as connection:
        queue = connection.SimpleQueue("judge")
        for payload in payloads:
            queue.put(payload, **options)
    return sorted((folder / "queue").iterdir())


@pytest.mark.parametrize("body", [b'{"__type__": "bytes", "__value__": 1}', b"[" * 100_000])
def test_an_old_message_that_nothing_can_read_is_put_aside_by_the_sweep_too(
    tmp_path: Path, body: bytes
) -> None:
    good = put(tmp_path, "good")[0]
    strange = good.with_name(f"1_x.judge{good.suffix}")
    strange.write_bytes(body)
    aged(strange, MINUTE + 5)
    assert taken(tmp_path) == ["good"]
    assert [file.name for file in (tmp_path / "unreadable").iterdir()] == [strange.name]


def aged(file: Path, seconds: float) -> None:
    os.utime(file, (time.time() - seconds,) * 2)


def test_the_folder_of_messages_is_the_embedded_broker(tmp_path: Path) -> None:
    with connected(tmp_path) as connection:
        assert isinstance(connection.transport, Transport)


def test_a_message_is_taken_whole_and_once_while_others_are_put(tmp_path: Path) -> None:
    writer = threading.Thread(target=lambda: put(tmp_path, *range(MESSAGES)))
    found: list[int] = []
    readers = [threading.Thread(target=lambda: read_all(tmp_path, writer, found)) for _ in range(2)]
    writer.start()
    for thread in readers:
        thread.start()
    for thread in (writer, *readers):
        thread.join()
    assert sorted(found) == list(range(MESSAGES))


def read_all(folder: Path, writer: threading.Thread, found: list[int]) -> None:
    """Take until the writer has ended and nothing is left."""
    over = False
    while not over:
        over = not writer.is_alive()
        found.extend(taken(folder))


def test_messages_are_taken_in_the_order_in_which_they_were_put(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, number)
    assert taken(tmp_path) == [0, 1, 2]


def test_a_message_is_claimed_inside_the_folder_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    put(tmp_path, "work")
    assert taken(tmp_path) == ["work"]
    assert list((tmp_path / "queue").iterdir()) == []


def test_a_missing_folder_is_an_empty_queue_and_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    assert taken(folder) == []
    assert (folder / "queue").is_dir()
    (folder / "queue").rmdir()
    folder.rmdir()
    put(folder, "work")
    assert taken(folder) == ["work"]


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\0\xff{", b"[]", b"7", b"{}"),
        b'{"properties": {"delivery_tag": "x", "body_encoding": "y"}, "body": "z"}',
    ],
    ids=["empty", "binary", "list", "number", "no properties", "unknown encoding"],
)
def test_what_cannot_be_read_is_put_aside_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    put(tmp_path, "work")
    bad = tmp_path / "queue" / "1_bad.judge.msg"
    bad.write_bytes(data)
    assert taken(tmp_path) == ["work"]
    aside = tmp_path / "unreadable" / bad.name
    assert aside.read_bytes() == data
    assert [str(aside) in line for line in caplog.messages] == [True]
    assert taken(tmp_path) == []
    assert len(caplog.messages) == 1


def test_only_the_newest_unreadable_messages_are_kept(tmp_path: Path) -> None:
    queue = tmp_path / "queue"
    queue.mkdir()
    for number in range(KEPT + 5):
        (queue / f"{number:03d}_bad.judge.msg").write_bytes(b"")
    assert taken(tmp_path) == []
    kept = sorted(file.name for file in (tmp_path / "unreadable").iterdir())
    assert len(kept) == KEPT
    assert kept[-1] == f"{KEPT + 4:03d}_bad.judge.msg"


def test_half_written_files_of_dead_processes_are_swept_after_a_minute(tmp_path: Path) -> None:
    queue = tmp_path / "queue"
    queue.mkdir()
    for name, age in (("old.judge.part", MINUTE + 1), ("new.judge.part", 0.0)):
        (queue / name).write_bytes(b"{")
        aged(queue / name, age)
    assert taken(tmp_path) == []
    assert [file.name for file in queue.iterdir()] == ["new.judge.part"]


def test_a_claimed_message_is_not_swept_from_under_its_taker(tmp_path: Path) -> None:
    [file] = put(tmp_path, "work")
    aged(file, MINUTE + 1)
    folder = broker.Folder(tmp_path)
    seen: list[str] = []

    def check(message: Any) -> None:
        broker._last.clear()  # another process sweeps at this moment
        folder.sweep()
        seen.extend(path.suffix for path in (tmp_path / "queue").iterdir())

    assert folder.take("judge", check=check) is not None
    assert seen == [".part"]


def expiring(seconds: float) -> dict[str, str]:
    return {"expires": (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()}


def test_an_expired_message_is_not_delivered(tmp_path: Path) -> None:
    put(tmp_path, "late", headers=expiring(-1))
    put(tmp_path, "in time", headers=expiring(60))
    assert taken(tmp_path) == ["in time"]


def test_without_a_worker_the_queue_keeps_only_what_still_counts(tmp_path: Path) -> None:
    for payload, age, headers in (
        ("a day old", DAY + 1, {}),
        ("expired", MINUTE + 1, expiring(-1)),
        ("still good", MINUTE + 1, expiring(60)),
    ):
        aged(put(tmp_path, payload, headers=headers)[-1], age)
    broker._last.clear()  # who puts sweeps, too: there may be nobody who takes
    left = put(tmp_path, "new")
    assert len(left) == 2
    assert taken(tmp_path) == ["still good", "new"]


@pytest.mark.parametrize("place", ["", "queue"], ids=["the folder", "its queue"])
def test_a_path_that_is_a_file_is_one_warning_a_minute_and_no_crash(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    folder = tmp_path / "broker"
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text("", encoding="utf-8")
    with connected(folder) as connection:
        for _ in range(20):
            with pytest.raises(Empty):
                connection.SimpleQueue("judge").get(block=False)
    assert len(caplog.messages) == 1
    assert str(folder) in caplog.messages[0]
    broker._last.clear()  # a minute later
    assert taken(folder) == []
    assert len(caplog.messages) == 2


def test_a_task_that_the_folder_cannot_take_is_reported_as_a_broker_that_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(celery_app.conf, "broker_url", "filesystem://")
    monkeypatch.setattr(celery_app.conf, "broker_transport_options", {"folder": str(tmp_path / "broker")})
    (tmp_path / "broker").write_text("", encoding="utf-8")
    with pytest.raises(OperationalError, match="cannot be used"):
        send_task("evaluation.tasks.process_units", [1])
    (tmp_path / "broker").unlink()
    send_task("evaluation.tasks.process_units", [1])
    assert len(list((tmp_path / "broker" / "queue").iterdir())) == 1


def test_the_clock_says_once_a_minute_that_nothing_can_be_enqueued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(celery_app.conf, "broker_url", "filesystem://")
    monkeypatch.setattr(celery_app.conf, "broker_transport_options", {"folder": str(tmp_path / "broker")})
    # NB: another test may have opened one, to another broker.
    monkeypatch.setattr(celery_app.amqp, "_producer_pool", None)
    (tmp_path / "broker").write_text("", encoding="utf-8")
    clock = Clock(celery_app, lazy=True)
    entry = ScheduleEntry("sweep", "alignment.tasks.sweep", schedule=5.0, app=celery_app)
    for _ in range(3):
        clock.apply_entry(entry)
    said = [record.message for record in caplog.records if record.name == "lace_site.clock"]
    assert len(said) == 1
    assert "cannot be used" in said[0]
    assert all(record.exc_info is None for record in caplog.records)
