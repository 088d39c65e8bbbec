"""The embedded broker: what several processes put and take at once is whole, and taken."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty

import pytest
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from lace_site.broker import Transport

MESSAGES = 600


@contextmanager
def connected(folder: Path) -> Iterator[Connection]:
    options = {
        "data_folder_in": str(folder),
        "data_folder_out": str(folder),
        "control_folder": str(folder / "control"),
    }
    with Connection("filesystem://", transport_options=options) as connection:
        yield connection


def test_the_folder_of_messages_is_the_embedded_broker(tmp_path: Path) -> None:
    with connected(tmp_path) as connection:
        assert isinstance(connection.transport, Transport)


def test_a_message_is_taken_whole_while_others_are_put(tmp_path: Path) -> None:
    def put() -> None:
        with connected(tmp_path) as connection:
            queue = connection.SimpleQueue("judge")
            for number in range(MESSAGES):
                queue.put({"run": number})

    writer = threading.Thread(target=put)
    taken: list[int] = []
    with connected(tmp_path) as connection:
        queue = connection.SimpleQueue("judge")
        writer.start()
        while writer.is_alive() or len(taken) < MESSAGES:
            try:
                message = queue.get(block=False)
            except Empty:
                continue
            message.ack()
            taken.append(message.payload["run"])
    assert sorted(taken) == list(range(MESSAGES))


@pytest.mark.parametrize("attempt", range(20))
def test_workers_that_start_at_once_find_each_others_queues(tmp_path: Path, attempt: int) -> None:
    # kombu remembers for a whole process what is bound: each try has names of its own.
    queue, names = Exchange(f"queue-{attempt}"), [f"try-{attempt}-{n}" for n in range(4)]
    together = threading.Barrier(4)
    failed: list[Exception] = []

    def start(name: str) -> None:
        with connected(tmp_path) as connection:
            together.wait()
            try:
                Queue(name, queue, routing_key=name).bind(connection.channel()).declare()
            except Exception as error:  # noqa: BLE001  whatever it is, the test tells it
                failed.append(error)

    threads = [threading.Thread(target=start, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with connected(tmp_path) as connection:
        bound = {row[2] for row in connection.channel().get_table(queue.name)}
    assert bound == set(names)
