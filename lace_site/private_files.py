"""Files of the workspace are for the account that runs it: no other account of the machine reads them."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import LazySettings

# Group and others get nothing: new folders have mode 700, new files 600.
UMASK = 0o077


def workspace_files(settings: LazySettings) -> Iterator[Path]:
    """Return the folders with data and keys, and the files of an SQLite database, which may lie elsewhere."""
    yield from (settings.VAR_DIR, settings.BROKER_DIR, settings.LACE_CERTIFICATE_KEY)
    database: dict[str, Any] = settings.DATABASES["default"]
    if database["ENGINE"] == settings.SQLITE:
        yield from (Path(f"{database['NAME']}{end}") for end in ("", "-wal", "-shm", "-journal"))


def tighten(paths: Iterable[Path]) -> int:
    """Take all rights of group and others from these files and folders and from all below them.

    Returns the number that changed. Links are not followed; what another account owns stays as it is.
    """
    return sum(_tighten(path) for path in paths)


def _tighten(path: Path) -> int:
    changed = 0
    with suppress(OSError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return 0
        if mode & UMASK:
            path.chmod(stat.S_IMODE(mode) & ~UMASK)
            changed = 1
        if stat.S_ISDIR(mode):
            changed += sum(_tighten(Path(entry.path)) for entry in os.scandir(path))
    return changed
