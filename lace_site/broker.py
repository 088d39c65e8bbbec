"""The embedded broker: kombu's folder of messages with atomic writes.

kombu creates a file before it fills it. A worker that reads it in between gets an empty message and crashes.
"""
# mypy: disable-error-code="no-untyped-call"

import uuid
from pathlib import Path
from time import monotonic_ns
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps


def whole_file(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete."""
    written = path.with_name(f"{path.name}.{uuid.uuid4()}.part")
    written.write_bytes(data)
    written.replace(path)


class Channel(filesystem.Channel):
    """kombu's channel with atomic files."""

    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:  # type: ignore[override]
        name = f"{monotonic_ns() // 1_000_000}_{uuid.uuid4()}.{queue}.msg"
        whole_file(Path(self.data_folder_out) / name, dumps(payload).encode())

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        self.control_folder.mkdir(parents=True, exist_ok=True)
        file = self._exchange_file(exchange)
        with (self.control_folder / "lock").open("wb") as guard:
            filesystem.lock(guard, filesystem.LOCK_EX)
            if not file.exists():
                whole_file(file, b"[]")
        super()._queue_bind(exchange, routing_key, pattern, queue)


class Transport(filesystem.Transport):
    """kombu's transport with these channels."""

    Channel = Channel
