"""The embedded broker: a folder of messages that survives what happens to folders.

A message is a file `<nanoseconds>_<uuid>.<queue>.msg` in `queue/`. kombu's own folder transport reads files
before they are whole, moves them through the temporary folder, and dies of the first that it cannot read.
"""

# mypy: disable-error-code="no-untyped-call"

import logging
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import virtual
from kombu.utils.json import dumps, loads

log = logging.getLogger(__name__)

MINUTE, DAY = 60.0, 86_400.0
KEPT = 100  # unreadable messages, the newest

# Of this process, by what was said or swept: channels come and go with each enqueued task.
_last: dict[str, float] = {}


def due(what: str) -> bool:
    """Return whether a minute has passed since this was last due in this process."""
    now = time.monotonic()
    if now - _last.get(what, -MINUTE) < MINUTE:
        return False
    _last[what] = now
    return True


def trouble(folder: Path, error: OSError) -> str:
    """Return one line about a folder that is no use, and log it once a minute."""
    line = f"the broker's folder {folder} cannot be used: {error.strerror or error}"
    if due(line):
        log.warning(line)
    return line


class Folder:
    """Messages as files below `place`; every method may be called by many processes at once."""

    def __init__(self, place: Path) -> None:
        self.queue, self.unreadable = place / "queue", place / "unreadable"

    def put(self, queue: str, data: bytes) -> None:
        """Write a message that appears only when it is whole. Raises OSError."""
        self.sweep()
        file = self.queue / f"{time.time_ns()}_{uuid.uuid4()}.{queue}.msg"
        part = file.with_suffix(".part")
        try:
            part.write_bytes(data)
        except FileNotFoundError:
            self.queue.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
        part.rename(file)

    def take(self, queue: str, *, check: Callable[[Any], object]) -> dict[str, Any] | None:
        """Return the oldest message that has not expired, and is gone from the folder now; None without one.

        What `check` raises for is put aside. Raises OSError where the folder cannot be used.
        """
        self.sweep()
        for file in self.waiting(queue):
            taken = file.with_suffix(".part")  # what a dead process leaves is swept, a minute from now
            try:
                with suppress(PermissionError):
                    os.utime(file)
                file.rename(taken)
            except FileNotFoundError:
                continue  # another worker was first
            try:
                data = taken.read_bytes()
            except OSError:
                with suppress(OSError):
                    taken.rename(file)  # nothing is wrong with the message
                raise
            try:
                check(message := loads(data))
            except Exception as error:  # noqa: BLE001  whatever is wrong with it, it must not end a worker
                self.put_aside(taken, file.name, error)
                continue
            taken.unlink(missing_ok=True)
            if not expired(message):
                return dict(message)
        return None

    def waiting(self, queue: str) -> list[Path]:
        """Return the files of a queue, the oldest first; a missing folder is made anew. Raises OSError."""
        try:
            names = os.listdir(self.queue)
        except FileNotFoundError:
            self.queue.mkdir(parents=True, exist_ok=True)
            return []
        return [self.queue / name for name in sorted(names) if name.partition(".")[2] == f"{queue}.msg"]

    def put_aside(self, file: Path, name: str, error: Exception) -> None:
        """Keep an unreadable message for whoever wants to know what it was. Raises OSError."""
        self.unreadable.mkdir(parents=True, exist_ok=True)
        aside = self.unreadable / name
        file.replace(aside)
        log.warning("a message that cannot be read was moved to %s: %r", aside, error)
        for old in sorted(self.unreadable.iterdir(), key=changed)[:-KEPT]:
            with suppress(OSError):
                old.unlink()

    def sweep(self) -> None:
        """Once a minute, delete half-written files of dead processes and messages that nobody took."""
        if not due(f"sweep {self.queue}"):
            return
        with suppress(OSError):
            for file in list(self.queue.iterdir()):
                with suppress(OSError):
                    if self.is_stale(file):
                        file.unlink()

    def is_stale(self, file: Path) -> bool:
        """Return whether nobody needs this file any more. Raises OSError."""
        age = time.time() - changed(file)
        if file.suffix == ".part":
            return age > MINUTE
        if file.suffix != ".msg" or age <= MINUTE:
            return False
        return age > DAY or expired_in(file)


def changed(file: Path) -> float:
    """Return when a file was changed. Raises OSError."""
    return file.stat().st_mtime


def expired_in(file: Path) -> bool:
    """Return whether the message in a file has expired; False where it cannot be read."""
    try:
        return expired(loads(file.read_bytes()))
    except Exception:  # noqa: BLE001  whatever is wrong with it, `take` puts it aside
        return False


def expired(message: Any) -> bool:
    """Return whether the time in Celery's `expires` header has passed."""
    try:
        expires = datetime.fromisoformat(message["headers"]["expires"])
    except (LookupError, TypeError, ValueError):
        return False
    return expires.replace(tzinfo=expires.tzinfo or UTC) < datetime.now(UTC)


class Channel(virtual.Channel):
    """kombu's virtual channel on the folder of the transport's options."""

    @property
    def folder(self) -> Folder:
        """The messages."""
        return Folder(Path(self.connection.client.transport_options["folder"]))

    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:  # type: ignore[override]
        folder = self.folder
        try:
            folder.put(queue, dumps(payload).encode())
        except OSError as error:
            raise ChannelError(trouble(folder.queue, error)) from error

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        folder = self.folder
        try:
            message = folder.take(queue, check=self.message_to_python)
        except OSError as error:
            trouble(folder.queue, error)
            raise Empty from error
        if message is None:
            raise Empty
        return message

    def _size(self, queue: str) -> int:
        folder = self.folder
        try:
            return len(folder.waiting(queue))
        except OSError as error:
            trouble(folder.queue, error)
            return 0

    def _purge(self, queue: str) -> int:
        waiting = self.folder.waiting(queue)
        for file in waiting:
            file.unlink(missing_ok=True)
        return len(waiting)


class Transport(virtual.Transport):
    """kombu's virtual transport with these channels."""

    Channel = Channel
    driver_type = driver_name = "filesystem"
    default_port = 0  # type: ignore[assignment]  # kombu's own transports do so

    def driver_version(self) -> str:
        """Return what `celery report` prints."""
        return "N/A"
