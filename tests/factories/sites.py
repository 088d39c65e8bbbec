"""A site as it is deployed: gunicorn with production settings, and a client that plays the proxy."""

import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from django.conf import settings

HOST = "lace.example.org"
SET_UP = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import Group
from labeling.models.people import User
user = User.objects.create_user(username="ines", password="correct horse battery")
user.groups.add(Group.objects.get(name="lead"))
"""


@dataclass(frozen=True)
class Answer:
    """What came back, with the cookies that it set."""

    status: int
    headers: dict[str, str]
    set_cookies: list[str]
    body: str

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies by name."""
        return dict(one.split(";")[0].split("=", 1) for one in self.set_cookies)


class Site:
    """A running site; `environment` are its settings."""

    def __init__(self, folder: Path, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        unset = ("DEBUG", "HTTPS", "ALLOWED_HOSTS", "DJANGO_SETTINGS_MODULE", "SECRET_KEY")
        usual = {name: value for name, value in os.environ.items() if name not in unset}
        own = {
            "LACE_DATA_DIR": str(folder),
            "DATABASE_URL": f"sqlite:///{folder}/lace.sqlite3",
            "SECRET_KEY": secrets.token_urlsafe(64),
            "ALLOWED_HOSTS": HOST,
        }
        self.environment = usual | own | environment
        self.last_sign_in: list[str] = []

    def __enter__(self) -> Self:
        self._run("manage.py", "shell", "--no-imports", "-c", SET_UP)
        self.server = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "lace_site.wsgi", "--bind", f"127.0.0.1:{self.port}"],
            cwd=settings.BASE_DIR,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait()
        except BaseException:  # also where a time limit ends the wait
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.server.terminate()
        self.server.wait(30)

    def _wait(self) -> None:
        for _ in range(600):
            try:
                self.get("/healthz")
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise TimeoutError("gunicorn did not start")

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=settings.BASE_DIR,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def get(self, path: str, **more: Any) -> Answer:
        """Read an address, as a browser behind the proxy does."""
        return self.send("GET", path, **more)

    def post(self, path: str, form: dict[str, str], **more: Any) -> Answer:
        """Send a form."""
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Referer": f"https://{HOST}{path}"}
        answer = self.send("POST", path, body=urlencode(form).encode(), headers=kind, **more)
        self.last_sign_in = answer.set_cookies
        return answer

    def send(
        self,
        method: str,
        path: str,
        *,
        tls: bool = True,
        body: bytes | None = None,
        cookies: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send any request; `tls`: whether the browser reached the proxy by TLS."""
        own = {"Host": HOST, "X-Forwarded-Proto": "https" if tls else "http", "X-Forwarded-For": "192.0.2.7"}
        if cookies:
            own["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before the body was sent
                connection.request(method, path, body=body, headers=own | (headers or {}))
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        return Answer(
            answer.status, dict(answer.getheaders()), answer.headers.get_all("Set-Cookie") or [], text
        )

    def raw(self, request: bytes) -> bytes:
        """Send bytes as they are; the first part of what comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            return connection.recv(65536)
