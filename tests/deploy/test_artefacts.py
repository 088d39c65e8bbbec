"""Image, compose file, manifests and units: the same commands everywhere, and no right that is not needed."""

import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.conf import settings

from deploy import artefacts, probe
from deploy.artefacts import MANIFESTS, ROOT, UNITS
from deploy.machine import INSIDE, enter, mounted_below, possible
from lace_site.management.commands.serve import web_command, worker_commands
from tests.factories.deploy_files import DOCUMENTS, IMAGE, KEYS, PODS, SERVICES, STAGES

OURS = sorted(name for name, service in SERVICES.items() if "lace-workbench" in service["image"])
PROCESSES = ("web", "judge", "default", "webhooks", "beat")


def options(words: list[str]) -> set[str]:
    """The words of a command, without its program, its name and its address; options with their values."""
    text = re.sub(r"^.*?-m ", "", " ".join(words))
    return set(re.sub(r"--(bind|worker-tmp-dir|no-control-socket)( [\w:./]+)?|-n \S+", "", text).split())


def wanted() -> dict[str, set[str]]:
    """The options with which `serve` starts each process; one web server here has two processes."""
    commands = {name.rstrip("1"): options(command) for name, command in worker_commands(1).items()}
    web = options(web_command("x")) - {"1"} | {"2"}
    return {"web": web, "judge": commands["judge"], "default": commands["default"]} | {
        "webhooks": commands["webhooks"],
        "beat": commands["clock"],
    }


# ---------- the same everywhere ----------


@pytest.mark.parametrize("name", PROCESSES)
def test_every_process_is_started_as_serve_does(name: str) -> None:
    (command,) = IMAGE.of("CMD")
    units = artefacts.read_units()
    unit = units.get(f"lace-{name}.service") or units[f"lace-{name}@.service"]
    container = PODS[name]["containers"][0]
    assert options(SERVICES[name].get("command", command.words)) == wanted()[name]
    assert options(container.get("command", command.words)) == wanted()[name]
    assert options(unit.command()) == wanted()[name]


@pytest.mark.parametrize("name", PROCESSES)
def test_the_docs_start_processes_as_serve_does(name: str) -> None:
    """Workers of one machine have different names: the status page tells them apart by these."""
    text = (ROOT / "docs/run-it.md").read_text("utf-8")
    lines = {"web": "gunicorn lace_site.wsgi", "beat": "celery -A lace_site beat"}
    start = lines.get(name, f"celery -A lace_site worker -Q {name} -n {name}")
    (line,) = re.findall(rf"(?m)^\.venv/bin/{start}.*$", text)
    quieter = {"-q", "-l", "warning", "--pidfile=", "--log-level", "--graceful-timeout", "20"}
    assert wanted()[name] - quieter <= {word.rpartition("/")[2] for word in line.split()}


def test_a_restore_is_done_where_backups_are_written() -> None:
    container = PODS["restore"]["containers"][0]
    assert container["command"] == ["python", "manage.py", "restore", "/backups/FILE"]
    assert container["volumeMounts"] == PODS["backup"]["containers"][0]["volumeMounts"]
    assert PODS["restore"]["volumes"] == PODS["backup"]["volumes"]


@pytest.mark.parametrize("name", ["migrate", "backup"])
def test_tables_and_backups_are_made_by_the_same_commands(name: str) -> None:
    words = [word for word in SERVICES[name]["command"] if not word.startswith("/")]
    unit = artefacts.read_units()[f"lace-{name}.service"].command()
    assert words[0] == "python" and unit[0].endswith("/python")
    for other in (PODS[name]["containers"][0]["command"], unit):
        assert [word for word in other[1:] if not word.startswith("/")] == words[1:]


def test_every_setting_that_is_named_exists() -> None:
    reference = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    known = set(re.findall(r"`([A-Z_]+)`", reference)) | {
        "PATH",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PROMETHEUS_MULTIPROC_DIR",
    }
    named = set(IMAGE.environment) | set(SERVICES["web"]["environment"])
    named |= set(artefacts.read_environment_file((UNITS / "lace.env").read_text("utf-8")))
    named |= {key for document in DOCUMENTS if document["kind"] == "ConfigMap" for key in document["data"]}
    assert named <= known


