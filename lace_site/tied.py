"""Runs a command that ends when the process with this id ends: python tied.py PARENT COMMAND…

On Linux the kernel sends SIGTERM to the command at the parent's death. Elsewhere this process stays between
the two and watches. It imports nothing of the workbench: each child of `serve` starts with it.
"""

import ctypes
import os
import signal
import subprocess
import sys
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
WATCH_SECONDS = 1.0
# As `serve` does: calls in flight are paid for.
STOP_SECONDS = 20.0


def tie(parent: int, command: list[str]) -> NoReturn:
    """Become the command. Raises OSError where the kernel cannot tie it to its parent."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM) != 0:
        raise OSError(ctypes.get_errno(), "the kernel takes no parent-death signal")
    if os.getppid() != parent:
        sys.exit(f"{parent} has ended before it started {command}")
    os.execv(command[0], command)  # noqa: S606  the command of `serve`


def watch(parent: int, command: list[str]) -> int:
    """Run the command, pass signals on to it, end it after its parent; its exit code."""
    child = subprocess.Popen(command, close_fds=False)  # noqa: S603  the command of `serve`

    def pass_on(number: int, _: Any) -> None:
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    while True:
        try:
            return child.wait(WATCH_SECONDS)
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                return end(child)


def end(child: "subprocess.Popen[bytes]") -> int:
    """Terminate it, and kill it if it stays; its exit code."""
    child.terminate()
    try:
        return child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


if __name__ == "__main__":
    parent_id, words = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        tie(parent_id, words)
    sys.exit(watch(parent_id, words))
