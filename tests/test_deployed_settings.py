"""A deployed site: no key that others may know, no debug pages, and nothing written beside the code."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

ROOT: Path = settings.BASE_DIR
PARTS = ("lace_site", "alignment", "evaluation", "labeling", "common", "templates", "docs")
KEY = secrets.token_urlsafe(64)
HOST = "lace.example.org"
UNSET = ("SECRET_KEY", "DEBUG", "HTTPS", "ALLOWED_HOSTS", "LACE_DATA_DIR")


def manage(
    folder: Path, *words: str, code: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` of this code with its data in `folder`."""
    usual = {name: value for name, value in os.environ.items() if name not in UNSET}
    data = {"LACE_DATA_DIR": str(folder), "DATABASE_URL": f"sqlite:///{folder}/lace.sqlite3"}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=code,
        env=usual | data | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


# ---------- keys ----------


@pytest.mark.parametrize("production", [{"ALLOWED_HOSTS": HOST}, {"HTTPS": "on"}], ids=["other hosts", "TLS"])
def test_a_site_for_others_does_not_start_without_a_key(tmp_path: Path, production: dict[str, str]) -> None:
    done = manage(tmp_path, "check", code=ROOT, **production)
    assert done.returncode == 2
    assert done.stderr.startswith("error: SECRET_KEY must be set where HTTPS is on or ALLOWED_HOSTS names ")
    assert "secrets.token_urlsafe(64)" in done.stderr
    assert not (tmp_path / "secret_key").exists()


@pytest.mark.parametrize(
    "key", ["changeme", "a" * 60, f"django-insecure-{KEY}"], ids=["a word", "one letter", "of startproject"]
)
def test_a_key_that_can_be_guessed_is_refused(tmp_path: Path, key: str) -> None:
    done = manage(tmp_path, "check", ALLOWED_HOSTS=HOST, SECRET_KEY=key)
    assert (done.returncode, "SECRET_KEY must have 50 random characters" in done.stderr) == (2, True)
    assert key not in done.stderr


def test_debug_pages_are_refused_where_others_could_see_them(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", ALLOWED_HOSTS=HOST, SECRET_KEY=KEY, DEBUG="on")
    assert (done.returncode, done.stderr[:26]) == (2, "error: DEBUG must be off w")


def test_a_site_for_this_machine_makes_its_own_key_once(tmp_path: Path) -> None:
    show = ("shell", "--no-imports", "-c", "from django.conf import settings; print(settings.SECRET_KEY)")
    first, second = (manage(tmp_path, *show).stdout.strip() for _ in range(2))
    assert first == second == (tmp_path / "secret_key").read_text()
    assert len(first) >= 64


def test_djangos_check_of_a_deployment_finds_nothing(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", "--deploy", HTTPS="on", ALLOWED_HOSTS=HOST, SECRET_KEY=KEY)
    assert (done.returncode, done.stdout) == (0, "System check identified no issues (0 silenced).\n")


# ---------- data folder ----------


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the code that nobody may write; root may, so the tests also look for new files."""
    tree = tmp_path_factory.mktemp("code") / "lace"
    for part in PARTS:
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tree / name)
    folders = [tree, *(path for path in tree.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    yield tree
    for path in folders:
        path.chmod(0o755)


def test_all_that_is_written_lies_in_the_data_folder(code: Path, tmp_path: Path) -> None:
    before, data = sorted(code.rglob("*")), tmp_path / "new" / "data"
    work = (
        "import lace_site.wsgi; from lace_site.manual.queries import page; "
        "from lace_site.celery import app; app.send_task('none', queue='default'); "
        "print(page('run-it')[0])"
    )
    done = manage(data, "shell", "--no-imports", "-c", work, code=code)
    assert (done.returncode, done.stdout.strip()) == (0, "Run it"), done.stderr
    assert sorted(code.rglob("*")) == before
    assert {"secret_key", "static", "sites"} <= {path.name for path in data.iterdir()}


def test_a_data_folder_that_cannot_be_made_is_named_with_its_setting() -> None:
    done = manage(Path("/dev/null/data"), "check")
    assert done.returncode == 4
    assert done.stderr.startswith("error: /dev/null/data cannot be written: Not a directory (LACE_DATA_DIR ")