# ---------- image ----------


def test_the_image_runs_without_rights_and_with_its_data_in_a_volume() -> None:
    assert [step.text for step in IMAGE.of("USER")] == ["10001:10001"]
    assert IMAGE.environment["LACE_DATA_DIR"] == IMAGE.of("VOLUME")[0].text == "/data"
    assert IMAGE.health == ["python", "-m", "deploy.probe", "web"]
    assert [stage.name for stage in STAGES] == ["build", ""]
    assert all(stage.base.endswith("-slim-trixie") for stage in STAGES)


def test_extras_can_be_built_in() -> None:
    (build,) = [stage for stage in STAGES if stage.name == "build"]
    assert [step.text for step in build.of("ARG")] == ['EXTRAS=""']
    assert SERVICES["web"]["build"]["args"] == {"EXTRAS": ""}
    for extra in ("otel", "names", "mcp"):  # as the docs name them
        assert (ROOT / f"locks/requirements-{extra}.txt").exists()


def test_the_image_holds_no_tests_and_nothing_of_this_machine() -> None:
    held = artefacts.context_files(artefacts.IGNORED.read_text("utf-8"))
    assert artefacts.IGNORED.read_text("utf-8").splitlines()[1] == "*"
    assert [name for name in held if not (ROOT / name).exists()] == []
    assert not {"tests", "bench", ".git", ".env", "var", ".venv"} & set(held)
    assert {f"{app}" for app in ("alignment", "common", "evaluation", "labeling", "lace_site")} <= set(held)
    # gunicorn reads it in its folder: without it, no metrics of several processes and no JSON log.
    assert "gunicorn.conf.py" in held


def test_volumes_of_the_image_belong_to_its_account() -> None:
    """A new volume takes its owner from the image's folder."""
    (made,) = [step.text for step in IMAGE.of("RUN") if "install --directory" in step.text]
    mounted = {volume.partition(":")[2] for name in OURS for volume in SERVICES[name]["volumes"]}
    assert mounted == {"/data", "/backups"}
    owner = made.partition("install --directory")[2].split()
    assert {"--owner=10001", "--group=10001", *mounted} <= set(owner)


# ---------- compose.yaml ----------


@pytest.mark.parametrize("name", OURS)
def test_a_service_has_no_right_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert (service["read_only"], service["user"], service["cap_drop"]) == (True, "10001:10001", ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"cpus", "memory"} == set(service["deploy"]["resources"]["limits"])


def test_only_loopback_reaches_a_port_and_no_key_has_a_default() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8000:8000"]
    text = artefacts.COMPOSE.read_text("utf-8")
    for key in KEYS:
        with pytest.raises(ValueError, match=key):
            artefacts.read_compose(text, {name: "x" for name in KEYS if name != key})


def test_services_that_run_on_are_probed_and_wait_for_what_they_need() -> None:
    for name, service in SERVICES.items():
        ends = service.get("restart") == "no"
        assert ends == (name in ("migrate", "backup")), name
        assert ends or name == "web" or service["healthcheck"]["test"][0] == "CMD", name
    assert SERVICES["web"]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


# ---------- Kubernetes ----------


@pytest.mark.parametrize("name", sorted(PODS))
def test_a_pod_has_no_right_it_does_not_need(name: str) -> None:
    pod, (container,) = PODS[name], PODS[name]["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]) == {"requests", "limits"}
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}


def test_every_pod_that_runs_on_is_probed() -> None:
    for document in DOCUMENTS:
        if document["kind"] != "Deployment":
            continue
        name = document["metadata"]["name"].removeprefix("lace-")
        (container,) = document["spec"]["template"]["spec"]["containers"]
        probed = {"startupProbe", "livenessProbe"} | ({"readinessProbe"} if name == "web" else set())
        assert {key for key in container if key.endswith("Probe")} == probed
        what = "web" if name == "web" else "process"
        assert container["livenessProbe"]["exec"]["command"] == ["python", "-m", "deploy.probe", what]
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert document["spec"]["selector"]["matchLabels"] == labels


