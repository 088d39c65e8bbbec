"""The sign of life of a process, for probes of its container (deploy/probe.py)."""

from contextlib import suppress
from pathlib import Path

from django.conf import settings


def touch_alive_file() -> None:
    """Touch LACE_ALIVE_FILE, where it is set; a full disk must not end the process."""
    if settings.LACE_ALIVE_FILE:
        with suppress(OSError):
            Path(settings.LACE_ALIVE_FILE).touch(mode=0o600)
