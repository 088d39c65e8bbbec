"""The plan of the rooms: no import circle, queries that only read, lines that fit, pins that are used."""

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from django.conf import settings

from tests.conftest import ON_BOTH_PATHS

ROOT: Path = settings.BASE_DIR
APPS = ("lace_site", "alignment", "evaluation", "labeling", "common")
LONGEST_LINE = 110

# What changes rows. `update` and `delete` count where they end a chain that starts at a manager or a query.
WRITES = {
    *("save", "bulk_create", "bulk_update", "get_or_create", "update_or_create", "select_for_update"),
    *("acreate", "asave", "adelete", "aupdate"),
}
# Documents that are computed from rows and stored so that the next reader need not wait: a cache.
CACHES = {"alignment/comparison/queries/cached_documents.py"}


def test_no_file_imports_itself_in_a_circle() -> None:
    graph = grimp.build_graph(*APPS, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()  # a CycleError names the circle


def queries() -> list[Path]:
    found = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]
    return [path for path in found if "queries" in path.parts or path.name == "queries.py"]


def writes(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            chain = ast.unparse(node.func)
            ends = node.func.attr in ("update", "delete", "create") and ".objects" in chain
            if node.func.attr in WRITES or ends:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {chain}"


def test_queries_never_write() -> None:
    read = [path for path in queries() if str(path.relative_to(ROOT)) not in CACHES]
    assert len(read) > 50
    assert [one for path in read for one in writes(path)] == []


def long_lines(path: Path) -> Iterator[str]:
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if path.suffix == ".md":
            fenced ^= line.lstrip().startswith("```")
            # A table's row cannot be broken, nor can an address.
            if fenced or line.lstrip().startswith("|") or re.search(r"\]\([^)]{60,}\)|://\S{60,}", line):
                continue
        if len(line) > LONGEST_LINE:
            yield f"{path.relative_to(ROOT)}:{number}, {len(line)} characters"


def test_no_line_is_longer_than_110_characters() -> None:
    paths = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    for folder in ("docs", "templates"):
        paths += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".md", ".html")]
    for app in APPS:
        paths += [path for path in (ROOT / app).rglob("*") if path.suffix in (".js", ".css")]
    checked = [path for path in paths if not {"vendor", "adr"} & set(path.parts)]
    assert len(checked) > 150
    assert [one for path in checked for one in long_lines(path)] == []


# Pins that no import names: programs, back ends, and what a setting loads by name.
STARTED = {
    "argon2-cffi": "Django's hasher of passwords imports it",
    "gunicorn": "lace_site/management/commands/serve.py starts it",
    "defusedxml": "openpyxl reads with it where it is installed",
    "psycopg": "Django's PostgreSQL back end imports it",
    "drf-spectacular-sidecar": "an installed app, by name",
    "whitenoise": "a middleware, by name",
}


def direct_pins() -> list[str]:
    """The direct runtime requirements by name; what they pull in is below the second heading."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8").split("# What they pull in.")[0]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [re.split(r"[\[=]", line)[0] for line in lines]


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The top names that the product's own files import, or its settings name as text."""
    names: set[str] = set()
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names)


def test_every_runtime_pin_has_an_importer(imported: set[str]) -> None:
    owners = importlib.metadata.packages_distributions()
    used = {owner for module in imported for owner in owners.get(module, ())}
    assert [name for name in direct_pins() if name not in used and name not in STARTED] == []


def test_the_tests_of_a_module_stay_in_one_process(request: pytest.FixtureRequest) -> None:
    """It sets up their rows once. xdist writes the group of a test behind its name."""
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.endswith("@tests/test_rooms.py")


def test_what_both_databases_run_exists() -> None:
    assert [path for path in sorted(ON_BOTH_PATHS) if not (ROOT / path).exists()] == []
