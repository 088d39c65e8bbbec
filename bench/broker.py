"""The embedded broker: messages a second, how soon an idle worker hears one, and the CPU of waiting.

`LACE_BENCH_BROKER=sqla+sqlite:////tmp/queue.sqlite3` (or `redis://…`) measures another transport of kombu's.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.connection import Connection

from bench import Figure

PRODUCERS, MESSAGES = 4, 500
CONSUMERS = (2, 4)
POLLING = 0.05
IDLE_SECONDS = 10.0
QUEUE = "judge"


def figures() -> Iterator[Figure]:
    """Throughput with producers at work, latency and CPU of an empty queue."""
    for consumers in CONSUMERS:
        with broker() as options:
            rate = throughput(options, consumers=consumers)
        yield Figure(f"broker, 4 producers, {consumers} consumers", rate, 100, "msg/s", floor=True)
    with broker() as options:
        yield Figure("broker, empty queue, message to worker, median", latency(options), 100, "ms")
    with broker() as options:
        yield Figure("broker, empty queue, CPU of a waiting worker", idle_cpu(options), 5, "%")


@contextmanager
def broker() -> Iterator[dict[str, Any]]:
    """Return the arguments of a connection to an empty broker."""
    with tempfile.TemporaryDirectory(prefix="lace-broker-") as folder:
        options: dict[str, Any] = {"polling_interval": POLLING}
        url = os.environ.get("LACE_BENCH_BROKER", "filesystem://")
        if url.startswith("filesystem"):
            options["folder"] = folder
        elif url.startswith("sqla"):
            Path(url.partition("sqlite:///")[2]).unlink(missing_ok=True)
            options = {}
        yield {"hostname": url, "transport_options": options}


def connect(options: dict[str, Any]) -> Connection:
    """Open a connection that polls as the workers' does."""
    import lace_site.celery  # noqa: F401  names our transport; a spawned process has not yet

    connection = Connection(**options)
    if hasattr(connection.transport, "polling_interval"):
        connection.transport.polling_interval = POLLING
    return connection


def throughput(options: dict[str, Any], *, consumers: int) -> float:
    """Return the messages a second from the first one put to the last one taken."""
    spawn = multiprocessing.get_context("spawn")
    ready, taken = spawn.Barrier(PRODUCERS + consumers + 1), spawn.Value("i", 0)
    processes = [spawn.Process(target=produce, args=(options, ready)) for _ in range(PRODUCERS)]
    processes += [spawn.Process(target=consume, args=(options, ready, taken)) for _ in range(consumers)]
    with connect(options) as connection:
        connection.SimpleQueue(QUEUE).close()
    for process in processes:
        process.start()
    ready.wait()
    began = time.perf_counter()
    for process in processes:
        process.join()
    assert taken.value == PRODUCERS * MESSAGES, f"{taken.value} messages taken"
    return float(taken.value / (time.perf_counter() - began))


def produce(options: dict[str, Any], ready: Any) -> None:
    """Put MESSAGES messages."""
    with connect(options) as connection:
        queue = connection.SimpleQueue(QUEUE)
        ready.wait()
        for number in range(MESSAGES):
            queue.put({"run": number, "sent": time.time()})


def consume(options: dict[str, Any], ready: Any, taken: Any) -> None:
    """Take messages until all are taken, by whomever."""
    with connect(options) as connection:
        queue = connection.SimpleQueue(QUEUE)
        ready.wait()
        while taken.value < PRODUCERS * MESSAGES:
            try:
                message = queue.get(timeout=1)
            except Empty:
                continue
            message.ack()
            with taken.get_lock():
                taken.value += 1


def latency(options: dict[str, Any]) -> float:
    """Return the median milliseconds from putting a message until a waiting worker has it."""
    spawn = multiprocessing.get_context("spawn")
    ready, waits = spawn.Barrier(2), spawn.Queue()
    process = spawn.Process(target=listen, args=(options, ready, waits))
    with connect(options) as connection:
        queue = connection.SimpleQueue(QUEUE)
        process.start()
        ready.wait()
        for number in range(21):
            time.sleep(0.1 + 0.013 * (number % 5))
            queue.put({"sent": time.time()})
    found = sorted(waits.get(timeout=30) for _ in range(21))
    process.join()
    return 1000 * float(found[10])


def listen(options: dict[str, Any], ready: Any, waits: Any) -> None:
    """Take 21 messages; report how long each was under way."""
    with connect(options) as connection:
        queue = connection.SimpleQueue(QUEUE)
        ready.wait()
        for _ in range(21):
            message = queue.get(timeout=30)
            waits.put(time.time() - message.payload["sent"])
            message.ack()


def idle_cpu(options: dict[str, Any]) -> float:
    """Return the share of a core, in per cent, that a process needs to wait for messages."""
    with connect(options) as connection:
        queue = connection.SimpleQueue(QUEUE)
        began, cpu = time.perf_counter(), time.process_time()
        with suppress(Empty):
            queue.get(timeout=IDLE_SECONDS)
        return 100 * (time.process_time() - cpu) / (time.perf_counter() - began)
