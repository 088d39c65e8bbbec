"""Answers whether this process of the workbench is alive: `python -m deploy.probe web` or `process`.

`web` asks the web server on this machine for /healthz, `ready` for /readyz. `process`, for workers and the
scheduler, looks at the time of LACE_ALIVE_FILE, which they touch every few seconds. Exit 0 or 1, and a line
about the problem. It imports no module of the workbench: it runs every few seconds.
"""

import os
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path

PATHS = {"web": "/healthz", "ready": "/readyz"}
SILENT_SECONDS = 60.0
TIMEOUT_SECONDS = 8.0


def web_problem(path: str, environment: Mapping[str, str]) -> str:
    """Return why a page is not served, or ""."""
    # The server answers to its own names, and redirects what did not come by TLS.
    host = environment.get("ALLOWED_HOSTS", "").split(",")[0].strip().lstrip(".*") or "localhost"
    headers = {"Host": host, "X-Forwarded-Proto": "https"}
    server = HTTPConnection("127.0.0.1", int(environment.get("PORT", "8000")), timeout=TIMEOUT_SECONDS)
    try:
        server.request("GET", path, headers=headers)
        status = server.getresponse().status
    except (OSError, HTTPException) as error:
        return f"{path} is not served: {error}"
    finally:
        server.close()
    return "" if status == 200 else f"{path} answers {status}"


def process_problem(file: Path, now: float) -> str:
    """Return why a worker or the scheduler does not count as alive, or ""; `now` as of `time.time`."""
    try:
        age = now - file.stat().st_mtime
    except OSError as error:
        return f"{file}: {error.strerror}"
    return f"{file} was touched {age:.0f} seconds ago" if age > SILENT_SECONDS else ""


def main(what: str) -> int:
    """Print the problem, if there is one; returns the exit code."""
    if what in PATHS:
        problem = web_problem(PATHS[what], os.environ)
    else:
        problem = process_problem(Path(os.environ["LACE_ALIVE_FILE"]), time.time())
    print(problem or "alive")
    return 1 if problem else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in (*PATHS, "process"):
        sys.exit("usage: python -m deploy.probe web|ready|process")
    sys.exit(main(sys.argv[1]))
