"""What a machine can check of the house: imports, sizes, migrations, sign-in and CSRF on every route."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from labeling.models.people import User
from tests.factories.rows import make_user
from tests.pure_rooms import pure_modules
from tests.urlconf import all_routes
from tests.world import rolled_back

HOUSE = ("lace_site", "alignment", "evaluation", "labeling", "common", "tests", "bench", "deploy")
KINDS = {".py", ".html", ".js"}  # not the stylesheet: it is meant to be one
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 500, 40

# What a stranger may open; static files are served before any route is looked up.
OPEN_ROUTES = {"account_login", "healthz", "readyz"} | {
    "account_inactive",
    "account_reset_password",
    "account_reset_password_done",
}
UNSAFE = ("post", "put", "patch", "delete")


# ---------- the house ----------


def sources(*kinds: str) -> Iterator[Path]:
    """The house's own files; without vendor files and migrations."""
    for folder in (*HOUSE, "templates"):
        for path in sorted((settings.BASE_DIR / folder).rglob("*")):
            if path.suffix in kinds and not {"vendor", "migrations"} & set(path.parts):
                yield path


def test_imports_go_one_way() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_file_has_more_than_500_lines() -> None:
    found = list(sources(*KINDS))
    sizes = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in found}
    assert len(sizes) > 100
    assert {path: size for path, size in sizes.items() if size > MOST_LINES} == {}


def test_no_test_module_imports_from_another() -> None:
    """What several of them need is in tests/factories."""
    imports = re.compile(r"^(from|import) tests\.[\w.]*test_", re.MULTILINE)
    paths = (settings.BASE_DIR / "tests").rglob("*.py")
    assert [path.name for path in paths if imports.search(path.read_text(encoding="utf-8"))] == []


def test_no_function_has_more_than_40_lines() -> None:
    long = []
    for path in sources(".py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node, clean=False) or ""
                lines = (node.end_lineno or 0) - node.lineno + 1 - len(docstring.splitlines())
                if lines > MOST_LINES_OF_A_FUNCTION:
                    long.append(f"{path.name}: {node.name}, {lines} lines")
    assert long == []


def test_pure_rooms_need_no_django() -> None:
    script = (
        "import importlib, sys\n"
        f"for name in {pure_modules()!r}:\n"
        "    importlib.import_module(name)\n"
        "print(sorted({'django', 'rest_framework', 'celery', 'openai'} & set(sys.modules)))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.django_db
def test_the_migrations_are_complete() -> None:
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)


# ---------- routes ----------


def test_the_urlconf_is_read_whole() -> None:
    routes = all_routes()
    names = {route.name for route in routes}
    assert {"home", "account_logout", "labeling:rate", "evaluation:run_detail", "alignment:cell"} <= names
    assert {"api_label", "api_run_report", "schema", "admin:index", *OPEN_ROUTES} <= names
    assert len(routes) > 40


@pytest.mark.sweep
@pytest.mark.django_db
def test_every_route_asks_for_the_sign_in() -> None:
    make_user("somebody")  # a workspace without accounts leads to its first one
    client, login = Client(), (reverse("account_login"), reverse("admin:login"))
    for route in all_routes():
        for method in ("get", *UNSAFE):
            response = getattr(client, method)(route.url)
            if response.status_code == 302:
                assert response.headers["Location"].split("?")[0] in login, route
            elif route.name not in OPEN_ROUTES:
                assert response.status_code in (401, 403, 404, 405), (method, route, response.status_code)


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(OPEN_ROUTES))
def test_the_open_routes_are_open_and_no_more_than_needed(name: str) -> None:
    make_user("somebody")
    response = Client().get(reverse(name))
    assert response.status_code == 200
    assert "Sign out" not in response.content.decode()


@pytest.mark.heavy
@pytest.mark.sweep
@pytest.mark.parametrize("strict", [True, False], ids=["checked", "not checked"])
def test_every_unsafe_request_without_a_token_is_refused(everybody: User, strict: bool) -> None:
    """Where Django's own check is off nothing is refused, so the token is all that is missing."""
    client, refused = Client(enforce_csrf_checks=strict), []
    client.force_login(everybody)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    for route in all_routes():
        for method in UNSAFE:
            with rolled_back():
                client.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: session})
                response = getattr(client, method)(route.url, content_type="application/json")
            refused.append(((method, route, response.status_code), response.status_code == 403))
    assert [request for request, was_refused in refused if was_refused is not strict] == []


def test_with_the_token_the_same_request_goes_through(everybody: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(everybody)
    page = client.get(reverse("alignment:report_list"))
    token = page.context["csrf_token"]
    assert client.post(reverse("account_logout"), {"csrfmiddlewaretoken": str(token)}).status_code == 302
    assert client.get(reverse("alignment:report_list")).status_code == 302
