"""Web processes write their metrics into files: each takes a free slot, and a successor goes on in it."""

import fcntl
import os
from pathlib import Path

_own: dict[int, str] = {}
_locks: list[int] = []


def slot() -> str:
    """Return this process's slot in PROMETHEUS_MULTIPROC_DIR; another one after a fork.

    Files are named by slot and not by process id: a process that starts again continues the counts, and
    restarts leave no files behind. The first process of all finds every slot free and starts at 0.
    """
    if os.getpid() not in _own:
        _own.clear()
        _own[os.getpid()] = _take(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
    return _own[os.getpid()]


def _take(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = sorted(folder.glob("slot*.lock"))
        taken = [file for file in files if not _lock(file)]
        if not taken:
            for file in folder.glob("*.db"):
                file.unlink()
        names = (f"slot{number}" for number in range(len(files) + 1))
        name = next(one for one in names if folder / f"{one}.lock" not in taken)
        _lock(folder / f"{name}.lock", keep=True)
        return name


def _lock(file: Path, *, keep: bool = False) -> bool:
    """Return whether nobody has the slot; with `keep` it is then this process's until it ends."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    if keep:
        _locks.append(descriptor)
    else:
        os.close(descriptor)
    return True