def test_what_manifests_refer_to_exists() -> None:
    claims = {one["metadata"]["name"] for one in DOCUMENTS if one["kind"] == "PersistentVolumeClaim"}
    used = {
        volume["persistentVolumeClaim"]["claimName"]
        for pod in PODS.values()
        for volume in pod["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert used == claims
    (kustomization,) = [one for one in DOCUMENTS if one["kind"] == "Kustomization"]
    listed = {*kustomization["resources"], "migrate.yaml", "restore.yaml", "kustomization.yaml"}
    assert listed == {path.name for path in MANIFESTS.glob("*.yaml")}


# ---------- systemd ----------

HARDENED = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
    "SystemCallFilter": "@system-service",
    "UMask": "0077",
}


@pytest.mark.parametrize("unit", artefacts.read_units().values(), ids=lambda unit: str(unit.name))
def test_a_unit_has_no_right_it_does_not_need(unit: artefacts.Unit) -> None:
    assert unit.one("Service", "User") == unit.one("Service", "StateDirectory") == "lace"
    assert {key: unit.one("Service", key) for key in HARDENED} == HARDENED
    assert unit.environment["LACE_DATA_DIR"] == "/var/lib/lace"
    # Named twice, a directive is a mistake of a copy.
    assert [key for key, values in unit.values["Service"].items() if len(values) > 1] == []


def test_the_target_starts_every_process_and_the_timer_the_backup() -> None:
    target = artefacts.read_unit("lace.target", (UNITS / "lace.target").read_text("utf-8"))
    started = {
        name.partition("@")[0].removesuffix(".service") for name in target.one("Unit", "Wants").split()
    }
    assert started == {f"lace-{name}" for name in PROCESSES}
    assert (UNITS / "lace-backup.timer").exists() and (UNITS / "lace-backup.service").exists()


# ---------- probe ----------


def test_a_process_counts_as_alive_while_its_file_is_young(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    assert "No such file" in probe.process_problem(file, 0)
    file.touch()
    now = file.stat().st_mtime
    assert probe.process_problem(file, now + 59) == ""
    assert probe.process_problem(file, now + 90) == f"{file} was touched 90 seconds ago"


def test_a_web_server_that_is_away_is_named() -> None:
    assert probe.web_problem("/healthz", {"PORT": "1"}).startswith("/healthz is not served: ")


class Answers(BaseHTTPRequestHandler):
    """Answers as the web server does: to its own name, and without a redirect what came by TLS."""

    def do_GET(self) -> None:
        known = self.headers["Host"] == "lace.example.org"
        self.send_response(400 if not known else 200 if self.headers["X-Forwarded-Proto"] == "https" else 301)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def port() -> Iterator[str]:
    """The port of such a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield str(server.server_port)
        server.shutdown()


@pytest.mark.parametrize(
    "hosts", ["lace.example.org", ".lace.example.org,localhost", "lace.example.org, other"]
)
def test_the_probe_asks_by_a_name_of_the_server(port: str, hosts: str) -> None:
    assert probe.web_problem("/healthz", {"PORT": port, "ALLOWED_HOSTS": hosts}) == ""


def test_an_answer_that_is_not_200_is_named(port: str) -> None:
    assert probe.web_problem("/readyz", {"PORT": port, "ALLOWED_HOSTS": "x"}) == "/readyz answers 400"


# ---------- the walk ----------

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@on_linux
def test_a_walk_mounts_nothing_outside_of_namespaces_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INSIDE, str(tmp_path))
    with pytest.raises(RuntimeError, match="nothing is mounted here"):
        enter("deploy.walk", [])


@on_linux
def test_a_folder_with_something_mounted_below_is_not_deleted(tmp_path: Path) -> None:
    assert mounted_below(tmp_path) == []
    assert "/proc" in mounted_below(Path("/"))


@pytest.mark.heavy
@pytest.mark.timeout(1900)
def test_the_steps_of_image_and_units_can_be_walked() -> None:
    """On a clean machine, with this environment's packages; `make walk` installs them, too."""
    if why := possible():
        pytest.skip(why)
    command = [sys.executable, "-W", "ignore", "-m", "deploy.walk", "--installed"]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("a worker judged run") == 2
