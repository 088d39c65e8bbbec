"""From one version to the next and back under load: nothing may be lost, refused or judged twice.

The version of `LACE_UPGRADE_FROM` (a commit or tag, by default the one before the newest migration) serves
raters and programs on PostgreSQL and Valkey. Meanwhile this version migrates the database, serves others
beside the old one, takes its place, and gives it back. Only what finds no server is sent again.
`LACE_UPGRADE_SECONDS=20` shortens each step.
"""

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings

from bench import Figure
from bench._child import in_child
from bench._office import Office, office, runs_end
from bench._site import Site

SECONDS = float(os.environ.get("LACE_UPGRADE_SECONDS", "30"))
COUNTS = {"rater": 24, "author": 0, "lead": 0, "program": 8}
BESIDE = {"rater": 8, "author": 0, "lead": 0, "program": 4}
ACCOUNTS = {"rater": COUNTS["rater"] + BESIDE["rater"], "author": 0, "lead": 1, "program": COUNTS["program"]}
THINK, ARRIVE, CHATS, JUDGES = 1.0, 2.0, 5_000, 2
NO_SERVER = (0, 502)
ENDS_WITHIN = 300.0
NEW = settings.BASE_DIR


def figures() -> Iterator[Figure]:
    """Labels of each step, what was lost, doubled or refused, and whether every run ended."""
    saved: dict[str, int] = {}
    with TemporaryDirectory(prefix="lace-old-") as name:
        old = Path(name)
        check_out(commit := version_before(), old)
        with office(counts=ACCOUNTS, chats=CHATS, demo=None, judges=JUDGES, code=old) as place:
            crowd = place.crowd(counts=COUNTS, think=THINK, rate=ARRIVE, repeat=NO_SERVER)
            time.sleep(sum(COUNTS.values()) / ARRIVE)
            saved["old version"] = work(place)
            migrations = migrate(place.site)
            saved["old version on the new tables"] = work(place)
            with another(place) as site:
                others = place.crowd(
                    counts=BESIDE, think=THINK, rate=ARRIVE, url=site.url, plan=plan_of_others(place)
                )
                saved["both versions"] = work(place)
                beside = others.end(stop=True, timeout=120)
                replace(place.site, NEW)
            saved["new version"] = work(place)
            replace(place.site, old)
            saved["old version again"] = work(place)
            found = crowd.end(stop=True, timeout=120)
            runs = runs_end(place.site, within=2 * ENDS_WITHIN)
            harm = place.harm(runs, found, beside)
    for result in (found, beside):
        result.tell_errors()
    print(f"from {commit}; {found.again} requests sent again", file=sys.stderr)
    yield Figure("migrations", migrations, 1, "", floor=True)
    for title, count in saved.items():
        yield Figure(f"revisions of labels, {title}", count, 1, "", floor=True)
    yield Figure("labels saved by the new version beside the old one", len(beside.saved), 1, "", floor=True)
    yield Figure("runs", runs["runs"], 1, "", floor=True)
    yield from harm


# ---------- versions ----------


def version_before() -> str:
    """The commit to come from. Raises `RuntimeError` where git does not have it."""
    chosen = os.environ.get("LACE_UPGRADE_FROM")
    if not chosen:
        newest = git("log", "-1", "--diff-filter=A", "--format=%H", "--", "*/migrations/*.py")
        chosen = f"{newest.decode().strip()}^"
    return git("rev-parse", "--short", f"{chosen}^{{commit}}").decode().strip()


def check_out(commit: str, folder: Path) -> None:
    """Write the files of that version."""
    with tarfile.open(fileobj=BytesIO(git("archive", commit))) as files:
        files.extractall(folder, filter="data")


def git(*words: str) -> bytes:
    """What it prints. Raises `RuntimeError` with its own words."""
    done = subprocess.run(["git", *words], cwd=NEW, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(words)}: {done.stderr.decode().strip()}")
    return done.stdout


# ---------- steps ----------


def work(place: Office) -> int:
    """Let the crowds work for a while; how many revisions of labels are stored meanwhile."""
    before = stored(place)
    time.sleep(SECONDS)
    place.crowds[0].must_work()
    return stored(place) - before


def stored(place: Office) -> int:
    """How many revisions of labels there are now."""
    return len(in_child("_office", "labels_stored", {}, place.site.environment)["labels"])


def migrate(site: Site) -> int:
    """Migrate with the new version, as an operator does; how many migrations were applied."""
    command = [sys.executable, "manage.py", "migrate", "--no-color"]
    environment = os.environ | site.environment
    done = subprocess.run(command, cwd=NEW, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    print(done.stdout, file=sys.stderr, flush=True)
    return done.stdout.count("... OK")


@contextmanager
def another(place: Office) -> Iterator[Site]:
    """The new version on the same database and broker, as long as the block lasts."""
    folder = place.folder / "another"
    folder.mkdir()
    site = Site(folder, place.server, place.site.environment | {"TMPDIR": str(folder / "tmp")})
    try:
        site.serve()
        yield site
    finally:
        site.stop()


def plan_of_others(place: Office) -> dict[str, object]:
    """The plan of the second crowd, whose raters are not those of the first one."""
    accounts = place.plan["accounts"]
    return place.plan | {"accounts": accounts | {"rater": accounts["rater"][COUNTS["rater"] :]}}


def replace(site: Site, code: Path) -> None:
    """End a version in good order and start another one at its address."""
    site.stop()
    site.code = code
    site.serve()
