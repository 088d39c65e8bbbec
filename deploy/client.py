"""Makes the Python client: `python -m deploy.client` its typed part, `python -m deploy.client zip` one file.

The generator is openapi-python-client. It makes the operations that client/operations.txt names. Its models
become plain dataclasses, and its HTTP client the hand-written one, so that httpx is all that users install.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLIENT = Path(__file__).resolve().parent.parent / "client"
GENERATED = CLIENT / "src" / "lace_client" / "generated"
OPERATIONS = CLIENT / "operations.txt"

# From attrs, which the generator uses, to the standard library.
_REPLACED = (
    (r"^from attrs import define as _attrs_define\n", "from dataclasses import dataclass\n"),
    # Under another name: a model may have a field that is called field.
    (r"^from attrs import field as _attrs_field\n", "from dataclasses import field as _field\n"),
    (r"^from attrs import define\n", "from dataclasses import dataclass\n"),
    (r"^@_attrs_define$|^@define$", "@dataclass"),
    (r"_attrs_field\(init=False, factory=dict\)", "_field(init=False, default_factory=dict)"),
    (r"from \.\.\.client import", "from ....http import"),
)


def operations() -> list[str]:
    """Return the ids of the operations that the client has."""
    lines = OPERATIONS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def selected(schema: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
    """Return the document with these operations alone. Raises ValueError for one that it does not have."""
    paths: dict[str, Any] = {}
    for path, by_method in schema["paths"].items():
        if kept := {name: one for name, one in by_method.items() if one.get("operationId") in wanted}:
            paths[path] = kept
    found = {one["operationId"] for by_method in paths.values() for one in by_method.values()}
    if missing := sorted(set(wanted) - found):
        raise ValueError(f"client/operations.txt: the API has no operation {', '.join(missing)}")
    every = schema["components"]["schemas"]
    names, queue = set[str](), list(_references(paths))
    while queue:
        if (name := queue.pop()) not in names:
            names.add(name)
            queue += _references(every[name])
    components = {**schema["components"], "schemas": {name: every[name] for name in every if name in names}}
    return {**schema, "paths": paths, "components": components}


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(reference := part.get("$ref"), str):
            yield reference.rpartition("/")[2]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from _references(one)


def generate(schema: dict[str, Any], into: Path) -> None:
    """Write the package `into` a folder, which is replaced."""
    from openapi_python_client import generate as run_generator
    from openapi_python_client.config import Config, ConfigFile, MetaType

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "openapi.json"
        source.write_text(json.dumps(selected(schema, operations()), default=str), encoding="utf-8")
        made = Path(folder) / "generated"
        config = Config.from_sources(ConfigFile(post_hooks=[]), MetaType.NONE, source, "utf-8", False, made)
        if problems := run_generator(config=config):
            raise ValueError("; ".join(str(one) for one in problems))
        # The generator's own HTTP client needs attrs; src/lace_client/http.py takes its place.
        (made / "client.py").unlink()
        (made / "__init__.py").write_text('"""Generated from the OpenAPI document: make client."""\n')
        for path in made.rglob("*.py"):
            path.write_text(_plain(path.read_text(encoding="utf-8")), encoding="utf-8")
        ruff = [sys.executable, "-m", "ruff"]
        where = ["--isolated", "--line-length", "110", "--target-version", "py311", str(made)]
        subprocess.run([*ruff, "check", "--quiet", "--select", "I,F401,UP", "--fix-only", *where], check=True)
        subprocess.run([*ruff, "format", "--quiet", *where], check=True)
        _replace(into, made)


def _plain(text: str) -> str:
    for pattern, by in _REPLACED:
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    return text


def _replace(into: Path, made: Path) -> None:
    """Make the folder equal to what was made."""
    new = {path.relative_to(made) for path in made.rglob("*") if path.suffix in (".py", ".typed")}
    for path in sorted(into.rglob("*"), reverse=True) if into.exists() else ():
        if path.is_file() and path.relative_to(into) not in new and path.suffix != ".pyc":
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    for name in sorted(new):
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_bytes((made / name).read_bytes())


# What httpx needs, all of it plain Python.
_BUNDLED = ("httpx", "httpcore", "h11", "certifi", "idna", "anyio", "sniffio", "typing_extensions")
_START = "from lace_client.cli import main\n\nmain()\n"
_TIME = (2026, 1, 1, 0, 0, 0)  # of every file in it: equal content makes an equal archive


def zip_client(into: Path) -> Path:
    """Write the client and what it needs, as installed here, as one file that Python executes."""
    files = {"__main__.py": _START.encode()}
    package = CLIENT / "src"
    for path in package.rglob("*"):
        if path.suffix in (".py", ".typed"):
            files[str(path.relative_to(package))] = path.read_bytes()
    for name in _BUNDLED:
        for part in importlib.metadata.files(name) or ():
            if ".." not in part.parts and part.suffix != ".pyc":
                files[str(part)] = Path(str(part.locate())).read_bytes()
    into.parent.mkdir(parents=True, exist_ok=True)
    with into.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w") as archive:
            for name in sorted(files):
                entry = zipfile.ZipInfo(name, _TIME)
                archive.writestr(entry, files[name], compress_type=zipfile.ZIP_DEFLATED)
    into.chmod(0o755)
    return into


def _document() -> dict[str, Any]:
    """Return the OpenAPI document of the code as it is."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")
    import django
    from django.core.management import call_command

    django.setup()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "openapi.json"
        call_command("spectacular", format="openapi-json", file=str(path))
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def main() -> None:
    """Generate the client, or pack it into the file that is named."""
    match sys.argv[1:]:
        case []:
            generate(_document(), GENERATED)
            print(f"{len(operations())} operations in {GENERATED}")
        case ["zip", name]:
            path = zip_client(Path(name))
            print(f"{path}: {path.stat().st_size:,} bytes")
        case _:
            sys.exit("usage: python -m deploy.client [zip FILE]")


if __name__ == "__main__":
    main()
