"""What an operator sets in the one place of an artefact reaches every process."""

import pytest

from deploy import artefacts
from deploy.artefacts import UNITS
from docs_tools.reference import setting_facts
from tests.factories.deploy_files import DOCUMENTS, IMAGE, KEYS, PODS

SETTINGS = sorted({*setting_facts(), "PORT"})
SET = {name: f"the operator's {name}" for name in SETTINGS} | {"POSTGRES_PASSWORD": "pw"}

# ---------- Compose ----------

# What compose.yaml decides itself, and why.
FIXED = {
    "DATABASE_URL": "its own PostgreSQL",
    "CELERY_BROKER_URL": "its own Valkey",
    "LACE_DATA_DIR": "the volume `data`",
    "LACE_ALIVE_FILE": "a file in the container's own /tmp",
    "PORT": "the port of the machine; the one in the container stays",
}
SERVICES = artefacts.read_compose(artefacts.COMPOSE.read_text("utf-8"), SET)
OURS = sorted(name for name, service in SERVICES.items() if "lace-workbench" in service["image"])


def in_compose(name: str, settings: dict[str, str]) -> dict[str, str]:
    """The variables of a service whose `.env` has these settings."""
    services = artefacts.read_compose(artefacts.COMPOSE.read_text("utf-8"), settings)
    return IMAGE.environment | artefacts.service_environment(services[name], settings)


@pytest.mark.parametrize("name", OURS)
def test_every_setting_of_env_reaches_each_service(name: str) -> None:
    reached = in_compose(name, SET)
    assert {one for one in SETTINGS if reached.get(one) != SET[one]} == set(FIXED)


def test_what_compose_fixes_fits_its_services_and_the_image() -> None:
    fixed = in_compose("web", SET)
    assert fixed["DATABASE_URL"] == "postgres://lace:pw@postgres:5432/lace"
    assert fixed["CELERY_BROKER_URL"] == "redis://valkey:6379/0"
    assert {"postgres", "valkey"} <= set(SERVICES)
    for name in ("LACE_DATA_DIR", "LACE_ALIVE_FILE"):
        assert fixed[name] == IMAGE.environment[name]
    assert fixed["PORT"] == "8000" and SERVICES["web"]["ports"] == [f"127.0.0.1:{SET['PORT']}:8000"]


def test_addresses_follow_from_the_host_name_unless_they_are_set() -> None:
    alone = in_compose("web", KEYS)
    assert alone["SITE_URL"] == alone["CSRF_TRUSTED_ORIGINS"] == "https://lace.example.org"
    assert alone["HTTPS"] == "on"


# ---------- Kubernetes ----------


@pytest.mark.parametrize("name", sorted(PODS))
def test_every_setting_of_map_and_secret_reaches_each_pod(name: str) -> None:
    (container,) = PODS[name]["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": "lace"}}, {"secretRef": {"name": "lace"}}]
    assert "env" not in container  # it would come before both
    (settings,) = [one for one in DOCUMENTS if one["kind"] == "ConfigMap"]
    assert settings["metadata"]["name"] == "lace" and not set(settings["data"]) - set(SETTINGS)


# ---------- systemd ----------


@pytest.mark.parametrize("unit", artefacts.read_units().values(), ids=lambda unit: str(unit.name))
def test_every_setting_of_lace_env_reaches_each_service(unit: artefacts.Unit) -> None:
    assert unit.one("Service", "EnvironmentFile") == "/etc/lace/lace.env"  # without a `-`: it must be there
    reached = unit.process_environment(SET)
    assert {name: reached.get(name) for name in SETTINGS} == {name: SET[name] for name in SETTINGS}


def test_a_command_has_the_account_folder_and_settings_of_the_services() -> None:
    unit = artefacts.read_units()["lace-web.service"]
    words = artefacts.shell_words((UNITS / "manage").read_text("utf-8"))
    assert words[:2] == ["exec", "systemd-run"] and words[-2:] == ["manage.py", "$@"]
    given = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
    for option, key in (("--uid", "User"), ("--gid", "Group"), ("--working-directory", "WorkingDirectory")):
        assert given[option] == unit.one("Service", key)
    assert f"--property=EnvironmentFile={unit.one('Service', 'EnvironmentFile')}" in words
    assert {word.removeprefix("--setenv=") for word in words if word.startswith("--setenv=")} == {
        f"{name}={value}" for name, value in unit.environment.items()
    }
    assert words[-3] == unit.command()[0]
