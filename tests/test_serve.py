"""`serve` says in one line why it cannot serve."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lace_site.keeper import Child, Keeper
from lace_site.management.commands import serve
from lace_site.wsgi import warm_up


def refused(port: int = 0) -> CommandError:
    """Why `serve` does not start."""
    with pytest.raises(CommandError) as refusal:
        call_command("serve", "--port", str(port or free_port()))
    assert "\n" not in str(refusal.value)
    return refusal.value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_busy_port_names_the_process_that_holds_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusal = refused(port)
    assert str(refusal).startswith(f"port {port} is taken by ")
    assert f"(process {os.getpid()})" in str(refusal)
    assert refusal.returncode == 4


def test_the_next_free_port_is_taken_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serve.Command().listening(port, or_next=True) as listener:
            other = listener.getsockname()[1]
    assert port < other < port + serve.PORTS_TRIED
    said = capsys.readouterr().err
    assert f"port {port} is taken by " in said and f"this site takes port {other}" in said


def test_a_holder_that_may_not_be_known_is_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(kind: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", denied)
    assert serve.holder(8000) == "another program"


@pytest.mark.parametrize("port", [-1, 99_999])
def test_a_port_that_does_not_exist_is_wrong_usage(port: int) -> None:
    refusal = refused(port)
    assert str(refusal).startswith("--port must be from 1 to 65535")
    assert refusal.returncode == 2


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database is this SQLite file, which is not there yet."""
    file = tmp_path / "lace.sqlite3"
    other = connection.copy()
    if other.vendor != "sqlite":
        pytest.skip("about a file")
    other.settings_dict = {**other.settings_dict, "NAME": str(file)}
    monkeypatch.setattr(serve, "connection", other)
    return file


def test_a_missing_database_is_not_made_by_serve(database: Path) -> None:
    refusal = refused()
    assert str(refusal) == f"there is no database {database}: run manage.py migrate"
    assert refusal.returncode == 2
    assert not database.exists()


@pytest.mark.django_db
def test_a_broken_database_is_one_line(database: Path) -> None:
    database.write_bytes(b"no database " * 1000)
    refusal = refused()
    assert str(refusal).startswith(f"the database {database} cannot be used: file is not a database")
    assert refusal.returncode == 4


@pytest.mark.django_db
def test_a_database_without_tables_says_what_to_run(database: Path) -> None:
    sqlite3.connect(database).close()
    database.touch()
    assert str(refused()) == "The database has no tables yet, or older ones: run manage.py migrate"


def test_a_broker_folder_that_is_a_file_is_one_line(
    tmp_path: Path, settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broker").touch()
    monkeypatch.setattr(serve, "refuse_broken_database", lambda: None)
    monkeypatch.setattr(settings, "CELERY_BROKER_URL", "filesystem://")
    monkeypatch.setattr(settings, "BROKER_DIR", tmp_path / "broker")
    refusal = refused()
    assert str(refusal) == f"the broker's folder {tmp_path / 'broker'} cannot be used: Not a directory"
    assert refusal.returncode == 4


@pytest.mark.django_db
def test_warming_up_loads_all_pages_and_asks_the_database_nothing() -> None:
    with CaptureQueriesContext(connection) as asked:
        assert warm_up() > 150
    assert len(asked) == 0


APPLICATION = """
import os

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Connection", "close")])
    return [str(os.getppid()).encode()]
"""


def test_while_one_of_two_web_servers_is_killed_the_other_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "who_answers.py").write_text(APPLICATION)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with serve.listening(0) as listener:
        port = listener.getsockname()[1]
        web = serve.web_children(listener, application="who_answers")
        keeper = Keeper(web, say=lambda line: None, record=tmp_path / "serve.json")
        keeper.start()
        try:
            first, second = answered_by(port, both=web)
            os.killpg(first, signal.SIGKILL)
            assert {who_answers(port) for _ in range(20)} == {second}
            assert web[0].process is not None
            web[0].process.wait(20)
            keeper.look(time.monotonic())
            assert answered_by(port, both=web) == [web[0].process.pid, second]
        finally:
            keeper.stop()


def answered_by(port: int, *, both: list[Child]) -> list[int]:
    """Ask until each of the two has answered; their process ids."""
    wanted = [child.process.pid for child in both if child.process]
    seen: set[int] = set()
    deadline = time.monotonic() + 30
    while seen != set(wanted):
        seen.add(who_answers(port))
        assert time.monotonic() < deadline, (seen, wanted)
    return wanted


def who_answers(port: int) -> int:
    with urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
        return int(answer.read())


PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, *sys.argv[1:]], stdout=sys.stdout)
time.sleep(300)
"""
CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
RUN = "import os; from lace_site import tied; tied.{}(os.getppid(), [{!r}, '-c', {!r}])"


@pytest.mark.parametrize(
    "how",
    [pytest.param("tie", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux")), "watch"],
)
def test_a_child_ends_when_its_parent_is_killed(how: str) -> None:
    words = ["-c", RUN.format(how, sys.executable, CHILD)]
    with subprocess.Popen([sys.executable, "-c", PARENT, *words], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(20)
    assert not child.is_running()


def test_a_second_signal_does_not_cut_the_stop_short(tmp_path: Path) -> None:
    ignored: list[bool] = []

    class Interrupted(Keeper):
        def start(self, *, web_first: bool = False) -> None:
            raise KeyboardInterrupt

        def stop(self) -> None:
            ignored.extend(signal.getsignal(number) == signal.SIG_IGN for number in serve.STOPS)

    before = {number: signal.getsignal(number) for number in serve.STOPS}
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serve.Command().keep(Interrupted([], say=print, record=tmp_path / "serve.json"), listener, 1)
            assert listener.fileno() == -1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert ignored == [True, True, True]
