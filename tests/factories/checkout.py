"""A copy of the workbench as a reader has it after cloning and installing, with a terminal in its folder."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

CODE = ("alignment", "common", "docs", "evaluation", "labeling", "lace_site", "locks", "templates")
FILES = ("Makefile", "gunicorn.conf.py", "manage.py", "pyproject.toml")
# What a test session sets, a reader's shell does not.
OURS = re.compile(r"LACE_|OPENAI_|CELERY_|DJANGO_|PYTEST_|PYTHON|DATABASE_URL$|PORT$|MAKE|MFLAGS$")
SERVES = re.compile(r"LACE workbench on (http\S+)/")


@dataclass(frozen=True)
class Checkout:
    """The folder, and the environment of its terminal."""

    folder: Path
    env: dict[str, str]

    def run(self, commands: str, env: Mapping[str, str] | None = None, *, seconds: float = 600) -> str:
        """Run commands that must succeed; return what they printed."""
        done = subprocess.run(
            ["bash", "-c", f"set -eo pipefail\n{commands}"],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def serving(self, command: str, *, port: int, seconds: float = 900) -> Iterator[tuple[str, str]]:
        """Run a command that serves until Ctrl-C; the address of its pages, and what it has printed."""
        with self._log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.env | {"PORT": str(port)},
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=_take_ctrl_c,
            )
        try:
            deadline = time.monotonic() + seconds
            while not (found := SERVES.search(text := self.log())):
                assert process.poll() is None and time.monotonic() < deadline, text
                time.sleep(0.1)
            yield found[1], text
        finally:
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C in a terminal does
            process.wait(60)

    @contextmanager
    def background(self, *commands: str) -> Iterator[Callable[[], bool]]:
        """Run commands side by side; whether all still run."""
        with self._log.open("wb") as file:
            processes = [
                subprocess.Popen(
                    ["bash", "-c", f"exec {command}"],
                    cwd=self.folder,
                    env=self.env,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
                for command in commands
            ]
        try:
            yield lambda: all(one.poll() is None for one in processes)
        finally:
            for one in processes:
                one.terminate()
            for one in processes:
                one.wait(60)

    def log(self) -> str:
        """What the processes printed that were started last."""
        return self._log.read_text("utf-8")

    @property
    def _log(self) -> Path:
        return self.folder / "serve.log"


def _take_ctrl_c() -> None:
    """A session that was itself started in the background ignores SIGINT, and so would all below it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def checkout(folder: Path) -> Checkout:
    """Copy what runs the workbench; the installed packages are those of this Python."""
    folder.mkdir(parents=True)
    for name in CODE:
        # With what is compiled: its files are as old as the copies of their sources.
        shutil.copytree(settings.BASE_DIR / name, folder / name)
    for name in FILES:
        shutil.copy2(settings.BASE_DIR / name, folder / name)
    installed = folder / ".venv"
    installed.mkdir()
    for path in Path(sys.prefix).iterdir():
        if not path.name.startswith("."):
            (installed / path.name).symlink_to(path)
    (installed / ".runtime").touch()  # `make` finds nothing to install
    return Checkout(folder, {name: value for name, value in os.environ.items() if not OURS.match(name)})
