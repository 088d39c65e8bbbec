"""Reads the Dockerfile, compose.yaml and the systemd units, as far as the walk executes them."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE, COMPOSE, IGNORED = ROOT / "Dockerfile", ROOT / "compose.yaml", ROOT / ".dockerignore"
UNITS, MANIFESTS = ROOT / "deploy/systemd", ROOT / "deploy/kubernetes"


# ---------- Dockerfile ----------


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a Dockerfile, such as `RUN`, with the text behind it in one line."""

    instruction: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words: of a JSON array, or as a shell divides them."""
        return list(json.loads(self.text)) if self.text.startswith("[") else shlex.split(self.text)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a Dockerfile: its name ("" for the last one), the image it starts from, its steps."""

    name: str
    base: str
    steps: tuple[Step, ...]

    def of(self, instruction: str) -> list[Step]:
        """The steps of one kind, in their order."""
        return [step for step in self.steps if step.instruction == instruction]

    @property
    def environment(self) -> dict[str, str]:
        """What ENV sets."""
        return dict(word.split("=", 1) for step in self.of("ENV") for word in step.words)

    @property
    def health(self) -> list[str]:
        """The command of HEALTHCHECK."""
        (step,) = self.of("HEALTHCHECK")
        return list(json.loads(step.text.partition("CMD ")[2]))


def read_steps(text: str) -> Iterator[Step]:
    """
    Read a Dockerfile line by line; continued lines are one.

    Examples
    --------
    >>> [step.words for step in read_steps("# A comment\\nCMD [\\"a\\", \\\\\\n  \\"b\\"]")]
    [['a', 'b']]
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            instruction, _, rest = line.partition(" ")
            yield Step(instruction, rest.strip())


def read_stages(text: str) -> list[Stage]:
    """Read the stages of a Dockerfile; the ARGs before them have their defaults."""
    defaults: dict[str, str] = {}
    found: list[tuple[str, str, list[Step]]] = []
    for step in read_steps(text):
        if step.instruction == "FROM":
            base, _, name = step.text.partition(" AS ")
            for key, value in defaults.items():
                base = base.replace(f"${{{key}}}", value)
            found.append((name, base, []))
        elif found:
            found[-1][2].append(step)
        else:
            key, _, value = step.text.partition("=")
            defaults[key] = value
    return [Stage(name, base, tuple(steps)) for name, base, steps in found]


def context_files(ignored: str) -> list[str]:
    """Return what goes into the image: the names that .dockerignore lets in behind `*`."""
    return [line[1:] for line in ignored.splitlines() if line.startswith("!")]


# ---------- compose.yaml ----------


def substitute(value: str, environment: Mapping[str, str]) -> str:
    """
    Fill in variables as Compose does. Raises ValueError where a required one is missing.

    Examples
    --------
    >>> substitute("redis://${HOST:-valkey}:${PORT}", {"PORT": "6379"})
    'redis://valkey:6379'
    >>> substitute("${URL:-https://${HOST}}", {"HOST": "lace.example.org"})
    'https://lace.example.org'
    """

    def fill(match: re.Match[str]) -> str:
        found = environment.get(match["name"], "")
        if not found and match["mark"] == ":?":
            raise ValueError(f"{match['name']}: {match['rest']}")
        return found or (substitute(match["rest"], environment) if match["mark"] == ":-" else "")

    rest = r"(?P<mark>:[-?])(?P<rest>(?:[^{}]|\{[^{}]*\})*)"
    return re.sub(rf"\$\{{(?P<name>\w+)(?:{rest})?\}}", fill, value)


def read_compose(text: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Read the services by name, with their variables filled in."""
    services: dict[str, Any] = yaml.safe_load(text)["services"]

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [filled(one) for one in value]
        return substitute(value, environment) if isinstance(value, str) else value

    return {name: filled(service) for name, service in services.items()}


def service_environment(service: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a service: `settings` is the file .env, and `environment` comes before it."""
    from_file = settings if ".env" in service.get("env_file", ()) else {}
    return {**from_file, **{key: str(value) for key, value in service.get("environment", {}).items()}}


# ---------- systemd units ----------


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit file: its name, and the values of its sections by key, in their order."""

    name: str
    values: Mapping[str, Mapping[str, tuple[str, ...]]]

    def one(self, section: str, key: str) -> str:
        """The value of a key that is set once; "" where it is not set."""
        found = self.values.get(section, {}).get(key, ())
        if len(found) > 1:
            raise ValueError(f"{self.name}: {key} is set {len(found)} times")
        return found[0] if found else ""

    def command(self, instance: str = "1") -> list[str]:
        """The words of ExecStart, as systemd starts them."""
        text = self.one("Service", "ExecStart").replace("%i", instance).replace("%%", "%")
        return shlex.split(text)

    @property
    def environment(self) -> dict[str, str]:
        """What Environment sets."""
        lines = self.values["Service"].get("Environment", ())
        return dict(word.split("=", 1) for line in lines for word in shlex.split(line))

    def process_environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of its process: `settings` is the EnvironmentFile, which comes first."""
        return self.environment | (dict(settings) if self.one("Service", "EnvironmentFile") else {})


def read_unit(name: str, text: str) -> Unit:
    """Read a unit file. Raises ValueError for a line that is none of its kinds."""
    values: dict[str, dict[str, tuple[str, ...]]] = {}
    section: dict[str, tuple[str, ...]] = {}
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            section = values.setdefault(line.strip("[] "), {})
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"{name}: {line}")
        section[key.strip()] = (*section.get(key.strip(), ()), value.strip())
    return Unit(name, values)


def read_units() -> dict[str, Unit]:
    """Read the services of this folder by name."""
    return {
        path.name: read_unit(path.name, path.read_text("utf-8")) for path in sorted(UNITS.glob("*.service"))
    }


def shell_words(script: str) -> list[str]:
    """Return the words of a script that is one command, as a shell divides them."""
    return shlex.split(script.replace("\\\n", " "), comments=True)


def read_environment_file(text: str) -> dict[str, str]:
    """Read an EnvironmentFile: a name and a value a line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)
