"""A nonsense setting stops the start with the variable's name; a wrong command line exits 2, never 1."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.backends.signals import connection_created
from django.test import RequestFactory

from lace_site.environment import domains, sign_on_provider
from lace_site.settings import VAR_DIR, site_name
from lace_site.wsgi import application

ROOT = Path(__file__).resolve().parent.parent


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LACE_MAX_IN_FLIGHT", "many"),
        ("LACE_MAX_IN_FLIGHT", "0"),
        ("LACE_REQUEST_TIMEOUT", "-1"),
        ("LACE_REQUESTS_PER_MINUTE", "0"),
        ("LACE_REQUESTS_PER_MINUTE", "unlimited"),
        ("LACE_TOKENS_PER_MINUTE", "-5"),
        ("TIME_ZONE", "Nowhere/Land"),
        ("DEBUG", "maybe"),
        ("LACE_SSO_ROLE", "lead"),
        ("LACE_TRUSTED_PROXIES", "-1"),
        ("LACE_SIGN_IN_LOG_DAYS", "29"),
        ("SITE_URL", "lace.example.org"),
        ("SITE_URL", "https://lace.example.org,other.example.org"),
        ("DATABASE_URL", "mysql://localhost/x"),
    ],
)
def test_a_nonsense_setting_stops_the_start_with_its_name(name: str, value: str) -> None:
    done = manage("check", **{name: value})
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert name in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("issuer", "says"),
    [
        ("http://sso.example.org", "must start with https://"),
        ("ftp://127.0.0.1", "must start with https://"),
        ("https://sso.example.org", "needs LACE_SSO_CLIENT_ID and LACE_SSO_CLIENT_SECRET"),
    ],
)
def test_a_provider_of_single_sign_on_is_set_whole_and_safe(issuer: str, says: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=says):
        sign_on_provider(issuer, "Acme", loopback=issuer.startswith("ftp"))


@pytest.mark.parametrize("value", ["mara@example.org", "localhost"])
def test_domains_of_single_sign_on_are_domains(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("LACE_SSO_DOMAINS", f"example.org,{value}")
    with pytest.raises(ImproperlyConfigured, match=f"LACE_SSO_DOMAINS lists no domain: '{value}'"):
        domains("LACE_SSO_DOMAINS")


@pytest.mark.parametrize(
    ("value", "read"),
    [(None, "None None"), ("", "None None"), ("90", "90 90")],
    ids=["unset", "empty", "set"],
)
def test_limits_that_are_not_set_are_no_limits(value: str | None, read: str) -> None:
    names = ("LACE_REQUESTS_PER_MINUTE", "LACE_TOKENS_PER_MINUTE")
    show = f"from django.conf import settings; print(settings.{names[0]}, settings.{names[1]})"
    given = {} if value is None else dict.fromkeys(names, value)
    assert manage("shell", "--no-imports", "-c", show, **given).stdout.strip() == read


@pytest.mark.django_db(transaction=True)
def test_requests_of_one_thread_share_a_database_connection() -> None:
    """As the server's threads handle them; Django's test client would keep the connection in any case."""
    opened: list[int] = []
    statuses: list[str] = []

    def note(**_: Any) -> None:
        opened.append(1)

    def answer(status: str, *_: Any) -> Any:
        statuses.append(status)

    def requests() -> None:
        try:
            for _ in range(2):
                call = {**RequestFactory(HTTP_HOST="localhost").get("/readyz").environ}
                application(call, answer).close()
        finally:
            connections.close_all()

    connection_created.connect(note)
    try:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(requests).result()
    finally:
        connection_created.disconnect(note)
    assert (len(opened), len(statuses)) == (1, 2)


def test_an_unknown_command_is_wrong_usage() -> None:
    done = manage("evaluat")
    assert done.returncode == 2
    assert "'evaluat'" in done.stderr


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"ENGINE": "common.sqlite", "NAME": str(VAR_DIR / "workspace.sqlite3")}, "workspace"),
        ({"ENGINE": "common.sqlite", "NAME": str(VAR_DIR / "my demo-2.sqlite3")}, "my_demo_2_[0-9a-f]{8}"),
        ({"ENGINE": "common.sqlite", "NAME": "/srv/a/workspace.sqlite3"}, "workspace_[0-9a-f]{8}"),
        ({"ENGINE": "django.db.backends.postgresql", "NAME": "lace", "HOST": "db"}, "lace_[0-9a-f]{8}"),
    ],
)
def test_each_database_has_its_own_site_name(config: dict[str, str], name: str) -> None:
    """So that two sites on one machine share neither the broker's folder nor cookies."""
    assert re.fullmatch(name, site_name(config))


def test_files_of_one_name_in_two_folders_are_two_sites() -> None:
    first, second = ({"ENGINE": "common.sqlite", "NAME": f"/srv/{one}/lace.sqlite3"} for one in "ab")
    assert site_name(first) != site_name(second)
