"""A clean machine below a folder: the system's programs read-only, its own accounts, a user without rights.

It is a chroot in mount, process and network namespaces of its own; `enter` makes the first two. Linux, root.
"""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
INSIDE, OUTSIDE = "LACE_WALK_INSIDE", "LACE_WALK_OUTSIDE"
MOUNTS, NULL = Path("/proc/self/ns/mnt"), Path("/dev/null")
# A walk takes about three minutes where nothing else runs, and longer where it installs packages.
LONGEST_SECONDS = 3600.0
# Packages come through the network of the machine outside.
PASSED = ("PIP_", "SSL_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
# By their paths: the clean machine has a PATH of its own.
CHROOT, UNSHARE, NSENTER = (shutil.which(name) or name for name in ("chroot", "unshare", "nsenter"))
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
LINKS = ("bin", "lib", "lib64", "sbin")


def possible() -> str:
    """Return why this program cannot make a clean machine here, or ""."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a clean machine needs Linux and root"
    programs = ("unshare", "mount", "chroot", "setpriv", "nsenter")
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "this system makes no namespaces"


def enter(module: str, arguments: Sequence[str]) -> int | None:
    """Run a module of this program in namespaces of its own; its exit code, None inside them.

    Its processes and mounts end with it, and after an hour. Then its folder is deleted: no file of the
    machine outside shows below it any more. Raises RuntimeError where the namespaces are not there.
    """
    if INSIDE in os.environ:
        refuse_outside()
        os.umask(0o022)  # as where images are built: the caller's may hide the system's folders from accounts
        return None
    folder = Path(tempfile.mkdtemp(prefix="lace-walk-"))
    folder.chmod(0o755)
    tied = ["setpriv", "--pdeathsig", "KILL"]  # ends with this process, and all inside with it
    apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--mount-proc"]
    apart += ["--fork", "--kill-child"]
    command = [*tied, *apart, sys.executable, "-m", module, *arguments]
    environment = os.environ | {INSIDE: str(folder), OUTSIDE: str(MOUNTS.readlink())}
    try:
        return subprocess.run(command, env=environment, check=False, timeout=LONGEST_SECONDS).returncode
    except subprocess.TimeoutExpired:
        print(f"not ended within {LONGEST_SECONDS:.0f} s", file=sys.stderr)
        return 1
    finally:
        remove(folder)


def refuse_outside() -> None:
    """Raise RuntimeError unless mounts of this process are hidden from the machine outside."""
    if str(MOUNTS.readlink()) == os.environ.get(OUTSIDE, str(MOUNTS.readlink())) or os.getpid() != 1:
        raise RuntimeError(f"{INSIDE} is set, but this is no namespace of its own: nothing is mounted here")


def remove(folder: Path) -> None:
    """Delete the files of a machine that has ended; nothing that is mounted below it."""
    if shown := mounted_below(folder):
        raise RuntimeError(f"not deleted, still mounted: {', '.join(shown)}")
    subprocess.run(["rm", "--recursive", "--force", "--one-file-system", str(folder)], check=True)
    if not NULL.is_char_device():
        raise RuntimeError(f"{NULL} of this machine is gone")


def mounted_below(folder: Path) -> list[str]:
    """Return the places at or below a folder at which something is mounted."""
    lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    return [place for place in (line.split()[4] for line in lines) if Path(place).is_relative_to(folder)]


def leave_the_network() -> None:
    """Keep the loopback alone, with all ports free; processes that run already keep their network."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP | IFF_RUNNING))


def mount(*options: str) -> None:
    """Mount something."""
    subprocess.run(["mount", *options], check=True)


def as_user(uid: int, words: Sequence[str]) -> list[str]:
    """Return the command for an account without rights, which it cannot win back."""
    rights = ["--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--no-new-privs"]
    return ["setpriv", *rights, "--bounding-set=-all", "--inh-caps=-all", *words]


@dataclass
class Process:
    """A process with a /tmp and a host name of its own."""

    name: str
    machine: "Machine"
    words: list[str]
    environment: Mapping[str, str]
    uid: int
    folder: str
    log: Path
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        words = as_user(self.uid, ["env", "-C", self.folder, *self.words])
        inside = [CHROOT, str(self.machine.root), *words]
        script = f'hostname "$0" && mount -t tmpfs -o mode=1777 tmpfs {self.machine.root}/tmp && exec "$@"'
        command = [UNSHARE, "--mount", "--uts", "/bin/sh", "-c", script, self.name, *inside]
        with self.log.open("ab") as file:
            self.running = subprocess.Popen(command, env=dict(self.environment), stdout=file, stderr=file)

    def ask(self, words: Sequence[str], *, input_text: str = "") -> subprocess.CompletedProcess[str]:
        """Run another command in the same place, as its container would."""
        assert self.running is not None
        place = [NSENTER, "--target", str(self.running.pid), "--mount", "--uts"]
        inside = [CHROOT, str(self.machine.root), *as_user(self.uid, ["env", "-C", self.folder, *words])]
        return subprocess.run(
            [*place, *inside],
            env=dict(self.environment),
            input=input_text,
            capture_output=True,
            text=True,
            check=False,
        )

    def stop(self, seconds: float) -> float:
        """Terminate it as a container engine does; returns the seconds until it ended."""
        assert self.running is not None
        begun = time.monotonic()
        self.running.send_signal(signal.SIGTERM)
        self.running.wait(seconds)
        return time.monotonic() - begun


@dataclass
class Machine:
    """The files of a clean machine below `root`."""

    root: Path
    seconds: float = 900.0

    def build(self, python: Path) -> None:
        """Lay out the system; `python` is used as the image's own Python."""
        for name in ("usr", "etc", "proc", "dev", "tmp", "run", "var", "opt"):
            (self.root / name).mkdir(parents=True)
        for name in LINKS:
            (self.root / name).symlink_to(f"usr/{name}")
        self.bind(Path("/usr"), "usr")
        self.bind(python, "usr/local")
        if not str(python).startswith("/usr"):
            self.bind(python, str(python).lstrip("/"))  # where environments of it look for it
        self.make_devices()
        mount("-t", "proc", "proc", str(self.root / "proc"))
        for name in ("ld.so.cache", "resolv.conf", "login.defs", "nsswitch.conf"):
            if Path("/etc", name).exists():
                shutil.copy(Path("/etc", name), self.root / "etc" / name)
        self.bind(Path("/etc/ssl"), "etc/ssl")
        (self.root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
        (self.root / "etc/group").write_text("root:x:0:\n")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        (self.root / "tmp").chmod(0o1777)

    def make_devices(self) -> None:
        """Make the harmless devices, and shared memory; the folder of the machine outside is not shown."""
        folder = self.root / "dev"
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(folder))
        for name, minor in DEVICES.items():
            os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
            (folder / name).chmod(0o666)
        (folder / "fd").symlink_to("/proc/self/fd")
        (folder / "shm").mkdir()
        mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(folder / "shm"))

    def add_account(self, name: str, uid: int) -> None:
        """Add an account and its group."""
        for file, line in (("passwd", f"{name}:x:{uid}:{uid}::/:/bin/sh"), ("group", f"{name}:x:{uid}:")):
            with (self.root / "etc" / file).open("a") as lines:
                lines.write(f"{line}\n")

    def make_folder(self, name: str, uid: int) -> None:
        """Make a folder that belongs to an account."""
        place = self.root / name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(place, uid, uid)

    def bind(self, source: Path, target: str, *, read_only: bool = True) -> None:
        """Show a folder of the machine outside at `target`."""
        place = self.root / target
        place.mkdir(parents=True, exist_ok=True)
        mount("--bind", str(source), str(place))
        if read_only:
            mount("-o", "remount,bind,ro", str(place))

    def close(self, *writable: str) -> None:
        """Make the whole root read-only but for these folders."""
        kept = [(self.root / name).resolve() for name in writable]
        mount("--rbind", str(self.root), str(self.root))
        for place in kept:
            mount("--bind", str(place), str(place))
        mount("-o", "remount,bind,ro", str(self.root))

    def run(
        self, words: Sequence[str], *, folder: str = "/", environment: Mapping[str, str], uid: int = 0
    ) -> None:
        """Run a command to its end. Raises RuntimeError with its output where it fails."""
        inside = ["env", "-C", folder, *words]
        command = [CHROOT, str(self.root), *(as_user(uid, inside) if uid else inside)]
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=self.seconds, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def passed() -> dict[str, str]:
    """Return the variables with which packages are installed."""
    return {name: value for name, value in os.environ.items() if name.startswith(PASSED)}
