"""The workspace's files are for the account that runs it: mode 700 and 600, also of older installations."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHOW_UMASK = "; import os; print(oct(os.umask(0)))"


def start(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Start Python as an account with the usual umask, with database and broker in `folder`."""
    own = {"DATABASE_URL": f"sqlite:///{folder}/lace.sqlite3", "LACE_BROKER_DIR": str(folder / "broker")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | own,
        umask=0o022,
        capture_output=True,
        text=True,
        check=True,
    )


def modes(folder: Path) -> dict[str, int]:
    paths = [folder / "lace.sqlite3", folder / "broker", *(folder / "broker").rglob("*")]
    return {
        "message" if path.suffix == ".msg" else path.name: stat.S_IMODE(path.stat().st_mode) for path in paths
    }


@pytest.mark.parametrize(
    "module",
    ["import lace_site.wsgi", "from lace_site.celery import app; app.conf.broker_url"],
    ids=["web", "worker"],
)
def test_every_process_starts_with_a_private_umask(tmp_path: Path, module: str) -> None:
    assert start("-c", module + SHOW_UMASK, folder=tmp_path).stdout.strip() == "0o77"


def test_new_files_are_private_and_older_ones_are_closed_with_one_line(tmp_path: Path) -> None:
    create = (
        "from django.db import connection as c; c.may_create = True; "
        "c.cursor().execute('create table t (a)'); "
        "from lace_site.celery import app; app.send_task('none', queue='default')"
    )
    shell = ("manage.py", "shell", "--no-imports", "-c", create)
    start(*shell, folder=tmp_path)
    private = {"lace.sqlite3": 0o600, "broker": 0o700, "queue": 0o700, "message": 0o600}
    assert modes(tmp_path) == private
    for path in (tmp_path / "lace.sqlite3", tmp_path / "broker" / "queue"):
        path.chmod(0o755)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("linked")
    elsewhere.chmod(0o644)
    (tmp_path / "broker" / "link").symlink_to(elsewhere)
    lines = [
        line for line in start(*shell[:-1], "0", folder=tmp_path).stderr.splitlines() if "closed" in line
    ]
    assert len(lines) == 1
    assert "files and folders to other accounts" in lines[0]
    (tmp_path / "broker" / "link").unlink()
    assert modes(tmp_path) == private | {"lace.sqlite3": 0o700}
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644
    assert stat.S_IMODE((ROOT / "var").stat().st_mode) == 0o700
